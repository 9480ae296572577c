"""How the work of a function grows with its input: a ratio of its steps, or of processor times."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
FACTOR = 4
MARGIN = 10
"""Linear work takes `FACTOR` times as long for an input `FACTOR` times as large, quadratic work 16 times."""
STEPS_MARGIN = 6
"""The same for steps, which are the same each time: what remains is the logarithm of sorting and searching."""


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


def count_steps(action: Callable[[], object]) -> int:
    """The number of bytecode instructions that an action takes, in all functions that it calls."""
    steps = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal steps
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        steps += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return steps


def assert_linear_steps(make: Callable[[int], T], work: Callable[[T], object], size: int) -> None:
    """Fail if `work` takes far more than `FACTOR` times as many steps on `make(FACTOR * size)` as on `make(size)`.

    Steps inside functions written in C do not count.
    """
    small, large = (count_steps(partial(work, make(n))) for n in (size, FACTOR * size))
    assert large < STEPS_MARGIN * small, f"{FACTOR} times the input takes {large / small:.1f} times as many steps"
