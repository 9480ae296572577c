"""Heads that guess hidden words: what an encoder is taught before it is taught names.

What it does: `tiny` and `lstm` guess words of a vocabulary that the corpus made; Hugging Face encoders guess their own
    sub-words, by the embeddings that they read them with.
Assumes: that a text says something about each of its words.
Departs from the authors: a large vocabulary of words has torch's adaptive softmax, rare words in a narrower space.
Reference: Devlin et al. (2019), "BERT"; Grave et al. (2017), "Efficient softmax approximation for GPUs".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lacuner.errors import ConfigError
from lacuner.models.types import SubwordEncoder, TokenScores

MASK = "\ue000"
"""The word that stands for a hidden one: a character that no text has."""
LARGE = 10_000
"""So many words are guessed at once; of more the rare ones are guessed in two steps."""
_OFTEN = 4_000


class MaskedWordHead(nn.Module):
    """Vectors of words to a vocabulary. `top5` is how often the best five held a hidden word of held-out text."""

    def __init__(self, width: int, labels: Sequence[str], top5: float | None = None) -> None:
        super().__init__()
        if len(labels) < 2 or len(set(labels)) < len(labels):
            raise ConfigError("a vocabulary has at least two words, each once")
        self.labels = tuple(labels)
        self.top5 = check_accuracy(top5)
        large = len(labels) > LARGE
        self.output: Any = (
            nn.AdaptiveLogSoftmaxWithLoss(width, len(labels), [_OFTEN]) if large else nn.Linear(width, len(labels))
        )

    @property
    def size(self) -> int:
        return len(self.labels)

    @property
    def mask(self) -> int:
        """The number of the hidden word: one past the vocabulary."""
        return len(self.labels)

    def log_probs(self, vectors: Tensor) -> Tensor:
        """Log probabilities `[..., size]`."""
        if isinstance(self.output, nn.Linear):
            plain: Tensor = self.output(vectors).float().log_softmax(dim=-1)
            return plain
        logs: Tensor = self.output.log_prob(vectors.flatten(0, -2).float())
        return logs.view(*vectors.shape[:-1], -1)

    def losses(self, vectors: Tensor, wanted: Tensor) -> Tensor:
        """Minus the log probability of the wanted words, from vectors `[n, width]`."""
        if isinstance(self.output, nn.Linear):
            return functional.cross_entropy(self.output(vectors).float(), wanted, reduction="none")
        # in torch these are methods of a module; a batch of none would fail there
        return -self.output(vectors.float(), wanted).output if len(wanted) else vectors.sum(dim=-1)

    def forward(self, vectors: Tensor, mask: Tensor) -> TokenScores:
        return TokenScores(self.log_probs(vectors), mask)

    def config(self) -> dict[str, Any]:
        return {"kind": "masked_words", "labels": list(self.labels), "top5": self.top5}


class MaskedPieceHead(nn.Module):
    """Vectors of sub-words to sub-words: one layer, and the embeddings of the encoder that it is tied to."""

    def __init__(
        self, width: int, labels: Sequence[str], pieces: int, size: int, mask: int, top5: float | None = None
    ) -> None:
        super().__init__()
        if labels or not 0 <= mask < pieces:
            raise ConfigError("a head for sub-words has no labels, and its mask is one of the sub-words")
        self.labels: tuple[str, ...] = ()
        self.size, self.mask, self.top5 = pieces, mask, check_accuracy(top5)
        self.dense = nn.Linear(width, size)
        self.norm = nn.LayerNorm(size)
        self.bias = nn.Parameter(torch.zeros(pieces))
        self._embeddings: Callable[[], Tensor] = lambda: self.bias.new_zeros(pieces, size)

    def tie(self, encoder: SubwordEncoder) -> None:
        """Guess with the encoder's own embeddings. They stay its own: here is only where to find them."""
        self._embeddings = lambda: encoder.model.get_input_embeddings().weight

    def logits(self, vectors: Tensor) -> Tensor:
        inner = self.norm(functional.gelu(self.dense(vectors)))
        return functional.linear(inner, self._embeddings(), self.bias).float()

    def log_probs(self, vectors: Tensor) -> Tensor:
        """Log probabilities `[..., size]`."""
        return self.logits(vectors).log_softmax(dim=-1)

    def losses(self, vectors: Tensor, wanted: Tensor) -> Tensor:
        """Minus the log probability of the wanted sub-words, from vectors `[n, width]`."""
        return functional.cross_entropy(self.logits(vectors), wanted, reduction="none")

    def forward(self, vectors: Tensor, mask: Tensor) -> TokenScores:
        return TokenScores(self.log_probs(vectors), mask)

    def config(self) -> dict[str, Any]:
        sizes = {"pieces": self.size, "size": self.dense.out_features, "mask": self.mask}
        return {"kind": "masked_pieces", "labels": [], **sizes, "top5": self.top5}


MaskedHead = MaskedWordHead | MaskedPieceHead


def check_accuracy(share: float | None) -> float | None:
    """The share itself, if it is one."""
    if share is not None and (isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1):
        raise ConfigError(f"an accuracy of {share!r} is not a share")
    return share
