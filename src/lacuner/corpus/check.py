"""Check a corpus for mistakes, with file and line, and repair those that need no judgement."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from difflib import SequenceMatcher
from heapq import heappop, heappush
from itertools import combinations
from typing import NamedTuple

from lacuner.corpus.offsets import OffsetTable
from lacuner.corpus.reader import span_problem
from lacuner.corpus.words import words_of, words_touching
from lacuner.data import Document, Span, Where
from lacuner.errors import CorpusError

ERRORS = ("unreadable", "outside", "empty", "whitespace", "misaligned", "duplicate", "crossing", "two labels")
"""Kinds of problem that make a corpus unusable as it is; all others are warnings."""
MIN_SIMILARITY, MAX_TYPO_RATE = 0.75, 0.2
"""A label may be a typo of a similar one if it is at most this frequent, relative to the other."""
MAX_COMPARED, NEIGHBOURS = 200, 10
"""Up to this many labels, all pairs are compared; of more labels, each with its neighbours in alphabetical order."""


class Problem(NamedTuple):
    """A mistake and its place."""

    kind: str
    where: Where | None
    message: str

    @property
    def is_error(self) -> bool:
        return self.kind in ERRORS

    def __str__(self) -> str:
        place = "" if self.where is None else f"{self.where}: "
        return f"{place}{self.kind}: {self.message}"


class Checker:
    """Checks documents as they stream through; `on_problem` is called for each problem."""

    def __init__(self, on_problem: Callable[[Problem], None]) -> None:
        self._on_problem = on_problem
        self.documents = self.words = self.spans = 0
        self.labels: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self._texts: dict[bytes, tuple[str, Where | None]] = {}

    @property
    def errors(self) -> int:
        return sum(self.counts[kind] for kind in ERRORS)

    @property
    def warnings(self) -> int:
        return self.counts.total() - self.errors

    def add(self, kind: str, where: Where | None, message: str) -> None:
        """Count and report a problem."""
        self.counts[kind] += 1
        self._on_problem(Problem(kind, where, message))

    def add_unreadable(self, error: CorpusError) -> None:
        """Report a document that cannot be read, for `read(on_error=...)`."""
        self.add("unreadable", Where(error.file or "", error.line), error.problem)

    def check(self, docs: Iterable[Document], split: str) -> Iterator[Document]:
        """Check documents on their way through; a text that occurs in two splits is a problem."""
        ids: set[str] = set()
        for doc in docs:
            self.documents += 1
            self.words += len(words_of(doc))
            self.spans += len(doc.spans)
            self.labels.update(span.label for span in doc.spans)
            for kind, span, message in span_problems(doc):
                self.add(kind, _line_of(doc, span), f"document {doc.id!r}: {message}")
            if doc.id in ids:
                self.add("duplicate id", doc.where, f"there is another document {doc.id!r}")
            ids.add(doc.id)
            self._check_shared(doc, split)
            yield doc

    def _check_shared(self, doc: Document, split: str) -> None:
        digest = hashlib.blake2b(doc.text.encode("utf-8", "surrogatepass"), digest_size=12).digest()
        first_split, where = self._texts.setdefault(digest, (split, doc.where))
        if first_split != split:
            self.add(
                "shared text", doc.where, f"document {doc.id!r} has the same text as one in {where or first_split}"
            )

    def finish(self, rare: int = 5) -> None:
        """Report problems of the whole corpus: labels with fewer than `rare` spans, and labels that look alike."""
        for label, count in sorted(self.labels.items()):
            if count < rare:
                self.add("rare label", None, f"{label!r} has only {count} span{'s' if count > 1 else ''}")
        for pair in similar_labels(self.labels):
            self.add("labels that look alike", None, pair)


def similar_labels(labels: Mapping[str, int]) -> Iterator[str]:
    """Pairs of labels that differ only in case and punctuation, or of which one may be a typo; with their counts.

    >>> list(similar_labels({"DISEASE": 90, "Disease": 2, "GENE": 40}))
    ["'DISEASE' (90), 'Disease' (2)"]
    """
    plain = {label: "".join(filter(str.isalnum, label.casefold())) for label in labels}
    by_count = sorted(labels, key=lambda label: (-labels[label], label))
    first: dict[str, str] = {}  # the most frequent label of each plain form
    similar: dict[tuple[str, str], None] = {}
    for label in by_count:
        if first.setdefault(plain[label], label) != label:
            similar[first[plain[label]], label] = None
    for left, right in _pairs(by_count, plain):
        label, other = (left, right) if labels[left] >= labels[right] else (right, left)
        may_be_typo = labels[other] <= MAX_TYPO_RATE * labels[label]
        may_be_typo &= plain[label] != plain[other] and abs(len(plain[label]) - len(plain[other])) <= 1
        if may_be_typo and (label, other) not in similar:
            matcher = SequenceMatcher(None, plain[label], plain[other], autojunk=False)
            if matcher.real_quick_ratio() >= MIN_SIMILARITY and matcher.ratio() >= MIN_SIMILARITY:
                similar[label, other] = None
    rank = {label: i for i, label in enumerate(by_count)}
    for label, other in sorted(similar, key=lambda pair: (rank[pair[0]], rank[pair[1]])):
        yield f"{label!r} ({labels[label]:,}), {other!r} ({labels[other]:,})"


def _pairs(labels: list[str], plain: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Pairs to compare: all of them or, of many labels, those that are near in alphabetical order or spelled backwards.

    A typo leaves the beginning or the end of a label as it was, so the two are neighbours in one of the orders.
    """
    if len(labels) <= MAX_COMPARED:
        yield from combinations(labels, 2)
        return
    for step in (1, -1):
        ordered = sorted(labels, key=lambda label: plain[label][::step])
        for distance in range(1, NEIGHBOURS + 1):
            yield from zip(ordered, ordered[distance:], strict=False)


