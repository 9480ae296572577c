"""Label issues: where a trained model and the weak labels disagree, as missing spans and doubtful labels."""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lacuner.annotate.gazetteer.entries import Entry
from lacuner.annotate.gazetteer.tables import escape_formula
from lacuner.annotate.matching.matcher import Matcher
from lacuner.atomic import atomic_write, write_json_lines
from lacuner.corpus.intervals import IntervalSet, SpanIndex
from lacuner.corpus.words import count_words
from lacuner.data import Document, Span

if TYPE_CHECKING:  # it imports torch, which a reader of issues does not need
    from lacuner.models.storage import AnyTagger

_CONTEXT = 40
REMOVED = "removed.jsonl"
"""File, in a run folder, with the labels that a recipe removed from training: issues in the same form."""
MAX_CANDIDATES = 20
"""Predictions of about the same size that a label is compared with: only nested and crossing ones are more."""
MOST_ISSUES = 50_000
"""Maximum number of missing spans, and of doubtful labels, that are listed: they are held in memory."""


@dataclass(frozen=True)
class Disagreement:
    """One span on which a trained model and the labels disagree."""

    kind: str
    """`missing`: predicted but not labeled. `doubtful`: labeled, but the model predicts nothing or something else."""
    document: Document
    span: Span
    predicted: Span | None = None
    """For a doubtful label: the overlapping prediction."""

    def as_json(self) -> dict[str, Any]:
        start, end, label, score, _ = self.span
        row = {"kind": self.kind, "document": self.document.id, "start": start, "end": end, "label": label}
        row |= {"text": self.document.text[start:end], "score": score, "context": context(self)}
        if self.predicted is not None:
            row["instead"] = {key: value for key, value in self.predicted._asdict().items() if value is not None}
        return row


@dataclass(frozen=True)
class LabelIssues:
    """Missing spans, most confident first, then doubtful labels."""

    missing: list[Disagreement]
    doubtful: list[Disagreement]
    labels: int
    """Number of labels in the documents."""
    unlisted_missing: int = 0
    """Number of further missing spans, with lower scores, that are not listed because there are too many."""
    unlisted_doubtful: int = 0
    """The same for doubtful labels."""
    occurrences: Mapping[str, int] = field(default_factory=dict)
    """How often each missing surface form occurs where nothing is labeled."""
    length_odds: Sequence[float] = ()
    """For names of 1, 2 ... words: how much more often they are right than others, as a factor on the odds."""

    def missing_names(self) -> list[MissingName]:
        """The missing spans grouped by surface form and label, best first."""
        groups: dict[tuple[str, str], list[Disagreement]] = {}
        for issue in self.missing:
            groups.setdefault((_surface(issue.document, issue.span), issue.span.label), []).append(issue)
        names = [
            MissingName(
                text, label, mentions, max(self.occurrences.get(text, 0), len(mentions)), self._find_odds(mentions[0])
            )
            for (text, label), mentions in groups.items()
        ]
        return sorted(names, key=lambda name: -name.score)

    def _find_odds(self, mention: Disagreement) -> float:
        length = count_words(mention.document, mention.span)
        return self.length_odds[min(length, len(self.length_odds)) - 1] if self.length_odds else 1.0


@dataclass(frozen=True)
class MissingName:
    """A surface form that the labels lack, with its predicted mentions, most confident first."""

    text: str
    label: str
    mentions: list[Disagreement]
    occurrences: int
    """How often it occurs where nothing is labeled, predicted or not."""
    odds: float = 1.0
    """How much more often names of its length are right than others."""

    @property
    def score(self) -> float:
        """Mean probability over all occurrences, and one more of 0.5, with the odds of names of this length.

        A single mention says little: so a word that the model predicts as a name only once ranks low, and a name with
        several mentions above one with a single mention.
        """
        mean = (sum(mention.span.score or 0.0 for mention in self.mentions) + 0.5) / (self.occurrences + 1)
        return mean * self.odds / (1 - mean + mean * self.odds)


def find_label_issues(tagger: AnyTagger, docs: Sequence[Document], length_odds: Sequence[float] = ()) -> LabelIssues:
    """Compare weak labels with a tagger's predictions on the same documents.

    `length_odds`, if they are known (`hidden_entries.estimate_length_odds`), change the ranks of missing names.

    >>> from lacuner.models.lookup import LookupTagger
    >>> weak = Document("1", "Mara met Teel.", spans=(Span(0, 4, "PERSON"),))
    >>> issues = find_label_issues(LookupTagger({"Mara": "PERSON", "Teel": "PERSON"}), [weak])
    >>> [name.text for name in issues.missing_names()], issues.doubtful
    (['Teel'], [])
    """
    missing = _TopIssues(lambda issue: issue.span.score or 0.0)
    doubtful = _TopIssues(lambda issue: (issue.predicted.score or 0.0) if issue.predicted else 0.0)
    labels = 0
    weak_docs, inputs = tee(docs)  # stored documents are decoded once
    for weak, predicted in zip(weak_docs, tagger.predict(inputs), strict=True):
        labels += len(weak.spans)
        missing.add(Disagreement("missing", weak, span) for span in find_missing(weak, predicted.spans))
        doubtful.add(
            Disagreement("doubtful", weak, label, prediction)
            for label, prediction in match_labels(weak.spans, predicted.spans)
            if prediction is None or prediction.key != label.key
        )
    listed, listed_doubtful = missing.sort(), doubtful.sort()
    surfaces = {_surface(issue.document, issue.span) for issue in listed}
    unlisted = missing.count - len(listed), doubtful.count - len(listed_doubtful)
    return LabelIssues(listed, listed_doubtful, labels, *unlisted, count_unlabeled(docs, surfaces), length_odds)


