"""Training from documents on disk gives the same bytes as training in memory."""

from __future__ import annotations

import gc
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lacuner.config import load_config
from lacuner.corpus import stored
from lacuner.corpus.stored import StoredDocuments, store_documents
from lacuner.data import Document, Lost, Span, Splits
from lacuner.errors import ConfigError
from lacuner.models import inference, tagger
from lacuner.noise import Noise, corrupt
from lacuner.recipes import RECIPES
from lacuner.techniques import label_completion, label_issues, label_removal
from lacuner.trainer import auto, streaming
from lacuner.trainer.streaming import keep_or_store
from lacuner.trainer.train import train
from lacuner.training import batches, dataset, loop, parallel
from lacuner.training.dataset import training_set, weak_training_set
from lacuner.training.identity import set_complete, sort_documents
from lacuner.training.run_folder import Run
from lacuner.training.stage import new_model
from tests.demo_corpus import demo_corpus

WEAK = [replace(doc, complete=None) for doc in corrupt(demo_corpus().train[:60], Noise(drop=0.5))]
GOLD = demo_corpus().train[60:80]
SETTINGS = ["encoder.name=tiny", "train.epochs=2", "train.budget=200"]
STREAMING = [
    ("trust", "token", []),
    ("trust", "span", []),
    ("trust", "crf", []),
    ("autoner", "tie_or_break", []),
    ("negative_sampling", "span", []),
    ("negative_sampling", "span", ["sampler=weighted"]),
    ("nrces", "span", []),
    ("roster", "span", ["models=2", "ensemble_epochs=1", "guard=1.0", "tau=0.6", "q=0.7", "drop_unlabeled=0.3"]),
    ("roster", "entity_type", ["models=2", "ensemble_epochs=1", "guard=1.0"]),
    ("needle", "crf", ["noise_aware=true", "parts=2", "rounds=2", "noisy_epochs=1"]),
    ("needle", "crf", ["completion=false", "noisy_epochs=1"]),
]


def store(docs: list[Document], folder: Path) -> StoredDocuments:
    return store_documents(set_complete(docs, False), folder, "test")


def digests(folder: Path) -> dict[str, str]:
    """Hashes of all files of a run, except for prepared data."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several runs to merge, parts to prepare, and blocks to shuffle."""
    monkeypatch.setattr(stored, "RUN", 7)
    monkeypatch.setattr(dataset, "PART", 9)
    monkeypatch.setattr(dataset, "WORDS", 50)
    monkeypatch.setattr(label_completion, "GROUP", 11)
    monkeypatch.setattr(parallel.torch, "get_num_threads", lambda: 1)
    monkeypatch.setattr(label_removal, "PART", 8)
    monkeypatch.setattr(inference, "PART", 13)
    for module in (inference, batches):
        monkeypatch.setattr(module, "BLOCK", 16)
    monkeypatch.setattr(batches, "SHARD", 4)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(("recipe", "head", "settings"), STREAMING)
def test_the_same_bytes_as_in_memory(recipe: str, head: str, settings: list[str], tmp_path: Path) -> None:
    config = load_config(RECIPES[recipe].Config, settings=[*SETTINGS, f"head.kind={head}", *settings])
    gold = GOLD if "gold" in RECIPES[recipe].NEEDS else None
    for name, weak in {"memory": WEAK, "disk": store(WEAK[::-1], tmp_path / "store")}.items():
        train(recipe, Splits(weak=weak, gold=gold, dev=GOLD[:5]), tmp_path / name, config)
    memory, disk = (digests(tmp_path / name) for name in ("memory", "disk"))
    # from disk, what an epoch of `roster` trains on is kept beside the training set, not in the run folder
    kept = [name for name in memory if recipe == "roster" and name not in disk]
    assert {name: memory[name] for name in memory if name not in kept} == disk
    assert all("/removed/" in name or "stages/self_training/0/" in name for name in kept)


