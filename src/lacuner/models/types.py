"""Types that encoders, heads, losses and training pass to each other.

Only inside models are spans counted in words: of one sentence, or of one window of a long document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
"""First word, word after the last, label. In rejected and unsure spans an empty label means any type."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """What is known about one sentence, in words: the training side of a `Document`."""

    length: int
    spans: Sequence[WordSpan] = ()
    rejected: Sequence[WordSpan] = ()
    """Ruled-out spans. An empty label rules out every entity inside the span."""
    unsure: Sequence[WordSpan] = ()
    """Spans with some evidence for an entity. No span that overlaps one is ever a negative."""
    complete: bool = False
    own: tuple[int, int] | None = None
    """Of a window: the words that it owns. Spans that start at other words are known in another window, not here."""
    elsewhere: Sequence[WordSpan] = ()
    """Of a window: labeled spans that reach into it and are known in another window, or fit into none."""


@dataclass(frozen=True, slots=True)
class Targets:
    """Training targets of a batch. `known = False` means unknown, which is never the same as O.

    Shapes follow the scores: `[batch, words]` for words, `[batch, words, widths]` for spans. Soft labels `probs` have
    one more dimension, the classes, and replace `labels`.
    """

    labels: Tensor
    known: Tensor
    weight: Tensor
    probs: Tensor | None = None


@dataclass(frozen=True, slots=True)
class TokenScores:
    """Logits `[batch, words, tags]`; `mask` `[batch, words]` is False at padding."""

    logits: Tensor
    mask: Tensor


@dataclass(frozen=True, slots=True)
class EntityTypeScores:
    """Logits `entity` `[batch, words]` and `types` `[batch, words, types]`; `logits` are the joint log probabilities
    of O and the types."""

    entity: Tensor
    types: Tensor
    logits: Tensor
    mask: Tensor


@dataclass(frozen=True, slots=True)
class PrototypeScores:
    """Cosines with the prototypes, `similarities` `[batch, words, classes * prototypes]`; the words' unit vectors,
    `directions` `[batch, words, width]`; `logits` `[batch, words, classes]`."""

    similarities: Tensor
    directions: Tensor
    logits: Tensor
    mask: Tensor


@dataclass(frozen=True, slots=True)
class TieOrBreakScores:
    """Logits `[batch, words, 1 + 2 * classes]`; `mask` `[batch, words, 2]`, as the targets: gaps and chunks."""

    logits: Tensor
    mask: Tensor

    def split(self) -> tuple[Tensor, Tensor, Tensor]:
        """The logit of a tie of each word with the one before it `[batch, words]`, and what each word adds to the class
        of a chunk as its first and as its last word `[batch, words, classes]`."""
        first, last = self.logits[..., 1:].chunk(2, dim=-1)
        return self.logits[..., 0], first, last


@dataclass(frozen=True, slots=True)
class CRFScores:
    """Emissions `[batch, words, tags]`, transitions `[from, to]` (very low where forbidden), start and end scores."""

    logits: Tensor
    transitions: Tensor
    start: Tensor
    end: Tensor
    mask: Tensor


@dataclass(frozen=True, slots=True)
class SpanScores:
    """Logits `[batch, words, widths, classes]`; `[:, i, w]` is the span of `w + 1` words that starts at word `i`."""

    logits: Tensor
    mask: Tensor


class DecodedSpans(NamedTuple):
    """Predicted spans of a batch in reading order: arrays of equal length; `label` indexes the head's labels."""

    sentence: np.ndarray
    start: np.ndarray
    end: np.ndarray
    label: np.ndarray
    score: np.ndarray


@dataclass(frozen=True, slots=True)
class Features:
    """A corpus prepared by an encoder: arrays that only this encoder understands."""

    lengths: np.ndarray
    """Words per sentence."""
    costs: np.ndarray
    """Cost per sentence for batching: its sub-words, where there are any, or its words."""
    arrays: Mapping[str, np.ndarray]
    truncated: int = 0
    """Number of distinct words that were too long for the encoder and were truncated."""

    def __len__(self) -> int:
        return len(self.lengths)


@dataclass(frozen=True, slots=True)
class Batch:
    """Sentences as tensors; `mask` `[batch, words]` is False at padding."""

    mask: Tensor
    tensors: Mapping[str, Tensor]

    def to(self, device: torch.device | str) -> Batch:
        return Batch(self.mask.to(device), {name: tensor.to(device) for name, tensor in self.tensors.items()})


