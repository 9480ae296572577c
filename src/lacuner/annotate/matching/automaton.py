"""Every occurrence of many strings in a text: Aho-Corasick, by ahocorasick-rs.

Three tricks make it faster, and none changes which whole words are found:

- Title case. In a folded text all letters are small, and the automaton follows every letter of every word as the
  possible start of a term. If each word starts with a capital, in terms and text alike, the automaton falls back to
  its root until the next word: half the time, and far fewer matches inside words to discard.
- UTF-16 for Chinese and Japanese. The library works on bytes, one memory access each. Where most characters take
  three bytes in UTF-8, UTF-16 saves a third of the time.
- Huge pages. An automaton of a million strings is read all over; with pages of 4 KB the processor spends a third of its
  time on address translation. Linux 6.1 and later can move it into pages of 2 MB.
"""

import ctypes
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

from ahocorasick_rs import AhoCorasick, BytesAhoCorasick, Implementation

from lacuner.annotate.matching.normalise import BEYOND_16_BITS, as_class, character_sets

Hit = tuple[int, int, int]
"""Number of the string, start, end."""

MAX_LITTLE_ENDIAN = 300_000
"""Little-endian UTF-16 is faster, but takes a kilobyte per string while the automaton is built: up to this many."""

# Smaller and faster than the other two. The library's own choice would depend on the number of strings.
_IMPLEMENTATION = Implementation.ContiguousNFA
_MEMORY_MAP = Path("/proc/self/maps")
_MADV_COLLAPSE = 25
_HUGE_PAGE = 2 << 20


def build_automaton(strings: list[str], folded: bool) -> Callable[[str], list[Hit]]:
    """A function that finds all occurrences of the strings in a text, sorted by end. Empties the list, to save memory.

    `folded` says that strings and texts are case-folded. Occurrences that start inside a word may then be left out.

    >>> build_automaton(["ab", "abc"], folded=False)("abc")
    [(0, 0, 2), (1, 0, 3)]
    """
    with _huge_pages():
        if _is_wide(strings):
            encoding = "utf-16-le" if len(strings) <= MAX_LITTLE_ENDIAN else "utf-16-be"
            encoded = (string.encode(encoding) for string in _drain(strings))
            return partial(_find_utf16, BytesAhoCorasick(encoded, implementation=_IMPLEMENTATION), encoding)
        prepare = title_case if folded else str
        prepared = map(prepare, _drain(strings))
        automaton = AhoCorasick(prepared, store_patterns=False, implementation=_IMPLEMENTATION)
        return lambda text: automaton.find_matches_as_indexes(prepare(text), overlapping=True)


def order_for_automaton(strings: Iterable[str]) -> list[str]:
    """The strings in the order in which the nodes that are visited often lie close together in memory."""
    ordered = sorted(strings)
    if _is_wide(ordered):
        ordered.sort(key=len)
    return ordered


def _is_wide(strings: Sequence[str]) -> bool:
    """Whether most characters take three bytes or more in UTF-8 (measured on a sample)."""
    sample = "".join(strings[:: len(strings) // 10_000 + 1])
    return len(sample.encode()) > 2 * len(sample)


def _drain(strings: list[str]) -> Iterator[str]:
    strings.reverse()
    while strings:
        yield strings.pop()


def _find_utf16(automaton: BytesAhoCorasick, encoding: str, text: str) -> list[Hit]:
    data = text.encode(encoding)
    occurrences = automaton.find_matches_as_indexes(data, overlapping=True)
    # a match at an odd byte is made of halves of characters
    whole = [(number, start >> 1, end >> 1) for number, start, end in occurrences if not start & 1]
    if len(data) == 2 * len(text):
        return whole
    # characters beyond 16 bits take two units: these are the positions of their second units
    extra = [match.start() + before + 1 for before, match in enumerate(BEYOND_16_BITS.finditer(text))]
    return [(number, start - bisect_left(extra, start), end - bisect_left(extra, end)) for number, start, end in whole]


def title_case(folded: str) -> str:
    """Capitalise the letters of a folded text that do not follow another letter. The length stays the same."""
    if folded.isascii():
        return folded.encode().title().decode()  # three times as fast as str.title
    exceptional, initial = _title_case_patterns()
    if exceptional.search(folded) is None:
        return folded.title()
    return initial.sub(lambda match: match.group().title(), folded)


@cache
def _title_case_patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """The characters that `str.title` gets wrong, and the letters to capitalise in texts that have such characters.

    It is wrong if the capital has two characters, or belongs to two letters (`ı` and `i`), or if a character has case
    without being part of a word (circled letters).
    """
    word = character_sets().word
    initials, exceptional, inner = [], [], []
    for char in map(chr, (*range(0xD800), *range(0xE000, 0x20000))):
        capital = char.title()
        if char in word and (char.islower() or char.isupper() or char.istitle()):
            inner.append(char)
        elif capital != char or char.lower() != char or char.islower():
            exceptional.append(char)
            continue
        if capital != char and capital.casefold() == char and len(capital) == 1:
            initials.append(char)
        elif capital != char or char.lower() != char:
            exceptional.append(char)
    initial = f"(?<![{as_class(inner)}])[{as_class(initials)}]"
    return re.compile(f"[{as_class(exceptional)}]"), re.compile(initial)


@contextmanager
def _huge_pages() -> Iterator[None]:
    """Move large memory areas that are allocated in this context into huge pages, where the kernel can do it."""
    before = set(_large_areas())
    yield
    for start, size in set(_large_areas()) - before:
        _collapse(start, size)


def _collapse(start: int, size: int) -> bool:
    try:
        madvise = ctypes.CDLL(None).madvise
        madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        return bool(madvise(start, size, _MADV_COLLAPSE) == 0)
    except (OSError, AttributeError, TypeError):
        return False  # only speed is lost


def _large_areas() -> Iterator[tuple[int, int]]:
    """Start and size, in whole huge pages, of the large writable memory areas that are not mapped from a file."""
    try:
        lines = _MEMORY_MAP.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return  # not Linux
    for line in lines:
        addresses, rights, *rest = line.split()
        if rights == "rw-p" and len(rest) == 3:
            start, end = (int(address, 16) for address in addresses.split("-"))
            first, last = -(-start // _HUGE_PAGE) * _HUGE_PAGE, end // _HUGE_PAGE * _HUGE_PAGE
            if last - first >= 8 * _HUGE_PAGE:
                yield first, last - first
