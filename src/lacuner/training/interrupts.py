"""Delay Ctrl-C while something must not be left half changed."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def defer_interrupt() -> Iterator[None]:
    """Delay Ctrl-C until the block has ended, so that it cannot leave something half changed.

    >>> try:
    ...     with defer_interrupt():
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("all of it")
    ... except KeyboardInterrupt:
    ...     print("interrupted")
    all of it
    interrupted
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # not the main thread, or SIGINT has another handler
        return
    received: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if received:
        raise KeyboardInterrupt