class TorchModule(Protocol):
    """The part of `nn.Module` that is used from outside: a protocol cannot inherit from the class itself."""

    def parameters(self, recurse: bool = True) -> Iterator[nn.Parameter]: ...

    def modules(self) -> Iterator[nn.Module]: ...


class Encoder(TorchModule, Protocol):
    """Words to vectors: an `nn.Module` with these methods."""

    is_transformer: bool
    """True for a Hugging Face transformer, which wants small learning rates and few epochs."""
    is_pretrained: bool
    """True if the weights come from pre-training: transformers, shipped encoders, runs of `lacuner pretrain`."""

    @property
    def width(self) -> int:
        """Size of a word vector."""

    @property
    def limit(self) -> int | None:
        """Highest cost of a sentence; None for no limit."""

    def count(self, words: Sequence[str]) -> np.ndarray:
        """Cost of each word, for cutting windows: its number of sub-words, or 1."""

    def prepare(self, sentences: Sequence[Sequence[str]]) -> Features:
        """Convert a corpus once; each distinct word is converted once."""

    def collate(self, features: Features, indices: Sequence[int] | np.ndarray) -> Batch:
        """A batch of prepared sentences, padded to the longest."""

    def __call__(self, batch: Batch) -> Tensor:
        """Vectors `[batch, words, width]`, arbitrary at padding. Implement it as `forward`."""

    def config(self) -> dict[str, Any]:
        """What `build_encoder` needs besides weights and `files`, as plain JSON."""

    def files(self) -> dict[str, bytes]:
        """Files that belong to the encoder (a tokenizer), by name; most encoders have none."""


@runtime_checkable
class HasInputLayer(Protocol):
    """An encoder whose word vectors can be perturbed: it has a module whose output they are, before any context."""

    @property
    def input_layer(self) -> nn.Module: ...


@runtime_checkable
class HasStepEnd(Protocol):
    """A model that follows the steps of training, for example by a moving average of its weights."""

    def after_step(self) -> None:
        """Called after each optimiser step."""


@runtime_checkable
class HasFastForward(Protocol):
    """An encoder with a faster forward pass for prediction, on a CPU and without gradients."""

    def fast_forward(self, features: Features) -> Callable[[np.ndarray], tuple[Tensor, Tensor]]:
        """A function from sentence indices to vectors and mask; vectors equal those of `forward` up to rounding."""


@runtime_checkable
class HasInnerLayers(Protocol):
    """An encoder whose word vectors can be changed after its first layer."""

    def forward_adapted(self, batch: Batch, adapt: Callable[[Tensor], Tensor]) -> Tensor:
        """`forward`, with `adapt` applied to the word vectors `[batch, words, width]` that the first layer returns."""


@runtime_checkable
class HasFreshModules(Protocol):
    """A pre-trained encoder some of whose modules start from scratch: they have the learning rate of the head."""

    def fresh_modules(self) -> Sequence[nn.Module]: ...


@runtime_checkable
class SubwordEncoder(Encoder, Protocol):
    """An encoder whose masked language model predicts sub-words: a Hugging Face encoder."""

    model: Any  # the classes of transformers have no type annotations
    tokenizer: Any
    ids: dict[str, int]

    def pieces(self, batch: Batch) -> Tensor:
        """Vectors of all sub-words, special tokens included."""

    def piece_settings(self) -> dict[str, Any]:
        """How words become sub-words, as plain JSON: for a decoder outside lacuner."""


S = TypeVar("S")


class Head(TorchModule, Protocol[S]):
    """Vectors to scores `S`, and scores to spans: an `nn.Module` with these methods."""

    @property
    def labels(self) -> tuple[str, ...]: ...

    def __call__(self, vectors: Tensor, mask: Tensor) -> S:
        """Scores of a batch. Implement it as `forward`."""

    def decode(self, scores: S) -> DecodedSpans:
        """Non-overlapping spans, each with a probability."""

    def targets(self, annotations: Sequence[Annotation], lost: Lost) -> CorpusTargets:
        """Targets of a corpus; `lost` counts what this head cannot express."""

    def config(self) -> dict[str, Any]:
        """What `build_head` needs besides weights and the encoder's width, as plain JSON."""


@runtime_checkable
class HasThreshold(Protocol):
    """A head with a decision threshold; None: the label must beat O."""

    threshold: float | None


@runtime_checkable
class HasTags(Protocol):
    """A head that classifies words by the tags of a scheme."""

    tags: TagSet
