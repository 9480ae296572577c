"""All occurrences of many strings in a text, by ahocorasick-rs."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from ahocorasick_rs import AhoCorasick, BytesAhoCorasick, Implementation

from lacuner.annotate.matching.huge_pages import in_large_pages
from lacuner.annotate.matching.initials import raise_initials

Occurrence = tuple[int, int, int]
"""The number of the string, start, end."""

LOW_BYTE_FIRST = 300_000
"""Of so many strings at most."""

# Smaller and faster than the other two; what the library would choose depends on the number of strings.
_KIND = Implementation.ContiguousNFA
_BEYOND = re.compile("[\U00010000-\U0010ffff]")


def is_wide(strings: Sequence[str]) -> bool:
    """Whether most characters are such as take three bytes or more in UTF-8."""
    sample = "".join(strings[:: len(strings) // 10_000 + 1])
    return len(sample.encode()) > 2 * len(sample)


def best_order(strings: Iterable[str]) -> list[str]:
    """The order in which an automaton should be given its strings: what is visited often then lies close together."""
    in_order = sorted(strings)
    if is_wide(in_order):
        in_order.sort(key=len)
    return in_order


class Automaton:
    """Finds the strings it is made of. The list it is made from is empty afterwards: memory is scarce meanwhile.

    The library works on bytes, and goes from one to the next with a look at memory each time. Where the strings are
    mostly Chinese or Japanese, three bytes a character in UTF-8, we hand it UTF-16, which takes a third off the time.
    With the low byte first it is faster still, but needs a kilobyte of memory a string while the automaton is built.
    """

    find: Callable[[str], list[Occurrence]]
    """Every occurrence, by end; if strings and texts are folded, perhaps without those that begin inside a word."""

    def __init__(self, strings: list[str], folded: bool) -> None:
        with in_large_pages():
            self.find = _wide(strings) if is_wide(strings) else _narrow(strings, folded)


def _wide(strings: list[str]) -> Callable[[str], list[Occurrence]]:
    encoding = "utf-16-le" if len(strings) <= LOW_BYTE_FIRST else "utf-16-be"
    encoded = (string.encode(encoding) for string in _drain(strings))
    return partial(_find_wide, BytesAhoCorasick(encoded, implementation=_KIND), encoding)


def _narrow(strings: list[str], folded: bool) -> Callable[[str], list[Occurrence]]:
    raised = map(raise_initials, _drain(strings)) if folded else _drain(strings)
    automaton = AhoCorasick(raised, store_patterns=False, implementation=_KIND)
    return partial(_find_raised, automaton) if folded else partial(_find, automaton)


def _find(automaton: AhoCorasick, text: str) -> list[Occurrence]:
    return automaton.find_matches_as_indexes(text, overlapping=True)


def _find_raised(automaton: AhoCorasick, text: str) -> list[Occurrence]:
    return automaton.find_matches_as_indexes(raise_initials(text), overlapping=True)


def _find_wide(automaton: BytesAhoCorasick, encoding: str, text: str) -> list[Occurrence]:
    data = text.encode(encoding)
    found = automaton.find_matches_as_indexes(data, overlapping=True)
    # what begins at an odd byte is made of halves of characters
    whole = [(number, start >> 1, end >> 1) for number, start, end in found if not start & 1]
    if len(data) == 2 * len(text):
        return whole
    # characters beyond 16 bits take two units: these are the places of the second ones
    extra = [match.start() + before + 1 for before, match in enumerate(_BEYOND.finditer(text))]
    return [(number, start - bisect_left(extra, start), end - bisect_left(extra, end)) for number, start, end in whole]


def _drain(strings: list[str]) -> Iterator[str]:
    strings.reverse()
    while strings:
        yield strings.pop()
