"""What models are made of. Here, and only here, spans are counted in words of one sentence (or window)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from lacuner.data import Lost

if TYPE_CHECKING:  # both modules build on this one
    from lacuner.models.tag_sets import TagSet
    from lacuner.models.targets import CorpusTargets

WordSpan = tuple[int, int, str]
"""First word, word after the last, label; an empty label as in `Span`."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """What is known about one sentence, in words: the training side of a `Document`.

    A rejected span with an empty label rules out every entity inside it. Nothing that touches an unsure span is
    ever known to be no entity.
    """

    length: int
    spans: Sequence[WordSpan] = ()
    rejected: Sequence[WordSpan] = ()
    unsure: Sequence[WordSpan] = ()
    complete: bool = False
    own: tuple[int, int] | None = None
    """Of a window: the words that it owns. What begins elsewhere is not known here, because another window knows it."""
    elsewhere: Sequence[WordSpan] = ()
    """Of a window: labelled spans that reach into it and are known in another one, or fit none."""


@dataclass(frozen=True, slots=True)
class Targets:
    """What a batch should be labelled as. `known = False` says nothing at all; it is never the same as O.

    Shapes follow the scores: `[batch, words]` for words, `[batch, words, widths]` for spans; `probs`, where a recipe
    has soft labels, has one more dimension and takes the place of `labels`.
    """

    labels: Tensor
    known: Tensor
    weight: Tensor
    probs: Tensor | None = None


@dataclass(frozen=True, slots=True)
class TokenScores:
    """Logits `[batch, words, tags]` and which words are real."""

    logits: Tensor
    mask: Tensor


@dataclass(frozen=True, slots=True)
class EntityTypeScores:
    """`entity` `[batch, words]` and `types` `[batch, words, types]` as logits; `logits` are the joint log
    probabilities of O and the types."""

    entity: Tensor
    types: Tensor
    logits: Tensor
    mask: Tensor


@dataclass(frozen=True, slots=True)
class CRFScores:
    """Emissions `[batch, words, tags]`, transitions `[from, to]` with the impossible ones very low, start and end."""

    logits: Tensor
    transitions: Tensor
    start: Tensor
    end: Tensor
    mask: Tensor


@dataclass(frozen=True, slots=True)
class SpanScores:
    """Logits `[batch, words, widths, classes]`: the span of `w + 1` words that begins at word `i` is `[:, i, w]`."""

    logits: Tensor
    mask: Tensor


class DecodedSpans(NamedTuple):
    """Spans found in a batch, in reading order: arrays of equal length. `label` is an index into the head's labels."""

    sentence: np.ndarray
    start: np.ndarray
    end: np.ndarray
    label: np.ndarray
    score: np.ndarray


@dataclass(frozen=True, slots=True)
class Features:
    """A prepared corpus: packed arrays that only the encoder understands.

    `lengths` are words a sentence, `costs` what each sentence costs the encoder (sub-words where it has them);
    `truncated` counts the words that were too long to be read to their end.
    """

    lengths: np.ndarray
    costs: np.ndarray
    arrays: Mapping[str, np.ndarray]
    truncated: int = 0

    def __len__(self) -> int:
        return len(self.lengths)


@dataclass(frozen=True, slots=True)
class Batch:
    """Some sentences as tensors; `mask` `[batch, words]` says which words are real."""

    mask: Tensor
    tensors: Mapping[str, Tensor]

    def to(self, device: torch.device | str) -> Batch:
        return Batch(self.mask.to(device), {name: tensor.to(device) for name, tensor in self.tensors.items()})


class TorchModule(Protocol):
    """The part of `nn.Module` that code outside an encoder or head uses.

    Encoders and heads are `nn.Module`s. A protocol cannot inherit from a class, so it names these methods itself.
    """

    def parameters(self, recurse: bool = True) -> Iterator[nn.Parameter]: ...

    def modules(self) -> Iterator[nn.Module]: ...


class Encoder(TorchModule, Protocol):
    """Words to vectors."""

    is_transformer: bool
    """True for a Hugging Face transformer, which wants fine-tuning settings (small learning rates, few epochs).

    False for `tiny` and `lstm`, also when `lacuner pretrain` has trained them: they keep the settings of training from
    scratch. `lacuner.models.encoders.is_transformer` answers the same for a config without loading weights.
    """

    @property
    def width(self) -> int:
        """Size of a word vector."""

    @property
    def limit(self) -> int | None:
        """Highest cost that a sentence may have; None for no limit."""

    def count(self, words: Sequence[str]) -> np.ndarray:
        """Cost of each word (its number of sub-words, where there are sub-words), for cutting windows."""

    def prepare(self, sentences: Sequence[Sequence[str]]) -> Features:
        """Turn a corpus into arrays, once; each distinct word is processed once."""

    def collate(self, features: Features, indices: Sequence[int] | np.ndarray) -> Batch:
        """A batch of prepared sentences, padded to the longest."""

    def __call__(self, batch: Batch) -> Tensor:
        """Vectors `[batch, words, width]` (implement `forward`); values at padding are arbitrary."""

    def config(self) -> dict[str, Any]:
        """Everything besides weights and `files` that `build_encoder` needs to rebuild it: plain JSON."""

    def files(self) -> dict[str, bytes]:
        """Files by name that belong to the encoder (a tokenizer); empty for most."""


@runtime_checkable
class SubwordEncoder(Encoder, Protocol):
    """An encoder whose masked language model predicts sub-words: a Hugging Face encoder."""

    model: Any
    """The transformers model, which has no type annotations."""
    ids: dict[str, int]
    tokenizer: Any

    def pieces(self, batch: Batch) -> Tensor:
        """Vectors of all sub-words, special tokens included."""


class PackedTargets(Protocol):
    """Targets of a whole corpus, its words in one row. A recipe may overwrite the tensors between epochs."""

    labels: Tensor
    known: Tensor
    weight: Tensor | None
    probs: Tensor | None

    def collate(self, indices: Sequence[int] | np.ndarray) -> Targets:
        """Targets of some sentences, padded to the longest; padding is not known."""


S = TypeVar("S")


class Head(TorchModule, Protocol[S]):
    """Vectors to scores `S`, and scores to spans."""

    @property
    def labels(self) -> tuple[str, ...]: ...

    def __call__(self, vectors: Tensor, mask: Tensor) -> S:
        """Scores of a batch (implement `forward`)."""

    def decode(self, scores: S) -> DecodedSpans:
        """Non-overlapping spans, each with a probability."""

    def targets(self, annotations: Sequence[Annotation], lost: Lost) -> CorpusTargets:
        """Targets of a corpus, computed once; `lost` counts what this head cannot express."""

    def config(self) -> dict[str, Any]:
        """Everything besides weights and the encoder's width that `build_head` needs to rebuild it."""


@runtime_checkable
class HasThreshold(Protocol):
    """A head with a decision threshold; None: the label must beat O."""

    threshold: float | None


@runtime_checkable
class HasTags(Protocol):
    """A head that classifies words by the tags of a scheme."""

    tags: TagSet
