"""What is wrong with a corpus, with file and line; and the repair of what can be repaired without judgement."""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from itertools import combinations
from typing import NamedTuple

from lacuner.corpus.reader import span_problem
from lacuner.corpus.words import words_of
from lacuner.data import Document, Span, Where, Words
from lacuner.errors import CorpusError

ERRORS = ("unreadable", "outside", "empty", "whitespace", "misaligned", "duplicate", "crossing", "two labels")
"""What makes a corpus unusable as it is; every other kind of problem is a warning."""
SIMILAR, SELDOM = 0.75, 0.2
"""A label may be a typo of another one if they are so similar, and it occurs at most so often as that."""


class Problem(NamedTuple):
    """One thing that is wrong, and where."""

    kind: str
    where: Where | None
    message: str

    @property
    def is_error(self) -> bool:
        return self.kind in ERRORS

    def __str__(self) -> str:
        if self.where is None:
            return f"{self.kind}: {self.message}"
        line = "" if self.where.line is None else f":{self.where.line}"
        return f"{self.where.file}{line}: {self.kind}: {self.message}"


@dataclass
class Checked:
    """What a check has seen so far; `problem` is called for each thing that is wrong, as it is found."""

    problem: Callable[[Problem], None]
    documents: int = 0
    words: int = 0
    spans: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    _texts: dict[bytes, tuple[str, Where | None]] = field(default_factory=dict)

    def add(self, kind: str, where: Where | None, message: str) -> None:
        self.counts[kind] += 1
        self.problem(Problem(kind, where, message))

    @property
    def errors(self) -> int:
        return sum(self.counts[kind] for kind in ERRORS)


def check_corpus(docs: Iterable[Document], name: str, checked: Checked) -> Iterator[Document]:
    """Look at each document on its way through. `name` is the split's: texts shared between splits are a problem."""
    ids: set[str] = set()
    for doc in docs:
        checked.documents += 1
        checked.words += len(words_of(doc))
        checked.spans += len(doc.spans)
        checked.labels.update(span.label for span in doc.spans)
        for kind, span, message in span_problems(doc):
            checked.add(kind, _line_of(doc, span), f"document {doc.id!r}: {message}")
        if doc.id in ids:
            checked.add("duplicate id", doc.where, f"there is another document {doc.id!r}")
        ids.add(doc.id)
        _check_shared(doc, name, checked)
        yield doc


def _check_shared(doc: Document, name: str, checked: Checked) -> None:
    digest = hashlib.blake2b(doc.text.encode("utf-8", "surrogatepass"), digest_size=12).digest()
    split, where = checked._texts.setdefault(digest, (name, doc.where))
    if split != name:
        other = f"{where.file}:{where.line}" if where and where.line else split
        checked.add("shared text", doc.where, f"document {doc.id!r} has the same text as one in {other}")


def finish(checked: Checked, rare: int = 5) -> None:
    """What can only be said at the end: labels with few spans, and labels that look alike."""
    for label, count in sorted(checked.labels.items()):
        if count < rare:
            checked.add("rare label", None, f"{label!r} has {count} span{'s' if count > 1 else ''} in all")
    for named in look_alike(checked.labels):
        checked.add("labels that look alike", None, named)


def look_alike(labels: Mapping[str, int]) -> Iterator[str]:
    """Pairs of labels, and how often they occur: equal but for case and hyphens, or one perhaps a typo of the other."""
    for one, other in combinations(sorted(labels, key=lambda label: (-labels[label], label)), 2):
        left, right = ("".join(filter(str.isalnum, label.casefold())) for label in (one, other))
        seldom = labels[other] <= SELDOM * labels[one] and abs(len(left) - len(right)) <= 1
        if left == right or (seldom and SequenceMatcher(None, left, right, autojunk=False).ratio() >= SIMILAR):
            yield f"{one!r} ({labels[one]:,}), {other!r} ({labels[other]:,})"


