"""A gold subset beside weak labels: splits, stable keys, reproducing commands, figures."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

from lacuner.bench.datasets import DataSet, data_hashes
from lacuner.bench.gold_subset import main as little_main
from lacuner.bench.gold_subset import select_gold_subset
from lacuner.bench.grid import Cell, cell_from_json, make_grid, unique_cells
from lacuner.bench.plots import bench_figures
from lacuner.bench.report import result_tables, results_markdown, write_results
from lacuner.bench.runner import open_bench, run_bench
from lacuner.bench.spec import DataSpec, NoiseLevel, Spec, load_spec
from lacuner.bench.summary import _interpolate, gold_equivalents, summarise
from lacuner.bench.worker import roles_of
from lacuner.corpus import read
from lacuner.data import Document
from lacuner.errors import ConfigError
from tests.bench.conftest import invented
from tests.conftest import ROOT
from tests.demo_corpus import demo_corpus

Load = Callable[[str], Spec]

LITTLE = """
seeds = [1, 2]
settings = ["train.epochs=1", "train.budget=512"]
compare = [["needle", "supervised"]]
[data.demo]
sentences = 60
[noise]
little_gold = [0.1, 0.5]
weak_sentences = [10, 20]
[recipes.supervised]
recipe = "supervised"
settings = ["head.kind=crf"]
[recipes.needle]
recipe = "needle"
settings = ["noisy_epochs=1", "noise_aware=true", "parts=2"]
"""
GOLD = demo_corpus().train[:200]
WEAK = [replace(doc, spans=doc.spans[:1], complete=False) for doc in GOLD]


def texts(docs: list[Document]) -> list[str]:
    return [doc.text for doc in docs]


@pytest.mark.parametrize(("amount", "count"), [(0.02, 4), (0.5, 100), (1.0, 200), (0.0001, 1), (40, 40), (999, 200)])
def test_an_amount_is_a_share_or_a_number(amount: float, count: int) -> None:
    assert len(select_gold_subset(GOLD, [], amount, 1)[0]) == count


def test_subsets_are_nested_and_the_rest_is_weak() -> None:
    small, large = (select_gold_subset(GOLD, WEAK, amount, 3) for amount in (0.02, 0.1))
    assert set(texts(small[0])) < set(texts(large[0]))
    assert not set(texts(large[0])) & set(texts(large[1])) and len(large[0]) + len(large[1]) == 200
    assert all(not doc.complete for doc in large[1]) and all(doc.complete for doc in large[0])
    few, many = (select_gold_subset(GOLD, WEAK, 0.1, 3, most)[1] for most in (20, 50))
    assert (len(few), len(many)) == (20, 50) and set(texts(few)) < set(texts(many))
    assert texts(select_gold_subset(GOLD, WEAK, 0.5, 3, 50)[1]) == texts(many), (
        "the same weak sentences beside more gold"
    )


def test_the_subset_depends_on_the_seed_not_on_file_order() -> None:
    assert texts(select_gold_subset(GOLD[::-1], WEAK[::-1], 0.1, 3)[0]) == texts(
        select_gold_subset(GOLD, WEAK, 0.1, 3)[0]
    )
    assert set(texts(select_gold_subset(GOLD, WEAK, 0.1, 4)[0])) != set(
        texts(select_gold_subset(GOLD, WEAK, 0.1, 3)[0])
    )


def test_weak_sentences_exclude_copies_of_gold_texts() -> None:
    chosen, rest = select_gold_subset(GOLD, [*WEAK, *[replace(doc, id="copy") for doc in WEAK]], 0.5, 1)
    assert len(rest) == 200 and not set(texts(rest)) & set(texts(chosen))


def test_recipes_get_only_the_splits_they_need(tmp_path: Path) -> None:
    data = DataSet("demo", DataSpec(sentences=100), tmp_path)
    both = data.splits(("weak", "gold"), NoiseLevel("little", 0.1, 30), 1)
    gold = data.splits(("gold",), NoiseLevel("little", 0.1, None), 1)
    weak = data.splits(("weak",), NoiseLevel("little", 0.1, 30), 1)
    assert both.gold == gold.gold and len(both.gold or ()) == 10 and gold.weak is None
    assert both.weak == weak.weak and len(both.weak or ()) == 30 and weak.gold is None
    assert both.dev


def test_weak_sentences_may_differ_from_gold(tmp_path: Path) -> None:
    for name, text in (("g", "a\tB-X\n\nb\tO\n\n"), ("w", "c\tO\n\na\tO\n\n"), ("e", "d\tO\n\n"), ("t", "e\tO\n\n")):
        (tmp_path / f"{name}.conll").write_text(text, encoding="utf-8")
    spec = DataSpec(folder=Path(), gold="g.conll", weak="w.conll", extra="e.conll", test="t.conll")
    found = DataSet("x", spec, tmp_path).splits(("weak", "gold"), NoiseLevel("little", 1.0), 1)
    assert sorted(texts(list(found.weak or ()))) == ["c", "d"], "what is in gold is not weak, too"
    more = DataSet("x", spec.model_copy(update={"unlabeled": "t.conll"}), tmp_path)
    splits = more.splits(roles_of("sst"), NoiseLevel("little", 1.0), 1)
    assert texts(list(splits.unlabeled or ())) == ["e"] and splits.weak == found.weak
    _, options = more.commands(roles_of("sst"), NoiseLevel("little", 1.0), 1)
    assert options[-2:] == ["--unlabeled", "DATA/t.conll"]
    assert more.splits(roles_of("wsl"), NoiseLevel("little", 1.0), 1).unlabeled is None, "this recipe does not use it"


def test_supervised_runs_once_for_all_numbers_of_weak_sentences(load: Load) -> None:
    laid = make_grid(load(LITTLE), {"demo": {"demo": "d"}})
    cells = [cell for cell in unique_cells(laid).values() if cell.seed == 1]
    assert [cell.noise for cell in cells if cell.recipe == "supervised"] == [
        NoiseLevel("little", 0.1),
        NoiseLevel("little", 0.5),
    ]
    assert len([cell for cell in cells if cell.recipe == "needle"]) == 4 and len(laid) == 16
    for cell in cells:
        assert cell_from_json(json.loads(json.dumps(cell.as_json()))) == cell
    shown = {str(place.noise) for place, _ in laid}
    assert "gold 10 %, weak 20" in shown and str(NoiseLevel("little", 40.0)) == "gold 40 sentences"


def test_keys_of_other_noise_have_not_changed() -> None:
    cell = Cell("demo", {"demo": "d"}, None, NoiseLevel("masked", 0.5), "trust", ("train.epochs=1",), 1)
    assert cell.identity["noise"] == {"kind": "masked", "rate": 0.5} and cell.as_json()["gaps"] == ["masked", 0.5]
    assert cell.key == "eaa2652aaff1e5af95f4"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("[0.1, 0.5]", "[]"), "weak_sentences has no effect without noise.little_gold"),
        (("[0.1, 0.5]", "[0.0]"), "noise.little_gold.0"),
        (
            ('"needle"\nsettings = ["noisy_epochs=1", "noise_aware=true", "parts=2"]', '"oracle"'),
            "oracle needs gold",
        ),
    ],
)
def test_contradictory_noise_is_refused(change: tuple[str, str], words: str, load: Load) -> None:
    with pytest.raises(ConfigError, match=words):
        load(LITTLE.replace(*change))


def test_a_data_set_without_weak_labels_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "a.conll").write_text("a\tB-X\n\n", encoding="utf-8")
    files = '[data.x]\nfolder = "x"\ngold = "a.conll"\ntest = "a.conll"\n'
    (tmp_path / "s.toml").write_text(LITTLE.replace("[data.demo]\nsentences = 60\n", files), encoding="utf-8")
    with pytest.raises(ConfigError, match="no kind of noise applies"):
        load_spec(tmp_path / "s.toml", tmp_path)


def test_the_commands_reproduce_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lacuner.corpus import write

    data = DataSet("demo", DataSpec(sentences=80), tmp_path)
    monkeypatch.chdir(tmp_path)
    write(data.read("gold"), tmp_path / "train.gold.jsonl")
    write(data.read("weak"), tmp_path / "weak.jsonl")
    steps, options = data.commands(("weak", "gold"), NoiseLevel("little", 0.1, 20), 2)
    assert steps[0] == "python -m lacuner.demo demo" and steps[1].startswith("lacuner annotate demo/train.jsonl")
    assert [step.split()[0] for step in steps[2:]] == ["head", "head", "python"]
    assert options[:4] == ["--weak", "little/weak.jsonl", "--gold", "little/gold.jsonl"]
    words = shlex.split(steps[-1])
    assert words[:3] == ["python", "-m", "lacuner.bench.gold_subset"]
    assert little_main(words[3:]) == 0
    want = data.splits(("weak", "gold"), NoiseLevel("little", 0.1, 20), 2)
    for role, complete in (("gold", True), ("weak", False)):
        made = list(read(tmp_path / "little" / f"{role}.jsonl", complete=complete))
        assert [(doc.text, doc.spans) for doc in made] == [(doc.text, doc.spans) for doc in getattr(want, role)]
    steps, options = data.commands(("gold",), NoiseLevel("little", 0.1, None), 2)
    assert "--weak" not in steps[-1] + " ".join(options) and not any("annotate" in step for step in steps)


@pytest.mark.integration
def test_it_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lacuner.bench.gold_subset", "--help"], capture_output=True, text=True, check=True
    )
    assert "--gold-amount" in done.stdout


@pytest.mark.usefixtures("undrawn")
def test_a_bench_runs_and_continues(inline: list[str], load: Load, tmp_path: Path) -> None:
    spec = load(LITTLE.replace("[1, 2]", "[1]").replace("[10, 20]", "[10]"))
    bench = open_bench(spec, tmp_path, tmp_path / "out")
    run_bench(bench, tmp_path, tmp_path / "out", 1)
    assert len(inline) == 4 and not bench.failed
    lines = write_results(bench, tmp_path / "out", "lacuner bench")
    [row] = [row for row in bench.finished.values() if row["cell"]["gaps"] == ["little", 0.1, 10]]
    assert set(row["accuracy"]) == {"words", "spans", "sentences"} and row["accuracy"]["spans"] == row["test"]["recall"]
    text = (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    assert "## Accuracy" in text and "gold 50 %, weak 10" in text and len(lines) == 4
    again = open_bench(spec, tmp_path, tmp_path / "out")
    run_bench(again, tmp_path, tmp_path / "out", 1)
    assert len(inline) == 4, "nothing runs twice"


def test_gold_equivalents(load: Load) -> None:
    bench = invented(load(LITTLE))
    lines = summarise(bench)
    assert {condition.recipe for condition, _, _ in gold_equivalents(lines, bench.spec)} == {"needle"}
    curve = [(0.02, 0.5), (0.08, 0.7), (0.32, 0.6)]
    assert [_interpolate(f1, curve) for f1 in (0.4, 0.5, 0.6, 0.7, 0.71)] == pytest.approx([0, 0.02, 0.04, 0.08, inf])


def test_f1_by_amount_is_plotted(load: Load) -> None:
    bench = invented(load(LITTLE))
    lines = summarise(bench)
    [curves] = [each for each in bench_figures(lines, bench.spec) if each.name == "f1-against-amounts"]
    assert [panel.title for panel in curves.panels] == [
        "demo, weak 10",
        "demo, weak 20",
        "demo, gold 10 %",
        "demo, gold 50 %",
    ]
    drawn = _drawn(curves.panels[0].draw)
    assert drawn["xlabel"] == "share of gold" and drawn["ticks"] == [0.1, 0.5]
    assert _drawn(curves.panels[2].draw)["ticks"] == [10, 20]
    assert results_markdown(bench, result_tables(bench, lines, []), "x").count(" | 40.0 ± 0.0 |") == 8


def _drawn(draw: Callable[[Any], None]) -> dict[str, Any]:
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    draw(axes)
    return {"xlabel": axes.get_xlabel(), "ticks": axes.get_xticks().tolist()}


@pytest.mark.parametrize(
    "name", ["needle", "needle_family", "needle_gold", "needle_weak", "needle_ec", "needle_minilm"]
)
def test_the_specs_of_the_project_fit(name: str, data: Callable[[str], Path]) -> None:
    folder = data("bc5cdr").parent
    spec = load_spec(ROOT / "benchmarks" / f"{name}.toml", folder, ('encoders=["tiny"]',))
    hashes = {key: data_hashes(key, each, folder) for key, each in spec.data.items()}
    recipes = {cell.recipe for cell in make_grid(spec, hashes).values()}
    assert {"supervised", "needle"} <= recipes


def test_the_number_of_dev_sentences_can_be_limited(tmp_path: Path) -> None:
    small, whole = DataSpec(dev_sentences=7), DataSpec()
    data = DataSet("demo", small, tmp_path)
    assert len(data.read("dev")) == 7 and len(data.read("test")) > 7
    assert data_hashes("demo", small, tmp_path) != data_hashes("demo", whole, tmp_path)
    steps, options = data.commands(("gold",), None, 1)
    assert "head -n 7 demo/dev.jsonl > dev.jsonl" in steps and options[-2:] == ["--dev", "dev.jsonl"]


def test_gold_that_a_recipe_with_weak_labels_alone_replaces(load: Load) -> None:
    text = LITTLE.replace("[noise]\n", "[noise]\ngiven = true\n") + '[recipes.trust]\nrecipe = "trust"\n'
    bench = invented(load(text))
    lines = summarise(bench)
    found = [condition for condition, _, _ in gold_equivalents(lines, bench.spec) if condition.noise.kind == "given"]
    assert {condition.recipe for condition in found} == {"trust"}, "needle has all the gold there"
    [table] = [table for table in result_tables(bench, lines, []) if table.title == "Gold saved"]
    assert any(row[1] == "as given" and row[-1] in ("", "more", "less") for row in table.rows)
