from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lacuner.cli.main import COMMANDS, SECTIONS
from lacuner.cli.options import InputOptions
from lacuner.corpus import FORMATS, read, write
from lacuner.corpus.tags import SCHEMES
from lacuner.data import Document, Span
from tests.cli.conftest import Run

TEXT = "Mara Teel left Halden ."
WORDS = ((0, 4), (5, 9), (10, 14), (15, 21), (22, 23))


def document(name: str, *spans: Span, **kwargs: object) -> Document:
    return Document(name, TEXT, WORDS, spans, **kwargs)  # type: ignore[arg-type]


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    docs = [document(str(i), Span(0, 9, "PER"), Span(15, 21, "LOC")) for i in range(1, 101)]
    write(docs, tmp_path / "gold.conll")
    return tmp_path / "gold.conll"


def test_a_confusion_matrix_of_many_types_shows_the_most_frequent(run: Run, tmp_path: Path) -> None:
    """It had a row and a column for each: 64 million cells for 8,000 types."""
    docs = [document(str(i), Span(0, 9, "PER"), Span(15, 21, f"T{i}")) for i in range(50)]
    write(docs, tmp_path / "types.jsonl")
    out = run("noise", "measure", "types.jsonl", "--gold", "types.jsonl").stdout
    matrix = out.partition("Gold type (rows)")[2].splitlines()
    assert matrix[1].split()[0] == "PER" and len(matrix[1].split()) == 21
    assert "(the 20 most frequent of 51 types; --json has all pairs)" in matrix
    pairs = json.loads(run("noise", "measure", "types.jsonl", "--gold", "types.jsonl", "--json").stdout)["confusion"]
    assert len(pairs) == 51


def test_noise_corrupt_measure_and_evaluate_agree(run: Run, gold: Path, tmp_path: Path) -> None:
    done = json.loads(run("noise", "corrupt", gold, "--drop", 0.5, "--seed", 3, "--out", "weak.jsonl", "--json").stdout)
    assert done["entities"] == 200 and 60 < done["dropped"] < 140
    weak = list(read(tmp_path / "weak.jsonl"))
    assert all(doc.complete is False for doc in weak)
    assert sum(len(doc.spans) for doc in weak) == 200 - done["dropped"]
    measured = json.loads(run("noise", "measure", "weak.jsonl", "--gold", gold, "--json").stdout)
    evaluated = json.loads(run("evaluate", "weak.jsonl", "--gold", gold, "--json").stdout)
    for key in ("precision", "recall", "f1"):
        assert measured[key] == evaluated[key]
    assert evaluated["recall"] == 1 - done["dropped"] / 200
    assert evaluated["precision"] == 1.0
    assert measured["kinds"]["missing"] == done["dropped"]
    assert {"precision", "recall", "f1", "per_type", "documents", "words_unread"} <= set(evaluated)
    assert (evaluated["documents"], evaluated["words_unread"]) == (100, None)  # a file does not tell
    profile = json.loads(
        run("noise", "corrupt", gold, "--profile", "noisebench-crowd", "--out", "c.jsonl", "--json").stdout
    )
    assert 50 < profile["dropped"] < 90 and profile["noise"]["spurious"] == 0.03
    mistakes = {("week",): "there is no --profile", ("llm", "--by-surface"): "leave out --by-surface"}
    mistakes |= {
        ("llm", "--spurious", "0.1"): "leave out --spurious",
        ("llm", "--drop-type", "A=1"): "leave out --drop-type",
    }
    for options, message in mistakes.items():
        result = run("noise", "corrupt", gold, "--profile", *options, "--out", "x.jsonl", status=2)
        assert message in result.stderr
    again = run("noise", "corrupt", gold, "--drop", 0.5, "--seed", 3, "--out", "again.jsonl")
    assert "dropped" in again.stdout and "0 lost" in again.stderr
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "weak.jsonl").read_bytes()


def test_a_writer_prints_what_it_lost(run: Run, gold: Path) -> None:
    done = run("noise", "corrupt", gold, "--drop", 0.5, "--out", "weak.conll")
    assert "complete or not: not written: 100" in done.stderr


