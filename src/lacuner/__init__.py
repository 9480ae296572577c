"""Named-entity recognition from incomplete and noisy annotation.

`lacuner.api` has plain functions for every step: `read` files, `annotate` texts with a gazetteer, `corrupt` and
`measure` label noise, `train` a tagger by a recipe, `predict`, `score` and `write`. A span is an entity, or ruled out,
or unknown: unlabeled does not mean negative.
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
    """Load the tagger in a run folder or model folder. Calling it tags a string.

    >>> from tempfile import TemporaryDirectory
    >>> from lacuner.models.lookup import LookupTagger
    >>> from lacuner.models.storage import save
    >>> with TemporaryDirectory() as folder:
    ...     _ = save(LookupTagger({"Halden": "PLACE"}), folder)
    ...     tagger = load(folder)
    >>> tagger("Mara left Halden.").spans
    (Span(start=10, end=16, label='PLACE', score=1.0, source=None),)
    """
    from lacuner.models.storage import load as load_tagger

    return load_tagger(path)
