"""The same work on several cores: in order, in bounded memory, with the same result."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 2
"""Items under way for each worker: one in work, one waiting."""

PATIENCE = 0.5
"""Seconds between two looks of a worker after its parent."""


def usable_cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(
    items: Iterable[Item], work: Callable[[Item], Result], workers: int, start: str | None = None
) -> Iterator[tuple[Item, Result]]:
    """Each item with its result, in the order of the items, never holding more than a few of them.

    Workers inherit `work` where processes can be forked (Linux), so that it may be anything and takes no second room
    in memory. Elsewhere it is sent to them; what cannot be sent is done here, in one process.
    """
    start = start or ("fork" if sys.platform == "linux" else "spawn")
    if workers <= 1 or (start != "fork" and not _can_be_sent(work)):
        for item in items:
            yield item, work(item)
        return
    pool = ProcessPoolExecutor(workers, get_context(start), _begin, (work, os.getpid()))
    under_way: deque[tuple[Item, Future[Result]]] = deque()
    try:
        for item in items:
            under_way.append((item, pool.submit(_do, item)))
            if len(under_way) >= AHEAD * workers:
                item, future = under_way.popleft()
                yield item, future.result()
        while under_way:
            item, future = under_way.popleft()
            yield item, future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _can_be_sent(work: object) -> bool:
    try:
        ForkingPickler.dumps(work)
    except Exception:  # there are as many kinds of refusal as of objects
        return False
    return True


_work: Callable[[Any], Any]


def _begin(work: Callable[[Any], Any], parent: int) -> None:
    """First thing in a worker."""
    global _work  # noqa: PLW0603 (the only way to hand something to a worker once)
    _work = work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it too, and ends us
    gc.freeze()  # the collector would otherwise copy inherited memory by looking at it
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this worker when its parent is gone: who is killed tells nobody, and workers would wait for ever.

    (The kernel's own signal for this comes already when the *thread* that made the worker ends.)
    """
    while os.getppid() == parent:
        time.sleep(PATIENCE)
    os._exit(1)


def _do(item: Any) -> Any:
    return _work(item)


def die_with_parent() -> None:
    """Whoever started this process holds its standard input open; when that ends, nobody waits for the result."""

    def wait() -> None:
        sys.stdin.read()
        os._exit(3)

    threading.Thread(target=wait, daemon=True).start()
