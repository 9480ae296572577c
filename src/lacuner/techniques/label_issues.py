"""Label issues: where a trained model and the weak labels disagree. Missing spans first, then doubtful labels."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lacuner.annotate.gazetteer.entries import Entry
from lacuner.annotate.intervals import IntervalSet
from lacuner.annotate.matching.matcher import Matcher
from lacuner.atomic import atomic_write
from lacuner.data import Document, Span

if TYPE_CHECKING:  # it imports torch, which a reader of issues does not need
    from lacuner.models.storage import AnyTagger

_CONTEXT = 40


@dataclass(frozen=True)
class LabelIssue:
    """One span worth a look."""

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

    missing: list[LabelIssue]
    doubtful: list[LabelIssue]
    labels: int
    """Number of labels in the documents."""
    occurrences: Mapping[str, int] = field(default_factory=dict)
    """How often each missing surface form occurs where nothing is labeled."""

    def missing_names(self) -> list[MissingName]:
        """The missing spans grouped by surface form and label, best first."""
        groups: dict[tuple[str, str], list[LabelIssue]] = {}
        for issue in self.missing:
            groups.setdefault((_surface(issue.document, issue.span), issue.span.label), []).append(issue)
        names = [
            MissingName(text, label, mentions, max(self.occurrences.get(text, 0), len(mentions)))
            for (text, label), mentions in groups.items()
        ]
        return sorted(names, key=lambda name: -name.score)


@dataclass(frozen=True)
class MissingName:
    """A surface form that the labels lack, with its predicted mentions, most confident first."""

    text: str
    label: str
    mentions: list[LabelIssue]
    occurrences: int
    """How often it occurs where nothing is labeled, predicted or not."""

    @property
    def score(self) -> float:
        """Mean probability over all occurrences: a word that the model takes for a name only once ranks low."""
        return sum(mention.span.score or 0.0 for mention in self.mentions) / self.occurrences


def find_label_issues(tagger: AnyTagger, docs: Sequence[Document]) -> LabelIssues:
    """Compare weak labels with a tagger's predictions on the same documents.

    >>> from lacuner.models.lookup import LookupTagger
    >>> weak = Document("1", "Mara met Teel.", spans=(Span(0, 4, "PERSON"),))
    >>> issues = find_label_issues(LookupTagger({"Mara": "PERSON", "Teel": "PERSON"}), [weak])
    >>> [name.text for name in issues.missing_names()], issues.doubtful
    (['Teel'], [])
    """
    missing, doubtful = [], []
    for weak, predicted in zip(docs, tagger.predict(docs), strict=True):
        missing += [LabelIssue("missing", weak, span) for span in predicted.spans if not _is_settled(span, weak)]
        exact = {span.key for span in predicted.spans}
        for span in weak.spans:
            if span.key not in exact:
                overlapping = next((other for other in predicted.spans if other.overlaps(span)), None)
                # a prediction that merges two labels is a mistake of the model, not of the labels
                if overlapping is None or sum(overlapping.overlaps(other) for other in weak.spans) == 1:
                    doubtful.append(LabelIssue("doubtful", weak, span, overlapping))
    missing.sort(key=lambda issue: -(issue.span.score or 0.0))
    doubtful.sort(key=lambda issue: -((issue.predicted.score or 0.0) if issue.predicted else 0.0))
    surfaces = {_surface(issue.document, issue.span) for issue in missing}
    return LabelIssues(missing, doubtful, sum(len(doc.spans) for doc in docs), count_unlabeled(docs, surfaces))


def _surface(doc: Document, span: Span) -> str:
    return " ".join(doc.text[span.start : span.end].split())


def count_unlabeled(docs: Iterable[Document], surfaces: Iterable[str]) -> Counter[str]:
    """How often each surface form occurs, in the same case, outside the labeled spans.

    >>> count_unlabeled([Document("1", "Teel met Teel.", spans=(Span(0, 4, "PER"),))], ["Teel"])
    Counter({'Teel': 1})
    """
    counts: Counter[str] = Counter()
    matcher = Matcher([Entry(surface, "X") for surface in sorted(surfaces)], case="exact", overlaps="all")
    for doc in docs:
        labeled = IntervalSet((span.start, span.end) for span in doc.spans)
        for start, end, _ in matcher.find(doc.text, doc.words):
            if not labeled.overlaps(start, end):
                counts[" ".join(doc.text[start:end].split())] += 1
    return counts


def _is_settled(span: Span, weak: Document) -> bool:
    """Whether the annotation already has a label there, or rules this one out."""
    ruled_out = [other for other in weak.rejected if other.label in ("", span.label)]
    return any(span.overlaps(other) for other in (*weak.spans, *ruled_out))


def context(issue: LabelIssue) -> str:
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


def write_label_issues(issues: Iterable[LabelIssue], path: Path) -> None:
    """Write one issue per line, as JSON."""
    with atomic_write(path) as stream:
        stream.writelines((json.dumps(issue.as_json(), ensure_ascii=False) + "\n").encode() for issue in issues)


def write_missing_names(issues: LabelIssues, path: Path) -> None:
    """Write the missing names as a gazetteer, to be reviewed and passed to `lacuner annotate --dictionary`."""
    table = io.StringIO()
    rows = csv.writer(table, delimiter="\t", lineterminator="\n")
    rows.writerow(("term", "label", "score", "mentions", "occurrences", "example"))
    for name in issues.missing_names():
        numbers = round(name.score, 4), len(name.mentions), name.occurrences
        example = _escape_formula(context(name.mentions[0]))
        rows.writerow((_escape_formula(name.text), _escape_formula(name.label), *numbers, example))
    with atomic_write(path) as stream:
        stream.write(table.getvalue().encode("utf-8", "surrogatepass"))


def _escape_formula(text: str) -> str:
    """Keep spreadsheets from evaluating a cell; `annotate` ignores the leading space."""
    return f" {text}" if text.startswith(("=", "+", "-", "@")) else text
