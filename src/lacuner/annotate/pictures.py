"""The drawings of a labelling report, as SVG that stands inside the page.

matplotlib measures text with fonts that lack most scripts; so it draws numbers and the placeholders `name 0`, `name 1`
..., which the names replace afterwards. Its colours stand for variables of the page's style.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from unicodedata import east_asian_width
from xml.etree import ElementTree

from lacuner.reporting.html import visible

ROWS = 20
"""Rows of pictures and of most tables."""

FATES = ("correct", "wrong boundary", "wrong type", "wrong type and boundary", "missing")


def by_count(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


_WIDTH, _ROW, _ROOM = 360, 24, 130
_INK, _SHADES = "#000001", tuple(f"#00001{number}" for number in range(5))
_VARIABLES = {_INK: "var(--ink)"} | {shade: f"var(--shade{number})" for number, shade in enumerate(_SHADES)}

_Bar = tuple[float, float, str, Mapping[int, float]]
"""Beside which row it lies, how high it is, what it says, and its parts: length, as a share of the space, by shade."""


def pictures_of(facts: Mapping[str, Any]) -> dict[str, str]:
    """The drawings, by name."""
    spans, unsure, gold = Counter(facts["spans"]), Counter(facts["unsure"]), facts["gold"]
    del unsure[""]
    names = list(by_count(spans + unsure))[:ROWS]
    space = 1.4 * max([spans[name] + unsure[name] for name in names], default=1)
    bars: list[_Bar] = []
    for row, name in enumerate(names):
        numbers = f"{spans[name]:,}" + (f" + {unsure[name]:,}" if unsure[name] else "")
        bars.append((row, 0.62, numbers, {0: spans[name] / space, 1: unsure[name] / space}))
    pictures = {"matches": _svg(names, bars, "Spans of each label")}
    if gold is not None:
        types = by_count(Counter({name: count["gold"] for name, count in gold["per_type"].items() if count["gold"]}))
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
