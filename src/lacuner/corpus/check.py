"""Check a corpus for mistakes, with file and line, and repair those that need no judgement."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import combinations
from typing import NamedTuple

from lacuner.corpus.reader import span_problem
from lacuner.corpus.words import word_texts, words_of, words_touching
from lacuner.data import Document, Span, Where
from lacuner.errors import CorpusError

ERRORS = ("unreadable", "outside", "empty", "whitespace", "misaligned", "duplicate", "crossing", "two labels")
"""Kinds of problem that make a corpus unusable as it is; all others are warnings."""
MIN_SIMILARITY, MAX_TYPO_RATE = 0.75, 0.2
"""A label may be a typo of a similar one if it is at most this frequent, relative to the other."""


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
    for label, other in combinations(sorted(labels, key=lambda label: (-labels[label], label)), 2):
        left, right = ("".join(filter(str.isalnum, name.casefold())) for name in (label, other))
        may_be_typo = labels[other] <= MAX_TYPO_RATE * labels[label] and abs(len(left) - len(right)) <= 1
        if left == right or (
            may_be_typo and SequenceMatcher(None, left, right, autojunk=False).ratio() >= MIN_SIMILARITY
        ):
            yield f"{label!r} ({labels[label]:,}), {other!r} ({labels[other]:,})"


def span_problems(doc: Document) -> Iterator[tuple[str, Span, str]]:
    """Problems of a document's spans: kind, span, message."""
    words = words_of(doc)
    starts, ends = {start for start, _ in words}, {end for _, end in words}
    for state in ("spans", "rejected", "unsure"):
        usable = []
        spans: tuple[Span, ...] = getattr(doc, state)
        for span in spans:
            text = doc.text[max(span.start, 0) : max(span.end, 0)]
            name = f"{span.label or 'span'} {span.start}-{span.end} {text[:60]!r}"
            impossible = span_problem(doc.text, span)
            if impossible:
                yield "empty" if span.start == span.end else "outside", span, f"{name}: {impossible}"
                continue
            if text != text.strip():
                yield "whitespace", span, f"{name} begins or ends with white space"
            elif span.start not in starts or span.end not in ends:
                first, last = words_touching(words, span.start, span.end)
                touched = f"the words are {word_texts(doc)[first:last]}"[:200]
                yield "misaligned", span, f"{name} does not begin and end at a word boundary: {touched}"
            usable.append((span, name))
        yield from _pair_problems(usable, state)


def _pair_problems(spans: list[tuple[Span, str]], state: str) -> Iterator[tuple[str, Span, str]]:
    spans = sorted(spans, key=lambda item: (item[0].start, -item[0].end))
    for i, (span, name) in enumerate(spans):
        for other, other_name in spans[i + 1 :]:
            if other.start >= span.end:
                break
            if other.key == span.key:
                yield "duplicate", other, f"{other_name} occurs twice"
            elif other[:2] == span[:2] and state == "spans":
                yield "two labels", other, f"{other_name} is also {span.label!r}"
            elif other.start > span.start and other.end > span.end:
                yield "crossing", other, f"{other_name} crosses {name}"


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
        start, end = max(span.start, 0), min(span.end, len(doc.text))
        text = doc.text[start:end]
        if not text.strip():
            fixed["dropped: empty"] += 1
            continue
        if (start, end) != span[:2]:
            fixed["cut to the text"] += 1
        if text != text.strip():
            fixed["white space trimmed"] += 1
            start, end = start + len(text) - len(text.lstrip()), end - (len(text) - len(text.rstrip()))
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