def span_problems(doc: Document) -> Iterator[tuple[str, Span, str]]:
    """Problems of a document's spans: kind, span, message."""
    words = words_of(doc)
    starts, ends = {start for start, _ in words}, {end for _, end in words}
    table = OffsetTable(doc.text)

    def unit_hint(span: Span) -> str:
        """Which `--offsets` would put a span on words."""
        for unit, first, last in table.other_units(span.start, span.end):
            if first in starts and last in ends:
                return f"; with --offsets {unit} it is {doc.text[first:last][:60]!r}"
        return ""

    for state in ("spans", "rejected", "unsure"):
        usable = []
        spans: tuple[Span, ...] = getattr(doc, state)
        for span in spans:
            text = doc.text[max(span.start, 0) : max(min(span.end, max(span.start, 0) + 60), 0)]
            name = f"{span.label or 'span'} {span.start}-{span.end} {text!r}"
            impossible = span_problem(doc.text, span)
            if impossible:
                yield "empty" if span.start == span.end else "outside", span, f"{name}: {impossible}{unit_hint(span)}"
                continue
            if doc.text[span.start].isspace() or doc.text[span.end - 1].isspace():
                yield "whitespace", span, f"{name} begins or ends with white space{unit_hint(span)}"
            elif span.start not in starts or span.end not in ends:
                first, last = words_touching(words, span.start, span.end)
                near = [doc.text[start:end] for start, end in words[first : min(last, first + 20)]]
                touched = f"the words are {near}"[:200]
                yield (
                    "misaligned",
                    span,
                    f"{name} does not begin and end at a word boundary: {touched}{unit_hint(span)}",
                )
            usable.append((span, name))
        yield from _pair_problems(usable, state)


def _pair_problems(spans: list[tuple[Span, str]], state: str) -> Iterator[tuple[str, Span, str]]:
    """Problems of two spans; each span is reported at most once per kind, so a document takes n log n steps."""
    keys: set[tuple[int, int, str]] = set()
    labels: dict[tuple[int, int], str] = {}
    open_spans: list[tuple[int, str]] = []  # heap of ends and names: spans that begin earlier and are not yet over
    same_start: list[tuple[int, str]] = []
    previous = -1
    for span, name in sorted(spans, key=lambda item: (item[0].start, -item[0].end)):
        if span.key in keys:
            yield "duplicate", span, f"{name} occurs twice"
            continue
        keys.add(span.key)
        if span.start != previous:
            for item in same_start:
                heappush(open_spans, item)
            same_start, previous = [], span.start
        if labels.setdefault(span[:2], span.label) != span.label and state == "spans":
            yield "two labels", span, f"{name} is also {labels[span[:2]]!r}"
        while open_spans and open_spans[0][0] <= span.start:
            heappop(open_spans)
        if open_spans and open_spans[0][0] < span.end:
            yield "crossing", span, f"{name} crosses {open_spans[0][1]}"
        same_start.append((span.end, name))


def _line_of(doc: Document, span: Span) -> Where | None:
    """The place of a span: in a column file the line of its first word, otherwise that of the document."""
    if doc.where is None or doc.where.line is None or not doc.where.line_per_word:
        return doc.where
    return doc.where._replace(line=doc.where.line + words_touching(words_of(doc), span.start, span.end)[0])


def fix(doc: Document, fixed: Counter[str]) -> Document:
    """Repair spans without judgement: trim white space, expand to whole words, drop empty, outside and duplicate ones.

    Crossing spans and spans with two labels stay: a person has to decide which is right. `fixed` counts the repairs.
    """
    states = {state: tuple(_fix_spans(doc, getattr(doc, state), fixed)) for state in ("spans", "rejected", "unsure")}
    return replace(doc, **states)  # type: ignore[arg-type]


def _fix_spans(doc: Document, spans: Iterable[Span], fixed: Counter[str]) -> Iterator[Span]:
    keys: set[tuple[int, int, str]] = set()
    words = words_of(doc)
    for span in spans:
        low, high = max(span.start, 0), min(span.end, len(doc.text))
        start, end = low, high
        while start < end and doc.text[start].isspace():
            start += 1
        while start < end and doc.text[end - 1].isspace():
            end -= 1
        if start >= end:
            fixed["dropped: empty"] += 1
            continue
        if (low, high) != span[:2]:
            fixed["cut to the text"] += 1
        if (start, end) != (low, high):
            fixed["white space trimmed"] += 1
        first, last = words_touching(words, start, end)
        if first < last and (words[first][0], words[last - 1][1]) != (start, end):
            fixed["widened to whole words"] += 1
            start, end = words[first][0], words[last - 1][1]
        span = span._replace(start=start, end=end)
        if span.key in keys:
            fixed["dropped: duplicate"] += 1
            continue
        keys.add(span.key)
        yield span
