"""The report of a labelling run, as a self-contained HTML page or as one JSON object.

Corpus text is inert in the page: Jinja2 escapes all of it, it is never part of a template, and the page has no script.
"""

import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from lacuner.annotate.lint import LintRow, format_longer_phrases, format_stop_list
from lacuner.annotate.source_accuracy import AccuracyRow
from lacuner.annotate.sources import Source
from lacuner.annotate.statistics import LabellingStatistics
from lacuner.atomic import atomic_write
from lacuner.corpus.intervals import IntervalSet
from lacuner.data import Document, Lost, Span
from lacuner.reporting.html import render_page

MAX_EXAMPLES, MAX_MISSED, MAX_ROWS = 8, 40, 20
"""Examples per label, rows of false negatives, and rows of charts and most other tables."""

CONTEXT = 60
"""Characters of context on each side of an example."""

MAX_GOLD_ENTITIES = 50_000
"""Distinct gold entities that are counted. Later ones are not, so that memory stays bounded."""

OUTCOMES = ("correct", "wrong boundary", "wrong type", "wrong type and boundary", "missing")

Example = dict[str, Any]
"""A span in context. `right` says whether gold has it; None without gold."""


class _Sample:
    """A few examples with distinct surfaces, chosen by a hash of their text, so document order does not matter.

    A surface ranks by the lowest hash of its examples, and the lowest surfaces are kept: frequent ones are likelier.
    """

    def __init__(self) -> None:
        self._highest_rank = 1 << 32
        self._examples: dict[str, tuple[int, Example]] = {}

    def offer(self, rank: int, doc: Document, span: Span, right: bool | None = None) -> None:
        if rank >= self._highest_rank:  # nearly always, once the sample is full
            return
        surface = doc.text[span.start : span.end]
        if surface in self._examples and self._examples[surface][0] <= rank:
            return
        self._examples[surface] = rank, _in_context(doc, span, right)
        if len(self._examples) > MAX_EXAMPLES:
            del self._examples[max(self._examples, key=lambda surface: self._examples[surface][0])]
        if len(self._examples) == MAX_EXAMPLES:
            self._highest_rank = max(rank for rank, _ in self._examples.values())

    def rows(self) -> list[Example]:
        by_rank = sorted(self._examples, key=lambda surface: (self._examples[surface][0], surface))
        return [self._examples[surface][1] for surface in by_rank]


def _in_context(doc: Document, span: Span, right: bool | None) -> Example:
    """A span with its context, cut between words where there is white space nearby."""
    text, start, end = doc.text, span.start, span.end
    before, after = text[max(0, start - CONTEXT) : start], text[end : end + CONTEXT]
    if start > CONTEXT:
        before = "… " + re.sub(r"^\S{0,20}\s+", "", before)
    if end + CONTEXT < len(text):
        after = re.sub(r"\s+\S{0,20}$", "", after) + " …"
    shown = {"before": before, "text": text[start:end], "after": after}
    return {"document": doc.id, **shown, "source": span.source, "right": right}


