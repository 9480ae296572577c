"""Phrases that look like names, of no known type."""

from __future__ import annotations

from functools import cache

import regex

from lacuner.annotate.matching.common_words import COMMON_WORDS
from lacuner.data import Document

_WORD = r"\p{Lu}[\p{L}\p{M}\p{N}]*(?:['\u2019\-\u2010\u2011][\p{L}\p{N}][\p{L}\p{M}\p{N}]*)*"
_SMALL = r"(?:of|the|de|del|della|di|da|do|dos|du|la|le|van|von|der|den|ter|bin|al|and|for|y|e|&)"
_LONGEST = 12


@cache
def _phrase() -> regex.Pattern[str]:
    """Capitalised words with single spaces between, and small words only between two of them."""
    more = rf"(?:[ ](?:{_SMALL}[ ]){{0,2}}{_WORD})"
    return regex.compile(rf"(?<![\p{{L}}\p{{N}}_]){_WORD}{more}{{0,{_LONGEST}}}(?![\p{{L}}\p{{N}}_])")


def _begins_sentence(text: str, start: int) -> bool:
    """Whether only spaces, quotes and brackets stand between here and a full stop, a line break or the beginning."""
    while start and text[start - 1] in " \t\"'\u201c\u201d\u2018\u2019([":
        start -= 1
    return start == 0 or text[start - 1] in ".!?\u2026\n\r"


def capitalised_phrases(doc: Document) -> list[tuple[int, int, str]]:
    """Capitalised phrases as triples with an empty label.

    Common words at the start of a phrase are left out (`The`, `In`), and so is what then is a single word at the start
    of a sentence: it has its capital from the sentence.
    """
    found = []
    for match in _phrase().finditer(doc.text):
        start, end = match.span()
        words = match.group().split(" ")
        first = True
        while words and (words[0].lower() in COMMON_WORDS or words[0].islower()):
            start += len(words.pop(0)) + 1
            first = False
        while words and (words[-1] == "I" or words[-1].islower()):
            end -= len(words.pop()) + 1
        if not words or (len(words) == 1 and len(words[0]) == 1):
            continue
        if len(words) == 1 and first and _begins_sentence(doc.text, start):
            continue
        found.append((start, end, ""))
    return found
