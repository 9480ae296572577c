"""Compare the weak labels that a `needle` run completed with gold, which training never sees."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from lacuner.atomic import read_regular_file
from lacuner.corpus import read
from lacuner.data import Document
from lacuner.errors import CorpusError, ModelFileError, explain_damage
from lacuner.evaluate import Count
from lacuner.evaluate.align import gold_by_text
from lacuner.evaluate.calibration import Calibration, calibrate, select_complete
from lacuner.reporting.svg import SOFT, Axes, Figure, LineStyle, Panel, line_style
from lacuner.techniques.label_completion import COMPLETED

BINS = 10
CHANGES = {
    "fixed": "gold entities that completion added",
    "broken": "gold entities that weak has and completion lost",
    "spoiled": "false positives that completion added",
    "mended": "false positives of weak that completion removed",
}
COLUMNS = ("run", "documents", "weak P", "weak R", "completed P", "completed R", *CHANGES, "confidence", "right")
SpanKeys = set[tuple[int, int, str]]


@dataclass(frozen=True)
class CompletionAudit:
    """Completed documents of one round, compared with gold."""

    documents: int
    without_gold: int
    """Number of completed documents whose text gold lacks or has not annotated completely; they are not counted."""
    weak: Count
    completed: Count
    changes: Mapping[str, int]
    per_type: Mapping[str, Mapping[str, int]]
    confidence: np.ndarray
    """Confidence of each document, `[documents]`; NaN if the run did not estimate it."""
    correct: np.ndarray
    """Whether a document's spans are exactly those of gold, `[documents]`."""
    label_counts: Mapping[str, Mapping[str, Any]]
    """`labels.json`: words and entities per label in gold, weak, completed and pseudo labels."""
    held_out: Sequence[tuple[float, float, int]]
    """`confidence.json`: mean score, share of exact matches and number of held-out gold sentences per bin."""

    def as_json(self) -> dict[str, Any]:
        return {
            "documents": self.documents,
            "without_gold": self.without_gold,
            "weak": self.weak.as_json(),
            "completed": self.completed.as_json(),
            **self.changes,
            "per_type": {label: dict(changes) for label, changes in sorted(self.per_type.items())},
            "confidence": self.reliability().as_json()["bins"] if self.has_confidence else None,
        }

    @property
    def has_confidence(self) -> bool:
        return not bool(np.isnan(self.confidence).any())

    def reliability(self) -> Calibration:
        """Share of documents that are exact matches, in bins by confidence."""
        return calibrate(self.confidence, self.correct, BINS)


def audit_completion(run_folder: str | PathLike[str], gold: Iterable[Document]) -> dict[int, CompletionAudit]:
    """Compare each round of completion in a run with gold for some or all of its weak documents, matched by text."""
    folder = Path(run_folder)
    rounds = {1: "", 2: "-2"}
    suffixes = {n: suffix for n, suffix in rounds.items() if (folder / f"{COMPLETED}{suffix}.jsonl").is_file()}
    if not suffixes:
        raise ModelFileError("this run has no completed labels: it is not a run of needle", file=run_folder)
    gold_spans = {text: _span_keys(doc) for text, doc in gold_by_text(select_complete(list(gold))).items()}
    return {number: _audit_round(folder, suffix, gold_spans) for number, suffix in suffixes.items()}


def _audit_round(folder: Path, suffix: str, gold_spans: Mapping[str, SpanKeys]) -> CompletionAudit:
    path = folder / f"{COMPLETED}{suffix}.jsonl"
    counts = {"weak": Counter[str](), "completed": Counter[str]()}
    changes = {name: Counter[str]() for name in CHANGES}
    confidences, correct, without_gold = [], [], 0
    for doc in read(path):
        weak, confidence = _read_meta(doc, path)
        if doc.text not in gold_spans:
            without_gold += 1
            continue
        gold, completed = gold_spans[doc.text], _span_keys(doc)
        for name, spans in (("weak", weak), ("completed", completed)):
            counts[name].update(correct=len(spans & gold), predicted=len(spans), gold=len(gold))
        fixed, broken = (completed & gold) - weak, (weak & gold) - completed
        spoiled, mended = completed - gold - weak, weak - gold - completed
        for name, spans in zip(CHANGES, (fixed, broken, spoiled, mended), strict=True):
            changes[name].update(label for _, _, label in spans)
        confidences.append(confidence)
        correct.append(completed == gold)
    if not correct:
        raise CorpusError("gold has none of the texts that were completed", file=path)
    labels = sorted({label for counter in changes.values() for label in counter})
    return CompletionAudit(
        len(correct),
        without_gold,
        Count(**counts["weak"]),
        Count(**counts["completed"]),
        {name: counter.total() for name, counter in changes.items()},
        {label: {name: counter[label] for name, counter in changes.items()} for label in labels},
        np.array(confidences),
        np.array(correct),
        _read_label_counts(folder / f"labels{suffix}.json"),
        _read_held_out(folder / f"confidence{suffix}.json"),
    )


def _span_keys(doc: Document) -> SpanKeys:
    return {span.key for span in doc.spans}


def _read_meta(doc: Document, path: Path) -> tuple[SpanKeys, float]:
    """Return the weak labels that were stored with a completed document, and its confidence or NaN."""
    with explain_damage("these are not the completed documents of a run", path):
        weak = {(int(start), int(end), str(label)) for start, end, label in doc.meta["weak"]}
        return weak, float(doc.meta.get("confidence", "nan"))


def _read_label_counts(path: Path) -> dict[str, dict[str, Any]]:
    with explain_damage("these are not the label counts of a run", path):
        text = read_regular_file(path).decode("utf-8", "surrogatepass") if path.exists() else '{"labels": {}}'
        return {
            str(kind): {"words": int(row["words"]), "entities": {str(k): int(v) for k, v in row["entities"].items()}}
            for kind, row in json.loads(text)["labels"].items()
        }