class ExampleSampler:
    """Samples examples and counts false negatives while documents stream by, in bounded memory."""

    def __init__(self) -> None:
        self._spans: dict[str, _Sample] = defaultdict(_Sample)
        self._unsure: dict[tuple[str, ...], _Sample] = defaultdict(_Sample)
        self._unsure_places: Counter[tuple[str, ...]] = Counter()
        self._gold: dict[tuple[str, str], Counter[str]] = {}
        self.uncounted = 0
        """Mentions of gold entities beyond `MAX_GOLD_ENTITIES`."""

    def add(self, doc: Document, gold: Document | None = None) -> None:
        """Sample from a weak document, and compare it with gold if there is any."""
        if gold is not None:
            self._compare(doc, gold)
        if not doc.spans and not doc.unsure:
            return
        gold_keys = None if gold is None else {span.key for span in gold.spans}
        seed = zlib.crc32(doc.text.encode("utf-8", "surrogatepass"))
        for span in doc.spans:
            right = None if gold_keys is None else span.key in gold_keys
            self._spans[span.label].offer(_rank(seed, span), doc, span, right)
        places: dict[tuple[int, int], list[Span]] = defaultdict(list)
        for span in doc.unsure:
            places[span.start, span.end].append(span)
        for spans in places.values():
            labels = tuple(sorted({span.label for span in spans}))
            self._unsure_places[labels] += 1
            self._unsure[labels].offer(_rank(seed, spans[0]), doc, spans[0])

    def _compare(self, doc: Document, gold: Document) -> None:
        weak_keys = {span.key for span in doc.spans}
        labeled, unsure = (IntervalSet(span[:2] for span in spans) for spans in (doc.spans, doc.unsure))
        for key in sorted({span.key for span in gold.spans}):
            span = Span(*key)
            entity = gold.text[span.start : span.end], span.label
            if entity not in self._gold and len(self._gold) >= MAX_GOLD_ENTITIES:
                self.uncounted += 1
                continue
            row = self._gold.setdefault(entity, Counter(mentions=0, missed=0, unsure=0, other=0))
            row["mentions"] += 1
            if key not in weak_keys:
                row["missed"] += 1
                row["unsure"] += unsure.overlaps(*key[:2])
                row["other"] += labeled.overlaps(*key[:2])

    def examples_by_label(self) -> dict[str, list[Example]]:
        """Examples of each label."""
        return {label: self._spans[label].rows() for label in sorted(self._spans)}

    def unsure_groups(self) -> list[dict[str, Any]]:
        """Unsure places grouped by their possible labels, with examples, most frequent first."""
        counts = sorted(self._unsure_places.items(), key=lambda item: (-item[1], item[0]))
        return [{"labels": key, "places": times, "examples": self._unsure[key].rows()} for key, times in counts]

    def missed_entities(self) -> list[dict[str, Any]]:
        """The gold entities with the most false negatives.

        Each row has the number of mentions, how many of them were missed, and at how many of the missed ones there is
        an unsure span (`unsure`) or another span (`other`).
        """
        rows = [(entity, row) for entity, row in self._gold.items() if row["missed"]]
        rows.sort(key=lambda item: (-item[1]["missed"], item[0]))
        return [{"surface": surface, "label": label, **row} for (surface, label), row in rows[:MAX_MISSED]]


def _rank(seed: int, span: Span) -> int:
    return zlib.crc32(b"%d %d" % span[:2], seed)


@dataclass(frozen=True, kw_only=True)
class AnnotationReport:
    """The contents of a report about a run of `annotate`."""

    title: str
    settings: Mapping[str, object]
    """Inputs and options by name: corpus, dictionaries, case ..."""
    statistics: LabellingStatistics
    sources: Sequence[Source]
    examples: ExampleSampler
    lint_rows: Sequence[LintRow] = ()
    gold_scores: Mapping[str, Any] | None = None
    """The noise of the weak labels, measured against gold: `lacuner.noise.Measurement.as_json()`."""
    lost: Mapping[str, Lost] = field(default_factory=dict)
    """What the other steps dropped, by the name of the step. (What labelling dropped is in the statistics.)"""
    problems: Sequence[str] = ()
    """Problems in the gazetteer files, one sentence each."""
    accuracy: Sequence[AccuracyRow] = ()
    """Accuracy of the sources, if a label model has estimated it."""


