"""Heads of masked language models.

What it does: for `tiny` and `lstm` the head predicts words of the training corpus's vocabulary; for Hugging Face
    encoders it predicts sub-words, with the encoder's input embeddings as output layer.
Assumes: the context of a word says something about it.
Departs from the authors: a large vocabulary of words uses torch's adaptive softmax: rare words in a narrower space.
Reference: Devlin et al. (2019), "BERT"; Grave et al. (2017), "Efficient softmax approximation for GPUs".
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lacuner.errors import ConfigError
from lacuner.models.types import SubwordEncoder, TokenScores

MASK = "\ue000"
"""The mask as a word: a private-use character that no text contains."""
LARGE = 10_000
"""Largest vocabulary with a plain softmax; in a larger one, all but the 4,000 most frequent words form a cluster."""
_FREQUENT = 4_000


class MaskedWordHead(nn.Module):
    """Word vectors to a vocabulary. `top5` is the top-5 accuracy on masked words of held-out text."""

    def __init__(self, width: int, labels: Sequence[str], top5: float | None = None) -> None:
        super().__init__()
        if len(labels) < 2 or len(set(labels)) < len(labels):
            raise ConfigError("a vocabulary has at least two words, each once")
        self.labels = tuple(labels)
        self.top5 = check_accuracy(top5)
        self.size = self.mask = len(labels)  # the number of the mask is one past the vocabulary
        large = len(labels) > LARGE
        self.output: Any = (
            nn.AdaptiveLogSoftmaxWithLoss(width, len(labels), [_FREQUENT]) if large else nn.Linear(width, len(labels))
        )

    def log_probs(self, vectors: Tensor) -> Tensor:
        """Log probabilities `[..., size]`."""
        if isinstance(self.output, nn.Linear):
            plain: Tensor = self.output(vectors).float().log_softmax(dim=-1)
            return plain
        flat: Tensor = self.output.log_prob(vectors.flatten(0, -2).float())
        return flat.view(*vectors.shape[:-1], -1)

    def losses(self, vectors: Tensor, words: Tensor) -> Tensor:
        """Negative log probability of each masked word, from vectors `[n, width]`."""
        if isinstance(self.output, nn.Linear):
            return functional.cross_entropy(self.output(vectors).float(), words, reduction="none")
        # torch's adaptive softmax fails on an empty batch
        return -self.output(vectors.float(), words).output if len(words) else vectors.sum(dim=-1)

    def forward(self, vectors: Tensor, mask: Tensor) -> TokenScores:
        return TokenScores(self.log_probs(vectors), mask)

    def config(self) -> dict[str, Any]:
        return {"kind": "masked_words", "labels": list(self.labels), "top5": self.top5}


class MaskedPieceHead(nn.Module):
    """Sub-word vectors to sub-words: one layer, and the input embeddings of the encoder that it is tied to."""

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
        """Use the encoder's input embeddings as output layer. They remain the encoder's parameters."""
        self._embeddings = lambda: encoder.model.get_input_embeddings().weight

    def logits(self, vectors: Tensor) -> Tensor:
        inner = self.norm(functional.gelu(self.dense(vectors)))
        return functional.linear(inner, self._embeddings(), self.bias).float()

    def log_probs(self, vectors: Tensor) -> Tensor:
        """Log probabilities `[..., size]`."""
        return self.logits(vectors).log_softmax(dim=-1)

    def losses(self, vectors: Tensor, pieces: Tensor) -> Tensor:
        """Negative log probability of each masked sub-word, from vectors `[n, width]`."""
        return functional.cross_entropy(self.logits(vectors), pieces, reduction="none")

    def forward(self, vectors: Tensor, mask: Tensor) -> TokenScores:
        return TokenScores(self.log_probs(vectors), mask)

    def config(self) -> dict[str, Any]:
        sizes = {"pieces": self.size, "size": self.dense.out_features, "mask": self.mask}
        return {"kind": "masked_pieces", "labels": [], **sizes, "top5": self.top5}


MaskedHead = MaskedWordHead | MaskedPieceHead


def check_accuracy(share: float | None) -> float | None:
    """Return an accuracy, or raise if it is not a number from 0 to 1."""
    if share is not None and (isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1):
        raise ConfigError(f"an accuracy must be a number from 0 to 1, not {share!r}")
    return share
