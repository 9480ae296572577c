"""A report about a labelling run: the same facts as one self-contained HTML page, or as one JSON object.

Text from the corpus is inert in the page: Jinja2 escapes all of it, it is never part of a template, matplotlib does not
see it, and the page has no script at all.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import Any, NamedTuple, Protocol

from lacuner.annotate.lint import LintRow, format_stop_list
from lacuner.annotate.pictures import FATES, ROWS, by_count, pictures_of
from lacuner.annotate.sources import Source
from lacuner.annotate.statistics import LabellingStatistics
from lacuner.atomic import atomic_write
from lacuner.data import Document, Lost, Span, Where
from lacuner.reporting.html import visible

EXAMPLES, MISSED = 8, 40
"""How many are kept: examples of a label, and missed entities."""

AROUND = 60
"""Characters of context on each side of an example."""

MOST_KEYS = 50_000
"""Different gold entities that are counted; later ones are not, so that memory stays flat."""


class Example(NamedTuple):
    """A span in context; `right` is None without gold."""

    document: str
    before: str
    text: str
    after: str
    source: str | None
    right: bool | None = None


class _Sample:
    """Some examples with different surfaces, drawn by a hash of their text: the same ones in whatever order they come.

    Of each surface the lowest hash counts, and the surfaces with the lowest stay: a frequent one has more chances.
    """

    def __init__(self) -> None:
        self._bar = 1 << 32
        self._best: dict[str, tuple[int, Example]] = {}

    def offer(self, rank: int, doc: Document, span: Span, right: bool | None = None) -> None:
        if rank >= self._bar:  # once there are enough, nearly always
            return
        surface = doc.text[span.start : span.end]
        if surface in self._best and self._best[surface][0] <= rank:
            return
        self._best[surface] = rank, _in_context(doc, span, right)
        if len(self._best) > EXAMPLES:
            del self._best[max(self._best, key=lambda surface: self._best[surface][0])]
        if len(self._best) == EXAMPLES:
            self._bar = max(rank for rank, _ in self._best.values())

    def rows(self) -> list[dict[str, Any]]:
        return [example._asdict() for _, example in sorted(self._best.values())]


def _in_context(doc: Document, span: Span, right: bool | None) -> Example:
    """Context is cut between words where there is white space nearby."""
    text, start, end = doc.text, span.start, span.end
    before, after = text[max(0, start - AROUND) : start], text[end : end + AROUND]
    if start > AROUND:
        before = "… " + re.sub(r"^\S{0,20}\s+", "", before)
    if end + AROUND < len(text):
        after = re.sub(r"\s+\S{0,20}$", "", after) + " …"
    return Example(doc.id, before, text[start:end], after, span.source, right)


class ExampleSampler:
    """Looks at documents as they go by, and keeps a little of them: memory does not grow with the corpus."""

    def __init__(self) -> None:
        self._spans: dict[str, _Sample] = {}
        self._unsure: dict[tuple[str, ...], _Sample] = {}
        self._unsure_places: Counter[tuple[str, ...]] = Counter()
        self._gold: dict[tuple[str, str], Counter[str]] = {}
        self.uncounted = 0
        """Gold entities that came too late to be counted by name."""

    def add(self, doc: Document, gold: Document | None = None) -> None:
        """See a weak document, and the truth about it if there is any."""
        if gold is not None:
            self._compare(doc, gold)
        if not doc.spans and not doc.unsure:
            return
        known = None if gold is None else {span[:3] for span in gold.spans}
        seed = zlib.crc32(doc.text.encode("utf-8", "surrogatepass"))
        for span in doc.spans:
            right = None if known is None else span[:3] in known
            sample = self._spans.get(span.label) or self._spans.setdefault(span.label, _Sample())
            sample.offer(_rank(seed, span), doc, span, right)
        places: dict[tuple[int, int], list[Span]] = {}
        for span in doc.unsure:
            places.setdefault((span.start, span.end), []).append(span)
        for spans in places.values():
            labels = tuple(sorted({span.label for span in spans}))
            self._unsure_places[labels] += 1
            self._unsure.setdefault(labels, _Sample()).offer(_rank(seed, spans[0]), doc, spans[0])

    def _compare(self, doc: Document, gold: Document) -> None:
        found = {span[:3] for span in doc.spans}
        for start, end, label in sorted({span[:3] for span in gold.spans}):
            key = gold.text[start:end], label
            if key not in self._gold and len(self._gold) >= MOST_KEYS:
                self.uncounted += 1
                continue
            row = self._gold.setdefault(key, Counter(mentions=0, missed=0, unsure=0, other=0))
            row["mentions"] += 1
            if (start, end, label) not in found:
                row["missed"] += 1
                row["unsure"] += _touches(doc.unsure, start, end)
                row["other"] += _touches(doc.spans, start, end)

    def of_labels(self) -> dict[str, list[dict[str, Any]]]:
        """Examples of each label."""
        return {label: self._spans[label].rows() for label in sorted(self._spans)}

    def unsure(self) -> list[dict[str, Any]]:
        """Between which labels nobody could decide, at how many places, with examples; the most frequent first."""
        counts = sorted(self._unsure_places.items(), key=lambda item: (-item[1], item[0]))
        return [{"labels": key, "places": times, "examples": self._unsure[key].rows()} for key, times in counts]

    def missed(self, most: int = MISSED) -> list[dict[str, Any]]:
        """The gold entities that are missed most: how many mentions they have, how many of them are missed, and at how
        many of those there is an unsure span, or another one."""
        rows = [(key, row) for key, row in self._gold.items() if row["missed"]]
        rows.sort(key=lambda item: (-item[1]["missed"], item[0]))
        return [{"surface": surface, "label": label, **row} for (surface, label), row in rows[:most]]


def _rank(seed: int, span: Span) -> int:
    return zlib.crc32(b"%d %d" % span[:2], seed)


def _touches(spans: Iterable[Span], start: int, end: int) -> bool:
    return any(span.start < end and start < span.end for span in spans)


class Measured(Protocol):
    """Weak labels against gold: what `lacuner.noise.measure` gives (which stands beside us, so is not imported)."""

    def as_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True, kw_only=True)
class AnnotationReport:
    """What there is to report about a run of `annotate`."""

    title: str
    settings: Mapping[str, object]
    """What was read and how, by name: corpus, dictionaries, case ..."""
    statistics: LabellingStatistics
    sources: Sequence[Source]
    examples: ExampleSampler
    lint_rows: Sequence[LintRow] = ()
    measured: Measured | None = None
    lost: Mapping[str, Lost] = field(default_factory=dict)
    """What other steps lost, by the name of the step; what labelling lost is in the statistics."""
    problems: Sequence[str] = ()
    """What was wrong with the dictionaries, in sentences."""


def report_json(labelling: AnnotationReport) -> dict[str, Any]:
    """All facts of the report."""
    statistics, measured = labelling.statistics, labelling.measured
    steps = {"labelling": statistics.lost, **labelling.lost}
    return {
        "title": labelling.title,
        "settings": {name: _setting(value) for name, value in labelling.settings.items()},
        "documents": statistics.documents,
        "documents_with_a_match": statistics.matched,
        "characters": statistics.characters,
        "spans": by_count(statistics.spans),
        "unsure": by_count(statistics.unsure),
        "unsure_places": labelling.examples.unsure(),
        "sources": [asdict(row) for row in statistics.table()],
        "top_entries": [
            {**entry._asdict(), "where": _place(entry.where), "source": source, "matches": times}
            for source, entry, times in statistics.top_entries(labelling.sources, ROWS)
        ],
        "examples": labelling.examples.of_labels(),
        "suspicious": [
            {**row._asdict(), "where": _place(row.where), "precision": row.precision} for row in labelling.lint_rows
        ],
        "stop_list": format_stop_list(labelling.lint_rows),
        "problems": list(labelling.problems),
        "lost": {step: dict(lost) for step, lost in steps.items()},
        "lost_spans": [row._asdict() for lost in steps.values() for row in lost.spans[:ROWS]],
        "gold": None if measured is None else measured.as_json(),
        "gold_uncounted": labelling.examples.uncounted,
        "missed": labelling.examples.missed(),
    }


def _setting(value: object) -> str | list[str]:
    if value is None:
        return "none"
    return [str(each) for each in value] if isinstance(value, list | tuple) else str(value)


def _place(where: Where | None) -> str | None:
    return None if where is None else f"{where.file}:{where.line}" if where.line else where.file


def write_report(path: str | PathLike[str], labelling: AnnotationReport) -> None:
    """Write the page: one file without script or anything from elsewhere; the same facts give the same bytes."""
    page = render(report_json(labelling))
    with atomic_write(path) as stream:
        stream.write(page.encode())


def render(facts: Mapping[str, Any]) -> str:
    """The page for what `report_json` gives."""
    from importlib.resources import files

    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    def finalize(value: object) -> object:
        return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, finalize=finalize)
    template = files("lacuner.annotate").joinpath("report.html.jinja").read_text("utf-8")
    drawn = {name: Markup(svg) for name, svg in pictures_of(facts).items()}
    return environment.from_string(template).render(**facts, pictures=drawn, fates=FATES, most=ROWS)
