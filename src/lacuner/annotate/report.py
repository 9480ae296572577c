"""A report about a labelling run: the same facts as one self-contained HTML page, or as one JSON object.

Text from the corpus is inert in the page: Jinja2 escapes all of it, it is never part of a template, matplotlib does not
see it, and the page has no script at all.
"""

from __future__ import annotations

import io
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import Any, NamedTuple, Protocol
from unicodedata import east_asian_width
from xml.etree import ElementTree

from lacuner.annotate.lint import LintRow, stop_list
from lacuner.annotate.sources import Source
from lacuner.annotate.tally import Tally
from lacuner.files import atomic_write
from lacuner.types import Document, Lost, Span, Where

EXAMPLES, MISSED, ROWS = 8, 40, 20
"""How many are kept: examples of a label, missed entities, rows of pictures and other tables."""

AROUND = 60
"""Characters of context on each side of an example."""

MOST_KEYS = 50_000
"""Different gold entities that are counted; later ones are not, so that memory stays flat."""

FATES = ("correct", "wrong boundary", "wrong type", "wrong type and boundary", "missing")


class Example(NamedTuple):
    """A span in context. `right` is None without gold."""

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


class Examples:
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
class Labelling:
    """What there is to report about a run of `annotate`."""

    title: str
    settings: Mapping[str, object]
    """What was read and how, by name: corpus, dictionaries, case ..."""
    tally: Tally
    sources: Sequence[Source]
    examples: Examples
    lint_rows: Sequence[LintRow] = ()
    measured: Measured | None = None
    lost: Mapping[str, Lost] = field(default_factory=dict)
    """What other steps lost, by the name of the step; what labelling lost is in the tally."""
    problems: Sequence[str] = ()
    """What was wrong with the dictionaries, in sentences."""


def report_json(labelling: Labelling) -> dict[str, Any]:
    """All facts of the report."""
    tally, measured = labelling.tally, labelling.measured
    steps = {"labelling": tally.lost, **labelling.lost}
    return {
        "title": labelling.title,
        "settings": {name: _setting(value) for name, value in labelling.settings.items()},
        "documents": tally.documents,
        "documents_with_a_match": tally.matched,
        "characters": tally.characters,
        "spans": _by_count(tally.spans),
        "unsure": _by_count(tally.unsure),
        "unsure_places": labelling.examples.unsure(),
        "sources": [asdict(row) for row in tally.table()],
        "top_entries": [
            {**entry._asdict(), "where": _place(entry.where), "source": source, "matches": times}
            for source, entry, times in tally.top_entries(labelling.sources, ROWS)
        ],
        "examples": labelling.examples.of_labels(),
        "suspicious": [
            {**row._asdict(), "where": _place(row.where), "precision": row.precision} for row in labelling.lint_rows
        ],
        "stop_list": stop_list(labelling.lint_rows),
        "problems": list(labelling.problems),
        "lost": {step: dict(lost) for step, lost in steps.items()},
        "lost_spans": [row._asdict() for lost in steps.values() for row in lost.spans[:ROWS]],
        "gold": None if measured is None else measured.as_json(),
        "gold_uncounted": labelling.examples.uncounted,
        "missed": labelling.examples.missed(),
    }


def _setting(value: object) -> str | list[str]:
    return [str(each) for each in value] if isinstance(value, (list, tuple)) else str(value)


def _by_count(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _place(where: Where | None) -> str | None:
    return None if where is None else f"{where.file}:{where.line}" if where.line else where.file


def write_report(path: str | PathLike[str], labelling: Labelling) -> None:
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

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=finalize
    )
    template = files("lacuner.annotate").joinpath("report.html.jinja").read_text("utf-8")
    pictures = {name: Markup(svg) for name, svg in _pictures(facts).items()}
    return environment.from_string(template).render(**facts, pictures=pictures, fates=FATES, most=ROWS)


