"""How far a review is, how precise the queue has been so far, and when it stops being worth the time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from lacuner.review.decisions import Decision, ReviewState

RECENT = 40
"""Number of latest decisions that say whether going on is worth the time."""
ENOUGH = 20
"""Fewer decisions than this say nothing."""
WORTH = 0.25
"""Review stops being worth the time once the latest precision is below this value, with 97.5 % confidence."""
_Z = 1.96


def wilson_interval(share: float, size: float, z: float = _Z) -> tuple[float, float]:
    """Wilson's score interval for a proportion; `z` is the quantile of the normal distribution.

    >>> low, high = wilson_interval(0.8, 10)
    >>> f"{low:.2f} to {high:.2f}"
    '0.49 to 0.94'
    """
    middle = (share + z**2 / (2 * size)) / (1 + z**2 / size)
    half = z / (1 + z**2 / size) * sqrt(share * (1 - share) / size + z**2 / (4 * size**2))
    return max(middle - half, 0.0), min(middle + half, 1.0)


@dataclass(frozen=True)
class Precision:
    """Share of issues that the reviewer confirmed, with its 95 % interval (Wilson score)."""

    right: int
    judged: int

    @property
    def interval(self) -> tuple[float, float]:
        """Lower and upper bound.

        >>> Precision(0, 0).interval
        (0.0, 1.0)
        """
        return wilson_interval(self.right / self.judged, self.judged) if self.judged else (0.0, 1.0)

    def as_json(self) -> dict[str, Any]:
        low, high = self.interval
        return {"right": self.right, "judged": self.judged, "low": low, "high": high}


def judged_decisions(state: ReviewState) -> list[Decision]:
    """Decisions that say whether an issue was real, in order, without those that were undone or decided again.

    A decision on all equal strings is one judgement: the reviewer looked once.
    """
    return [
        decision
        for decision in state.effective()
        if decision.action in ("accept", "change", "reject")
        and state.current[decision.edits[0].target][0].number == decision.number
    ]


def measure_precision(decisions: Iterable[Decision]) -> Precision:
    """Precision of the queue in these decisions; an issue that was mended otherwise than proposed is real, too.

    >>> measure_precision([Decision("accept"), Decision("change"), Decision("reject")])
    Precision(right=2, judged=3)
    """
    actions = [decision.action for decision in decisions]
    return Precision(sum(action != "reject" for action in actions), len(actions))


def is_exhausted(decisions: Sequence[Decision]) -> bool:
    """Whether so few of the latest issues were real that training again is a better use of the time.

    >>> is_exhausted([Decision("reject")] * 20), is_exhausted([Decision("reject"), Decision("accept")] * 20)
    (True, False)
    """
    recent = measure_precision(decisions[-RECENT:])
    return recent.judged >= ENOUGH and recent.interval[1] < WORTH
