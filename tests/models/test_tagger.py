"""T5 (nothing is unread), T14 (canaries), and model folders that are damaged or hostile (T1 b)."""

from __future__ import annotations

import json
import os
import shutil
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lacuner.errors import ConfigError, ModelFileError
from lacuner.models.build import build_head
from lacuner.models.files import CONFIG, WEIGHTS, load, load_tagger, save_tagger
from lacuner.models.model import Model
from lacuner.models.sentences import cut_sentences
from lacuner.models.tagger import Tagger, budget_batches
from lacuner.models.tiny import TinyConfig, TinyEncoder
from lacuner.types import Document, Lost, Span

LABELS = ["LOC", "PER"]


def new_tagger(kind: str = "token") -> Tagger:
    torch.manual_seed(0)
    encoder = TinyEncoder(TinyConfig())
    tagger = Tagger(Model(encoder, build_head({"kind": kind, "labels": LABELS}, encoder.width)))
    with torch.no_grad():  # a fresh model sees nothing: make it see something
        for name, parameter in tagger.model.head.named_parameters():
            if "output" in name:
                parameter.mul_(8).add_(torch.randn_like(parameter) * 0.5)
    tagger.model.eval()
    return tagger


def words(count: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list("abcdeABC北京"), rng.integers(1, 8))) for _ in range(count)]


def document(tokens: list[str], name: str = "1") -> Document:
    text = " ".join(tokens)
    edges, at = [], 0
    for token in tokens:
        edges.append((at, at + len(token)))
        at += len(token) + 1
    return Document(name, text, tuple(edges))


@pytest.mark.parametrize("kind", ["token", "span", "crf"])
def test_a_short_document_is_the_same_with_windows_and_without(kind: str) -> None:
    tagger = new_tagger(kind)
    docs = [document(words(n, n), str(n)) for n in (1, 2, 17, 60)]
    whole = list(tagger.predict(docs, window=10_000))
    assert list(tagger.predict(docs, window=64)) == whole
    assert any(doc.spans for doc in whole)
    assert all(0 <= span.score <= 1 for doc in whole for span in doc.spans if span.score is not None)


@pytest.mark.parametrize("length", [1, 63, 64, 65, 200, 1000, 50_000])
def test_every_word_is_owned_once(length: int) -> None:
    encoder = TinyEncoder(TinyConfig())
    sentences = cut_sentences([document(["w"] * length)], encoder, window=64)
    owned = [i for window in sentences.windows for i in range(window.own_start, window.own_end)]
    assert owned == list(range(length))
    assert sentences.words_read == length


def test_far_from_the_seam_a_document_reads_as_by_itself() -> None:
    tagger = new_tagger()
    left, right = words(150, 1), words(150, 2)
    joined = document([*left, *["|"] * 80, *right])
    alone = next(iter(tagger.predict([document(left)], window=64)))
    both = next(iter(tagger.predict([joined], window=64)))
    seam = len(" ".join(left[:-20]))
    assert [s[:3] for s in both.spans if s.end < seam] == [s[:3] for s in alone.spans if s.end < seam]
    assert sum(s.end < seam for s in alone.spans) > 5


def test_long_documents_can_be_refused() -> None:
    tagger = new_tagger()
    with pytest.raises(ConfigError, match="'long' has 300 words"):
        list(tagger.predict([document(words(300), "long")], window=64, on_long="error"))


@pytest.mark.parametrize("kind", ["token", "span"])
def test_training_labels_through_windows_are_all_there_once(kind: str) -> None:
    tokens = words(500, 3)
    doc = document(tokens)
    edges = doc.words or ()
    spans = [Span(edges[i][0], edges[i + 2][1], "PER") for i in range(0, 490, 7)]
    doc = replace(doc, spans=tuple(spans), complete=True)
    head = build_head({"kind": kind, "labels": LABELS}, 8)
    encoder = TinyEncoder(TinyConfig())
    lost = Lost()
    counts = []
    for window in (10_000, 64):
        sentences = cut_sentences([doc], encoder, lost, window=window)
        targets = head.targets(sentences.annotations, lost)
        positive = (targets.labels > 0) & targets.known
        counts.append((int(positive.sum()), int(targets.known.sum()) if kind == "token" else 0))
    assert counts[0] == counts[1]
    assert not len(lost)


def test_batches_of_any_size_give_the_same(tmp_path: Path) -> None:
    tagger = new_tagger("span")
    docs = [document(words(n % 40 + 1, n), str(n)) for n in range(60)]
    results = [list(tagger.predict(docs, budget=budget)) for budget in (1, 100, 4096)]
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert [s[:3] for s in a.spans] == [s[:3] for s in b.spans]
            assert np.allclose([s.score for s in a.spans], [s.score for s in b.spans], atol=1e-5)


def test_batches_fit_the_budget_and_lose_nobody() -> None:
    costs = np.random.default_rng(1).integers(0, 50, 300)
    for budget in (1, 60, 500):
        batches = budget_batches(costs, np.argsort(costs), budget)
        assert sorted(np.concatenate(batches).tolist()) == list(range(300))
        assert all(len(batch) == 1 or len(batch) * costs[batch].max() <= budget for batch in batches)


