"""Table and report: reproducible, and all names are escaped."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from lacuner.bench.plots import bench_figures, recipe_styles
from lacuner.bench.report import COST, render_report, result_tables, results_markdown, write_results
from lacuner.bench.runner import Bench
from lacuner.bench.spec import Spec, load_spec
from lacuner.bench.summary import TableLine, paired_tests, summarise
from lacuner.reporting.svg import figure_svg
from tests.bench.conftest import SMALL, invented

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</svg></style><script>alert(2)</script>",
    "{{7*7}}{% raw %} ' onload='alert(3)",
    "$\\\\frac{1}{$ ]]> & <!-- | [x](javascript:y)",
]


def spec_text(names: list[str]) -> str:
    data, *others = [name.replace("\\\\", "\\").replace("\\", "\\\\").replace('"', '\\"') for name in names]
    text = "seeds = [1, 2]\n[noise]\nmasked = [0.0, 0.5]\n"
    text += f'[data."{data}"]\nfolder = "x"\ngold = "x"\nweak = "x"\ntest = "x"\n'
    for name, recipe in zip(others, ["trust", "dictionary", "supervised", "oracle"], strict=True):
        text += f'[recipes."{name}"]\nrecipe = "{recipe}"\n'
    return text


Made = tuple[str, str, dict[str, str]]
TAME = ["data", "one", "two", "three", "four"]


def make(names: list[str], folder: Path) -> Made:
    """Report, table and pictures of a bench with these names, one cell of which failed."""
    (folder / "x").mkdir(exist_ok=True)
    (folder / "x" / "x").touch()
    (folder / "spec.toml").write_text(spec_text(names), encoding="utf-8")
    bench = invented(load_spec(folder / "spec.toml", folder))
    tested = list(paired_tests(summarise(bench), bench.spec))
    assert tested
    key = next(iter(bench.rows))
    bench.rows[key] = {**bench.rows[key], "error": names[0]}
    lines = summarise(bench)
    tables, figures = list(result_tables(bench, lines, tested)), bench_figures(lines, bench.spec)
    page, text = render_report(bench, tables, figures, names[1]), results_markdown(bench, tables, names[1])
    return page, text, {figure.name: figure_svg(figure) for figure in figures}


@pytest.fixture(scope="module")
def tame(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make(TAME, tmp_path_factory.mktemp("tame"))


def markdown(bench: Bench, lines: list[TableLine]) -> str:
    return results_markdown(bench, result_tables(bench, lines, []), "x")


class Elements(HTMLParser):
    """Which elements with which attributes a page has, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[tuple[str, tuple[str, ...]]] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add((tag, tuple(sorted(name for name, _ in attrs))))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def elements(page: str) -> Elements:
    parser = Elements()
    parser.feed(page)
    return parser


def test_hostile_names_are_escaped(tame: Made, tmp_path: Path) -> None:
    page, text, pictures = make(HOSTILE, tmp_path)
    tame_page, _, tame_pictures = tame
    hostile = elements(page)
    assert hostile.found == elements(tame_page).found
    tags = {tag for tag, _ in hostile.found}
    assert not tags & {"script", "img", "iframe", "object", "a", "link", "form", "foreignobject", "use-x"}
    assert not any(name.startswith("on") for _, names in hostile.found for name in names)
    for name in HOSTILE:
        assert any(name.replace("\\\\", "\\") in part for part in hostile.text), name
    assert "default-src 'none'; style-src 'unsafe-inline'" in page
    assert not re.search(r"(?:href|src)=\"(?!#)", page), "nothing comes from elsewhere"
    assert not re.search(r"url\((?!#)", page)
    text = re.sub(r"`[^`]*`", "", text)  # what is quoted as code is shown as it is
    assert "<script" not in text and "<img" not in text and not re.search(r"(?<!\\)\]\(", text)
    assert len(pictures) == len(tame_pictures) == 4
    for name, picture in pictures.items():
        assert {each.tag for each in ET.fromstring(picture).iter()} == {
            each.tag for each in ET.fromstring(tame_pictures[name]).iter()
        }
        assert "script" not in {each.tag.rpartition("}")[2] for each in ET.fromstring(picture).iter()}


def test_ids_are_unique(tame: Made) -> None:
    page, _, _ = tame
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) > 50 and len(set(ids)) == len(ids)
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', page)) <= set(ids)


def test_the_same_rows_give_the_same_bytes(tame: Made, tmp_path: Path) -> None:
    assert make(TAME, tmp_path) == tame


def test_shares_of_upper_bounds_and_standard_deviation(load: Callable[[str], Spec], tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "x").touch()
    bench = invented(load(spec_text(["data", "trust", "dictionary", "supervised", "oracle"])))
    lines: dict[tuple[str, str, str], TableLine] = {
        (line.condition.data, str(line.condition.noise), line.condition.recipe): line for line in summarise(bench)
    }
    trust, best = lines["data", "masked 0.5", "trust"], lines["data", "masked 0.5", "supervised"]
    values = [row["test"]["f1"] for row in trust.rows.values()]
    mean = sum(values) / 2
    assert trust.f1.mean == pytest.approx(mean)
    assert trust.f1.std == pytest.approx(abs(values[0] - values[1]) / 2**0.5)
    assert trust.of_supervised == pytest.approx(mean / best.f1.mean) and best.of_supervised == 1.0
    same = lines["data", "masked 0", "trust"]
    assert same.rows[1]["key"] == best.rows[1]["key"] and same.of_oracle == 1.0
    text = markdown(bench, list(lines.values())).split(f"## {COST}")[0]
    assert f"| {100 * trust.f1.mean:.1f} ± {100 * trust.f1.std:.1f} | 2 |" in text
    assert "seconds" not in text and "MB" not in text


