"""The normal form of a text, and the way back to the offsets of the original.

Dashes are alike, so are quotes; a run of white space is one space, but a line break beside a character of a script
without spaces, as Chinese, is nothing; composed and decomposed letters are the same; soft hyphens are not there; and,
if asked, case is folded. Most texts need none of this but the folding, which is then one call on the whole string. The
others are cut into plain and odd parts by a regular expression: no loop over characters happens there either, and the
edges of the parts are the map of offsets.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import cache, lru_cache, partial
from itertools import accumulate
from typing import NamedTuple

from lacuner.annotate.matching.unicode_tables import INVISIBLE, SPACES, as_class, changing, characters, normal_form


class Edges(NamedTuple):
    """Where the parts of a text begin, before and after a change. Every second part is one that was changed."""

    before: list[int]
    after: list[int]


class Normal(NamedTuple):
    """A text made ready for comparison."""

    text: str
    changes: tuple[Edges, ...]
    """The way back to the original, the last change first; empty if the offsets are those of the original."""
    marks: bool
    """Whether some characters belong to the one before them; if not, nobody has to look for them."""


class _Patterns(NamedTuple):
    attached: re.Pattern[str]
    single: re.Pattern[str]
    unit: re.Pattern[str]


_LAST_OF_16_BITS, _LAST = "\uffff", "\U0010ffff"
_BEYOND = re.compile("[\U00010000-\U0010ffff]")
_SPACE_RUN = re.compile("(  +)")
_LINE_BREAK = re.compile("\r\n|[\n-\r\x85\u2028\u2029]")
_ASCII = str.maketrans({char: normal_form(char, False) for char in map(chr, range(128))})
_form = lru_cache(maxsize=1 << 16)(normal_form)


@cache
def _odd(fold: bool) -> re.Pattern[str]:
    """What makes a text more than plain. Beyond 16 bits `re` tests ranges one by one: there, all count as odd."""
    odd = SPACES.replace(" ", "") + "".join(characters().attached) + changing(fold)
    return re.compile(f"[{as_class(odd, _LAST_OF_16_BITS)}\U00010000-\U0010ffff]")


@cache
def _not_itself() -> re.Pattern[str]:
    """What is odd or changed by folding: a text without these, as most Chinese ones, is its own normal form."""
    cased = [char for char in map(chr, (*range(0xD800), *range(0xE000, 0x10000))) if char.casefold() != char]
    odd = SPACES.replace(" ", "") + "".join(characters().attached) + changing(True)
    return re.compile(f"[{as_class([*odd, *cased], _LAST_OF_16_BITS)}\\U00010000-\\U0010ffff]")


@cache
def _patterns(fold: bool, last: str) -> _Patterns:
    """What finds the odd units of a text with no character after `last`."""
    space, invisible = as_class(SPACES, last), as_class(INVISIBLE, last)
    attached = as_class(characters().attached, last)
    single = as_class(SPACES.replace(" ", "") + changing(fold), last)
    more = f"(?:[{invisible}]*[{attached}])"
    cluster = f"[^{space}{invisible}{attached}]{more}+|[{attached}]{more}*"
    return _Patterns(
        attached=re.compile(f"[{attached}]"),
        single=re.compile(f"([{single}])"),
        unit=re.compile(f"({cluster}|[{single}])"),
    )


def normalise(text: str, fold: bool) -> Normal:
    """The text in normal form, with the way back."""
    if text.isascii():
        text = text.translate(_ASCII)
        if fold:
            text = text.casefold()
        changes: list[Edges] = []
        if "  " in text:
            text = _change(text, _SPACE_RUN, _one_space, False, changes)
        return Normal(text, tuple(changes), False)
    if "  " not in text:
        if fold and _not_itself().search(text) is None:
            return Normal(text, (), False)
        if _odd(fold).search(text) is None:
            return Normal(text.casefold() if fold else text, (), False)
    return _normalise_odd(text, fold)


def _normalise_odd(text: str, fold: bool) -> Normal:
    """The same for texts with characters that have a normal form of their own, or none."""
    changes: list[Edges] = []
    if _LINE_BREAK.search(text):
        text = _change(text, _broken_lines(), _nothing, False, changes)
    patterns = _patterns(fold, _LAST if _BEYOND.search(text) else _LAST_OF_16_BITS)
    marks = patterns.attached.search(text) is not None
    pattern = patterns.single if not marks or _composed(text, fold) else patterns.unit
    text = _change(text, pattern, partial(_form, fold=fold), fold, changes)
    marks = marks or (bool(changes) and patterns.attached.search(text) is not None)  # İ folds to i with a dot
    if "  " in text:
        text = _change(text, _SPACE_RUN, _one_space, False, changes)
    return Normal(text, tuple(reversed(changes)), marks)


def _composed(text: str, fold: bool) -> bool:
    """Whether no mark of the text changes the form of the character before it."""
    return unicodedata.is_normalized("NFC", text) and (not fold or unicodedata.is_normalized("NFC", text.casefold()))


@cache
def _broken_lines() -> re.Pattern[str]:
    """A line break where nobody would put a space. An empty line, or an indented one, begins a paragraph."""
    word, attached, spaceless = characters()
    space = as_class(char for char in SPACES if not _LINE_BREAK.match(char))
    end = f"[{space}]*(?:{_LINE_BREAK.pattern})"
    rare = "\\U00020000-\\U0003fffd"  # Chinese characters all of them, too many for a set
    before, after = as_class(spaceless) + rare, as_class(spaceless - attached) + rare
    either = as_class(word) + after
    return re.compile(f"((?<=[{before}]){end}(?=[{either}])|(?<=[{as_class(word)}]){end}(?=[{after}]))")


def _one_space(_run: str) -> str:
    return " "


def _change(text: str, pattern: re.Pattern[str], form: Callable[[str], str], fold: bool, changes: list[Edges]) -> str:
    """Replace what the pattern's one group finds, fold the rest, and note the edges if offsets moved."""
    parts = pattern.split(text)
    before = [0, *accumulate(map(len, parts))]
    parts[1::2] = map(form, parts[1::2])
    if fold:
        parts[::2] = map(str.casefold, parts[::2])
    after = [0, *accumulate(map(len, parts))]
    if before != after:
        changes.append(Edges(before, after))
    return "".join(parts)


def squeeze(normal: Normal) -> Normal:
    """Drop the spaces without which there would be a word boundary all the same, as in `5 - FU`."""
    changes: list[Edges] = []
    text = _change(normal.text, _idle_spaces(), _nothing, False, changes)
    return Normal(text, (*changes, *normal.changes), normal.marks)


@cache
def _idle_spaces() -> re.Pattern[str]:
    word = as_class(characters().word | characters().attached, _LAST)
    return re.compile(f"((?<![{word}]) | (?![{word}]))")


def _nothing(_space: str) -> str:
    return ""


def to_original(changes: tuple[Edges, ...], start: int, end: int) -> tuple[int, int] | None:
    """Offsets in the original of a range of the normal form; None if an edge falls inside a changed part.

    The range must not be empty. What vanished at its edges (a soft hyphen) stays outside.
    """
    for before, after in changes:
        first = bisect_right(after, start) - 1
        last = bisect_left(after, end) - 1
        if (first & 1 and start != after[first]) or (last & 1 and end != after[last + 1]):
            return None
        start = before[first] if first & 1 else start + before[first] - after[first]
        end = before[last + 1] if last & 1 else end + before[last] - after[last]
    return start, end
