"""Which characters make up words, and in which form characters are compared.

The tables are computed from the running Python's Unicode data on first use (about a tenth of a second), so that they
always agree with `str.casefold` and `unicodedata.normalize`.
"""

import unicodedata
from collections.abc import Iterable
from functools import cache
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
