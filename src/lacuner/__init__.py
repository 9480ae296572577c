"""Named-entity recognisers from annotations with gaps.

Files become documents (`read`), a dictionary gives them weak labels, `corrupt` and `measure` make and measure
noise, and `score` says how good predictions are. A span is an entity, or ruled out, or unknown: not annotated
is not negative.
"""

from lacuner.types import Document, Lost, Span

__version__ = "0.1.0"
__all__ = ["Document", "Lost", "Span", "__version__"]
