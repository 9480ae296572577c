"""TODO docstring."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from lacuner.config import Config, OnlyWith

MOST_WIDTHS = 1024
"""The widest span, in words, that a model may score: no weight shows how many there are."""

_HF = OnlyWith("name", ("hf",))


_TAGS = OnlyWith("kind", ("token", "crf"))


_SPANS = OnlyWith("kind", ("span",))


class EncoderConfig(Config):
    """What turns words into vectors."""

    name: str = "tiny"
    """`tiny`, `lstm`, `hf:NAME_OR_PATH`, or `run:PATH` for the encoder of another run."""
    vectors: Annotated[Path | None, OnlyWith("name", ("lstm",))] = None
    """`lstm`: a text file of pretrained word vectors."""
    pooling: Annotated[Literal["first", "mean"], _HF] = "first"
    """`hf`: a word's vector is that of its first sub-word, or the mean of all."""
    frozen: Annotated[int, _HF] = Field(0, ge=0)
    """`hf`: how many of the lowest layers stay as they are."""
    checkpointing: Annotated[bool, _HF] = False
    """`hf`: save memory by computing everything twice."""


class HeadConfig(Config):
    """What turns vectors into labels."""

    kind: Literal["token", "crf", "span", "entity_type"] = "span"
    scheme: Annotated[Literal["BIO", "BIOES", "IO"], _TAGS] = "BIO"
    """`token`, `crf`: the tags."""
    angle: Annotated[bool, _TAGS] = False
    """`token`, `crf`: the angle-based output of two-step learning."""
    variant: Annotated[Literal["width", "product"], _SPANS] = "width"
    """`span`: how a span is scored."""
    width: Annotated[int | None, _SPANS] = Field(None, ge=1, le=MOST_WIDTHS)
    """`span`: the widest span in words; None: what the labelled spans need."""
    threshold: Annotated[Annotated[float, Field(gt=0, lt=1)] | Literal["argmax", "dev"], _SPANS] = "argmax"
    """`span`: how probable a label must be for a span to be found, be it less probable than none; `argmax`: more
    probable than none; `dev`: what is best on dev, if there is any."""
    dropout: float = Field(0.3, ge=0, lt=1)


class SequenceHeadConfig(HeadConfig):
    """What turns vectors into tags."""

    kind: Literal["crf", "token"] = "crf"


class CRFHeadConfig(HeadConfig):
    """What turns vectors into tags: only a CRF knows how probable the labels of a sentence are."""

    kind: Literal["crf"] = "crf"


class SpanHeadConfig(HeadConfig):
    """The head of a recipe that is about spans."""

    kind: Literal["span"] = "span"
    threshold: Annotated[float, Field(gt=0, lt=1)] | Literal["argmax", "dev"] = "dev"
    """How probable a label must be for a span to be found, be it less probable than none; `argmax`: more probable than
    none; `dev`: what is best on dev, if there is any. What learned from few negatives finds too much, what learned from
    gaps too little, and this mends much of both."""