def test_every_streaming_recipe_is_tested() -> None:
    assert {name for name, module in RECIPES.items() if getattr(module, "STREAMS", False)} == {
        recipe for recipe, _, _ in STREAMING
    }


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("head", ["token", "span"])
def test_arrays_on_disk_are_those_in_memory(head: str, tmp_path: Path) -> None:
    on_disk, in_memory = store(WEAK, tmp_path / "store"), sort_documents(set_complete(WEAK, False))
    config = load_config(RECIPES["trust"].Config, settings=[*SETTINGS, f"head.kind={head}"])
    model = new_model(config, in_memory, Run(tmp_path, {}))
    lost = [Lost(), Lost()]
    disk, memory = (weak_training_set(model, docs, lost[i]) for i, docs in enumerate((on_disk, in_memory)))
    again = weak_training_set(model, on_disk, Lost())
    indices = np.array([3, 40, 17])
    for one in (disk, again):
        for left, right in ((one.as_annotated, memory.as_annotated), (one.as_complete, memory.as_complete)):
            for name in ("labels", "known", "weight"):
                assert (getattr(left.targets_of(indices), name) == getattr(right.targets_of(indices), name)).all()
            for name, array in left.features.arrays.items():
                assert np.array_equal(array, right.features.arrays[name])
            assert left.sentences.windows == right.sentences.windows
        assert (one.unlabeled == memory.unlabeled).all() and (one.own_lengths == memory.own_lengths).all()
    assert lost[0].counts == lost[1].counts
    folders = [path for path in (tmp_path / "store").iterdir() if path.is_dir()]
    assert len(folders) == 1, "prepared once"
    training_set(model, on_disk, Lost())
    folders = [path for path in (tmp_path / "store").iterdir() if path.is_dir()]
    assert len(folders) == 2, "with one reading it is something else"


def count_documents() -> int:
    return sum(type(item) is Document for item in gc.get_objects())


@pytest.mark.usefixtures("small_parts")
def test_few_documents_are_in_memory_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "_READ", 9)
    monkeypatch.setattr(stored, "SAMPLE", 100)
    monkeypatch.setattr(tagger, "DOCS_PER_GROUP", 9)
    monkeypatch.setattr(label_issues, "MOST_ISSUES", 5)
    before, alive = count_documents(), []
    decode, cut = stored.document_from_line, dataset.cut_sentences

    def counting(function: Any) -> Any:
        def counted(*args: Any) -> Any:
            alive.append(alive[-1] if len(alive) % 50 else count_documents())  # counting is slow
            return function(*args)

        return counted

    docs = store_documents(
        (replace(doc, id=str(i)) for i in range(5) for doc in set_complete(WEAK, False)), tmp_path, 1
    )
    monkeypatch.setattr(stored, "document_from_line", counting(decode))
    monkeypatch.setattr(dataset, "cut_sentences", counting(cut))
    config = load_config(RECIPES["trust"].Config, settings=[*SETTINGS, "train.epochs=1"])
    train("trust", Splits(weak=docs), tmp_path / "run", config)
    assert len(docs) == 300 and len(alive) > 1000
    assert max(alive) - before < 100, "documents of a part, a group of predictions and the label issues"