def report_json(report: AnnotationReport) -> dict[str, Any]:
    """The report as one JSON object."""
    statistics = report.statistics
    steps = {"labelling": statistics.lost, **report.lost}
    return {
        "title": report.title,
        "settings": {name: _setting(value) for name, value in report.settings.items()},
        "documents": statistics.documents,
        "documents_with_a_match": statistics.matched,
        "characters": statistics.characters,
        "spans": _most_frequent_first(statistics.spans),
        "unsure": _most_frequent_first(statistics.unsure),
        "unsure_places": report.examples.unsure_groups(),
        "sources": [asdict(row) for row in statistics.table()],
        "accuracy": [row._asdict() for row in report.accuracy],
        "top_entries": [
            {**entry._asdict(), "where": entry.where and str(entry.where), "source": source, "matches": times}
            for source, entry, times in statistics.top_entries(report.sources, MAX_ROWS)
        ],
        "examples": report.examples.examples_by_label(),
        "suspicious": [
            {**row._asdict(), "where": row.where and str(row.where), "precision": row.precision}
            for row in report.lint_rows
        ],
        "stop_list": format_stop_list(report.lint_rows),
        "longer_phrases": format_longer_phrases(report.lint_rows),
        "problems": list(report.problems),
        "lost": {step: dict(lost) for step, lost in steps.items()},
        "lost_spans": [row._asdict() for lost in steps.values() for row in lost.spans[:MAX_ROWS]],
        "gold": report.gold_scores,
        "gold_uncounted": report.examples.uncounted,
        "missed": report.examples.missed_entities(),
    }


def _most_frequent_first(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _setting(value: object) -> str | list[str]:
    if value is None:
        return "none"
    return [str(item) for item in value] if isinstance(value, list | tuple) else str(value)


def write_report(path: str | PathLike[str], report: AnnotationReport) -> None:
    """Write the HTML page: one file that loads nothing else. Equal reports give equal bytes."""
    page = render_report(report_json(report))
    with atomic_write(path) as stream:
        stream.write(page.encode())


def render_report(facts: Mapping[str, Any]) -> str:
    """The HTML page for the output of `report_json`."""
    template = Path(__file__).with_name("report.html.jinja")
    pairs = [] if facts["gold"] is None else facts["gold"]["confusion"]
    confusion = [pair for pair in pairs if "-" not in (pair["gold"], pair["weak"]) and pair["gold"] != pair["weak"]]
    confusion.sort(key=lambda pair: -pair["spans"])
    tables = {"charts": _charts(facts), "confusion": confusion, "outcomes": OUTCOMES, "max_rows": MAX_ROWS}
    return render_page(template, [], {}, **facts, **tables)


_BarRows = list[tuple[str, Sequence[tuple[str, Sequence[float]]]]]
"""Rows of `bar_chart`: a name and its bars, each a text and the width of every series as a share of the chart."""


def _charts(facts: Mapping[str, Any]) -> dict[str, _BarRows]:
    spans, unsure, gold = Counter(facts["spans"]), Counter(facts["unsure"]), facts["gold"]
    del unsure[""]
    totals = _most_frequent_first(spans + unsure)
    scale = 1.4 * max(totals.values(), default=1)
    matches: _BarRows = []
    for label in list(totals)[:MAX_ROWS]:
        text = f"{spans[label]:,}" + (f" + {unsure[label]:,}" if unsure[label] else "")
        matches.append((label, [(text, (spans[label] / scale, unsure[label] / scale))]))
    if gold is None:
        return {"matches": matches}
    scores: _BarRows = []
    outcomes: _BarRows = []
    gold_counts = Counter({label: row["gold"] for label, row in gold["per_type"].items() if row["gold"]})
    for label in list(_most_frequent_first(gold_counts))[:MAX_ROWS]:
        precision, recall = gold["per_type"][label]["precision"], gold["per_type"][label]["recall"]
        bars = [(f"{100 * precision:.1f}", (precision / 1.2, 0)), (f"{100 * recall:.1f}", (0, recall / 1.2))]
        scores.append((label, bars))
        kinds = gold["kinds_per_type"][label]
        total = sum(kinds[outcome] for outcome in OUTCOMES)
        outcomes.append((label, [("", [kinds[outcome] / total for outcome in OUTCOMES])]))
    return {"matches": matches, "scores": scores, "outcomes": outcomes}