class _TopIssues:
    """The issues with the highest scores, at most `MOST_ISSUES`; equal scores stay in order."""

    def __init__(self, score: Callable[[Disagreement], float]) -> None:
        self._score, self._issues = score, list[Disagreement]()
        self.count = 0
        """How many there were."""

    def add(self, issues: Iterable[Disagreement]) -> None:
        before = len(self._issues)
        self._issues += issues
        self.count += len(self._issues) - before
        if len(self._issues) > 2 * MOST_ISSUES:
            self.sort()

    def sort(self) -> list[Disagreement]:
        self._issues.sort(key=lambda issue: -self._score(issue))
        del self._issues[MOST_ISSUES:]
        return self._issues


def _surface(doc: Document, span: Span) -> str:
    return " ".join(doc.text[span.start : span.end].split())


def count_unlabeled(docs: Iterable[Document], surfaces: Iterable[str]) -> Counter[str]:
    """How often each surface form occurs, in the same case, outside the labeled spans.

    >>> count_unlabeled([Document("1", "Teel met Teel.", spans=(Span(0, 4, "PER"),))], ["Teel"])
    Counter({'Teel': 1})
    """
    return Counter(" ".join(doc.text[start:end].split()) for doc, start, end in find_unlabeled(docs, surfaces))


def find_unlabeled(docs: Iterable[Document], surfaces: Iterable[str]) -> Iterator[tuple[Document, int, int]]:
    """Where the surface forms occur, in the same case, outside the labeled spans; occurrences may overlap.

    >>> docs = [Document("1", "Teel met Teel.", spans=(Span(0, 4, "PER"),))]
    >>> [(start, end) for _, start, end in find_unlabeled(docs, ["Teel"])]
    [(9, 13)]
    """
    matcher = Matcher([Entry(surface, "X") for surface in sorted(surfaces)], case="exact", overlaps="all")
    for doc in docs:
        labeled = IntervalSet((span.start, span.end) for span in doc.spans)
        for start, end, _ in matcher.find(doc.text, doc.words):
            if not labeled.overlaps(start, end):
                yield doc, start, end


def find_missing(doc: Document, predicted: Sequence[Span]) -> list[Span]:
    """The predictions where the annotation has no label and does not rule the span out.

    >>> doc = Document("1", "Mara met Teel.", spans=(Span(0, 4, "PER"),), rejected=(Span(5, 8, ""),))
    >>> [span.start for span in find_missing(doc, [Span(0, 8, "PER"), Span(5, 8, "PER"), Span(9, 13, "PER")])]
    [9]
    """
    if doc.complete:
        return []
    labeled = IntervalSet(span[:2] for span in doc.spans)
    places: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for span in doc.rejected:
        places[span.label].append(span[:2])
    ruled_out = {label: IntervalSet(own) for label, own in places.items()}
    return [
        span
        for span in predicted
        if not labeled.overlaps(span.start, span.end)
        and not any(ruled_out[label].covers(span.start, span.end) for label in ("", span.label) if label in ruled_out)
    ]


def match_labels(labels: Sequence[Span], predicted: Sequence[Span]) -> Iterator[tuple[Span, Span | None]]:
    """Each label with the prediction at its place: the same span, or the most probable that overlaps it, or None.

    Labels whose prediction overlaps several labels are left out: a model that joins two neighbouring names makes a
    mistake more often than an annotator who splits one.

    >>> labels = [Span(0, 4, "PER"), Span(5, 8, "PER"), Span(9, 13, "PER")]
    >>> [(a.start, b and b.end) for a, b in match_labels(labels, [Span(0, 4, "ORG", 0.9), Span(5, 13, "PER", 0.8)])]
    [(0, 4)]
    """
    predictions, others = SpanIndex(predicted), SpanIndex(labels)
    by_key = {span.key: span for span in reversed(predictions.spans)}
    for label in labels:
        best = by_key.get(label.key)
        if best is None:
            overlapping = predictions.overlapping(label.start, label.end, MAX_CANDIDATES)
            best = max(overlapping, key=lambda span: span.score or 0.0, default=None)
            if best is not None and len(others.overlapping(best.start, best.end, limit=2)) > 1:
                continue
        yield label, best


def context(issue: Disagreement) -> str:
    """The span in brackets with a few words around it."""
    return bracket(issue.document.text, issue.span.start, issue.span.end)


def bracket(text: str, start: int, end: int) -> str:
    """A part of a text in brackets with a few words around it.

    >>> bracket("Mara left Halden.", 10, 16)
    'Mara left [Halden].'
    """
    before = ("..." if start > _CONTEXT else "") + text[max(0, start - _CONTEXT) : start]
    after = text[end : end + _CONTEXT] + ("..." if len(text) > end + _CONTEXT else "")
    return " ".join(f"{before}[{text[start:end]}]{after}".split())


def write_label_issues(issues: Iterable[Disagreement], path: Path) -> None:
    """Write one issue per line, as JSON."""
    write_json_lines(path, (issue.as_json() for issue in issues))


def write_missing_names(issues: LabelIssues, path: Path) -> None:
    """Write the missing names as a gazetteer, to be reviewed and passed to `lacuner annotate --dictionary`."""
    table = io.StringIO()
    rows = csv.writer(table, delimiter="\t", lineterminator="\n")
    rows.writerow(("term", "label", "score", "mentions", "occurrences", "example"))
    for name in issues.missing_names():
        numbers = round(name.score, 4), len(name.mentions), name.occurrences
        example = escape_formula(context(name.mentions[0]))
        rows.writerow((escape_formula(name.text), escape_formula(name.label), *numbers, example))
    with atomic_write(path) as stream:
        stream.write(table.getvalue().encode("utf-8", "surrogatepass"))
