"""The default encoder: hashed features and gated convolutions, from scratch, without a vocabulary.

After spaCy's tok2vec (hashed word features, residual convolutions over three words), with these differences: all
character n-grams beside prefix and suffix; gated linear units; dropout of the same features at every word of a
sentence; one attention layer, so that a word sees more than its neighbours. On dev sets, two seeds each, attention and
more feature dropout gained 0.5 to 2 points of F1 (wikigold, ec), n-grams 1.5 (wikigold only); seeds differ by as much.
Gates were better than GELU on wikigold and worse on ec; gates against maxout, and this dropout against ordinary
dropout, were compared in speed only. Hashed word bigrams, tried because a Chinese word is one character here, lost on
wikigold, ec and resume.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from lacuner.errors import ConfigError
from lacuner.models.dropout import check_rate, drop_features
from lacuner.models.encoders.hashing import GROUPS, select_words, word_features
from lacuner.models.encoders.tiny_prediction import fast_forward
from lacuner.models.ragged import index_words, offsets_of, pad_rows
from lacuner.models.types import Batch, Features

# limits on what a model file may ask for, so that no single setting fills the memory
_SIZES = {"width": (1, 2048), "layers": (1, 64), "rows": (1, 2**20), "feature": (1, 512), "heads": (0, 64)}
SPARSE_ROWS = 65_536
"""Tables with at least this many rows have sparse gradients: updating every row would dominate a training step."""
WORDS_AT_ONCE = 1 << 16
"""Distinct words whose features are computed at once, which takes far more memory than the features themselves."""


@dataclass(frozen=True)
class TinyConfig:
    """Sizes and dropout rates. `heads` and `feature_dropout` were chosen on dev sets; sizes were never varied alone."""

    width: int = 128
    layers: int = 4
    rows: int = 16384
    """Rows of the embedding table that all hashed features share."""
    feature: int = 64
    """Size of a feature embedding."""
    heads: int = 4
    """Attention heads; 0: no attention layer."""
    dropout: float = 0.3
    """Dropout rate on the input of convolutions and attention."""
    feature_dropout: float = 0.5
    """Dropout rate on the hashed features of a word."""
    word_dropout: float = 0.1
    """Share of words whose norm is dropped in training, so that the model also learns from spelling and context."""
    pretrained: bool = False
    """Whether the weights come from pre-training."""

    def __post_init__(self) -> None:
        for name, (least, most) in _SIZES.items():
            if not least <= getattr(self, name) <= most:
                raise ConfigError(f"{name} of the tiny encoder must be between {least} and {most:,}")
        for rate in (self.dropout, self.feature_dropout, self.word_dropout):
            check_rate(rate)
        if self.heads and self.width % self.heads:
            raise ConfigError(f"a width of {self.width} is not divisible by {self.heads} attention heads")


BASE = TinyConfig(width=160, rows=131_072, feature=96)
"""The architecture of the shipped encoders. The larger table costs little, because only the rows of a batch are
updated; a width of 160 makes training and prediction 1.3 times slower than 128, 192 would make it 1.8 times."""


class Convolution(nn.Module):
    """Residual gated convolution over three words."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(3 * width, 2 * width)
        self.dropout = dropout

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        inputs = drop_features(self.norm(vectors), self.dropout, self.training) * mask
        padded = functional.pad(inputs, (0, 0, 1, 1))
        windows = torch.cat([padded[:, :-2], inputs, padded[:, 2:]], dim=-1)
        return vectors + functional.glu(self.linear(windows), dim=-1)


