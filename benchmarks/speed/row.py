"""One line of the speed table."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A measurement. `ratio` is how many times better lacuner is; both sides took turns in one run."""

    name: str
    ours: float
    theirs: float
    peer: str
    ratio: float
    minimum: float

    @property
    def passed(self) -> bool:
        return self.ratio >= self.minimum
