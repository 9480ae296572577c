"""What completion did to weak labels, judged by whoever has gold; training never sees it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from lacuner.corpus import read
from lacuner.data import Document
from lacuner.errors import CorpusError, ModelFileError
from lacuner.evaluate import Count
from lacuner.evaluate.align import gold_by_text
from lacuner.evaluate.calibration import Calibration, calibrate, select_complete
from lacuner.reporting.svg import SOFT, Axes, Look, Panel, Picture, look_of
from lacuner.techniques.label_completion import COMPLETED

BINS = 10
CHANGES = {
    "fixed": "entities of gold that weak lacks and completion has",
    "broken": "entities of gold that weak has and completion lacks",
    "spoiled": "spans that are no entities, from completion",
    "mended": "weak spans that are no entities, gone with completion",
}
Places = set[tuple[int, int, str]]


@dataclass(frozen=True)
class Judged:
    """Completed documents against gold."""

    documents: int
    without_gold: int
    """Completed documents whose text gold does not have, or not completely: nothing is known of them."""
    weak: Count
    completed: Count
    changes: Mapping[str, int]
    per_type: Mapping[str, Mapping[str, int]]
    confidence: np.ndarray
    """NaN where nobody has asked for it."""
    right: np.ndarray
    """Whether a document is wholly right."""

    def as_json(self) -> dict[str, Any]:
        return {
            "documents": self.documents,
            "without_gold": self.without_gold,
            "weak": self.weak.as_json(),
            "completed": self.completed.as_json(),
            **self.changes,
            "per_type": {label: dict(changes) for label, changes in sorted(self.per_type.items())},
            "confidence": self.bins().as_json()["bins"] if self.has_confidence else None,
        }

    @property
    def has_confidence(self) -> bool:
        return not bool(np.isnan(self.confidence).any())

    def bins(self) -> Calibration:
        """How often documents are wholly right, by their confidence."""
        return calibrate(self.confidence, self.right, BINS)


def judge_completion(run_folder: str | PathLike[str], gold: Iterable[Document]) -> dict[int, Judged]:
    """Each round of a run, compared with gold that has some of its weak documents; they are known by their texts."""
    rounds = {1: Path(run_folder) / f"{COMPLETED}.jsonl", 2: Path(run_folder) / f"{COMPLETED}-2.jsonl"}
    there = {number: path for number, path in rounds.items() if path.is_file()}
    if not there:
        raise ModelFileError("this run has completed no labels", file=run_folder)
    known = {text: _places(doc) for text, doc in gold_by_text(select_complete(list(gold))).items()}
    return {number: _judge(path, known) for number, path in there.items()}


def _judge(path: Path, gold: Mapping[str, Places]) -> Judged:
    counts, changes = {"weak": Counter[str](), "completed": Counter[str]()}, {name: Counter[str]() for name in CHANGES}
    sure, right, strange = [], [], 0
    for doc in read(path):
        weak, its = _meta(doc, path)
        if doc.text not in gold:
            strange += 1
            continue
        real, found = gold[doc.text], _places(doc)
        for name, spans in (("weak", weak), ("completed", found)):
            counts[name].update(correct=len(spans & real), predicted=len(spans), gold=len(real))
        for name, spans in zip(CHANGES, _changes(real, weak, found), strict=True):
            changes[name].update(label for _, _, label in spans)
        sure.append(its)
        right.append(found == real)
    if not sure:
        raise CorpusError("gold has none of the texts that were completed", file=path)
    labels = sorted({label for each in changes.values() for label in each})
    return Judged(
        len(sure),
        strange,
        Count(**counts["weak"]),
        Count(**counts["completed"]),
        {name: each.total() for name, each in changes.items()},
        {label: {name: each[label] for name, each in changes.items()} for label in labels},
        np.array(sure),
        np.array(right),
    )


def _changes(real: Places, weak: Places, found: Places) -> tuple[Places, Places, Places, Places]:
    return (found & real) - weak, (weak & real) - found, found - real - weak, weak - real - found


def _places(doc: Document) -> Places:
    return {(span.start, span.end, span.label) for span in doc.spans}


def _meta(doc: Document, path: Path) -> tuple[Places, float]:
    """The weak labels that were written beside a completed document, and its confidence, or NaN."""
    try:
        weak = {(int(start), int(end), str(label)) for start, end, label in doc.meta["weak"]}
        return weak, float(doc.meta.get("confidence", "nan"))
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError("these are not the completed documents of a run", file=path) from error


def pictures(runs: Mapping[str, Judged]) -> list[Picture]:
    """Pictures of one run, or of several side by side; `runs` are by the names to show."""
    looks = {name: look_of(number) for number, name in enumerate(runs)}
    sure = {name: judged for name, judged in runs.items() if judged.has_confidence}
    made = [
        Picture(
            "completion",
            "What completion fixed and broke",
            "; ".join(f"{name}: {what}" for name, what in CHANGES.items()) + ".",
            [Panel("spans in 100 documents", _Changes(runs, looks))],
            looks,
        ),
    ]
    if not sure:
        return made
    return [
        *made,
        Picture(
            "confidence",
            "Confidence of completed sentences against the truth",
            "Each mark is a bin of sentences; on the line the confidence is what it says.",
            [Panel("completed sentences", _Confidence(sure, looks))],
            {name: looks[name] for name in sure},
        ),
    ]


@dataclass(frozen=True)
class _Changes:
    runs: Mapping[str, Judged]
    looks: Mapping[str, Look]

    def __call__(self, axes: Axes) -> None:
        wide = 0.8 / len(self.runs)
        for number, (name, judged) in enumerate(self.runs.items()):
            places = [place + (number - (len(self.runs) - 1) / 2) * wide for place in range(len(CHANGES))]
            values = [100 * judged.changes[change] / judged.documents for change in CHANGES]
            axes.bar(places, values, wide, color=self.looks[name].colour)
        axes.set_xticks(range(len(CHANGES)), list(CHANGES))


@dataclass(frozen=True)
class _Confidence:
    runs: Mapping[str, Judged]
    looks: Mapping[str, Look]

    def __call__(self, axes: Axes) -> None:
        axes.plot([0, 1], [0, 1], color=SOFT, linewidth=1)
        for name, judged in self.runs.items():
            bins, look = judged.bins(), self.looks[name]
            axes.plot(bins.means, bins.accuracy, color=look.colour, marker=look.marker, markersize=4)
        axes.set_xlabel("confidence")
        axes.set_ylabel("share wholly right")
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)


def rows(runs: Mapping[str, Judged]) -> Sequence[tuple[str, ...]]:
    """A line a run: its name, documents, precision and recall before and after, and what changed."""
    return [
        (
            name,
            f"{judged.documents:,}",
            *[f"{value:.3f}" for count in (judged.weak, judged.completed) for value in (count.precision, count.recall)],
            *[f"{judged.changes[change]:,}" for change in CHANGES],
            f"{judged.confidence.mean():.3f}" if judged.has_confidence else "",
            f"{judged.right.mean():.3f}",
        )
        for name, judged in runs.items()
    ]


COLUMNS = ("run", "documents", "weak P", "weak R", "completed P", "completed R", *CHANGES, "confidence", "right")