def test_tables_for_people(run: Run, gold: Path) -> None:
    out = run("evaluate", gold, "--gold", gold).stdout
    assert "all (micro)" in out and "100.0" in out and "words unread" not in out
    out = run("noise", "measure", gold, "--gold", gold).stdout
    assert "spurious" in out and "sqrt(n)" in out
    run("noise", "corrupt", gold, "--drop", 0.9, "--out", "weak.jsonl")
    out = run("evaluate", gold, "--gold", "weak.jsonl").stdout
    assert "not final: gold is incomplete in 100 of 100 documents" in out


def test_labels_are_text_not_markup(run: Run, tmp_path: Path) -> None:
    write([document("1", Span(0, 9, "[red]X[/red]"))], tmp_path / "x.jsonl")
    assert "[red]X[/red]" in run("evaluate", "x.jsonl", "--gold", "x.jsonl").stdout


def test_check_names_problems_and_fixes_them(run: Run, tmp_path: Path) -> None:
    rows = [
        {
            "id": "a",
            "text": TEXT,
            "spans": [{"start": 0, "end": 5, "label": "PER"}, {"start": 0, "end": 99, "label": "PER"}],
        },
        {"id": "b", "text": TEXT, "spans": [{"start": 1, "end": 9, "label": "PER"}]},
    ]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n{broken\n")
    out = run("check", "x.jsonl", status=2).stdout
    assert "x.jsonl:1: whitespace" in out and "x.jsonl:1: outside" in out
    assert "x.jsonl:2: misaligned" in out and "['Mara', 'Teel']" in out
    assert "x.jsonl:3: unreadable: this line is not JSON" in out
    found = json.loads(run("check", "x.jsonl", "--json", status=2).stdout)
    assert found["errors"] == 4 and found["documents"] == 2
    assert {(p["kind"], p["line"]) for p in found["problems"] if p["error"]} == {
        ("whitespace", 1),
        ("outside", 1),
        ("misaligned", 2),
        ("unreadable", 3),
    }
    assert "unreadable document: 1" in run("check", "x.jsonl", "--fix", status=2).stderr
    run("check", "x.fixed.jsonl", "--rare", 0)
    assert [doc.spans[0].end for doc in read(tmp_path / "x.fixed.jsonl")] == [4, 9]


def test_check_sees_texts_shared_between_splits(run: Run, gold: Path, tmp_path: Path) -> None:
    write([document("1", Span(0, 4, "PER"))], tmp_path / "test.conll")
    found = json.loads(run("check", gold, "test.conll", "--json").stdout)
    assert found["counts"]["shared text"] == 1 and found["errors"] == 0


def test_check_counts_repairs_of_the_reader(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.conll").write_text("Mara B-PER\nTeel I-LOC\n")  # I- after another type
    found = json.loads(run("check", "x.conll", "--rare", 0, "--json").stdout)
    assert [problem["kind"] for problem in found["problems"]] == ["repaired while reading"] and found["errors"] == 0


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("evaluate", "missing.conll", "--gold", "gold.conll"), "missing.conll: there is no such file or folder"),
        (("evaluate", "gold.xyz", "--gold", "gold.conll"), "gold.xyz: there is no such file or folder"),
        (("noise", "corrupt", "gold.conll", "--out", "x.xyz"), "x.xyz: unknown ending"),
        (("noise", "corrupt", "gold.conll", "--out", "gold.conll"), "is already an input or output"),
        (("noise", "corrupt", "gold.conll", "--drop", "1.5", "--out", "x.jsonl"), "drop: input should be less than"),
        (
            ("noise", "corrupt", "gold.conll", "--drop-type", "PER", "--out", "x.jsonl"),
            "--drop-type is written LABEL=RATE",
        ),
        (("check", "gold.conll", "gold.conll", "--fix", "--out", "x.conll"), "single corpus"),
        (("noise", "corrupt", "gold.conll", "--out", "gold.conll/x.jsonl"), "cannot write"),
    ],
)
def test_wrong_input_is_one_sentence(run: Run, gold: Path, args: tuple[str, ...], words: str) -> None:
    done = run(*args, status=2)
    assert done.stderr.strip().splitlines()[-1].startswith("lacuner: ") and words in done.stderr
    assert done.stdout == ""


def test_a_single_text_file_has_one_document_per_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("one\ntwo\n")
    done = run("check", "x.txt")
    assert "one document per line" in done.stderr and "2 documents" in done.stdout