def test_rows_of_another_spec_are_kept(load: Callable[[str], Spec], tmp_path: Path, undrawn: None) -> None:
    text = '[noise]\nmasked = [0.5]\n[data.demo]\n[recipes.a]\nrecipe = "trust"\n'
    both, second = (invented(load(f"seeds = {seeds}\n{text}")) for seeds in ([1, 2], [2]))
    write_results(both, tmp_path, "first")
    assert not (tmp_path / "cells").exists()
    for _ in range(2):
        write_results(second, tmp_path, "second")
        [row] = map(json.loads, (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines())
        [aside] = (tmp_path / "cells").iterdir()
        assert {row["key"], aside.stem} == set(both.rows)
        assert json.loads(aside.read_text(encoding="utf-8"))["cell"]["seed"] == 1


def test_rows_of_an_earlier_version_have_no_accuracy(load: Callable[[str], Spec]) -> None:
    bench = invented(load(SMALL))
    assert "## Accuracy" in markdown(bench, summarise(bench))
    del next(iter(bench.rows.values()))["accuracy"]
    text = markdown(bench, summarise(bench))
    assert "## Accuracy" not in text and "## F1 at a glance" in text


def test_every_recipe_has_its_own_line_style(load: Callable[[str], Spec]) -> None:
    text = "[noise]\nmasked = [0.5]\n[data.demo]\n"
    recipes = ["trust", "oracle", "supervised", "partial", "dictionary", "trust", "oracle", "trust", "trust"]
    for number, recipe in enumerate(recipes):
        text += f'[recipes."{recipe} {number}"]\nrecipe = "{recipe}"\n'
    found = recipe_styles(load(text))
    assert len(set(map(str, found.values()))) == len(recipes)
    assert found["trust 0"].colour == found["trust 5"].colour != found["oracle 1"].colour


def test_many_variants_of_a_recipe_have_different_colours(load: Callable[[str], Spec]) -> None:
    text = "[noise]\nmasked = [0.5]\n[data.demo]\n"
    for rate in (1, 2, 3, 4, 5):
        text += f'[recipes."rate {rate}"]\nrecipe = "negative_sampling"\nsettings = ["rate=0.{rate}"]\n'
    assert len({look.colour for look in recipe_styles(load(text)).values()}) == 5


def test_recipes_that_sample_negatives_have_their_own_figures(load: Callable[[str], Spec]) -> None:
    text = "seeds = [1, 2]\n[noise]\nmasked = [0.5]\n[data.demo]\n"
    text += "".join(f'[recipes.{name}]\nrecipe = "{name}"\n' for name in ("trust", "negative_sampling", "nrces"))
    bench = invented(load(text))
    assert not {"missampling", "f1-against-missampling"} & {
        each.name for each in bench_figures(summarise(bench), bench.spec)
    }
    for row in bench.rows.values():
        if row["cell"]["recipe"] == "negative_sampling":
            row["sampling"] = [{"epoch": n, "missampling": 0.01 * (n + 1), "uncertainty": 0.5} for n in range(3)]
    made = {each.name: each for each in bench_figures(summarise(bench), bench.spec)}
    for name in ("f1-against-missampling", "missampling", "f1-of-samplers"):
        assert list(made[name].legend) == ["negative_sampling"] and len(made[name].panels) == 1
        assert "<svg" in figure_svg(made[name])
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    made["f1-against-missampling"].panels[0].draw(axes)
    points = sorted(tuple(float(line.get_data()[i][0]) for i in (0, 1)) for line in axes.lines)
    f1 = sorted(100 * row["test"]["f1"] for row in bench.rows.values() if "sampling" in row)
    assert points == [(pytest.approx(2.0), pytest.approx(value)) for value in f1]
    axes = Figure().add_subplot()
    made["missampling"].panels[0].draw(axes)
    assert axes.lines[0].get_ydata() == pytest.approx([1.0, 2.0, 3.0])


def test_every_table_names_the_versions_of_the_code(load: Callable[[str], Spec]) -> None:
    bench = invented(load('[noise]\nmasked = [0.5]\n[data.demo]\n[recipes.a]\nrecipe = "trust"\n'))
    lines = summarise(bench)
    assert all("All rows come from version x of the code." in t.note for t in result_tables(bench, lines, []))
    key = next(iter(bench.rows))
    bench.rows[key] = {**bench.rows[key], "code": "0123456789abcdef"}
    notes = [table.note for table in result_tables(bench, summarise(bench), [])]
    assert notes and all("2 versions of the code (number of rows): x (2), 01234567 (1)." in note for note in notes)


def test_intervals_are_over_seeds_where_there_are_several(load: Callable[[str], Spec]) -> None:
    recipes = "".join(f'[recipes.{name}]\nrecipe = "{name}"\n' for name in ("trust", "dictionary"))
    bench = invented(load(f"seeds = [1, 2]\n[noise]\nmasked = [0.5]\n[data.demo]\n{recipes}"))
    tests = list(paired_tests(summarise(bench), bench.spec))
    assert tests and all(result.seeds == seeds == 2 for _, _, seeds, result in tests)
    [table] = [t for t in result_tables(bench, summarise(bench), tests) if t.title == "Significance"]
    assert "over n seeds and test sentences" in table.note and "n = 1: test sentences only" in table.note
