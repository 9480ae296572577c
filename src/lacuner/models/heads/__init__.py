"""Heads, one module each, and the one table of them.

To add a head: (1) its module in this folder, an `nn.Module` with the methods of `lacuner.models.types.Head`; (2) its
row in `HEADS`; (3) its entry in `tests/models/test_heads.py`.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from lacuner.errors import ConfigError, ModelFileError
from lacuner.models.config import MAX_SPAN_WIDTH
from lacuner.models.heads.crf import CRFHead
from lacuner.models.heads.entity_type import EntityTypeHead
from lacuner.models.heads.masked import MaskedHead, MaskedPieceHead, MaskedWordHead
from lacuner.models.heads.prototype import PrototypeHead
from lacuner.models.heads.span import SpanHead
from lacuner.models.heads.tie_or_break import TieOrBreakHead
from lacuner.models.heads.token import TokenHead
from lacuner.models.types import Head

HEADS: dict[str, Callable[..., Head[Any]]] = {
    "token": TokenHead,
    "crf": CRFHead,
    "entity_type": EntityTypeHead,
    "span": SpanHead,
    "prototype": PrototypeHead,
    "tie_or_break": TieOrBreakHead,
}
"""Tagging heads by their kind in configs and model folders."""
MASKED_HEADS: dict[str, Callable[..., MaskedHead]] = {"masked_words": MaskedWordHead, "masked_pieces": MaskedPieceHead}
"""Heads of masked language models: they predict words, not entities."""

H = TypeVar("H")


def build_head(config: Mapping[str, Any], width: int) -> Head[Any]:
    """Build a head with fresh weights from what `Head.config` returned, for an encoder of this width.

    >>> build_head({"kind": "crf", "labels": ["LOC", "PER"]}, width=128).labels
    ('LOC', 'PER')
    """
    return _build(HEADS, config, width)


def build_masked_head(config: Mapping[str, Any], width: int) -> MaskedHead:
    """Build the head of a masked language model, as `build_head` does for tagging heads."""
    return _build(MASKED_HEADS, config, width)


def _build(table: Mapping[str, Callable[..., H]], config: Mapping[str, Any], width: int) -> H:
    settings = dict(config)
    kind = settings.pop("kind", None)
    if kind not in table:
        raise ModelFileError(f"unknown head kind {kind!r}; known kinds: {', '.join([*HEADS, *MASKED_HEADS])}")
    labels, widths = settings.get("labels"), settings.get("widths", 1)
    if not isinstance(labels, list | tuple) or not all(isinstance(label, str) for label in labels):
        raise ModelFileError("the labels of a head must be a list of strings")
    if type(widths) is not int or widths > MAX_SPAN_WIDTH:
        raise ModelFileError(f"the widest span of a head must be a number of words, at most {MAX_SPAN_WIDTH:,}")
    try:
        return table[kind](width, **settings)
    except (TypeError, ConfigError) as error:  # a setting too many or a wrong value: the file is at fault
        raise ModelFileError(f"the settings do not fit a head of kind {kind!r}: {error}") from error
