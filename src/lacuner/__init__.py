"""Named-entity recognisers from annotations with gaps.

Files become documents (`read`); a dictionary gives them weak labels (`annotate`); `corrupt` and `measure` make and
measure noise; a recipe makes a tagger of them (`train`, `load`); a tagger finds entities in documents or in a string
(`predict`), `score` says how well, and `write` keeps them. A span is an entity, or ruled out, or unknown: not annotated
is not negative. Nothing that needs torch is loaded before it is used.
"""

from __future__ import annotations

from typing import Any

from lacuner.types import Document, Lost, Span

__version__ = "0.1.0"
__all__ = [
    "Document",
    "Lost",
    "Noise",
    "Span",
    "annotate",
    "corrupt",
    "load",
    "measure",
    "predict",
    "read",
    "score",
    "train",
    "write",
]


def __getattr__(name: str) -> Any:
    if name == "read":
        from lacuner.corpus import read

        return read
    if name == "write":
        from lacuner.corpus import write

        return write
    if name in ("Noise", "corrupt", "measure"):
        from lacuner import noise

        return getattr(noise, name)
    if name == "score":
        from lacuner.evaluate import score

        return score
    if name == "annotate":
        from lacuner.annotate.simple import annotate

        return annotate
    if name == "load":
        from lacuner.models.files import load

        return load
    if name in ("train", "predict"):
        from lacuner.recipes import simple

        return getattr(simple, name)
    raise AttributeError(f"lacuner has no {name!r}")
