"""Sets of characters, written out for libraries that know other sets or another version of Unicode."""

import re
from functools import cache

import regex


@cache
def _every_character() -> str:
    return "".join(map(chr, range(0x110000)))


def character_ranges(characters: str) -> list[tuple[str, str]]:
    """First and last character of each run of characters in a set, as the library regex writes it.

    >>> character_ranges(r"[a-c\\p{Bopomofo}]")[:2]
    [('a', 'c'), ('˪', '˫')]
    """
    every = _every_character()
    runs = regex.finditer(f"{characters}+", every, regex.V1)
    return [(every[run.start()], every[run.end() - 1]) for run in runs]


def literal_set(characters: str) -> str:
    r"""A set of characters as `re` and most other libraries read it.

    >>> literal_set(r"[[\p{L}&&\p{ASCII}]\[]")
    '[A-\\[a-z]'
    """
    parts = [(first,) if first == last else (first, last) for first, last in character_ranges(characters)]
    return "[" + "".join("-".join(map(re.escape, part)) for part in parts) + "]"


def oniguruma_set(characters: str) -> str:
    r"""A set of characters for the library tokenizers, which uses Oniguruma.

    >>> oniguruma_set("[a-c]")
    '[\\x{61}-\\x{63}]'
    """
    ranges = character_ranges(characters)
    return "[" + "".join(rf"\x{{{ord(first):x}}}-\x{{{ord(last):x}}}" for first, last in ranges) + "]"
