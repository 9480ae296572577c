"""One line of the table of speeds."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """What was measured. `ratio` is how many times better ours is than the peer's, both taken in turns in one run."""

    name: str
    ours: float
    theirs: float
    peer: str
    ratio: float
    bar: float

    @property
    def passed(self) -> bool:
        return self.ratio >= self.bar