class Attention(nn.Module):
    """Residual self-attention over the sentence."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inputs = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        nn.init.zeros_(self.output.weight)  # attention starts as identity: the convolutions learn first
        nn.init.zeros_(self.output.bias)
        self.heads, self.dropout = heads, dropout

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        inputs = drop_features(self.norm(vectors), self.dropout, self.training)
        return vectors.add(self.output(self.attend(self.inputs(inputs), mask).flatten(2)))

    def attend(self, projected: Tensor, mask: Tensor) -> Tensor:
        """The context of each word `[batch, words, heads, width / heads]`, from queries, keys and values in one row."""
        query, key, value = projected.view(*projected.shape[:-1], 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        # an empty sentence attends to its padding, because a softmax over nothing is NaN
        visible = mask | ~mask.any(dim=1, keepdim=True)
        context = functional.scaled_dot_product_attention(query, key, value, attn_mask=visible[:, None, None])
        return context.transpose(1, 2)


class TinyEncoder(nn.Module):
    """Bags of hashed features, one vector per distinct word, convolutions, attention."""

    is_transformer = False
    limit: int | None = None
    dropout_scale = 1.0
    """Factor on all dropout rates."""

    def __init__(self, settings: TinyConfig = TinyConfig()) -> None:  # noqa: B008 frozen
        super().__init__()
        self.settings = settings
        self.is_pretrained = settings.pretrained
        self.table = nn.Parameter(torch.empty(settings.rows, settings.feature))
        nn.init.normal_(self.table, std=0.1)
        self.mix = nn.Linear(len(GROUPS) * settings.feature, 2 * settings.width)
        self.layers = nn.ModuleList(Convolution(settings.width, settings.dropout) for _ in range(settings.layers))
        if settings.heads:
            self.attention = Attention(settings.width, settings.heads, settings.dropout)
        self.norm = nn.LayerNorm(settings.width)
        self.input_layer = nn.Identity()
        """Passes on the vectors of words before any context, so that a hook can perturb them."""

    @property
    def width(self) -> int:
        return self.settings.width

    @property
    def sparse_table(self) -> nn.Parameter | None:
        """The embedding table, if its gradients are sparse."""
        return self.table if self.settings.rows >= SPARSE_ROWS else None

    def scale_dropout(self, factor: float) -> None:
        """Multiply all dropout rates by a factor; the saved rates stay what they are."""
        self.dropout_scale = factor
        for layer in (*self.layers, *([self.attention] if self.settings.heads else [])):
            layer.dropout = factor * self.settings.dropout

    def count(self, words: Sequence[str]) -> np.ndarray:
        return np.ones(len(words), dtype=np.int64)

    def prepare(self, sentences: Sequence[Sequence[str]]) -> Features:
        words, row, lengths = index_words(sentences)
        ids, sizes = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for start in range(0, len(words), WORDS_AT_ONCE):
            bags = word_features(words[start : start + WORDS_AT_ONCE])
            ids.append((bags.ids % np.uint64(self.settings.rows)).astype(np.int64))
            sizes.append(np.diff(bags.offsets))
        arrays = {
            "row": row,
            "offsets": offsets_of(lengths),
            "ids": np.concatenate(ids),
            "bags": offsets_of(np.concatenate(sizes)),
        }
        return Features(lengths, lengths, arrays)

    def collate(self, features: Features, indices: Sequence[int] | np.ndarray) -> Batch:
        arrays = features.arrays
        positions, mask = pad_rows(arrays["offsets"], indices)
        distinct, place = np.unique(arrays["row"][positions[mask]], return_inverse=True)
        words = np.zeros(mask.shape, dtype=np.int64)
        words[mask] = place
        ids, bags = select_words(arrays["ids"], arrays["bags"], distinct)
        tensors = {"ids": ids, "bags": bags[:-1], "words": words}
        return Batch(torch.from_numpy(mask), {name: torch.from_numpy(array) for name, array in tensors.items()})

    def forward(self, batch: Batch) -> Tensor:
        return self.forward_adapted(batch, lambda vectors: vectors)

    def forward_adapted(self, batch: Batch, adapt: Callable[[Tensor], Tensor]) -> Tensor:
        """The forward pass, with `adapt` applied to the word vectors after the first layer."""
        distinct = self.embed_words(batch.tensors["ids"], batch.tensors["bags"])
        if not len(distinct):
            distinct = distinct.new_zeros(1, self.width)  # empty sentences only: padding needs a vector
        vectors = self.input_layer(functional.embedding(batch.tensors["words"], distinct))
        return self.contextualise(vectors, batch.mask, adapt)

    def contextualise(
        self, vectors: Tensor, mask: Tensor, adapt: Callable[[Tensor], Tensor] = lambda vectors: vectors
    ) -> Tensor:
        """Vectors in context, from those of the words by themselves `[batch, words, width]`."""
        real = mask.unsqueeze(-1).to(self.table.dtype)
        vectors = adapt(self.layers[0](vectors, real))
        for layer in self.layers[1:]:
            vectors = layer(vectors, real)
        if self.settings.heads:
            vectors = self.attention(vectors, mask)
        normed: Tensor = self.norm(vectors)
        return normed

    def fast_forward(self, features: Features) -> Callable[[np.ndarray], tuple[Tensor, Tensor]]:
        """The forward pass for prediction (`tiny_prediction.py`)."""
        return fast_forward(self, features)

    def embed_words(self, ids: Tensor, bags: Tensor) -> Tensor:
        """One vector per word, from the features of words and the start of each bag of features."""
        settings = self.settings
        table: Tensor = self.table
        if self.sparse_table is not None and torch.is_grad_enabled():
            rows, ids = torch.unique(ids, return_inverse=True)
            table = functional.embedding(rows, self.table, sparse=True)  # the gradient has only the rows of the batch
        means = functional.embedding_bag(ids, table, bags, mode="mean").view(-1, len(GROUPS), settings.feature)
        if self.training and settings.word_dropout:
            dropped = torch.rand(len(means), device=means.device) < self.dropout_scale * settings.word_dropout
            keep = torch.ones(len(means), len(GROUPS), 1, device=means.device)
            keep[dropped, GROUPS.index("norm")] = 0
            means = means * keep
        rate = self.dropout_scale * settings.feature_dropout
        return functional.glu(self.mix(drop_features(means.flatten(1), rate, self.training)), dim=-1)

    def config(self) -> dict[str, Any]:
        return {"kind": "tiny", **asdict(self.settings), "pretrained": self.is_pretrained}

    def files(self) -> dict[str, bytes]:
        return {}
