"""What a person without gold wants to see after training: what the weak labels lack, and which are doubtful."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lacuner.atomic import atomic_write
from lacuner.data import Document, Span
from lacuner.models.storage import AnyTagger

_AROUND = 40


@dataclass(frozen=True)
class Suspect:
    """One span worth a look."""

    kind: str
    """`missing`: the model finds it and the labels lack it. `doubtful`: labelled, and the model sees nothing or another
    thing there."""
    document: Document
    span: Span
    instead: Span | None = None
    """For a doubtful label: what the model sees there."""

    def as_json(self) -> dict[str, Any]:
        start, end, label, score, _ = self.span
        row = {"kind": self.kind, "document": self.document.id, "start": start, "end": end, "label": label}
        text = self.document.text
        row |= {"text": text[start:end], "score": score, "context": context(self)}
        if self.instead is not None:
            row["instead"] = {key: value for key, value in self.instead._asdict().items() if value is not None}
        return row


@dataclass(frozen=True)
class Suspects:
    """Missing spans, the most certain first, then doubtful labels."""

    missing: list[Suspect]
    doubtful: list[Suspect]
    labels: int
    """How many labels there are."""

    def names(self) -> list[Name]:
        """What is missing, name by name, in the order of each one's most certain mention."""
        groups: dict[tuple[str, str], list[Suspect]] = {}
        for suspect in self.missing:
            text = " ".join(suspect.document.text[suspect.span.start : suspect.span.end].split())
            groups.setdefault((text, suspect.span.label), []).append(suspect)
        return [Name(text, label, group) for (text, label), group in groups.items()]


@dataclass(frozen=True)
class Name:
    """A name that the labels lack, and where the model finds it."""

    text: str
    label: str
    mentions: list[Suspect]
    """The most certain first."""

    @property
    def score(self) -> float | None:
        return self.mentions[0].span.score


def find_suspects(tagger: AnyTagger, docs: Sequence[Document]) -> Suspects:
    """Compare weak labels with what the model says of the same documents."""
    missing, doubtful = [], []
    for weak, found in zip(docs, tagger.predict(docs), strict=True):
        missing += [Suspect("missing", weak, span) for span in found.spans if not _touched(span, weak)]
        exact = {span[:3] for span in found.spans}
        for span in weak.spans:
            if span[:3] not in exact:
                other = next((seen for seen in found.spans if seen.start < span.end and span.start < seen.end), None)
                doubtful.append(Suspect("doubtful", weak, span, other))
    missing.sort(key=lambda suspect: -(suspect.span.score or 0.0))
    doubtful.sort(key=lambda suspect: -((suspect.instead.score or 0.0) if suspect.instead else 0.0))
    return Suspects(missing, doubtful, sum(len(doc.spans) for doc in docs))


def _touched(span: Span, weak: Document) -> bool:
    gone = [other for other in weak.rejected if other.label in ("", span.label)]
    return any(other.start < span.end and span.start < other.end for other in (*weak.spans, *gone))


def context(suspect: Suspect) -> str:
    """The span between brackets, with a little of what stands around it."""
    text, (start, end, *_) = suspect.document.text, suspect.span
    before = ("..." if start > _AROUND else "") + text[max(0, start - _AROUND) : start]
    after = text[end : end + _AROUND] + ("..." if len(text) > end + _AROUND else "")
    return " ".join(f"{before}[{text[start:end]}]{after}".split())


def write_suspects(suspects: Suspects, path: Path) -> None:
    """One suspect a line."""

    def rows() -> Iterator[bytes]:
        for suspect in (*suspects.missing, *suspects.doubtful):
            yield (json.dumps(suspect.as_json(), ensure_ascii=False) + "\n").encode()

    with atomic_write(path) as stream:
        stream.writelines(rows())


def write_names(suspects: Suspects, path: Path) -> None:
    """The missing names as a dictionary, to be looked through and given to `lacuner annotate`."""
    table = io.StringIO()
    rows = csv.writer(table, delimiter="\t", lineterminator="\n")
    rows.writerow(("term", "label", "score", "mentions"))
    rows.writerows((_no_formula(name.text), name.label, name.score, len(name.mentions)) for name in suspects.names())
    with atomic_write(path) as stream:
        stream.write(table.getvalue().encode("utf-8", "surrogatepass"))


def _no_formula(text: str) -> str:
    """A spreadsheet must not compute it; `annotate` does not mind the space."""
    return f" {text}" if text.startswith(("=", "+", "-", "@")) else text
