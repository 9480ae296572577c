"""How the work of a function grows with its input: a ratio of processor times, which a busy machine changes little."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
FACTOR = 4
MARGIN = 10
"""Linear work takes `FACTOR` times as long for an input `FACTOR` times as large, quadratic work 16 times."""


def assert_linear(make: Callable[[int], T], work: Callable[[T], object], size: int) -> None:
    """Fail if `work` takes far more than `FACTOR` times as long on `make(FACTOR * size)` as on `make(size)`."""

    def seconds(data: T) -> float:
        times = []
        for _ in range(3):
            start = time.process_time()
            work(data)
            times.append(time.process_time() - start)
        return max(min(times), 1e-3)  # shorter ones are not measured well

    small, large = seconds(make(size)), seconds(make(FACTOR * size))
    assert large < MARGIN * small, f"{FACTOR} times the input takes {large / small:.1f} times as long"
