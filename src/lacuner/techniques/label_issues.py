"""Label issues: where a trained model and the weak labels disagree. Missing spans first, then doubtful labels."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lacuner.atomic import atomic_write
from lacuner.data import Document, Span
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

    def missing_names(self) -> list[MissingName]:
        """The missing spans grouped by surface form and label, in the order of their most confident mention."""
        groups: dict[tuple[str, str], list[LabelIssue]] = {}
        for issue in self.missing:
            text = " ".join(issue.document.text[issue.span.start : issue.span.end].split())
            groups.setdefault((text, issue.span.label), []).append(issue)
        return [MissingName(text, label, mentions) for (text, label), mentions in groups.items()]


@dataclass(frozen=True)
class MissingName:
    """A surface form that the labels lack, with its predicted mentions, most confident first."""

    text: str
    label: str
    mentions: list[LabelIssue]

    @property
    def score(self) -> float | None:
        return self.mentions[0].span.score


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
                doubtful.append(LabelIssue("doubtful", weak, span, overlapping))
    missing.sort(key=lambda issue: -(issue.span.score or 0.0))
    doubtful.sort(key=lambda issue: -((issue.predicted.score or 0.0) if issue.predicted else 0.0))
    return LabelIssues(missing, doubtful, sum(len(doc.spans) for doc in docs))


def _is_settled(span: Span, weak: Document) -> bool:
    """Whether the annotation already has a label there, or rules this one out."""
    ruled_out = [other for other in weak.rejected if other.label in ("", span.label)]
    return any(span.overlaps(other) for other in (*weak.spans, *ruled_out))


def context(issue: LabelIssue) -> str:
    """The span in brackets with a few words around it."""
    text, (start, end, *_) = issue.document.text, issue.span
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
    rows.writerow(("term", "label", "score", "mentions"))
    names = issues.missing_names()
    rows.writerows((_escape_formula(name.text), name.label, name.score, len(name.mentions)) for name in names)
    with atomic_write(path) as stream:
        stream.write(table.getvalue().encode("utf-8", "surrogatepass"))


def _escape_formula(text: str) -> str:
    """Keep spreadsheets from evaluating a cell; `annotate` ignores the leading space."""
    return f" {text}" if text.startswith(("=", "+", "-", "@")) else text
