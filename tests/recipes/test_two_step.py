"""Two-step learning: O-values, removed tokens, sampled non-entity spans, and the audit of a run with gold."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from math import ceil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from lacuner.audit.filtered_tokens import audit_filtered_tokens
from lacuner.config import load_config
from lacuner.corpus.words import words_of
from lacuner.data import Document, Lost, Span, Splits
from lacuner.errors import ConfigError, CorpusError, ModelFileError
from lacuner.evaluate import score
from lacuner.models.heads.span import SpanHead
from lacuner.models.targets import CorpusTargets
from lacuner.noise import Noise, corrupt
from lacuner.recipes import RECIPES, negative_sampling, two_step
from lacuner.techniques import early_learning
from lacuner.techniques.early_learning import Exploration, explore, labeled_share, score_o, smallest_values
from lacuner.trainer.train import train
from lacuner.training.dataset import weak_training_set
from lacuner.training.identity import sort_documents
from lacuner.training.run_folder import Run
from lacuner.training.stage import new_model
from tests.demo_corpus import demo_corpus

QUICK = ["train.epochs=2", "train.budget=256"]


@pytest.fixture(scope="module")
def gold() -> list[Document]:
    torch.set_num_threads(1)
    return demo_corpus().train[:40]


@pytest.fixture
def weak(gold: list[Document]) -> list[Document]:
    return list(corrupt(gold, Noise(drop=0.5)))


def config(*settings: str) -> two_step.Config:
    return load_config(two_step.Config, settings=[*QUICK, *settings])


def explored(o_prob: torch.Tensor, unlabeled: torch.Tensor, labeled: torch.Tensor) -> Exploration:
    return Exploration(SimpleNamespace(unlabeled=unlabeled, labeled=labeled), {1: {"prob": o_prob}})


@pytest.mark.parametrize("share", [0.0, 0.003125, 0.1, 0.25, 1.0])
def test_the_smallest_values_are_found(share: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        values, unlabeled = rng.integers(0, 30, 60).astype(np.float32), rng.random(60) < 0.6
        found = smallest_values(values, unlabeled, share)
        assert found.sum() == ceil(round(share * unlabeled.sum(), 9)) and not (found & ~unlabeled).any()
        left = unlabeled & ~found
        if found.any() and left.any():
            assert values[found].max() <= values[left].min()


def test_nothing_to_find() -> None:
    assert not smallest_values(np.zeros(3), np.zeros(3, dtype=bool), 0.5).any()
    none, every = torch.zeros(3, dtype=torch.bool), torch.ones(3, dtype=torch.bool)
    assert explored(torch.zeros(3), none, every).missing_share(1) == 0
    assert labeled_share(torch.zeros(3), none) == 1


@pytest.mark.parametrize("kept", [0.3, 0.5, 0.8, 1.0])
def test_the_estimate_is_right_when_the_model_is(kept: float) -> None:
    rng = np.random.default_rng(1)
    entity = rng.random(50_000) < 0.2
    labeled = torch.from_numpy(entity & (rng.random(50_000) < kept))
    # a perfect model: a token of an entity has a label with probability `kept`
    o_prob = torch.from_numpy(np.where(entity, 1 - kept, 1.0))
    assert labeled_share(o_prob, labeled) == pytest.approx(kept)
    want = (entity & ~labeled.numpy()).sum() / (~labeled.numpy()).sum()
    assert explored(o_prob, ~labeled, labeled).missing_share(1) == pytest.approx(want, abs=0.005)


def test_only_words_without_any_annotation_are_unlabeled(tmp_path: Path) -> None:
    text = "one two three four"
    some = Document("1", text, spans=(Span(0, 3, "X"),), rejected=(Span(4, 7, ""),), unsure=(Span(8, 13, ""),))
    whole = Document("2", text, spans=(Span(0, 3, "X"),), complete=True)
    docs = [replace(some, complete=False), whole]
    run = Run(tmp_path, {"seed": 1})
    weak = weak_training_set(new_model(config(), docs, run), docs, Lost())
    assert weak.unlabeled.tolist() == [False, False, False, True] + [False] * 4
    assert weak.labeled.tolist() == [True, False, False, False] * 2
    assert weak.as_complete.targets.known.tolist() == [True, True, False, True] + [True] * 4


@pytest.mark.parametrize("head", ["token", "crf"])
def test_o_scores_do_not_depend_on_the_batch(head: str, weak: list[Document], tmp_path: Path) -> None:
    settings = config(f"head.kind={head}")
    model = new_model(settings, weak, Run(tmp_path, {"seed": 1}))
    data = weak_training_set(model, weak, Lost()).as_complete
    row = score_o(model, data.features)
    model.eval()
    position = 0
    for i, length in enumerate(data.features.lengths[:10]):
        with torch.no_grad():
            scores = model(model.encoder.collate(data.features, [i]))
        logits = scores.logits[0, :length]
        assert torch.allclose(row["logit"][position : position + length], logits[:, 0], atol=1e-5)
        if head == "token":
            assert torch.allclose(row["prob"][position : position + length], logits.softmax(-1)[:, 0], atol=1e-5)
        assert torch.allclose(logits.sum(-1), torch.zeros(length), atol=1e-5), "the angle-based output is the default"
        position += length
    assert ((row["prob"] > 0) & (row["prob"] < 1)).all()


@pytest.mark.integration
def test_o_scores_are_taken_at_the_end_of_an_epoch(weak: list[Document], tmp_path: Path) -> None:
    three = explore(weak, config(), 3, Run(tmp_path / "a", {"seed": 1}), every_epoch=True)
    assert list(three.o_scores) == [1, 2, 3]
    kept = {
        epoch: {name: tensor.clone() for name, tensor in scores.items()} for epoch, scores in three.o_scores.items()
    }
    assert not torch.equal(kept[1]["logit"], kept[3]["logit"])
    again = explore(weak, config(), 3, Run(tmp_path / "a", {"seed": 1}), every_epoch=True)
    assert all(torch.equal(a[name], again.o_scores[epoch][name]) for epoch, a in kept.items() for name in a)
    once = explore(weak, config(), 3, Run(tmp_path / "b", {"seed": 1}))
    assert list(once.o_scores) == [3], "and scores of earlier epochs change nothing"
    assert all(torch.equal(kept[3][name], once.o_scores[3][name]) for name in kept[3])


class Seen:
    """The targets of every step of a training."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.labels: list[torch.Tensor] = []
        self.known: list[torch.Tensor] = []
        collate = CorpusTargets.collate

        def spy(targets: CorpusTargets, indices: Any) -> Any:
            found = collate(targets, indices)
            self.labels.append(targets.labels.clone())
            self.known.append(targets.known.clone())
            return found

        monkeypatch.setattr(CorpusTargets, "collate", spy)


