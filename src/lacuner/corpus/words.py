"""Words: given, or split once; and between words and characters.

A word is a character range of the document's text. Chinese and Japanese characters are a word each (so are the
syllables of scripts that write without spaces); everywhere else a word is a run of letters, digits and the marks on
them; any other visible character stands alone.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Literal

from lacuner.data import Document, Lost, Span, Words
from lacuner.errors import CorpusError

if TYPE_CHECKING:
    import regex

Snap = Literal["drop", "expand", "contract"]


@cache
def _patterns() -> tuple[regex.Pattern[str], regex.Pattern[str]]:
    import regex  # not needed by who only reads words that are given, and slow to import

    alone = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
    letter = rf"[[\p{{L}}\p{{N}}_]--{alone}]"
    # marks belong to the letter before them; joiners and soft hyphens stand inside Persian, Indic and hyphenated words
    inner = rf"[[\p{{L}}\p{{N}}\p{{M}}_\u00ad\u200c\u200d]--{alone}]"
    word = regex.compile(rf"(?V1){letter}{inner}*|{alone}[\p{{M}}\u200d]*|(?!\s)\X")
    cjk = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\u3001-\u303f\u30fb-\u30ff\uff00-\uff65]")
    return word, cjk


def split_words(text: str) -> Words:
    """The words of a text by the rule above. Every character that is not white space is in exactly one word."""
    word, _ = _patterns()
    return tuple([match.span() for match in word.finditer(text)])


def split_spaces(text: str) -> Words:
    """Words between white space, for text that has been tokenised and joined by spaces."""
    return tuple([match.span() for match in re.finditer(r"\S+", text)])


def words_of(doc: Document) -> Words:
    """The document's words: the given ones, or, on first use, split and then kept in the document."""
    if doc.words is None:
        doc.words = split_words(doc.text)
    return doc.words


def word_texts(doc: Document) -> list[str]:
    """The document's words as strings."""
    return [doc.text[start:end] for start, end in words_of(doc)]


def join_words(tokens: Sequence[str]) -> tuple[str, Words]:
    """A text for words that come without one: a space between words, none between two CJK characters.

    A sentence of single characters, some of them CJK, is joined without any space: it was cut into characters.
    """
    text = " ".join(tokens)
    if not text.isascii():
        _, cjk = _patterns()
        if cjk.search(text):
            return _join_cjk(tokens)
    return text, _ranges(tokens, [1] * len(tokens))


def _join_cjk(tokens: Sequence[str]) -> tuple[str, Words]:
    _, cjk = _patterns()
    if all(len(token) == 1 for token in tokens):
        gaps = [0] * len(tokens)
    else:
        gaps = [0 if cjk.match(left[-1:]) and cjk.match(right[:1]) else 1 for left, right in pairwise(tokens)] + [0]
    text = "".join([token + " " * gap for token, gap in zip(tokens, gaps, strict=True)])
    return text, _ranges(tokens, gaps)


def _ranges(tokens: Sequence[str], gaps: Sequence[int]) -> Words:
    lengths = list(map(len, tokens))
    starts = list(accumulate(map(int.__add__, lengths, gaps), initial=0))
    return tuple(zip(starts, map(int.__add__, starts, lengths), strict=False))


def find_words(text: str, tokens: Iterable[str]) -> Words:
    """Where these tokens stand in the text, one after another with nothing but white space between."""
    words, position = [], 0
    for token in tokens:
        start = text.find(token, position)
        if start < 0 or text[position:start].strip():
            raise CorpusError(f"the token {token!r} does not follow at character {position} of the text")
        position = start + len(token)
        words.append((start, position))
    if text[position:].strip():
        raise CorpusError(f"the text goes on after the last token, at character {position}")
    return tuple(words)


def to_words(doc: Document, spans: Iterable[Span], lost: Lost, snap: Snap = "drop") -> list[tuple[int, int, Span]]:
    """Spans with the words they cover, `(first word, word after the last, span)`.

    A span whose edges are not word edges is dropped, widened to the words it touches, or narrowed to the words
    it covers; either way `lost` has it.
    """
    words = words_of(doc)
    starts = {start: i for i, (start, _) in enumerate(words)}
    ends = {end: i + 1 for i, (_, end) in enumerate(words)}
    found = []
    for span in spans:
        first, last = starts.get(span.start), ends.get(span.end)
        if first is not None and last is not None and first < last:
            found.append((first, last, span))
            continue
        if snap == "expand":
            touched = [i for i, (start, end) in enumerate(words) if start < span.end and end > span.start]
        else:
            touched = [i for i, (start, end) in enumerate(words) if start >= span.start and end <= span.end]
        if snap == "drop" or not touched:
            lost.span(doc, span, "span does not fit the words")
            continue
        lost.span(doc, span, f"span moved to word edges ({snap})")
        found.append((touched[0], touched[-1] + 1, span))
    return found


def flatten(doc: Document, spans: Iterable[Span], lost: Lost) -> list[Span]:
    """Spans of which no two overlap: the longest win, then the first, then by label; `lost` has the others."""
    kept: list[Span] = []  # by start, so that only the neighbours need to be looked at
    for span in sorted(spans, key=lambda span: (span.start - span.end, span.start, span.label)):
        at = bisect_left(kept, span.start, key=lambda other: other.start)
        if (at and kept[at - 1].end > span.start) or (at < len(kept) and kept[at].start < span.end):
            lost.span(doc, span, "span overlaps a longer one")
        else:
            kept.insert(at, span)
    return kept
