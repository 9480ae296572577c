"""Settings of encoders and heads, and the narrower head settings of recipes that work with some heads only."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from lacuner.config import Config, OnlyWith

MAX_SPAN_WIDTH = 1024
"""Widest span, in words, that a head may score. The `product` scorer has no weight that would limit it."""
MAX_HIDDEN = 4096
"""Most units of a hidden layer: with more, a batch of spans would not fit into memory."""

_HF = OnlyWith("name", ("hf",))
_TAGS = OnlyWith("kind", ("token", "crf"))
_SPANS = OnlyWith("kind", ("span",))
_PROTOTYPES = OnlyWith("kind", ("prototype",))
_Threshold = Annotated[float, Field(gt=0, lt=1)] | Literal["argmax", "dev"]


class EncoderConfig(Config):
    """Settings of the encoder: words to vectors."""

    LATER: ClassVar[frozenset[str]] = frozenset({"shapes", "lexicon", "fusion"})

    name: str = "auto"
    """Encoder: `tiny-en`, `tiny-zh` (shipped, pre-trained), `tiny`, `lstm` (from scratch), `hf:NAME_OR_PATH` (Hugging
    Face), `run:PATH` (the encoder of another run), `lexicon:ENCODER` (with a word list), or `auto`: the shipped one for
    the language, or else `tiny`."""
    size: Annotated[Literal["small", "base"], OnlyWith("name", ("tiny",))] = "small"
    """`tiny`: sizes for training from scratch, or those of the shipped encoders, for pre-training on much text."""
    vectors: Annotated[Path | None, OnlyWith("name", ("lstm", "lexicon"))] = None
    """`lstm`, `lexicon`: text file of pre-trained vectors of words or entries. None: random vectors."""
    lexicon: Annotated[Path | None, OnlyWith("name", ("lexicon",))] = None
    """`lexicon`: word list, one entry per line; a frequency after an entry is ignored."""
    fusion: Annotated[Literal["soft", "attention", "adapter", "lattice"], OnlyWith("name", ("lexicon",))] = "soft"
    """`lexicon`: how the entries that contain a word are read: SoftLexicon, attention (BERT+Word), the adapter of
    LEBERT, or the lattice of FLAT."""
    pooling: Annotated[Literal["first", "mean"], _HF] = "first"
    """`hf`: vector of a word: that of its first sub-word, or the mean of all its sub-words."""
    shapes: Annotated[bool | None, _HF] = None
    """`hf`: whether a learned embedding of the word's shape (capitals, digits) is added to its sub-words. None: if the
    encoder ignores case."""
    frozen: Annotated[int, _HF] = Field(0, ge=0)
    """`hf`: number of lowest layers whose weights are not trained; above 0 the embeddings are frozen too."""
    checkpointing: Annotated[bool, _HF] = False
    """`hf`: gradient checkpointing: less memory, more computation."""


class HeadConfig(Config):
    """Settings of the head: vectors to labels."""

    kind: Literal["token", "crf", "span", "entity_type", "prototype", "tie_or_break"] = "span"
    """Head: token classifier, CRF, span classifier, entity and type as two classifiers, prototypes, or AutoNER's tie or
    break."""
    scheme: Annotated[Literal["BIO", "BIOES", "IO"], _TAGS] = "BIO"
    """`token`, `crf`: tag scheme."""
    angle: Annotated[bool, _TAGS] = False
    """`token`, `crf`: angle-based output layer of two-step learning."""
    variant: Annotated[Literal["width", "product", "biaffine"], _SPANS] = "width"
    """`span`: span scorer: with a width embedding (NRCES), with the product of both ends (negative sampling), or
    biaffine (Yu et al., 2020)."""
    hidden: Annotated[int | None, _SPANS] = Field(None, ge=1, le=MAX_HIDDEN)
    """`span`: units of the hidden layer. None: 96."""
    width: Annotated[int | None, _SPANS] = Field(None, ge=1, le=MAX_SPAN_WIDTH)
    """`span`: width of the widest span, in words. None: chosen from the labeled spans."""
    threshold: Annotated[_Threshold, _SPANS] = "argmax"
    """`span`: decision threshold. A number: minimum label probability. `argmax`: the label must beat O. `dev`: the
    value with the best dev F1 (without dev, as `argmax`)."""
    prototypes: Annotated[int, _PROTOTYPES] = Field(3, ge=1, le=1024)
    """`prototype`: number of prototypes of each class, O included."""
    scale: Annotated[float, _PROTOTYPES] = Field(10.0, gt=0)
    """`prototype`: factor on the cosines; small values keep probabilities close to each other."""
    dropout: float = Field(0.3, ge=0, lt=1)
    """Dropout rate on word vectors."""

    @model_serializer(mode="wrap")
    def _omit_later_settings(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """As in `Config`; a prototype head always had its settings."""
        values: dict[str, Any] = serialise(self)
        unused = {"prototypes", "scale"} if self.kind != "prototype" else set()
        unused |= {"hidden"} if self.hidden is None else set()
        return {name: value for name, value in values.items() if name not in unused}


class SequenceHeadConfig(HeadConfig):
    """Settings of a head that tags words, a CRF by default."""

    kind: Literal["crf", "token"] = "crf"
    """Head: CRF or token classifier."""


class CRFHeadConfig(HeadConfig):
    """Settings of a CRF, for recipes that need the likelihood of a whole tag sequence."""

    kind: Literal["crf"] = "crf"
    """Head: CRF."""


class TokenHeadConfig(HeadConfig):
    """Settings of a token classifier, for recipes whose loss is one of single words."""

    kind: Literal["token"] = "token"
    """Head: token classifier."""


class AngleHeadConfig(HeadConfig):
    """Settings of two-step learning's head, with angle-based output where it tags words."""

    kind: Literal["token", "crf", "span"] = "token"
    """Head: token classifier, CRF or span classifier."""
    angle: Annotated[bool, _TAGS] = True
    """`token`, `crf`: angle-based output layer of two-step learning."""


class PrototypeHeadConfig(HeadConfig):
    """Settings of a head with prototypes (MProto)."""

    kind: Literal["prototype"] = "prototype"
    """Head: prototypes of the classes."""


class EntityTypeHeadConfig(HeadConfig):
    """Settings of a head that separates entity from type (RoSTER), per word or per span."""

    kind: Literal["entity_type", "span"] = "entity_type"
    """Head: entity and type as two classifiers over words, or a span classifier."""


class PositionHeadConfig(HeadConfig):
    """Settings of a head that gives each word or span probabilities of its own, a token classifier by default."""

    kind: Literal["token", "span"] = "token"
    """Head: token classifier or span classifier."""


class TieOrBreakHeadConfig(HeadConfig):
    """Settings of the head that classifies gaps between words, and the chunks between them (AutoNER)."""

    kind: Literal["tie_or_break"] = "tie_or_break"
    """Head: gaps between words, and chunks."""


class SpanHeadConfig(HeadConfig):
    """Settings of a span classifier, its threshold tuned on dev by default."""

    kind: Literal["span"] = "span"
    """Head: span classifier."""
    threshold: _Threshold = "dev"
    """Decision threshold. A number: minimum label probability. `argmax`: the label must beat O. `dev`: the value with
    the best dev F1 (without dev, as `argmax`). Tuning matters: after negative sampling a model predicts too many
    entities, after training on missing labels too few."""
