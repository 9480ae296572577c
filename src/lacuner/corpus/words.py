"""Words of a text, and spans in words instead of characters.

A word is a character range. Each Chinese or Japanese character is a word, and so is each syllable of other scripts
that are written without spaces. Elsewhere a word is a run of letters, digits and their combining marks; any other
visible character is a word of its own.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Literal

from lacuner.corpus.intervals import DisjointIntervals
from lacuner.data import Document, Lost, Span, Words
from lacuner.errors import CorpusError

if TYPE_CHECKING:
    import regex


_LONGEST_SHARED = 2000
"""Characters of a text up to which its word ranges are shared with other texts: farther on, few are equal."""


_CJK = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}"
_ALONE = rf"{_CJK}\p{{Thai}}\p{{Lao}}\p{{Khmer}}\p{{Myanmar}}"
WORD_CHARACTERS = {
    "alone": rf"[{_ALONE}]",
    "letter": rf"[[\p{{L}}\p{{N}}_]--[{_ALONE}]]",
    # marks belong to the letter before them; joiners and soft hyphens occur inside Persian, Indic and hyphenated words
    "inner": rf"[[\p{{L}}\p{{N}}\p{{M}}_\u00ad\u200c\u200d]--[{_ALONE}]]",
    "mark": r"[\p{M}\u200d]",
    "prefix": r"[\p{GCB=Prepend}]",
    "flag": r"[\p{RI}]",
    "emoji": r"[\p{ExtPict}]",
    "modifier": r"[\p{GCB=Extend}]",
    "symbol": r"[^\s\p{GCB=Control}\p{GCB=CR}\p{GCB=LF}]",
    "attached": r"[\p{GCB=Extend}\p{GCB=SpacingMark}\p{GCB=ZWJ}]",
    "visible": r"[^\s]",
}
"""Sets of characters in the rule of words, as the library regex writes them."""
_RULE = (
    "{letter}{inner}*|{alone}{mark}*"
    "|{prefix}*(?:{flag}{flag}|{emoji}(?:{modifier}*\u200d{emoji})*|{symbol}){attached}*|{visible}"
)
"""A symbol is a word with what is attached to it, as in a grapheme cluster: two letters make a flag, joined emoji are
one. Unlike with `\\X`, what is before a word never matters, and every version of the library reads the rule alike."""


def word_pattern(write: Callable[[str], str] = str) -> str:
    """The regular expression of a word. `write` converts sets of characters for libraries that know other sets.

    >>> import regex
    >>> regex.findall(word_pattern(), "Mara left.", regex.V1)
    ['Mara', 'left', '.']
    """
    return _RULE.format(**{name: write(characters) for name, characters in WORD_CHARACTERS.items()})


@cache
def _patterns() -> tuple[regex.Pattern[str], regex.Pattern[str]]:
    import regex  # slow to import, and not needed if the file has words

    cjk = regex.compile(rf"[{_CJK}\u3001-\u303f\u30fb-\u30ff\uff00-\uff65]")
    return regex.compile(word_pattern(), regex.V1), cjk


_ASCII_WORD = re.compile(r"[A-Za-z0-9_]+|[^ \t\n\r\f\vA-Za-z0-9_]")
"""The rule for plain ASCII, where it needs no Unicode tables and is twice as fast."""


_ASCII_START = re.compile(r"\b(?=\w)|(?=[^\w\s])", re.ASCII)
_ASCII_END = re.compile(r"(?<=\w)\b|(?<=[^\w\s])", re.ASCII)


def split_words(text: str) -> Words:
    """Split by the Unicode rule above. Every character except white space is in exactly one word."""
    word = _ASCII_WORD if text.isascii() else _patterns()[0]
    return tuple([match.span() for match in word.finditer(text)])


def split_spaces(text: str) -> Words:
    """Split at white space, for text that is already tokenised."""
    return tuple([match.span() for match in re.finditer(r"\S+", text)])


def words_of(doc: Document) -> Words:
    """The words of a document as character ranges; split on first use unless the file has them.

    >>> words_of(Document("1", "Mara left."))
    ((0, 4), (5, 9), (9, 10))
    """
    if doc.words is None:
        doc.words = split_words(doc.text)
    return doc.words


def share_ranges(docs: Iterable[Document]) -> Iterator[Document]:
    """Split documents into words, and let equal ranges be one object: a corpus in memory takes 40 % less.

    >>> first, second = share_ranges([Document("1", "Mara left."), Document("2", "Nora fell.")])
    >>> first.words[0] is second.words[0]
    True
    """
    ranges: dict[tuple[int, int], tuple[int, int]] = {}
    for doc in docs:
        words = words_of(doc)
        if len(doc.text) <= _LONGEST_SHARED:
            doc.words = tuple([ranges.setdefault(word, word) for word in words])
        yield doc


def word_texts(doc: Document) -> list[str]:
    """The words of a document as strings."""
    return [doc.text[start:end] for start, end in words_of(doc)]


def join_words(tokens: Sequence[str]) -> tuple[str, Words]:
    """Build a text from tokens: a space between words, none between two CJK characters.

    A sentence of single characters, some of them CJK, is joined without any space.
    """
    text = " ".join(tokens)
    gaps = [1] * len(tokens)
    if not text.isascii():
        _, cjk = _patterns()
        if cjk.search(text):
            single = all(len(token) == 1 for token in tokens)
            gaps = [int(not single and not (cjk.match(a[-1:]) and cjk.match(b[:1]))) for a, b in pairwise(tokens)] + [0]
            text = "".join([token + " " * gap for token, gap in zip(tokens, gaps, strict=True)])
    lengths = list(map(len, tokens))
    starts = list(accumulate(map(int.__add__, lengths, gaps), initial=0))
    return text, tuple(zip(starts, map(int.__add__, starts, lengths), strict=False))


def find_words(text: str, tokens: Iterable[str]) -> Words:
    """The character ranges of consecutive tokens that are separated by nothing but white space."""
    words, position = [], 0
    for token in tokens:
        start = text.find(token, position)
        if start < 0 or text[position:start].strip():
            raise CorpusError(f"`text` and `tokens` differ: token {token!r} does not follow at character {position}")
        position = start + len(token)
        words.append((start, position))
    if text[position:].strip():
        raise CorpusError(f"`text` and `tokens` differ: `text` continues after the last token, at character {position}")
    return tuple(words)


def words_touching(words: Words, start: int, end: int) -> tuple[int, int]:
    """The words, half-open, that share a character with a range.

    >>> words_touching(((0, 4), (5, 9), (9, 10)), 3, 6)
    (0, 2)
    """
    return bisect_right(words, start, key=lambda word: word[1]), bisect_left(words, end, key=lambda word: word[0])


def count_words(doc: Document, span: Span) -> int:
    """The number of words that a span touches, at least 1.

    >>> count_words(Document("1", "Mara Teel left."), Span(0, 9, "PER"))
    2
    """
    first, last = words_touching(words_of(doc), span.start, span.end)
    return max(last - first, 1)


def to_words(
    doc: Document, spans: Iterable[Span], lost: Lost, snap: Literal["drop", "expand"] = "drop"
) -> list[tuple[int, int, Span]]:
    """Spans with the words that they cover: `(first word, end word, span)`, half-open.

    Spans that do not start and end at word boundaries are dropped, or expanded to the words that they touch; `lost`
    records them.
    """
    words = words_of(doc)
    in_words = []
    for span in spans:
        first, last = bisect_left(words, (span.start,)), bisect_left(words, (span.end,))
        if first < last and words[first][0] == span.start and words[last - 1][1] == span.end:
            in_words.append((first, last, span))
            continue
        first, last = words_touching(words, span.start, span.end)
        if snap == "drop" or first >= last:
            lost.span(doc, span, "span does not fit the words")
            continue
        lost.span(doc, span, "span expanded to whole words")
        in_words.append((first, last, span))
    return in_words


def split_with_spans(doc: Document, lost: Lost) -> tuple[list[str], list[tuple[int, int, Span]]]:
    """The words of a document as strings, and its spans with the words that they cover, as `to_words` returns them.

    >>> split_with_spans(Document("1", "Mara Teel left.", spans=(Span(0, 9, "PER"),)), Lost())
    (['Mara', 'Teel', 'left', '.'], [(0, 2, Span(start=0, end=9, label='PER', score=None, source=None))])
    """
    text = doc.text
    if doc.words is not None or not text.isascii():
        return word_texts(doc), to_words(doc, doc.spans, lost)
    # If all spans begin and end with a word, only the number of words before each edge matters, not the words' ranges.
    # It is found in two thirds of the time.
    find, last = _ASCII_WORD.findall, 0
    tokens: list[str] = []
    in_words = []
    for span in doc.spans:
        start, end = span[0], span[1]
        if not (last <= start < end <= len(text) and _ASCII_START.match(text, start) and _ASCII_END.match(text, end)):
            return word_texts(doc), to_words(doc, doc.spans, lost)  # or they overlap, or are not in order
        tokens += find(text, last, start)
        first = len(tokens)
        tokens += find(text, start, end)
        in_words.append((first, len(tokens), span))
        last = end
    tokens += find(text, last)
    return tokens, in_words


def flatten(doc: Document, spans: Iterable[Span], lost: Lost) -> list[Span]:
    """Resolve overlaps: the longest span wins, then the first, then by label; `lost` records the others."""
    spans = sorted(spans, key=itemgetter(0))
    if all(left.end <= right.start for left, right in pairwise(spans)):
        return spans
    kept, taken = [], DisjointIntervals()
    for span in sorted(spans, key=lambda span: (span.start - span.end, span.start, span.label)):
        if taken.first_overlap(span.start, span.end):
            lost.span(doc, span, "span overlaps a longer one")
        else:
            taken.add(span.start, span.end)
            kept.append(span)
    return sorted(kept, key=itemgetter(0))
