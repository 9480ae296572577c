"""T13: every command and Python example in the README and in docs/ runs; links, tables and the site are right."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lacuner import load
from lacuner.config import Config
from lacuner.corpus import FORMATS, read, write
from lacuner.pretraining.pretrain import PretrainConfig
from lacuner.recipes import RECIPES
from tests.conftest import ROOT
from tests.demo_corpus import demo_corpus

README = ROOT / "README.md"
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [README, *DOCS]
COSTLY = {"export.md", "gold.md", "scaling.md"}
"""Pages that take longest to run and whose commands have tests of their own: `make test-slow` runs them."""
RECORDS = [ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
RECORDS += [ROOT / "tests" / "README.md", ROOT / "benchmarks" / "NOTEBOOK.md"]
SEARCHABLE = ["distant supervision", "weak supervision", "gazetteer", "false negative", "early stopping", "out-of-fold"]


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a page in a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[str]:
    """The commands of a shell block, without comments."""
    lines = (line.split("#")[0].strip() for line in block.replace("\\\n", " ").splitlines())
    return [line for line in lines if line]


def run(command: list[str], folder: Path) -> str:
    """Run a command that must succeed; its standard output."""
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def write_user_files(folder: Path) -> None:
    """The files that the README takes for granted: texts, a gazetteer, some gold, and the demo corpus."""
    demo = demo_corpus()
    (folder / "texts").mkdir()
    for number, doc in enumerate(demo.train[:40]):
        (folder / "texts" / f"{number}.txt").write_text(doc.text, encoding="utf-8")
    terms = [f"{term}\t{label}\n" for term, label, *_ in demo.dictionary]
    (folder / "terms.tsv").write_text("".join(terms), encoding="utf-8")
    write(demo.train[40:70], folder / "gold.conll")
    run(["python", "-m", "lacuner.demo", "demo"], folder)


@pytest.mark.integration
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] if page.name in COSTLY else []) for page in PAGES],
    ids=lambda page: page.name,
)
def test_shell_and_python_run(page: Path, tmp_path: Path) -> None:
    """The blocks of a page in order, in one folder."""
    if page == README:
        write_user_files(tmp_path)
    for line in (line for block in blocks(page, "bash") for line in commands(block)):
        if line.startswith("make"):  # these set everything up and run this very test: check only that they exist
            run(["make", "-n", *line.split()[1:]], ROOT)
        else:
            run(["bash", "-c", line], tmp_path)
    printed = [run(["python", "-c", code], tmp_path) for code in blocks(page, "python")]
    if page == README:
        assert "F1 " in printed[0]
        assert load(tmp_path / "demo" / "python")("Mara Teel left Halden.").text == "Mara Teel left Halden."


def test_there_is_something_to_run() -> None:
    assert commands(blocks(README, "bash")[0]) == ["make demo", "make test"]
    assert len([line for page in PAGES for block in blocks(page, "bash") for line in commands(block)]) >= 50
    assert len([block for page in PAGES for block in blocks(page, "python")]) >= 5
    [code] = blocks(README, "python")
    assert len(code.strip().splitlines()) <= 11
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 110


def test_the_sample_document_is_read(tmp_path: Path) -> None:
    [sample] = blocks(ROOT / "docs" / "formats.md", "json")
    (tmp_path / "x.jsonl").write_text(" ".join(sample.split("\n")) + "\n", encoding="utf-8")
    [doc] = read(tmp_path / "x.jsonl")
    texts = [doc.text[span.start : span.end] for span in doc.spans + doc.rejected + doc.unsure]
    assert texts == ["Mara Teel", "left", "Halden"]


def test_every_format_is_documented() -> None:
    text = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    for name, known in FORMATS.items():
        row = next(line for line in text.splitlines() if line.startswith(f"| `{name}` |"))
        assert all(f"`{ending}`" in row for ending in known.endings if ending != ".ndjson")


def test_every_recipe_is_in_the_concepts() -> None:
    text = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    assert [name for name in RECIPES if f"`{name}`" not in text] == []


def setting_names(config: Config, prefix: str = "") -> set[str]:
    """The full names of all settings of a config."""
    names = set()
    for name in type(config).model_fields:
        value = getattr(config, name)
        names |= setting_names(value, f"{prefix}{name}.") if isinstance(value, Config) else {f"{prefix}{name}"}
    return names


def test_settings_in_the_text_exist() -> None:
    known = set().union(
        *(setting_names(module.Config()) for module in RECIPES.values()), setting_names(PretrainConfig())
    )
    for page in [*PAGES, ROOT / "benchmarks" / "NOTEBOOK.md"]:
        named = set(re.findall(r"`([a-z_.0-9]+)=[^`]*`", page.read_text(encoding="utf-8")))
        assert named <= known, page.name


@pytest.mark.parametrize("term", SEARCHABLE)
def test_the_terms_of_the_field_are_used(term: str) -> None:
    assert any(term in page.read_text(encoding="utf-8").lower() for page in PAGES)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, *RECORDS], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http:", "https:")):
            linked = page.parent / target if target else page
            assert linked.exists(), target
            assert not anchor or anchor in anchors(linked), f"{target}#{anchor}"


@pytest.mark.parametrize("page", [*PAGES, *RECORDS], ids=lambda page: str(page.relative_to(ROOT)))
def test_no_merge_is_left_unfinished(page: Path) -> None:
    assert re.findall(r"^(?:<{7} .*|={7}|>{7} .*)$", page.read_text(encoding="utf-8"), re.MULTILINE) == []


def test_results_equal_the_rows() -> None:
    """Every mean with a spread in docs/results.md is in the table of a benchmark that its section names."""
    checked = 0
    for section in (ROOT / "docs" / "results.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        if section.startswith("Numbers of the papers"):
            continue
        folders = {ROOT / "benchmarks" / "results" / name for name in re.findall(r"benchmarks/results/(\w+)", section)}
        tables = "".join((folder / "table.md").read_text(encoding="utf-8") for folder in folders)
        values = re.findall(r"\d+\.\d ± \d+\.\d", section)
        assert [value for value in values if value not in tables] == [], section.partition("\n")[0]
        checked += len(values)
    assert checked > 200


@pytest.mark.integration
def test_make_targets_are_listed() -> None:
    listed = run(["make", "help"], ROOT)
    for target in ("setup", "demo", "test", "test-unit", "test-slow", "check", "docs", "speed"):
        assert f"make {target} " in listed


@pytest.mark.integration
def test_the_site_is_built_and_fetches_nothing(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="extra `docs` is not installed")
    pytest.importorskip("mkdocstrings", reason="extra `docs` is not installed")
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    config = (
        config.replace("build/", f"{tmp_path}/")
        .replace("scripts/", f"{ROOT}/scripts/")
        .replace("[src]", f"[{ROOT}/src]")
    )
    (tmp_path / "mkdocs.yml").write_text(config, encoding="utf-8")
    run(["python", "scripts/generate_docs.py", str(tmp_path / "docs")], ROOT)
    run(["python", "-m", "mkdocs", "build", "--quiet", "--strict", "-f", str(tmp_path / "mkdocs.yml")], ROOT)
    pages = {file.relative_to(tmp_path / "site").as_posix(): file for file in (tmp_path / "site").rglob("*.html")}
    assert {f"recipes/{name}.html" for name in RECIPES} <= set(pages)
    for name, file in pages.items():
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=[\"']?(?:https?:)?//", text), name
    assert "gazetteer" in (tmp_path / "site" / "search" / "search_index.json").read_text(encoding="utf-8")
