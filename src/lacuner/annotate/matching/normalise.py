"""The normal form of a text, and the way back to the offsets of the original.

Dashes are unified, and so are quotes; a run of white space becomes one space, except that a line break beside a
character of a script without spaces (Chinese) disappears; letters are composed (NFC); soft hyphens disappear; and, on
request, case is folded. Most texts only need the folding, which is one call on the whole string. The others are split
into plain and special parts by a regular expression, without a loop over characters, and the edges of the parts are
the offset map.

The character tables are computed from the running Python's Unicode data on first use (about a tenth of a second), so
that they always agree with `str.casefold` and `unicodedata.normalize`.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from functools import cache, lru_cache, partial
from itertools import accumulate
from typing import NamedTuple

import regex

DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\u02d7\u058a\u2e3a\u2e3b\ufe58\ufe63\uff0d"
"""Compared as `-`."""

QUOTES = (
    '"`\u00b4\u00ab\u00bb\u02b9\u02ba\u02bb\u02bc\u02bd\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f'
    "\u2032\u2033\u2035\u2036\u2039\u203a\u301d\u301e\u301f\uff02\uff07"
)
"""Compared as `'`: quotation marks, apostrophes and primes."""

INVISIBLE = "\u00ad\u200b\u2060\ufeff"
"""Ignored: soft hyphen, zero-width space, word joiner, byte order mark."""

SPACES = "".join(char for char in map(chr, range(0x3001)) if char.isspace())

SURROGATES = "".join(map(chr, range(0xD800, 0xE000)))

JOINER = "\u200d"

_SCRIPTS_WITHOUT_SPACES = ("Han", "Hira", "Kana", "Bopo", "Thai", "Laoo", "Khmr", "Mymr")
_REMOVED = str.maketrans({**dict.fromkeys(INVISIBLE, ""), **dict.fromkeys(SURROGATES, "\ufffd")})
_UNIFIED = str.maketrans({**dict.fromkeys(DASHES, "-"), **dict.fromkeys(QUOTES, "'")})
_MAX_16_BITS, _MAX = "\uffff", "\U0010ffff"
BEYOND_16_BITS = re.compile("[\U00010000-\U0010ffff]")
_SPACE_RUN = re.compile("(  +)")
_LINE_BREAK = re.compile("\r\n|[\n-\r\x85\u2028\u2029]")


class CharacterSets(NamedTuple):
    """The character sets that decide where a word may end."""

    word: frozenset[str]
    """Letters, digits and `_` of scripts with spaces between words: no word ends between two of them."""
    attached: frozenset[str]
    """Characters that belong to the one before: combining marks, joiners, Korean vowels and finals, skin tones."""
    spaceless: frozenset[str]
    """Letters, digits and marks of scripts without spaces between words, up to U+20000."""


@cache
def character_sets() -> CharacterSets:
    """The character sets, computed once."""
    planes = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x20000), *range(0xE0000, 0xE0200))))
    scripts = "".join(rf"\p{{scx={script}}}" for script in _SCRIPTS_WITHOUT_SPACES)
    without_spaces = rf"[[{scripts}]--[\p{{scx=Latn}}]]"
    word = regex.findall(rf"(?V1)[[\p{{L}}\p{{N}}_]--{without_spaces}]", planes)
    spaceless = regex.findall(rf"(?V1)[[\p{{L}}\p{{N}}\p{{M}}]&&{without_spaces}]", planes)
    attached = regex.findall(
        r"[\p{M}\u200c\u200d\u1160-\u11ff\ud7b0-\ud7fb\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]", planes
    )
    return CharacterSets(frozenset(word), frozenset(attached), frozenset(spaceless))


def unit_form(unit: str, fold: bool) -> str:
    """The normal form of one unit: a character with the marks attached to it, or a white-space character.

    With `fold` it is Unicode's canonical caseless form, composed again at the end so that `é` stays one character.

    >>> unit_form("É", fold=True), unit_form("–", fold=False), unit_form("\\t", fold=False)
    ('é', '-', ' ')
    """
    if unit[0] in SPACES:
        return " "
    unit = unicodedata.normalize("NFD", unit.translate(_REMOVED)).translate(_UNIFIED)
    return unicodedata.normalize("NFC", unit.casefold() if fold else unit)


_ASCII = str.maketrans({char: unit_form(char, False) for char in map(chr, range(128))})
_cached_unit_form = lru_cache(maxsize=1 << 16)(unit_form)


@cache
def special_characters(fold: bool) -> str:
    """The characters whose normal form is neither the character nor, with `fold`, its case fold of one character."""
    # Only these blocks have any: the rest are unified ideographs, Korean syllables, private use and unassigned.
    blocks = (*range(0x21, 0x3400), *range(0xA000, 0xAC00), *range(0xF900, 0x20000), *range(0x2F800, 0x2FA20))
    special = [SURROGATES]
    for char in map(chr, blocks):
        simple = char.casefold() if fold else char
        if len(simple) != 1 or unit_form(char, fold) != simple:
            special.append(char)
    return "".join(special)


def as_class(chars: Iterable[str], last: str = "\U0010ffff") -> str:
    """The characters up to `last` as ranges, to stand inside the brackets of a regular expression."""
    codes = sorted({ord(char) for char in chars if char <= last})
    lows = [code for code, before in zip(codes, [-2, *codes], strict=False) if code != before + 1]
    highs = [code for code, after in zip(codes, [*codes[1:], -2], strict=True) if code + 1 != after]
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in zip(lows, highs, strict=True))


class OffsetMap(NamedTuple):
    """Where the parts of a text start before and after a replacement. Parts 1, 3, 5, ... were replaced."""

    before: list[int]
    after: list[int]


class NormalText(NamedTuple):
    """A text in normal form."""

    text: str
    changes: tuple[OffsetMap, ...]
    """The way back to the original, last replacement first. Empty if no offset moved."""
    has_marks: bool
    """Whether any character is attached to the one before it."""


class _Patterns(NamedTuple):
    attached: re.Pattern[str]
    single: re.Pattern[str]
    unit: re.Pattern[str]


@cache
def _special(fold: bool, or_cased: bool = False) -> re.Pattern[str]:
    """A character that needs more than case folding; with `or_cased`, or that case folding changes.

    Beyond 16 bits `re` tests ranges one by one, so all characters there count as special.
    """
    chars = SPACES.replace(" ", "") + "".join(character_sets().attached) + special_characters(fold)
    if or_cased:
        chars += "".join(
            char for char in map(chr, (*range(0xD800), *range(0xE000, 0x10000))) if char.casefold() != char
        )
    return re.compile(f"[{as_class(chars, _MAX_16_BITS)}\U00010000-\U0010ffff]")


@cache
def _patterns(fold: bool, last: str) -> _Patterns:
    """The patterns that find the special units of a text without characters beyond `last`."""
    space, invisible = as_class(SPACES, last), as_class(INVISIBLE, last)
    attached = as_class(character_sets().attached, last)
    single = as_class(SPACES.replace(" ", "") + special_characters(fold), last)
    more = f"(?:[{invisible}]*[{attached}])"
    cluster = f"[^{space}{invisible}{attached}]{more}+|[{attached}]{more}*"
    return _Patterns(
        attached=re.compile(f"[{attached}]"),
        single=re.compile(f"([{single}])"),
        unit=re.compile(f"({cluster}|[{single}])"),
    )


def normalise(text: str, fold: bool) -> NormalText:
    """The normal form of a text, with the map back to its offsets; with `fold`, case-folded.

    >>> normal = normalise("Caf\\u00e9  \\u2013 2", fold=True)
    >>> normal.text
    'café - 2'
    >>> to_original(normal.changes, 5, 6)
    (6, 7)
    """
    if text.isascii():
        text = text.translate(_ASCII)
        if fold:
            text = text.casefold()
        changes: list[OffsetMap] = []
        if "  " in text:
            text = _replace(text, _SPACE_RUN, lambda _: " ", False, changes)
        return NormalText(text, tuple(changes), False)
    if "  " not in text:
        if fold and _special(True, or_cased=True).search(text) is None:  # as in most Chinese texts
            return NormalText(text, (), False)
        if _special(fold).search(text) is None:
            return NormalText(text.casefold() if fold else text, (), False)
    return _normalise_units(text, fold)


def _normalise_units(text: str, fold: bool) -> NormalText:
    """The slow path: normalise the special units one by one."""
    changes: list[OffsetMap] = []
    if _LINE_BREAK.search(text):
        text = _replace(text, _soft_line_breaks(), lambda _: "", False, changes)
    patterns = _patterns(fold, _MAX if BEYOND_16_BITS.search(text) else _MAX_16_BITS)
    has_marks = patterns.attached.search(text) is not None
    pattern = patterns.single if not has_marks or _is_composed(text, fold) else patterns.unit
    text = _replace(text, pattern, partial(_cached_unit_form, fold=fold), fold, changes)
    has_marks = has_marks or (bool(changes) and patterns.attached.search(text) is not None)  # İ folds to i with a dot
    if "  " in text:
        text = _replace(text, _SPACE_RUN, lambda _: " ", False, changes)
    return NormalText(text, tuple(reversed(changes)), has_marks)


def _is_composed(text: str, fold: bool) -> bool:
    """Whether no mark changes the form of the character before it."""
    return unicodedata.is_normalized("NFC", text) and (not fold or unicodedata.is_normalized("NFC", text.casefold()))


@cache
def _soft_line_breaks() -> re.Pattern[str]:
    """A line break inside running text of a script without spaces. Empty or indented lines start a paragraph."""
    word, attached, spaceless = character_sets()
    space = as_class(char for char in SPACES if not _LINE_BREAK.match(char))
    end = f"[{space}]*(?:{_LINE_BREAK.pattern})"
    rare = "\\U00020000-\\U0003fffd"  # all Chinese, and too many for a set
    before, after = as_class(spaceless) + rare, as_class(spaceless - attached) + rare
    either = as_class(word) + after
    return re.compile(f"((?<=[{before}]){end}(?=[{either}])|(?<=[{as_class(word)}]){end}(?=[{after}]))")


def _replace(
    text: str, pattern: re.Pattern[str], form: Callable[[str], str], fold: bool, changes: list[OffsetMap]
) -> str:
    """Replace the matches of the pattern's one group, fold the rest, and record the offsets if any moved."""
    parts = pattern.split(text)
    before = [0, *accumulate(map(len, parts))]
    parts[1::2] = map(form, parts[1::2])
    if fold:
        parts[::2] = map(str.casefold, parts[::2])
    after = [0, *accumulate(map(len, parts))]
    if before != after:
        changes.append(OffsetMap(before, after))
    return "".join(parts)


def drop_token_spaces(normal: NormalText) -> NormalText:
    """Drop the spaces that are not between two word characters: `5 - FU` becomes `5-FU`."""
    changes: list[OffsetMap] = []
    text = _replace(normal.text, _token_spaces(), lambda _: "", False, changes)
    return NormalText(text, (*changes, *normal.changes), normal.has_marks)


@cache
def _token_spaces() -> re.Pattern[str]:
    word = as_class(character_sets().word | character_sets().attached)
    return re.compile(f"((?<![{word}]) | (?![{word}]))")


def to_original(changes: tuple[OffsetMap, ...], start: int, end: int) -> tuple[int, int] | None:
    """The original offsets of a non-empty range of the normal form; None if an edge falls inside a replaced part.

    Characters that disappeared at its edges (a soft hyphen) stay outside.
    """
    for before, after in changes:
        first = bisect_right(after, start) - 1
        last = bisect_left(after, end) - 1
        if (first & 1 and start != after[first]) or (last & 1 and end != after[last + 1]):
            return None
        start = before[first] if first & 1 else start + before[first] - after[first]
        end = before[last + 1] if last & 1 else end + before[last] - after[last]
    return start, end
