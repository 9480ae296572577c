"""Find capitalised phrases: probable names of unknown type."""

from functools import cache

import regex

from lacuner.annotate.matching.terms import COMMON_WORDS
from lacuner.data import Document

_WORD = r"\p{Lu}[\p{L}\p{M}\p{N}]*(?:['\u2019\-\u2010\u2011][\p{L}\p{N}][\p{L}\p{M}\p{N}]*)*"
_PARTICLE = r"(?:of|the|de|del|della|di|da|do|dos|du|la|le|van|von|der|den|ter|bin|al|and|for|y|e|&)"
_MAX_WORDS = 12


@cache
def _phrase() -> regex.Pattern[str]:
    """Capitalised words separated by single spaces, with particles only between two of them."""
    more = rf"(?:[ ](?:{_PARTICLE}[ ]){{0,2}}{_WORD})"
    return regex.compile(rf"(?<![\p{{L}}\p{{N}}_]){_WORD}{more}{{0,{_MAX_WORDS}}}(?![\p{{L}}\p{{N}}_])")


def capitalised_phrases(doc: Document) -> list[tuple[int, int, str]]:
    """Capitalised phrases as triples with an empty label.

    Common words at the start of a phrase are dropped (`The`, `In`). A single word at the start of a sentence is not
    reported: it is capitalised because of the sentence.
    """
    phrases = []
    for match in _phrase().finditer(doc.text):
        start, end = match.span()
        words = match.group().split(" ")
        first_word = True
        while words and (words[0].lower() in COMMON_WORDS or words[0].islower()):
            start += len(words.pop(0)) + 1
            first_word = False
        while words and (words[-1] == "I" or words[-1].islower()):
            end -= len(words.pop()) + 1
        if not words or (len(words) == 1 and len(words[0]) == 1):
            continue
        if len(words) == 1 and first_word and _starts_sentence(doc.text, start):
            continue
        phrases.append((start, end, ""))
    return phrases


def _starts_sentence(text: str, start: int) -> bool:
    """Whether only spaces, quotes and brackets separate this place from a full stop, a line break or the beginning."""
    while start and text[start - 1] in " \t\"'\u201c\u201d\u2018\u2019([":
        start -= 1
    return start == 0 or text[start - 1] in ".!?\u2026\n\r"
