"""`train --stream` and `distil --stream`: the same model as in memory, from documents that are prepared once."""

from __future__ import annotations

import json
import os
import threading
from hashlib import sha256
from pathlib import Path

import pytest

from lacuner.corpus import write
from lacuner.data import Document
from lacuner.models.storage import save
from lacuner.noise import Noise, corrupt
from lacuner.trainer import streaming
from tests.cli.conftest import Run
from tests.demo_corpus import demo_corpus
from tests.export.conftest import make_tagger

COMMON = ["train", "--weak", "weak.jsonl", "--encoder", "tiny", "--set", "train.epochs=1", "--map", "PERSON=PER"]


@pytest.fixture(autouse=True)
def _corpus(tmp_path: Path) -> None:
    write(corrupt(demo_corpus().train[:40], Noise(drop=0.3)), tmp_path / "weak.jsonl")


def weights(run: Path) -> str:
    return sha256((run / "model" / "model.safetensors").read_bytes()).hexdigest()


def test_the_same_model_as_in_memory(run: Run, tmp_path: Path) -> None:
    done = run(*COMMON, "--recipe", "trust", "--out", "memory")
    assert "prepar" not in done.stderr and not (tmp_path / "memory" / "prepared").exists()
    done = run(*COMMON, "--recipe", "trust", "--stream", "--out", "disk")
    assert "preparing the documents in disk/prepared/" in done.stderr and "--no-stream: in memory" in done.stderr
    assert weights(tmp_path / "memory") == weights(tmp_path / "disk")
    identities = [json.loads((tmp_path / name / "run.json").read_text())["identity"] for name in ("memory", "disk")]
    assert identities[0] == identities[1]
    again = run(*COMMON, "--recipe", "trust", "--stream", "--out", "disk")
    assert "prepared earlier" in again.stderr and "already finished" in again.stderr


def test_a_cache_serves_several_runs(run: Run, tmp_path: Path) -> None:
    run(*COMMON, "--recipe", "trust", "--stream", "--cache", "cache", "--out", "one")
    done = run(*COMMON, "--recipe", "negative_sampling", "--stream", "--cache", "cache", "--out", "two")
    assert "prepared earlier" in done.stderr and len(list((tmp_path / "cache").iterdir())) == 1
    assert not (tmp_path / "two" / "prepared").exists()
    done = run(*COMMON, "--map", "PLACE=LOC", "--recipe", "trust", "--stream", "--cache", "cache", "--out", "three")
    assert "prepared earlier" not in done.stderr and len(list((tmp_path / "cache").iterdir())) == 2


def test_what_was_prepared_from_files_with_other_names_is_not_used(run: Run, tmp_path: Path) -> None:
    """Ids have the names of a folder's files, and an ending may decide the format."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.jsonl").write_bytes((tmp_path / "weak.jsonl").read_bytes())
    command = [
        "train",
        "--encoder",
        "tiny",
        "--set",
        "train.epochs=1",
        "--recipe",
        "trust",
        "--stream",
        "--cache",
        "cache",
    ]
    for name in ("a", "b"):
        done = run(*command, "--weak", name, "--out", f"run-{name}")
        assert "prepared earlier" not in done.stderr
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_large_corpora_are_streamed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "LIMIT", 39)
    assert "40 documents are prepared" in run(*COMMON, "--recipe", "trust", "--out", "run").stderr
    assert "prepar" not in run(*COMMON, "--recipe", "trust", "--no-stream", "--out", "memory").stderr
    assert "prepar" not in run(*COMMON, "--recipe", "partial", "--out", "partial").stderr, "it needs memory anyway"


def test_what_cannot_be_streamed(run: Run) -> None:
    done = run(*COMMON, "--recipe", "partial", "--stream", "--out", "run", status=2)
    assert "recipe `partial` needs its documents in memory: leave out --stream, or choose one of trust" in done.stderr
    done = run("train", "--weak", "-", "--recipe", "trust", "--stream", "--out", "run", status=2)
    assert "--stream needs files" in done.stderr


def test_a_pipe_stays_in_memory(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its documents were stored under the hash of nothing, where the next pipe would have found them."""
    monkeypatch.setattr(streaming, "LIMIT", 3)
    os.mkfifo(tmp_path / "pipe")
    assert (
        "--stream needs files"
        in run(*COMMON, "--weak", "pipe", "--recipe", "trust", "--stream", "--out", "a", status=2)[1]
    )
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes((tmp_path / "weak.jsonl").read_bytes()))
    writer.start()
    options = ["train", "--weak", "pipe", *COMMON[3:], "--recipe", "trust", "--format", "jsonl"]
    assert "prepar" not in run(*options, "--out", "run").stderr
    writer.join()


def test_a_preparation_that_fails_leaves_a_folder_that_can_be_used(run: Run, tmp_path: Path) -> None:
    text = (tmp_path / "weak.jsonl").read_text()
    (tmp_path / "weak.jsonl").write_text(text + "{\n")
    assert "weak.jsonl:41" in run(*COMMON, "--recipe", "trust", "--stream", "--out", "run", status=2).stderr
    (tmp_path / "weak.jsonl").write_text(text)
    run(*COMMON, "--recipe", "trust", "--stream", "--out", "run")


def test_distil_reads_texts_from_disk(run: Run, tmp_path: Path) -> None:
    save(make_tagger("token"), tmp_path / "teacher")
    write([Document(str(i), f"Mara {i} left Halden.") for i in range(4)], tmp_path / "texts.jsonl")
    arguments = ("distil", "teacher", "--to", "tiny", "--out", "student", "--set", "train.epochs=1", "--stream")
    done = run(*arguments, "--text", "texts.jsonl")
    assert "agreement with the teacher" in done.stdout and "to read them from there" in done.stderr
    assert list((tmp_path / "student" / "prepared").rglob("arrays-*"))
    done = run(*arguments, "--text", "-", status=2)
    assert "--stream needs files" in done.stderr
