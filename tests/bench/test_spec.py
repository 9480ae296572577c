"""All mistakes of a spec are reported in one error, before anything runs."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise, takewhile
from pathlib import Path

import pytest

from lacuner.bench.datasets import DataSet, data_hashes
from lacuner.bench.grid import Cell, make_grid, unique_cells
from lacuner.bench.spec import FILES, DataSpec, NoiseLevel, Spec, load_spec, noise_levels
from lacuner.config import load_config
from lacuner.errors import ConfigError
from lacuner.noise import corrupt, noise_profile
from lacuner.recipes import RECIPES
from tests.bench.conftest import SMALL
from tests.conftest import ROOT
from tests.demo_corpus import demo_corpus

Load = Callable[[str], Spec]


def test_all_mistakes_in_one_message(load: Load) -> None:
    text = """
    seeds = [1, 1]
    workers = 3
    compare = [["trust", "nobody"]]
    [data.demo]
    sentences = 0
    [data.far]
    folder = "/etc"
    [noise]
    masked = [0.5, 1.5]
    [recipes.trust]
    recipe = "trust"
    settings = ["train.epocs=3"]
    [recipes.magic]
    recipe = "magic"
    """
    with pytest.raises(ConfigError) as caught:
        load(text)
    message = str(caught.value)
    for part in (
        "seeds",
        "workers",
        "sentences",
        "data.far.folder",
        "noise.masked.1",
        "epocs",
        "did you mean 'epochs'",
    ):
        assert part in message, part
    assert "recipes.magic.recipe" in message and "must be one of dictionary, trust" in message


def test_missing_or_superfluous_files_are_reported(load: Load) -> None:
    text = """
    compare = []
    [data.demo]
    dev = "x.conll"
    [data.a]
    folder = "a"
    [data.b]
    folder = "b"
    weak = "weak.conll"
    test = "test.conll"
    [noise]
    masked = [0.5]
    [recipes.trust]
    recipe = "trust"
    """
    with pytest.raises(ConfigError) as caught:
        load(text)
    message = str(caught.value)
    assert "the demo corpus has no files" in message
    assert "data.a: test is missing" in message and "data.a: gold or weak is missing" in message
    assert "data.b: there is no file" in message and "data.b: no kind of noise applies" in message


def test_compared_recipes_must_be_in_the_spec(load: Load) -> None:
    with pytest.raises(ConfigError, match="'nobody' is not a recipe"):
        load('compare = [["trust", "nobody"]]\n' + SMALL)


@pytest.mark.parametrize("name", ["", " ", "a\\nb", "x" * 61])
def test_names_are_printable(name: str, load: Load) -> None:
    with pytest.raises(ConfigError, match="printable"):
        load(SMALL.replace("[recipes.trust]", f'[recipes."{name}"]'))


def test_common_settings_apply_to_recipes_that_have_them(load: Load) -> None:
    spec = load(SMALL)
    assert spec.settings_of("dictionary", None) == ()
    assert spec.settings_of("trust", "tiny") == ("train.epochs=1", "head.kind=token", 'encoder.name="tiny"')


def test_settings_must_have_an_effect_with_every_encoder(load: Load) -> None:
    text = SMALL.replace('["train.epochs=1"]', '["train.epochs=1", "encoder.vectors=x.txt"]')
    assert load('encoders = ["lstm"]\n' + text)
    assert load('encoders = ["lstm"]\n' + SMALL.replace("head.kind=token", "encoder.vectors=x.txt"))
    with pytest.raises(ConfigError) as caught:
        load('encoders = ["lstm", "tiny"]\n' + text)
    words = (
        "recipes.trust with the common settings: encoder.vectors=x.txt has no effect together with encoder.name=tiny"
    )
    assert str(caught.value).count("with the common settings") == 1 and words in str(caught.value)


def test_an_unknown_setting_of_a_data_set_gets_a_suggestion(load: Load) -> None:
    with pytest.raises(ConfigError, match=r"no setting 'data\.demo\.sentence' \(line \d+\); did you mean 'sentences'"):
        load(SMALL.replace("sentences =", "sentence ="))
    with pytest.raises(ConfigError, match="unlabeled, dev, test, dictionary, sentences"):
        load(SMALL.replace("sentences =", "xyz ="))


def laid(spec: Spec, digest: str = "d") -> dict[str, object]:
    return dict(unique_cells(make_grid(spec, {name: {"demo": digest} for name in spec.data})))


def test_a_key_depends_on_everything_that_matters_and_nothing_else(load: Load) -> None:
    keys = set(laid(load(SMALL)))
    assert len(keys) == 4
    assert set(laid(load(SMALL), "other")).isdisjoint(keys)
    for old, new in (("0.5", "0.6"), ("= 40", "= 41"), ("[1, 2]", "[3, 4]")):
        assert set(laid(load(SMALL.replace(old, new)))).isdisjoint(keys), new
    assert len(set(laid(load(SMALL.replace("epochs=1", "epochs=2")))) & keys) == 2  # the dictionary has no epochs
    for old, new in (("epochs=1", "epochs = 1"), ("recipes.trust", "recipes.believer")):
        assert set(laid(load(SMALL.replace(old, new)))) == keys, new


def test_a_key_depends_on_explicit_settings_not_on_defaults() -> None:
    settings = ("train.epochs=1", "head.kind=token", "train.epochs=2", 'encoder.name="tiny"')
    cell = Cell("demo", {"demo": "d"}, None, None, "supervised", settings, 1)
    expected = {"train": {"epochs": 2}, "head": {"kind": "token"}, "encoder": {"name": "tiny"}}
    assert cell.identity["settings"] == expected
    assert cell.config["train"]["warmup"] and "warmup" not in str(cell.identity)


def test_a_recipe_that_does_not_see_the_noise_runs_once(load: Load) -> None:
    text = SMALL.replace("[0.5]", "[0.0, 0.5, 0.8]") + '[recipes.best]\nrecipe = "supervised"\n'
    text += 'settings = ["head.kind=token"]\n[recipes.told]\nrecipe = "oracle"\nsettings = ["head.kind=token"]\n'
    cells = unique_cells(make_grid(load(text), {"demo": {"demo": "d"}})).values()
    by_seed = [(cell.recipe, cell.noise) for cell in cells if cell.seed == 1]
    assert by_seed.count(("supervised", None)) == 1
    assert ("trust", NoiseLevel("masked", 0.0)) not in by_seed and ("oracle", NoiseLevel("masked", 0.0)) not in by_seed
    assert len(by_seed) == 3 + 2 + 1 + 2
    assert [cell.seed for cell in cells] == [1] * 8 + [2] * 8, "everything with the first seed comes first"


def test_data_is_identified_by_its_content(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.conll").write_text("Ada\tB-P\n\n", encoding="utf-8")
    one, two = (DataSpec(folder=Path(name), gold="x.conll", test="x.conll") for name in ("a", "b"))
    assert data_hashes("a", one, tmp_path) == data_hashes("b", two, tmp_path)
    (tmp_path / "b" / "x.conll").write_text("Bob\tB-P\n\n", encoding="utf-8")
    assert data_hashes("a", one, tmp_path) != data_hashes("b", two, tmp_path)


def test_weak_labels_of_the_demo_come_from_its_gazetteer() -> None:
    data = DataSet("demo", DataSpec(sentences=50), Path())
    [weak, gold] = data.read("weak"), data.read("gold")
    assert [doc.text for doc in weak] == [doc.text for doc in gold] and len(gold) == 50
    assert 0 < sum(len(doc.spans) for doc in weak) < sum(len(doc.spans) for doc in gold)
    assert not any(doc.complete for doc in weak)


def test_as_many_labels_are_wrong_as_are_missing() -> None:
    data = DataSet("demo", DataSpec(), Path())
    gold, weak = data.read("gold"), data.splits(("weak",), NoiseLevel("wrong", 0.4), 1).weak or ()
    entities, kept = sum(len(doc.spans) for doc in gold), sum(len(doc.spans) for doc in weak)
    types, places = 0, 0
    for doc, true in zip(weak, gold, strict=True):
        labels = {span[:2]: span.label for span in true.spans}
        places += sum(span[:2] not in labels for span in doc.spans)
        types += sum(labels.get(span[:2], span.label) != span.label for span in doc.spans)
    assert abs(kept / entities - 0.6) < 0.03
    assert abs(types / kept - 0.2) < 0.03 and abs(places / kept - 0.2) < 0.03


def test_commands_name_what_a_recipe_needs() -> None:
    spec = DataSpec(folder=Path("x"), gold="g.conll", weak="w.conll", dev="d.conll", test="t.conll", sentences=10)
    data = DataSet("x", spec, Path())
    steps, options = data.commands(RECIPES["oracle"].NEEDS, NoiseLevel("masked", 0.5), 3)
    assert steps[-1] == "lacuner noise corrupt g.conll --drop 0.5 --seed 3 --out masked.jsonl"
    assert options == ["--weak", "masked.jsonl", "--gold", "g.conll", "--dev", "DATA/x/d.conll"]
    assert data.commands(("weak",), NoiseLevel("surface", 0.5), 3)[0][-1].endswith(
        "g.conll --drop 0.5 --by-surface --seed 3 --out masked.jsonl"
    )
    assert (
        "--drop 0.4 --wrong-type 0.2 --shift 0.25 --seed 3"
        in data.commands(("weak",), NoiseLevel("wrong", 0.4), 3)[0][-1]
    )
    steps, _ = data.commands(("weak",), NoiseLevel("profile llm", 1.0), 3)
    assert steps[-1] == "lacuner noise corrupt g.conll --profile llm --seed 3 --out masked.jsonl"
    steps, options = data.commands(RECIPES["trust"].NEEDS, NoiseLevel("given", 0.0), 3)
    assert len(steps) == 1 and options == ["--weak", "w.conll", "--dev", "DATA/x/d.conll"]


def test_extra_weak_sentences_are_added_to_the_weak_ones(tmp_path: Path) -> None:
    for name, text in (("w", "a\tB-X\n\nb\tO\n\n"), ("e", "c\tO\n\n"), ("t", "d\tO\n\n")):
        (tmp_path / f"{name}.conll").write_text(text, encoding="utf-8")
    spec = DataSpec(folder=Path(), weak="w.conll", extra="e.conll", test="t.conll", sentences=1)
    data = DataSet("x", spec, tmp_path)
    weak = data.splits(("weak",), NoiseLevel("given", 0.0), 1).weak
    assert weak is not None and [(doc.text, doc.complete) for doc in weak] == [("a", False), ("c", False)]
    steps, options = data.commands(("weak",), NoiseLevel("given", 0.0), 1)
    assert len(steps) == 1 and options == ["--weak", "w.conll", "--weak", "DATA/e.conll"]


SPECS = sorted((ROOT / "benchmarks").rglob("*.toml"))


def make_files(path: Path, folder: Path) -> None:
    """Empty files in the place of all that a spec reads."""
    for data in tomllib.loads(path.read_text(encoding="utf-8"))["data"].values():
        for file in (data[role] for role in FILES if role in data):
            (folder / data["folder"]).mkdir(exist_ok=True)
            (folder / data["folder"] / file).touch()


def commands_of(path: Path) -> list[list[str]]:
    """The words of each command in the comment that a spec begins with."""
    comment = list(takewhile(lambda line: line.startswith("#"), path.read_text(encoding="utf-8").splitlines()))
    lines = "\n".join(line.removeprefix("#") for line in comment).replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if line.split()[:1] in (["lacuner"], ["python"])]


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_every_spec_in_benchmarks_is_valid(path: Path, tmp_path: Path) -> None:
    make_files(path, tmp_path)
    spec = load_spec(path, tmp_path)
    assert unique_cells(make_grid(spec, {name: {} for name in spec.data}))


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_every_spec_begins_with_its_command(path: Path, tmp_path: Path) -> None:
    name, is_paper = path.relative_to(ROOT).as_posix(), path.parent.name == "papers"
    commands = [words for words in commands_of(path) if name in words]
    assert commands, f"no command in the first comment runs {name}"
    make_files(path, tmp_path)
    for program, option, *words in commands:
        if program == "python":
            assert option == "-m" and (ROOT / words[0].replace(".", "/")).with_suffix(".py").is_file()
            continue
        options = list(pairwise(words))
        settings = tuple(value for flag, value in options if flag == "--set")
        assert option == "bench" and load_spec(path, tmp_path, settings)
        if path.stem == "quick":
            continue  # the demo corpus is generated
        assert ("--data", "DATA" if is_paper else "../shared/data") in options
        assert ("--out", "DIR" if is_paper else f"benchmarks/results/{path.stem}") in options


def test_a_common_setting_that_no_recipe_has_is_an_error(load: Load) -> None:
    with pytest.raises(ConfigError, match=r"no recipe has 'modells'; there are .*encoder.*, head"):
        load(SMALL.replace('"train.epochs=1"', '"train.epochs=1", "modells=3", "modells.x=1"'))


def test_every_recipe_for_weak_labels_has_rows_without_dev() -> None:
    spec = load_config(Spec, ROOT / "benchmarks" / "weak_recipes.toml")
    measured = {recipe.recipe for recipe in spec.recipes.values()}
    assert {name for name, recipe in RECIPES.items() if recipe.NEEDS == ("weak",)} == measured
    assert all(data.dev is None for data in spec.data.values())


def test_a_setting_that_a_config_leaves_out_may_be_given() -> None:
    # `fusion` came later: a config with its default is written without it
    cell = Cell("x", {}, None, None, "supervised", ("encoder.name=lexicon:tiny", "encoder.fusion=soft"), 1)
    assert cell.identity["settings"] == {"encoder": {"name": "lexicon:tiny"}}
    assert cell.key != replace(cell, settings=("encoder.name=lexicon:tiny", "encoder.fusion=lattice")).key


def test_a_cell_of_the_bars_runs_once(data: Callable[[str], Path]) -> None:
    folder = data("wikigold").parent
    spec = load_spec(ROOT / "benchmarks" / "bars.toml", folder)
    hashes = {name: data_hashes(name, each, folder) for name, each in spec.data.items()}
    laid = make_grid(spec, hashes)
    shared: dict[str, set[tuple[str, float]]] = {}
    for (place, seed), cell in laid.items():
        if place.data == "wikigold" and seed == 1:
            shared.setdefault(cell.key, set()).add((place.recipe, place.noise.rate))
    # supervised sees no noise; where nothing is masked, trust and oracle are the same run
    same = {("supervised", 0.0), ("supervised", 0.5), ("supervised", 0.8), ("oracle", 0.0), ("trust, threshold", 0.0)}
    assert same in shared.values()
    assert len(unique_cells(laid)) == len({cell.key for cell in laid.values()}) == 9 * len(shared)


def test_error_profiles_are_levels_of_noise(tmp_path: Path) -> None:
    text = '[data.demo]\n[noise]\nprofiles = ["llm", "noisebench-weak"]\n[recipes.trust]\nrecipe = "trust"\n'
    (tmp_path / "spec.toml").write_text(text, encoding="utf-8")
    spec = load_spec(tmp_path / "spec.toml", tmp_path)
    levels = noise_levels(spec, "demo", spec.data["demo"])
    assert [str(level) for level in levels] == ["llm errors", "noisebench-weak errors"]
    gold = demo_corpus().train[:40]
    data = DataSet("demo", spec.data["demo"], tmp_path)
    weak = data.splits(("weak",), levels[0], 3).weak
    assert weak is not None
    assert list(weak)[:40] == list(corrupt(gold, noise_profile("llm", 3)))
    (tmp_path / "spec.toml").write_text(text.replace("weak", "week"), encoding="utf-8")
    with pytest.raises(ConfigError, match="no error profile 'noisebench-week'; there are llm"):
        load_spec(tmp_path / "spec.toml", tmp_path)
