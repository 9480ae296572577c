"""`audit sample` and `apply` from disk write the files of a run in memory, byte for byte; memory stays flat."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lacuner.annotate.gazetteer.entries import Entry
from lacuner.corpus import reader, stored, words_of, write
from lacuner.data import Document, Span
from lacuner.models import tagger
from lacuner.models.gazetteer import TaggerGazetteer
from lacuner.models.lookup import LookupTagger
from lacuner.models.sidecar import write_sidecar
from lacuner.models.storage import save
from lacuner.review.queue import ReviewQueue, decision_log, save_queue
from lacuner.trainer import streaming
from tests.cli.conftest import Run
from tests.demo_corpus import demo_corpus
from tests.export.conftest import make_tagger

PER_DOCUMENT = 300
"""Bytes of memory that a further document may take; in memory, one of these takes about 1,700."""


def contents(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def write_reviewed(folder: Path, docs: list[Document], decided: list[Document]) -> None:
    """Weak labels, a gazetteer beside them, and a review that labeled some of the documents completely."""
    write(docs, folder / "weak.jsonl")
    write_sidecar(TaggerGazetteer([Entry("Teel", "PER"), Entry("Nobody", "PER")]), folder / "weak.jsonl")
    queue = ReviewQueue((), {doc.id: doc for doc in decided}, (), ("PER", "LOC"))
    save_queue(queue, folder / "run")
    for doc in decided:
        decision_log(folder / "run").append(queue.label_sentence(doc.id, [Span(*words_of(doc)[0], "LOC")]))


def long_documents(count: int) -> Iterator[Document]:
    return (Document(str(number), f"Mara met {number} and Teel. " + "x" * 2000) for number in range(count))


def test_the_same_sample_as_in_memory(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tagger, "DOCS_PER_GROUP", 16)
    monkeypatch.setattr(stored, "_READ", 7)
    docs = demo_corpus().train[:60]
    write(
        [*docs, replace(docs[3], text="Mara left", words=None, spans=())], tmp_path / "texts.jsonl"
    )  # an id that occurs twice
    save(make_tagger("span"), tmp_path / "run" / "model")
    command = ("audit", "sample", "run", "texts.jsonl", "--sentences", "30", "--json", "--out")
    for name, option in (("memory", "--no-stream"), ("disk", "--stream")):
        done = run(*command, name, option)
        assert '"documents": 61' in done.stdout and ("preparing the documents" in done.stderr) == (name == "disk")
    memory, disk = contents(tmp_path / "memory"), contents(tmp_path / "disk")
    assert memory == disk and len(memory["review/sentences.jsonl"].splitlines()) == 30
    assert b'"score"' in memory["review/sentences.jsonl"] and b'"strata": [' in memory["review/queue.json"]
    assert [path.name for path in (tmp_path / "disk" / "review").iterdir() if path.is_dir()] == []
    monkeypatch.setattr(streaming, "LIMIT", 60)
    assert "61 documents are prepared" in run(*command, "large").stderr
    assert contents(tmp_path / "large") == memory
    assert "--stream needs files" in run("audit", "sample", "run", "-", "--stream", status=2).stderr


def test_the_same_corpus_after_decisions_as_in_memory(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "_READ", 7)
    docs = [replace(doc, complete=None) for doc in demo_corpus().train[:40]]
    docs = [*docs, replace(docs[3], text="Mara left", words=None, spans=())]
    write_reviewed(tmp_path, docs, [docs[5], docs[3], replace(docs[-1], id=f"{docs[3].id} (2)")])
    for name, option in (("memory", "--no-stream"), ("disk", "--stream")):
        done = run("apply", "run", "weak.jsonl", option, "--out", f"{name}/better.jsonl")
        assert "3 documents complete" in done.stdout and ("preparing the documents" in done.stderr) == (name == "disk")
    memory, disk = contents(tmp_path / "memory"), contents(tmp_path / "disk")
    assert memory == disk and sorted(memory) == ["better.jsonl", "better.jsonl.gazetteer.json"]
    assert memory["better.jsonl"].count(b'"complete": true') == 3
    assert (
        run("apply", "run", "weak.jsonl", "--stream", "--out", "-").stdout.encode().startswith(memory["better.jsonl"])
    )
    assert not any(path.name.endswith(".prepared") for path in tmp_path.rglob("*"))


@pytest.mark.parametrize("command", ["audit sample", "apply"])
def test_memory_does_not_grow_with_the_corpus(
    command: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "_READ", 50)
    monkeypatch.setattr(reader, "BLOCK", 1 << 14)
    save(LookupTagger({"Mara": "PER"}), tmp_path / "run" / "model")

    def peak(count: int) -> int:
        docs = long_documents(count)
        folder = tmp_path / str(count)
        folder.mkdir(exist_ok=True)
        if command == "apply":
            write_reviewed(folder, list(docs), list(long_documents(3)))
            arguments = ["apply", f"{count}/run", f"{count}/weak.jsonl", "--out", f"{count}/better.jsonl"]
        else:
            write(docs, folder / "texts.jsonl")
            arguments = ["audit", "sample", "run", f"{count}/texts.jsonl", "--sentences", "5", "--out", f"{count}/out"]
        tracemalloc.start()
        try:
            run(*arguments, "--stream")
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(10)  # loads what the command needs
    assert peak(1800) - peak(600) < 1200 * PER_DOCUMENT
