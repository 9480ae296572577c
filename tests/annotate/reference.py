"""A naive matcher as the reference: it tries every start, every end and every entry.

It shares no code with `lacuner.annotate`, only the lists of what is alike: characters are classed by their Unicode
names and categories, and texts are taken apart character by character.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from lacuner.annotate.matching.normalise import DASHES, INVISIBLE, QUOTES

BREAKS = "\n\r\v\f\x85\u2028\u2029"
WITHOUT_SPACES = ("CJK ", "HIRAGANA", "KATAKANA", "THAI", "LAO ", "KHMER", "MYANMAR")


@dataclass
class Unit:
    """A base with what is attached to it, or a run of white space."""

    start: int
    end: int
    form: str
    base: str
    joins: bool
    """Whether it ends with a joiner."""
    stray: bool
    """Whether it is attached to nothing, and then no part of a word."""


def is_attached(char: str) -> bool:
    if unicodedata.category(char)[0] == "M" or char in "\u200c\u200d":
        return True
    return "\u1160" <= char <= "\u11ff" or "\U0001f3fb" <= char <= "\U0001f3ff"  # Korean vowels, skin tones


def is_word(char: str) -> bool:
    if unicodedata.name(char, "").startswith(WITHOUT_SPACES):
        return False
    return unicodedata.category(char)[0] in "LN" or char == "_"


def is_spaceless(char: str) -> bool:
    return unicodedata.name(char, "").startswith(WITHOUT_SPACES) and unicodedata.category(char)[0] in "LNM"


def is_broken_line(text: str, start: int, end: int) -> bool:
    """Whether this white space is no more than a line's end beside a character of a script without spaces."""
    if start == 0 or end == len(text) or is_attached(text[end]):
        return False
    around = text[start - 1], text[end]
    if not any(map(is_spaceless, around)) or not all(is_spaceless(char) or is_word(char) for char in around):
        return False
    at = start
    while text[at].isspace() and text[at] not in BREAKS:
        at += 1
    return text[at:end] in ("\r\n", *BREAKS)


def form(unit: str, fold: bool) -> str:
    unit = "".join(char for char in unit if char not in INVISIBLE)
    unit = unicodedata.normalize("NFD", unit)
    unit = "".join("-" if char in DASHES else "'" if char in QUOTES else char for char in unit)
    return unicodedata.normalize("NFC", unit.casefold() if fold else unit)


def units(text: str, fold: bool) -> list[Unit]:
    """What the text consists of; invisible characters between units, and broken lines, are in none."""
    found, at = [], 0
    while at < len(text):
        char, end = text[at], at + 1
        if char in INVISIBLE:
            at += 1
            continue
        ahead = at + 1
        while ahead < len(text) and (
            text[ahead] in INVISIBLE or (text[ahead].isspace() if char.isspace() else is_attached(text[ahead]))
        ):
            ahead += 1
            if text[ahead - 1] not in INVISIBLE:
                end = ahead
        piece = text[at:end]
        if char.isspace() and is_broken_line(text, at, end):
            at = end
            continue
        shape = " " if char.isspace() else form(piece, fold)
        found.append(Unit(at, end, shape, char, piece[-1] == "\u200d", is_attached(char)))
        at = end
    return found


def is_edge(parts: list[Unit], at: int) -> bool:
    """Whether a match may begin or end before this unit."""
    if at in (0, len(parts)):
        return True
    before, after = parts[at - 1], parts[at]
    return not (after.stray or before.joins or (not before.stray and is_word(before.base) and is_word(after.base)))


def without_idle_spaces(parts: list[Unit]) -> list[Unit]:
    """Only the spaces between two word characters, or marks, stay."""

    def is_inner(char: str) -> bool:
        return is_word(char) or is_attached(char)

    return [
        part
        for place, part in enumerate(parts)
        if part.form != " "
        or (0 < place < len(parts) - 1 and is_inner(parts[place - 1].form[-1]) and is_inner(parts[place + 1].form[0]))
    ]


def normalise_surface(surface: str, fold: bool, tokens: bool = False) -> str:
    parts = units(surface, fold)
    return "".join(unit.form for unit in (without_idle_spaces(parts) if tokens else parts)).strip(" ")


def find_all(surfaces: set[str], text: str, fold: bool, tokens: bool = False) -> set[tuple[int, int, str]]:
    """Every match: start, end, form."""
    forms = {normalise_surface(surface, fold, tokens) for surface in surfaces} - {""}
    parts = units(text, fold)
    if tokens:
        parts = without_idle_spaces(parts)
    found = set()
    for first in range(len(parts)):
        for after in range(first + 1, len(parts) + 1):
            candidate = "".join(unit.form for unit in parts[first:after])
            if candidate in forms and is_edge(parts, first) and is_edge(parts, after):
                found.add((parts[first].start, parts[after - 1].end, candidate))
    return found


def longest_leftmost(matches: set[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    kept: list[tuple[int, int, str]] = []
    rest = set(matches)
    while rest:
        first = min(rest, key=lambda match: (match[0], -match[1]))
        kept.append(first)
        rest = {match for match in rest if match[0] >= first[1]}
    return kept