_VISIBLE = {
    **{code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n\r"},
    **dict.fromkeys((*range(0x7F, 0xA0), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF), 0xFFFD),
}


def visible(text: str) -> str:
    """Text with what no page may contain made visible: NUL is `␀`."""
    return text.translate(_VISIBLE)


# Pictures. matplotlib measures text with fonts that lack most scripts; so it draws numbers and the placeholders
# `name 0`, `name 1` ..., which the names replace afterwards. Its colours stand for variables of the page's style.

_WIDTH, _ROW, _ROOM = 360, 24, 130
_INK, _SHADES = "#000001", tuple(f"#00001{number}" for number in range(5))
_VARIABLES = {_INK: "var(--ink)"} | {shade: f"var(--shade{number})" for number, shade in enumerate(_SHADES)}

_Bar = tuple[float, float, str, Mapping[int, float]]
"""Beside which row it lies, how high it is, what it says, and its parts: length, as a share of the space, by shade."""


def _pictures(facts: Mapping[str, Any]) -> dict[str, str]:
    """The drawings, by name."""
    spans, unsure, gold = Counter(facts["spans"]), Counter(facts["unsure"]), facts["gold"]
    del unsure[""]
    names = list(_by_count(spans + unsure))[:ROWS]
    space = 1.4 * max([spans[name] + unsure[name] for name in names], default=1)
    bars: list[_Bar] = []
    for row, name in enumerate(names):
        numbers = f"{spans[name]:,}" + (f" + {unsure[name]:,}" if unsure[name] else "")
        bars.append((row, 0.62, numbers, {0: spans[name] / space, 1: unsure[name] / space}))
    pictures = {"matches": _svg(names, bars, "Spans of each label")}
    if gold is not None:
        types = _by_count(Counter({name: count["gold"] for name, count in gold["per_type"].items() if count["gold"]}))
        names = list(types)[:ROWS]
        bars, fates = [], list[_Bar]()
        for row, name in enumerate(names):
            for at, what, shade in ((row - 0.17, "precision", 0), (row + 0.17, "recall", 2)):
                share = gold["per_type"][name][what]
                bars.append((at, 0.3, f"{100 * share:.1f}", {shade: share / 1.2}))
            kinds = gold["kinds_per_type"][name]
            total = 1.02 * sum(kinds[fate] for fate in FATES)
            fates.append((row, 0.62, "", {shade: kinds[fate] / total for shade, fate in enumerate(FATES)}))
        pictures["scores"] = _svg(names, bars, "Precision and recall of each type")
        pictures["fates"] = _svg(names, fates, "What became of the entities of each type")
    return pictures


def _svg(names: Sequence[str], bars: Iterable[_Bar], description: str) -> str:
    """A drawing as an element that can stand in a page; nothing if there are no names."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    if not names:
        return ""
    stream = io.StringIO()
    left = (max(_room(_cut(name)) for name in names) + 8) / _WIDTH
    with mpl.rc_context():
        mpl.rcdefaults()  # the user's own taste would change the bytes
        mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "lacuner", "text.color": _INK})
        figure = Figure(figsize=(_WIDTH / 72, _ROW * len(names) / 72), frameon=False)
        axes = figure.add_axes((left, 0, 1 - left, 1), xlim=(0, 1), ylim=(len(names) - 0.5, -0.5))
        axes.set_axis_off()
        for row in range(len(names)):
            axes.text(-0.02, row, f"name {row}", ha="right", va="center", size=11)
        for at, height, text, parts in bars:
            end = 0.0
            for shade, length in parts.items():
                axes.barh(at, length, height, end, color=_SHADES[shade], clip_on=False)
                end += length
            axes.text(end + 0.02, at, text, va="center", size=11 if height > 0.5 else 9)
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return _inline(stream.getvalue(), {f"name {row}": name for row, name in enumerate(names)}, description)


def _inline(svg: str, names: Mapping[str, str], description: str) -> str:
    """Of a drawing only paths and texts: the rest is for files, and identifiers could clash in a page."""
    drawn = ElementTree.fromstring(svg)
    picture = ElementTree.Element("svg", {"viewBox": drawn.attrib["viewBox"], "role": "img", "aria-label": description})
    for element in drawn.iter():
        tag = element.tag.rpartition("}")[2]
        if tag in ("path", "text"):
            # not matplotlib's font but the page's; older versions name it with the size
            style = re.sub(r"font-family:[^;]*; ?", "", element.attrib["style"])
            style = re.sub(r"font: ([\d.]+px)[^;]*", r"font-size: \1", style)
            style = re.sub(r"#\w{6}", lambda found: _VARIABLES[found.group()], style)
            place = {name: value for name, value in element.attrib.items() if name in ("d", "x", "y")}
            child = ElementTree.SubElement(picture, tag, {**place, "style": style})
            child.text = visible(_cut(names.get(element.text or "", element.text or ""))).strip() or None
    return ElementTree.tostring(picture, encoding="unicode")


def _room(name: str) -> float:
    """About how wide a name is, whatever the font."""
    return sum(12 if east_asian_width(char) in "WF" else 9 if char.isupper() else 7 for char in name)


def _cut(name: str) -> str:
    """As much of a name as there is room for."""
    whole = _room(name) <= _ROOM
    return name if whole else next(name[:end] for end in range(20, -1, -1) if _room(name[:end]) < _ROOM - 10) + "…"