def test_an_interrupted_run_resumes_at_the_same_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docs = store(WEAK, tmp_path / "store")
    config = load_config(RECIPES["trust"].Config, settings=SETTINGS)
    train("trust", Splits(weak=docs), tmp_path / "whole", config)
    update, steps = loop._Trainer._update, 0

    def interrupted(*args: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps == 5:
            raise KeyboardInterrupt
        return update(*args)

    monkeypatch.setattr(loop._Trainer, "_update", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train("trust", Splits(weak=docs), tmp_path / "resumed", config)
    lines: list[str] = []
    train("trust", Splits(weak=docs), tmp_path / "resumed", config, log=lines.append)
    assert "train: resuming in epoch 1, batch 5" in lines
    assert digests(tmp_path / "resumed") == digests(tmp_path / "whole")


def test_label_issues_are_limited_to_the_highest_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    docs = [Document(str(i), "Teel met Teel.", spans=(Span(0, 4, "PER"),)) for i in range(9)]
    predicted = [replace(doc, spans=(Span(9, 13, "PER", 0.1 * (i % 4)),)) for i, doc in enumerate(docs)]

    class Predictions:
        def predict(self, docs: Any) -> Any:
            return zip_with(docs, predicted)

    def zip_with(docs: Any, predictions: list[Document]) -> Any:
        return (prediction for _, prediction in zip(docs, predictions, strict=True))

    everything: Any = label_issues.find_label_issues(Predictions(), docs)  # type: ignore[arg-type]
    monkeypatch.setattr(label_issues, "MOST_ISSUES", 3)
    limited = label_issues.find_label_issues(Predictions(), docs)  # type: ignore[arg-type]
    assert limited.missing == everything.missing[:3] and limited.unlisted_missing == 6
    assert limited.doubtful == everything.doubtful[:3] and limited.unlisted_doubtful == 6
    assert limited.labels == 9 and everything.unlisted_missing == 0


def test_documents_are_kept_in_memory_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "LIMIT", len(WEAK))
    lines: list[str] = []
    assert keep_or_store(lambda: WEAK, tmp_path, ["v1"], None, lines.append) == WEAK and not lines
    docs = keep_or_store(lambda: [*WEAK, *GOLD], tmp_path, ["v1"], None, lines.append)
    assert isinstance(docs, StoredDocuments) and len(docs) == 80 and "--no-stream" in lines[0]
    again = keep_or_store(list, tmp_path, ["v1"], None, lines.append)
    assert list(again) == list(docs) and "prepared earlier" in lines[-1]
    assert keep_or_store(lambda: WEAK, tmp_path, ["v1"], False, lines.append) == WEAK
    with monkeypatch.context() as patch:
        patch.setattr(streaming, "__version__", "another")
        assert keep_or_store(lambda: WEAK, tmp_path, ["v1"], None, lines.append) == WEAK, "prepared by another version"
    assert isinstance(keep_or_store(lambda: WEAK, tmp_path, ["v2"], True, lines.append), StoredDocuments)


def test_a_recipe_that_needs_documents_in_memory_says_so(tmp_path: Path) -> None:
    lines: list[str] = []
    config = load_config(RECIPES["partial"].Config, settings=[*SETTINGS, "train.epochs=1"])
    train("partial", Splits(weak=store(WEAK, tmp_path / "store")), tmp_path / "run", config, log=lines.append)
    assert any("recipe `partial` needs its documents in memory: reading all 60" in line for line in lines)
    config = load_config(
        RECIPES["negative_sampling"].Config, settings=[*SETTINGS, "sampler=weighted", "ablation.oracle=heldout"]
    )
    with pytest.raises(ConfigError, match="heldout needs the documents in memory: add --no-stream"):
        train("negative_sampling", Splits(weak=store(WEAK, tmp_path / "store")), tmp_path / "other", config)


@pytest.mark.parametrize("complete", [0, 10, 60])
def test_auto_chooses_as_in_memory(complete: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto, "PROFILED", 30)
    weak = [replace(doc, complete=True) if i < complete else doc for i, doc in enumerate(WEAK)]
    lines: dict[str, list[str]] = {}
    for name, docs in {"memory": weak, "disk": store(weak[::-1], tmp_path / "store")}.items():
        lines[name] = []
        splits = auto.complete_as_gold(Splits(weak=docs))
        advice, _ = auto.choose_recipe(splits, None, {}, lines[name].append)
        lines[name] += [advice.recipe, str(len(splits.weak or ())), str(len(splits.gold or ()))]
    assert lines["memory"] == lines["disk"] and any("sample" in line for line in lines["disk"])