@pytest.mark.parametrize("scheme", ["BIO", "BIOES"])
def test_what_the_second_step_is_trained_on(
    scheme: str, weak: list[Document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Seen(monkeypatch)
    settings = config("remove=0.2", "sample=0.2", "explore=1", f"head.scheme={scheme}", "train.budget=100000")
    tagger = two_step.train(Splits(weak=sort_documents(weak)), settings, Run(tmp_path, {"seed": 1}))
    complete, first, second = seen.labels  # one step per epoch: exploration, then twice
    everything, known = seen.known[0], seen.known[-1]
    removed = everything & ~known
    assert everything.all() and removed.sum() == ceil(0.2 * (complete == 0).sum()) and (complete[removed] == 0).all()
    head = tagger.model.head
    extra = 1 + len(head.labels) * len(head.tags.letters)  # the first tag of the non-entity
    for labels in (first, second):
        drawn = labels >= extra
        assert drawn.any() and not (drawn & removed).any() and (complete[drawn] == 0).all()
        assert torch.equal(labels[~drawn], complete[~drawn])
    assert not torch.equal(first, second), "a new sample in every epoch"
    assert "" not in head.labels and head.config()["non_entity"]


@pytest.mark.integration
def test_without_sampling_there_is_no_non_entity(weak: list[Document], tmp_path: Path) -> None:
    tagger = two_step.train(Splits(weak=weak), config("sample=0.0"), Run(tmp_path / "none", {"seed": 1}))
    assert not tagger.model.head.config()["non_entity"]
    tagger = two_step.train(Splits(weak=weak), config("complete=0.001"), Run(tmp_path / "complete", {"seed": 1}))
    assert not tagger.model.head.config()["non_entity"], "labels that look complete need none"
    assert not (tmp_path / "complete" / "removed.jsonl").read_text(), "and nothing is removed"


@pytest.mark.integration
@pytest.mark.parametrize("removed", ["marginal", "drop", "observed"])
def test_removed_words_of_a_crf(
    removed: str, weak: list[Document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()
    loss = two_step.crf_loss

    def spy(scores: Any, targets: Any, unknown: Any) -> Any:
        seen.add(unknown)
        return loss(scores, targets, unknown)

    monkeypatch.setattr(two_step, "crf_loss", spy)
    result = train("two_step", Splits(weak=weak), tmp_path, config("head.kind=crf", f"removed={removed}"))
    assert seen == {removed} and result.tagger.labels


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_a_span_head_removes_spans_and_samples_negatives(
    rate: float, weak: list[Document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    negatives: list[torch.Tensor] = []
    sample = negative_sampling.sample_negatives

    def spy(candidates: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        negatives.append(candidates)
        return sample(candidates, counts)

    monkeypatch.setattr(negative_sampling, "sample_negatives", spy)
    seen = Seen(monkeypatch)
    settings = config("head.kind=span", "remove=0.002", f"sample={rate}", "explore=1", "train.budget=100000")
    tagger = two_step.train(Splits(weak=sort_documents(weak)), settings, Run(tmp_path, {"seed": 1}))
    everything = seen.known[0]
    unlabeled = int((everything & (seen.labels[0] == 0)).sum())
    count = ceil(0.002 * unlabeled)
    if rate:
        assert len(negatives) == 2 and all(int(drawn.sum()) == unlabeled - count for drawn in negatives)
    else:
        assert not negatives and int((everything & ~seen.known[-1]).sum()) == count, "all others are O"
    rows = [json.loads(line) for line in (tmp_path / "removed.jsonl").read_text(encoding="utf-8").splitlines()]
    texts = {doc.id: doc.text for doc in weak}
    assert len(rows) == count and all(texts[r["document"]][r["start"] : r["end"]] == r["text"] for r in rows)
    assert isinstance(tagger.model.head, SpanHead)
    with pytest.raises(ModelFileError, match="token or CRF head"):
        audit_filtered_tokens(tmp_path, weak)


@pytest.mark.integration
def test_removed_words_are_written_and_audited(gold: list[Document], weak: list[Document], tmp_path: Path) -> None:
    train("two_step", Splits(weak=weak), tmp_path, config("remove=0.1"))
    rows = [json.loads(line) for line in (tmp_path / "removed.jsonl").read_text(encoding="utf-8").splitlines()]
    by_id = {doc.id: doc for doc in weak}
    assert rows and [row["score"] for row in rows] == sorted(row["score"] for row in rows)
    truth = {(doc.id, word) for doc in gold for word in words_of(doc) if touches(doc, word)}
    removed = []
    for row in rows:
        doc = by_id[row["document"]]
        assert doc.text[row["start"] : row["end"]] == row["text"] and row["kind"] == "removed"
        removed += [(doc.id, word) for word in words_of(doc) if row["start"] <= word[0] and word[1] <= row["end"]]
    assert len(set(removed)) == len(removed) and not [1 for i, word in removed if touches(by_id[i], word)]
    missing = {(i, word) for i, word in truth if not touches(by_id[i], word)}
    judged = audit_filtered_tokens(tmp_path, gold)
    found = len(missing & set(removed))
    assert judged.removed.sum() == len(removed) and judged.missing.sum() == len(missing)
    assert (judged.precision, judged.recall) == (found / len(removed), found / len(missing))
    assert judged.scores_at(0.1) == (judged.precision, judged.recall)
    assert judged.scores_at(1.0) == (judged.missing.mean(), 1.0)
    assert judged.as_json()["removed"] == len(removed)


def touches(doc: Document, word: tuple[int, int]) -> bool:
    return any(span.start < word[1] and word[0] < span.end for span in doc.spans)


def test_the_audit_needs_a_run_and_its_gold(gold: list[Document], weak: list[Document], tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="two_step"):
        audit_filtered_tokens(tmp_path, gold)
    train("two_step", Splits(weak=weak), tmp_path, config("explore=1"))
    with pytest.raises(CorpusError, match="not the 40"):
        audit_filtered_tokens(tmp_path, gold[1:])
    (tmp_path / "o_values.safetensors").write_bytes(b"nothing")
    with pytest.raises(ModelFileError, match="cannot be read"):
        audit_filtered_tokens(tmp_path, gold)


@pytest.mark.integration
def test_a_long_document_is_read_through_windows(tmp_path: Path) -> None:
    doc = Document("long", " ".join(["Mara", "went", "to", "Halden"] * 150), complete=False)
    doc = replace(doc, spans=tuple(Span(*words_of(doc)[i], "PER") for i in range(0, 600, 8)))
    train("two_step", Splits(weak=[doc]), tmp_path, config("remove=0.3"))
    whole = replace(doc, spans=tuple(Span(*words_of(doc)[i], "PER") for i in range(0, 600, 4)))
    judged = audit_filtered_tokens(tmp_path, [whole])
    assert len(judged.missing) == 600 - 75 and judged.missing.sum() == 75, "each unlabeled word once"
    assert judged.removed.sum() == ceil(0.3 * 525)


def searched(score: Callable[[two_step.Choice], float]) -> tuple[two_step.Choice, list[two_step.Choice]]:
    tried: list[two_step.Choice] = []

    def dev(choice: two_step.Choice, number: int) -> float:
        assert number == len(tried)
        tried.append(choice)
        return score(choice)

    return two_step.search(two_step.Choice(3, 0.1, 0.1), dev), tried


def test_a_search_changes_one_setting_at_a_time() -> None:
    best, tried = searched(lambda choice: choice.remove + choice.sample - choice.explore)
    assert best == two_step.Choice(1, 0.2, 0.3) and len(tried) == 7 and tried[0] == two_step.Choice(3, 0.1, 0.1)
    best, tried = searched(lambda choice: -abs(choice.remove - 0.1) - choice.sample + choice.explore)
    assert best == two_step.Choice(3, 0.1, 0.0)
    assert len(set(tried)) == 7 and {choice.sample for choice in tried} == {0.0, 0.1, 0.2, 0.3}, "the paper's rates"


@pytest.mark.integration
def test_a_search_reuses_the_exploration(
    gold: list[Document], weak: list[Document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(two_step, "_retrain", retrain := Counted(two_step._retrain))
    train("two_step", Splits(weak=weak, dev=gold), tmp_path / "a", config("search=true", "explore=1"))
    stages = {str(file.parent.relative_to(tmp_path / "a" / "stages")) for file in tmp_path.rglob("state.json")}
    assert {"explore", "explore/1", "explore/2", "explore/3", "train", "search/0"} <= stages
    assert 3 <= len([stage for stage in stages if stage.startswith("search/")]) == retrain.times - 1 <= 7
    train("two_step", Splits(weak=weak), tmp_path / "b", config("search=true", "explore=1"))
    left = {file.name for file in (tmp_path / "b" / "stages").iterdir()}
    assert left == {"explore", "train"}, "without dev nothing is searched"


class Counted:
    def __init__(self, function: Any) -> None:
        self.function, self.times = function, 0

    def __call__(self, *args: Any) -> Any:
        self.times += 1
        return self.function(*args)


@pytest.mark.parametrize("recipe", ["weighted_partial", "pu"])
def test_span_heads_are_refused(recipe: str) -> None:
    with pytest.raises(ConfigError, match=r"head\.kind"):
        load_config(RECIPES[recipe].Config, settings=["head.kind=span"])


def test_a_killed_exploration_is_never_scored_in_the_middle_of_an_epoch(
    weak: list[Document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config("train.checkpoint_seconds=0.0", "train.budget=128")
    whole = explore(weak, settings, 2, Run(tmp_path / "a", {"seed": 1}), every_epoch=True)
    loss_step = early_learning.loss_step
    left = 12  # in the middle of the second epoch

    def dying(data: Any) -> Any:
        step = loss_step(data)

        def counted(indices: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
            return step(indices)

        return counted

    monkeypatch.setattr(early_learning, "loss_step", dying)
    with pytest.raises(KeyboardInterrupt):
        explore(weak, settings, 2, Run(tmp_path / "b", {"seed": 1}), every_epoch=True)
    assert (tmp_path / "b" / "stages" / "explore" / "1").exists()
    assert not (tmp_path / "b" / "stages" / "explore" / "2").exists()
    monkeypatch.undo()
    resumed = explore(weak, settings, 2, Run(tmp_path / "b", {"seed": 1}), every_epoch=True)
    for one, other in zip(whole.o_scores.values(), resumed.o_scores.values(), strict=True):
        assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.slow
def test_it_helps(tmp_path: Path) -> None:
    """T9: half of the demo's entities have no label, three seeds, no dev; and it does no harm where all have one."""
    demo = demo_corpus()
    found: dict[tuple[str, float], list[float]] = {}
    for seed in (1, 2, 3):
        for drop in (0.0, 0.5):
            weak = list(corrupt(demo.train[:800], Noise(drop=drop, seed=seed)))
            for recipe in ("trust", "two_step"):
                settings = load_config(RECIPES[recipe].Config, settings=["train.epochs=8", "head.kind=token"])
                trained = train(recipe, Splits(weak=weak), tmp_path / f"{recipe}{drop}{seed}", settings, seed)
                f1 = score(demo.test, trained.tagger.predict(demo.test)).exact.f1
                found.setdefault((recipe, drop), []).append(100 * f1)
    mean = {key: sum(values) / 3 for key, values in found.items()}
    assert mean["two_step", 0.5] > mean["trust", 0.5] + 8
    assert mean["two_step", 0.0] > mean["trust", 0.0] - 1