def test_a_saved_model_is_one_folder_that_may_move(tmp_path: Path) -> None:
    tagger = new_tagger("crf")
    save_tagger(tagger, tmp_path / "a" / "model")
    shutil.move(tmp_path / "a", tmp_path / "b")
    again = load(tmp_path / "b")
    docs = [document(words(20, n), str(n)) for n in range(10)]
    assert list(again.predict(docs)) == list(tagger.predict(docs))
    assert again.labels == ("LOC", "PER")
    assert again("Mara in Oslo").text == "Mara in Oslo"


def test_a_model_that_scores_otherwise_is_refused(tmp_path: Path) -> None:
    save_tagger(new_tagger(), tmp_path)
    config = json.loads((tmp_path / CONFIG).read_text())
    config["canaries"][2][5] += 0.05
    (tmp_path / CONFIG).write_text(json.dumps(config))
    with pytest.raises(ModelFileError, match="no longer scores as it did"):
        load_tagger(tmp_path)
    config["canaries"][2][5] = float("nan")
    (tmp_path / CONFIG).write_text(json.dumps(config))
    with pytest.raises(ModelFileError, match="no longer scores as it did"):
        load_tagger(tmp_path)


# a pickle that, if anybody loaded it, would run `touch x`
BOMB = b"\x80\x04\x95#\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93"
BOMB += b"\x94\x8c\x08touch x\x94\x85\x94R\x94."


def sign(folder: Path, name: str) -> None:
    """A careful attacker signs what he has changed."""
    import hashlib

    config = json.loads((folder / CONFIG).read_text())
    config["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / CONFIG).write_text(json.dumps(config))


def edit(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps({**config, **changes}))


def damage(folder: Path, how: str) -> None:
    weights = folder / WEIGHTS
    if how == "pickle":
        weights.write_bytes(BOMB)
        sign(folder, WEIGHTS)
    elif how == "zip":
        with zipfile.ZipFile(weights, "w") as archive:
            archive.writestr("data.pkl", BOMB)
        sign(folder, WEIGHTS)
    elif how == "header":
        weights.write_bytes((200 << 20).to_bytes(8, "little") + b"{" + b" " * 1000)
        sign(folder, WEIGHTS)
    elif how == "overlap":
        tensors = {n: {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} for n in ("a", "b")}
        header = json.dumps(tensors).encode()
        weights.write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 8)
        sign(folder, WEIGHTS)
    elif how == "truncated":
        weights.write_bytes(weights.read_bytes()[:1000])
    elif how == "gone":
        weights.unlink()
    elif how == "no config":
        (folder / CONFIG).unlink()
    elif how == "deep":
        (folder / CONFIG).write_text("[" * 100_000)
    elif how == "link":
        shutil.copy(weights, folder.parent / "elsewhere")
        weights.unlink()
        weights.symlink_to(folder.parent / "elsewhere")
    elif how == "outside":
        edit(folder, files={"../x": "0"})
    elif how == "absolute":
        edit(folder, files={"/etc/passwd": "0"})
    elif how == "encoder path":
        edit(folder, encoder={"kind": "/tmp/evil"})
    elif how == "remote code":
        edit(folder, encoder={"kind": "pretrained", "model": {"auto_map": {"AutoModel": "x.Y"}}, "ids": {}})
    elif how == "setting":
        edit(folder, head={"kind": "token", "labels": LABELS, "trust_remote_code": True})
    elif how == "name":
        edit(folder, files={"a\0b": "0"})
    elif how == "canary":
        edit(folder, canaries=[["x"]] * 5)
    elif how == "format":
        edit(folder, format=99)
    elif how == "huge":
        edit(folder, encoder={"kind": "tiny", "rows": 10**15})


DAMAGES = [
    "pickle",
    "zip",
    "header",
    "overlap",
    "truncated",
    "gone",
    "no config",
    "deep",
    "link",
    "outside",
    "absolute",
]
DAMAGES += ["encoder path", "remote code", "setting", "format", "huge", "name", "canary"]


@pytest.mark.parametrize("how", DAMAGES)
def test_damaged_and_hostile_folders_are_one_sentence(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "model"
    save_tagger(new_tagger(), folder)
    damage(folder, how)
    if how == "remote code":
        import lacuner.models.pretrained  # noqa: F401 (loading the library takes seconds, and is not the point)
    start = time.perf_counter()
    with pytest.raises(ModelFileError) as caught:
        load_tagger(folder)
    assert caught.value.file is not None and str(folder) in caught.value.file
    assert "\n" not in caught.value.problem
    assert not (tmp_path / "x").exists(), "nothing was run"
    assert time.perf_counter() - start < 5


def test_a_pickle_beside_a_good_file_is_never_looked_at(tmp_path: Path) -> None:
    save_tagger(new_tagger(), tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(BOMB)
    os.chmod(tmp_path / "pytorch_model.bin", 0)
    assert load_tagger(tmp_path).labels == ("LOC", "PER")
