"""Large tables in large pages.

An automaton of a million strings is read all over. In pages of 4 KB the processor spends a third of its time on finding
out where a page lies; the kernel can put them together into pages of 2 MB, if somebody asks.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MAPS = Path("/proc/self/maps")
_COLLAPSE = 25
"""MADV_COLLAPSE of Linux 6.1 and later; older ones refuse it, and nothing happens."""
_PAGE = 2 << 20
_LEAST = 8 * _PAGE


@contextmanager
def in_large_pages() -> Iterator[None]:
    """What is made here and is large will lie in large pages, as far as the kernel will."""
    before = set(_large_areas())
    yield
    for start, size in set(_large_areas()) - before:
        _collapse(start, size)


def _collapse(start: int, size: int) -> bool:
    try:
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        return bool(advise(start, size, _COLLAPSE) == 0)
    except (OSError, AttributeError, TypeError):
        return False  # it would only have been faster


def _large_areas() -> Iterator[tuple[int, int]]:
    """Starts and sizes, in whole large pages, of memory that can be written and that no file is behind."""
    try:
        lines = _MAPS.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return  # not Linux
    for line in lines:
        place, rights, *rest = line.split()
        if rights == "rw-p" and len(rest) == 3:
            start, end = (int(number, 16) for number in place.split("-"))
            first, last = -(-start // _PAGE) * _PAGE, end // _PAGE * _PAGE
            if last - first >= _LEAST:
                yield first, last - first