def _read_held_out(path: Path) -> list[tuple[float, float, int]]:
    with explain_damage("this is not the calibration of a run", path):
        bins = json.loads(read_regular_file(path))["calibration"]["bins"] if path.exists() else ()
        return [(float(row["score"]), float(row["right"]), int(row["sentences"])) for row in bins]


def completion_rows(runs: Mapping[str, CompletionAudit]) -> Sequence[tuple[str, ...]]:
    """Return one table row per run, with the columns `COLUMNS`."""
    return [
        (
            name,
            f"{audit.documents:,}",
            *[f"{value:.3f}" for count in (audit.weak, audit.completed) for value in (count.precision, count.recall)],
            *[f"{audit.changes[change]:,}" for change in CHANGES],
            f"{audit.confidence.mean():.3f}" if audit.has_confidence else "",
            f"{audit.correct.mean():.3f}",
        )
        for name, audit in runs.items()
    ]


def completion_figures(runs: Mapping[str, CompletionAudit]) -> list[Figure]:
    """Return the figures of one run, or of several side by side; `runs` maps the names to show to their audits."""
    styles = {name: line_style(number) for number, name in enumerate(runs)}
    calibrated = {name: audit for name, audit in runs.items() if audit.has_confidence}
    kinds = {kind: None for audit in runs.values() for kind in audit.label_counts}
    kind_styles = {kind: line_style(number) for number, kind in enumerate(kinds)}
    figures = [
        Figure(
            "completion",
            "What completion fixed and broke",
            "; ".join(f"{name}: {meaning}" for name, meaning in CHANGES.items()) + ".",
            [Panel("spans per 100 documents", partial(_plot_changes, runs, styles))],
            styles,
        ),
        Figure(
            "labels",
            "Labels before and after completion",
            "Entities of each label per thousand words.",
            [
                Panel(f"entities per 1,000 words, {name}", partial(_plot_label_counts, audit.label_counts, kind_styles))
                for name, audit in runs.items()
                if audit.label_counts
            ],
            kind_styles,
        ),
        Figure(
            "confidence",
            "Confidence of the completed sentences, and the calibration that it is based on",
            "One mark per bin of sentences; on the line, confidence equals accuracy. Held-out gold, with larger marks "
            "for larger bins: how far the model's probability had to be calibrated.",
            [
                Panel("completed sentences", partial(_plot_reliability, calibrated, styles)),
                Panel("completed sentences by confidence", partial(_plot_confidences, calibrated, styles)),
                Panel("held-out gold", partial(_plot_held_out, calibrated, styles)),
            ]
            if calibrated
            else [],
            {name: styles[name] for name in calibrated},
        ),
    ]
    return [figure for figure in figures if figure.panels]


def _bars(count: int, number: int, groups: int) -> tuple[list[float], float]:
    """Return the centres and the width of the n-th of `count` bars in each group."""
    width = 0.8 / max(count, 1)
    return [group + (number - (count - 1) / 2) * width for group in range(groups)], width


def _plot_changes(runs: Mapping[str, CompletionAudit], styles: Mapping[str, LineStyle], axes: Axes) -> None:
    for number, (name, audit) in enumerate(runs.items()):
        centres, width = _bars(len(runs), number, len(CHANGES))
        values = [100 * audit.changes[change] / audit.documents for change in CHANGES]
        axes.bar(centres, values, width, color=styles[name].colour)
    axes.set_xticks(range(len(CHANGES)), list(CHANGES))


def _plot_label_counts(counts: Mapping[str, Mapping[str, Any]], styles: Mapping[str, LineStyle], axes: Axes) -> None:
    labels = sorted({label for row in counts.values() for label in row["entities"]})
    for number, (kind, row) in enumerate(counts.items()):
        centres, height = _bars(len(counts), number, len(labels))
        rates = [1000 * row["entities"].get(label, 0) / max(row["words"], 1) for label in labels]
        axes.barh(centres, rates, height, color=styles[kind].colour)
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()


def _plot_reliability(runs: Mapping[str, CompletionAudit], styles: Mapping[str, LineStyle], axes: Axes) -> None:
    for name, audit in runs.items():
        bins, style = audit.reliability(), styles[name]
        axes.plot(bins.means, bins.accuracy, color=style.colour, marker=style.marker, markersize=4)
    _finish_reliability(axes, "confidence")


def _plot_held_out(runs: Mapping[str, CompletionAudit], styles: Mapping[str, LineStyle], axes: Axes) -> None:
    for name, audit in runs.items():
        if audit.held_out:
            scores, shares, sizes = np.array(audit.held_out).T
            axes.plot(scores, shares, color=styles[name].colour, linewidth=1)
            axes.scatter(scores, shares, 12 + 40 * sizes / sizes.max(), color=styles[name].colour)
    _finish_reliability(axes, "probability of the prediction")


def _finish_reliability(axes: Axes, xlabel: str) -> None:
    axes.plot([0, 1], [0, 1], color=SOFT, linewidth=1, zorder=0)
    axes.set(xlabel=xlabel, ylabel="share of exact matches", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))


def _plot_confidences(runs: Mapping[str, CompletionAudit], styles: Mapping[str, LineStyle], axes: Axes) -> None:
    for name, audit in runs.items():
        bins = np.linspace(0, 1, 21)
        axes.hist(audit.confidence, bins=bins, color=styles[name].colour, alpha=1 if len(runs) == 1 else 0.6)
    axes.set(xlabel="confidence", ylabel="sentences", xlim=(-0.02, 1.02))