def unreadable(checked: Checked) -> Callable[[CorpusError], None]:
    """For `read(on_error=...)`: a document that cannot be read is a problem among others."""

    def note(error: CorpusError) -> None:
        checked.add("unreadable", Where(error.file or "", error.line), error.problem)

    return note


def span_problems(doc: Document) -> Iterator[tuple[str, Span, str]]:
    """Everything wrong with a document's spans: kind, span, message."""
    words = words_of(doc)
    starts, ends = {start for start, _ in words}, {end for _, end in words}
    for state in ("spans", "rejected", "unsure"):
        usable = []
        spans: tuple[Span, ...] = getattr(doc, state)
        for span in spans:
            text = doc.text[max(span.start, 0) : max(span.end, 0)]
            named = f"{span.label or 'span'} {span.start}-{span.end} {text[:60]!r}"
            impossible = span_problem(doc.text, span)
            if impossible:
                yield "empty" if span.start == span.end else "outside", span, f"{named}: {impossible}"
                continue
            if text != text.strip():
                yield "whitespace", span, f"{named} begins or ends with white space"
            elif span.start not in starts or span.end not in ends:
                yield (
                    "misaligned",
                    span,
                    f"{named} does not begin and end with a word: {_surroundings(doc, words, span)}",
                )
            usable.append((span, named))
        yield from _pair_problems(usable, state)


def _pair_problems(spans: list[tuple[Span, str]], state: str) -> Iterator[tuple[str, Span, str]]:
    spans = sorted(spans, key=lambda item: (item[0].start, -item[0].end))
    for i, (span, named) in enumerate(spans):
        for other, other_named in spans[i + 1 :]:
            if other.start >= span.end:
                break
            if other[:3] == span[:3]:
                yield "duplicate", other, f"{other_named} is there twice"
            elif other[:2] == span[:2] and state == "spans":
                yield "two labels", other, f"{other_named} is also {span.label!r}"
            elif other.start > span.start and other.end > span.end:
                yield "crossing", other, f"{other_named} crosses {named}"


def _surroundings(doc: Document, words: Words, span: Span) -> str:
    near = [doc.text[start:end] for start, end in words if start < span.end and end > span.start]
    return f"the words are {near}"[:200]


def _line_of(doc: Document, span: Span) -> Where | None:
    """In a column file each word has its own line; elsewhere the document has one."""
    if doc.where is None or doc.where.line is None or not doc.where.line_per_word:
        return doc.where
    before = sum(end <= span.start for _, end in words_of(doc))
    return doc.where._replace(line=doc.where.line + before)


def fix(doc: Document, fixed: Counter[str]) -> Document:
    """Repair what needs no judgement: trim white space, drop empty, outside and duplicate spans, widen to words.

    Spans that cross, and places with two labels, stay as they are: which of them is right, somebody has to say.
    """
    states = {state: tuple(_fixed(doc, getattr(doc, state), fixed)) for state in ("spans", "rejected", "unsure")}
    return replace(doc, **states)  # type: ignore[arg-type]


def _fixed(doc: Document, spans: Iterable[Span], fixed: Counter[str]) -> Iterator[Span]:
    seen: set[tuple[int, int, str]] = set()
    for span in spans:
        start, end = max(span.start, 0), min(span.end, len(doc.text))
        text = doc.text[start:end]
        if not text.strip():
            fixed["dropped: nothing in it"] += 1
            continue
        if (start, end) != span[:2]:
            fixed["cut to the text"] += 1
        if text != text.strip():
            fixed["white space trimmed"] += 1
            start, end = start + len(text) - len(text.lstrip()), end - (len(text) - len(text.rstrip()))
        words = words_of(doc)
        first = bisect_right(words, start, key=lambda word: word[1])
        touched = words[first : bisect_left(words, end, key=lambda word: word[0])]
        if touched and (touched[0][0], touched[-1][1]) != (start, end):
            fixed["widened to whole words"] += 1
            start, end = touched[0][0], touched[-1][1]
        span = span._replace(start=start, end=end)
        if span[:3] in seen:
            fixed["dropped: there twice"] += 1
            continue
        seen.add(span[:3])
        yield span
