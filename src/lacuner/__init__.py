"""Named-entity recognisers from annotations with gaps.

Files become documents (`read`); a dictionary gives them weak labels (`annotate`); `corrupt` and `measure` make and
measure noise; a recipe makes a tagger of them (`train`); a tagger finds entities in documents (`predict`) or in a
string, `score` says how well, and `write` keeps them. All of these are plain functions in `lacuner.api`. A span is an
entity, or ruled out, or unknown: not annotated is not negative.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from lacuner.data import Document, Lost, Span

if TYPE_CHECKING:
    from lacuner.models.storage import AnyTagger

__version__ = "0.1.0"
__all__ = ["Document", "Lost", "Span", "__version__", "load"]


def load(path: str | PathLike[str]) -> AnyTagger:
    """The tagger in a run folder or model folder. `load(path)("Mara left Halden.")` tags a string."""
    from lacuner.models.storage import load as load_tagger

    return load_tagger(path)