@pytest.mark.integration
def test_a_command_in_a_process_of_its_own(gold: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lacuner", "evaluate", "gold.conll", "--gold", "gold.conll", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert json.loads(done.stdout)["f1"] == 1.0
    command[4] = "nowhere.conll"
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == "lacuner: nowhere.conll: there is no such file or folder"


def test_choices_are_checked_and_listed(run: Run, gold: Path) -> None:
    last = run("evaluate", gold, "--gold", gold, "--format", "xyz", status=2).stderr.strip().splitlines()[-1]
    assert "--format" in last and "'xyz'" in last and all(f"'{name}'" in last for name in FORMATS)
    text = run("annotate", "-h").stdout
    for choices in (FORMATS, SCHEMES, ("smart", "fold", "exact"), ("priority", "vote"), ("unicode", "space")):
        assert "|".join(choices) in text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_in_one_line(run: Run, command: str) -> None:
    *group, name = command.split()
    assert run(*group, name, "-h").stdout == run(*group, name, "--help").stdout
    [line] = [line for line in run(*group, "-h").stdout.splitlines() if line.startswith(f"  {name} ")]
    assert len(line) <= 80 and line.endswith(".") and "..." not in line


def test_input_options_become_arguments_again() -> None:
    """For the command that `lacuner recipes --for` recommends."""
    assert InputOptions().arguments() == []
    options = InputOptions(format="conll", token_column=1, strict=True, separator="tab")
    assert options.arguments() == ["--format", "conll", "--separator", "tab", "--token-column", "1", "--strict"]
    assert options.read_options().separator == "\t"


def test_help_has_sections(run: Run) -> None:
    """Commands in the order of the work, and options for reading files after those of the command."""
    out = run("--help").stdout
    titles = [f"\n{title}:\n" for title in SECTIONS]
    assert sorted(titles, key=out.index) == titles
    assert out.index("Weak labels:") < out.index("  annotate ") < out.index("Training:") < out.index("  train ")
    text = run("train", "--help").stdout
    assert (
        text.index("  --weak ")
        < text.index("-h, --help")
        < text.index("\nReading the input:\n")
        < text.index("  --scheme ")
    )


def test_help_and_version(run: Run) -> None:
    out = run("--help").stdout
    for command in ("check", "noise", "evaluate"):
        assert command in out
    assert run("--version").stdout.strip().count(".") == 2


@pytest.mark.integration
def test_help_imports_little() -> None:
    """Its time is that of its imports: what prints it, and our modules with the commands and formats that it lists."""
    code = """
import json, runpy, sys
sys.argv = ["lacuner", "--help"]
try:
    runpy.run_module("lacuner", run_name="__main__")
except SystemExit:
    print(json.dumps(sorted(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = json.loads(done.stdout.splitlines()[-1])
    packages = {module.partition(".")[0] for module in modules} - set(sys.stdlib_module_names)
    assert packages <= {
        "__main__",
        "_distutils_hack",
        "lacuner",
        "typer",
        "click",
        "rich",
        "shellingham",
        "annotated_doc",
    }
    assert not {"asyncio", "concurrent.futures.process", "multiprocessing", "ssl"} & set(modules)
    assert sum(module.startswith("lacuner") for module in modules) < 90


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["train", "--weak", "weak.jsonl", "--gold", "", "--out", "run"], "there is an empty argument after --gold: "),
        (["train", "--weak", "weak.jsonl", "--gold=", "--out", "run"], "there is an empty argument after --gold: "),
        (["evaluate", "", "--gold", "gold.conll"], "there is an empty argument: is a variable in the command not set?"),
        (["train", "--weak", "a.jsonl", "b.jsonl", "--out", "run"], "(b.jsonl): repeat the option before each file"),
        (["annotate", "a.txt", "b.txt", "--out", "w.jsonl"], "(b.txt): repeat the option before each file"),
        (["annotate", "a.txt", "b.txt", "--out", "w.jsonl"], "instead of several texts, give their folder"),
    ],
)
def test_arguments_that_a_script_or_a_shell_gets_wrong(run: Run, gold: Path, args: list[str], words: str) -> None:
    """An unset variable was the current folder, read as gold."""
    assert words in run(*args, status=2).stderr


def test_shell_completion(run: Run) -> None:
    assert "_LACUNER_COMPLETE=complete_bash" in run("--show-completion", "bash").stdout
