"""Negative sampling and NRCES: which negatives are sampled, and what is chosen on dev."""

from __future__ import annotations

import json
from dataclasses import replace
from math import ceil, exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lacuner.config import load_config
from lacuner.data import Document, Lost, Span, Splits
from lacuner.errors import ConfigError, TrainingError
from lacuner.evaluate import score
from lacuner.evaluate.threshold import THRESHOLDS
from lacuner.models.ragged import pad_rows
from lacuner.models.storage import load
from lacuner.models.tagger import Tagger
from lacuner.noise import Noise, corrupt
from lacuner.recipes import RECIPES, negative_sampling, nrces
from lacuner.sampling.span_negatives import negatives_per_sentence
from lacuner.trainer.train import train
from lacuner.training.dataset import WeakTrainingSet, weak_training_set
from lacuner.training.run_folder import Run
from lacuner.training.stage import StageResult, best_on_dev, new_model
from tests.demo_corpus import demo_corpus

W = nrces.W_PER_EPOCH
SAMPLERS = ["sampler=uniform", "sampler=weighted", *(f"ablation.rank={rank}" for rank in ("top", "middle", "bottom"))]


def spans_of(docs: list[Document], folder: Path) -> WeakTrainingSet:
    torch.set_num_threads(1)
    model = new_model(negative_sampling.Config(), docs, Run(folder, {"seed": 1}))
    return weak_training_set(model, docs, Lost())


@pytest.fixture
def weak() -> list[Document]:
    return list(corrupt(demo_corpus().train[:30], Noise(drop=0.5)))


class Recorder:
    """A callback that keeps the sampled negatives."""

    def __init__(self) -> None:
        self.drawn: list[torch.Tensor] = []

    def on_negatives_sampled(self, *args: object) -> None:
        drawn = args[3]
        assert isinstance(drawn, torch.Tensor)
        self.drawn.append(drawn.clone())

    def on_epoch_end(self, *args: object) -> None:
        pass


def test_the_hidden_layer_may_have_another_size(tmp_path: Path) -> None:
    docs = [Document("1", "a b", spans=(Span(0, 1, "X"),))]
    heads = []
    for settings in ([], ["head.hidden=256", "head.variant=product", "head.dropout=0.4"]):
        config = load_config(negative_sampling.Config, settings=["encoder.name=tiny", *settings])
        head = new_model(config, docs, Run(tmp_path, {"seed": 1})).head.config()
        heads.append([head[name] for name in ("hidden", "variant", "dropout")])
    assert heads == [[96, "width", 0.3], [256, "product", 0.4]]
    assert "hidden" not in negative_sampling.Config().model_dump()["head"], "runs of earlier versions stay the same"
    with pytest.raises(ConfigError, match=r"head\.hidden"):
        load_config(negative_sampling.Config, settings=["head.hidden=100000"])


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_step_trains_on_labels_and_the_stated_number_of_negatives(
    sampler: str, weak: list[Document], tmp_path: Path
) -> None:
    spans = spans_of(weak, tmp_path)
    config = load_config(negative_sampling.Config, settings=[sampler, "rate=0.5"])
    indices, recorder = np.arange(12), Recorder()
    found = negative_sampling.sampling_step(spans, config, 0, recorder)(indices)
    [drawn] = recorder.drawn
    _, targets = spans.as_annotated.batch(indices)
    assert not (drawn & targets.known).any(), "a labeled span is never a negative"
    words = torch.from_numpy(spans.as_annotated.features.lengths[indices])
    assert drawn.sum((1, 2)).tolist() == negatives_per_sentence(words, 0.5).tolist()
    assert found.known == float(drawn.sum() + targets.known.sum())


def test_the_same_seed_samples_the_same_negatives(weak: list[Document], tmp_path: Path) -> None:
    spans, recorder = spans_of(weak, tmp_path), Recorder()
    for seed in (7, 7, 8):
        torch.manual_seed(seed)
        negative_sampling.sampling_step(spans, negative_sampling.Config(), 0, recorder)(np.arange(12))
    first, second, other = recorder.drawn
    assert torch.equal(first, second) and not torch.equal(first, other)


def test_complete_documents_give_all_their_negatives_and_nothing_is_sampled(tmp_path: Path) -> None:
    gold = demo_corpus().train[:10]
    assert all(doc.complete for doc in gold)
    spans, recorder = spans_of(gold, tmp_path), Recorder()
    found = negative_sampling.sampling_step(spans, negative_sampling.Config(), 0, recorder)(np.arange(10))
    assert not recorder.drawn[0].any() and found.known == found.positions


def test_spans_that_overlap_an_unsure_one_are_never_candidates(tmp_path: Path) -> None:
    doc = Document("1", "one two three four", spans=(Span(0, 3, "X"),), unsure=(Span(8, 13, ""),), complete=False)
    spans = spans_of([doc], tmp_path)
    candidates = spans.unlabeled_in(np.array([0]))[0]
    # spans by first word and width: "one" is labeled, whatever reaches "three" is unsure
    assert {(int(i), int(w)) for i, w in candidates.nonzero()} == {(0, 1), (1, 0), (3, 0)}


def test_weighted_negatives_follow_their_weights(weak: list[Document], tmp_path: Path) -> None:
    """One candidate of each sentence weighs much more than the rest; the uniform first epoch ignores that."""
    spans, indices = spans_of(weak, tmp_path), np.arange(12)
    candidates = spans.unlabeled_in(indices)
    flat = candidates.flatten(1)
    heavy = torch.zeros_like(flat).scatter_(1, flat.int().argmax(dim=1, keepdim=True), True).view_as(candidates)
    packed = torch.zeros(spans.unlabeled.shape)
    positions, real = pad_rows(spans.as_annotated.targets.offsets, indices)
    packed[torch.from_numpy(positions[real])] = 1e4 * heavy[torch.from_numpy(real)]
    held_out, recorder = replace(spans.as_annotated.targets, known=spans.unlabeled, weight=packed), Recorder()
    config = load_config(negative_sampling.Config, settings=["sampler=weighted", "ablation.uniform_epochs=1"])
    for epoch in (0, 1):
        negative_sampling.sampling_step(spans, config, epoch, recorder, held_out)(indices)
    first, second = recorder.drawn
    assert (second & heavy).sum() == len(indices) and (first & heavy).sum() < len(indices)


def test_weights_come_from_the_models_own_scores(
    weak: list[Document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[object, ...]] = []
    real = negative_sampling.sampling_weights
    monkeypatch.setattr(
        negative_sampling,
        "sampling_weights",
        lambda logits, *how: seen.append(how) or real(logits, *how),
    )
    spans = spans_of(weak, tmp_path)
    config = load_config(negative_sampling.Config, settings=["sampler=weighted", "mu=3.0", "ablation.margin=all"])
    negative_sampling.sampling_step(spans, config, 0)(np.arange(4))
    negative_sampling.sampling_step(spans, negative_sampling.Config(), 0)(np.arange(4))
    assert seen == [(3.0, "all", "margin")]


def test_windows_sample_by_the_words_they_own(tmp_path: Path) -> None:
    words = " ".join(f"w{i}" for i in range(700))
    spans, recorder = spans_of([Document("1", words, spans=(Span(0, 2, "X"),), complete=False)], tmp_path), Recorder()
    config = load_config(negative_sampling.Config, settings=["rate=0.5"])
    negative_sampling.sampling_step(spans, config, 0, recorder)(np.arange(len(spans.own_lengths)))
    assert len(spans.own_lengths) > 1 and int(spans.own_lengths.sum()) == 700
    assert 350 <= int(recorder.drawn[0].sum()) <= 350 + len(spans.own_lengths)


@pytest.mark.integration
@pytest.mark.parametrize(
    ("settings", "expected"),
    [(["w=2.0", "train.epochs=3"], [1.0, exp(-0.5), exp(-1.0)]), (["train.epochs=2"], [1.0, exp(-1 / (2 * W))])],
    ids=["given", "a share of the epochs"],
)
def test_cross_entropy_is_annealed_over_the_epochs(
    settings: list[str],
    expected: list[float],
    weak: list[Document],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    betas: list[float] = []
    real = nrces.nrces_loss
    monkeypatch.setattr(nrces, "nrces_loss", lambda *args: betas.append(args[2]) or real(*args))
    config = load_config(nrces.Config, settings=[*settings, "train.budget=4096"])
    train("nrces", Splits(weak=weak), tmp_path, config)
    assert list(dict.fromkeys(betas)) == pytest.approx(expected)


def test_nrces_samples_its_negatives_once_and_about_half(
    weak: list[Document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known: dict[str, torch.Tensor] = {}
    train_stage = nrces.train_stage

    def spy(data: Any, make_step: Any, settings: Any, run: Run, *more: Any) -> StageResult:
        before = data.targets.known.clone()
        result = train_stage(data, make_step, settings, run, *more)
        assert settings.patience_after == ceil(3 * 2 * W), "early stopping waits until cross-entropy has faded"
        assert torch.equal(data.targets.known, before), "the same negatives in every epoch"
        known[run.folder.name] = before
        return result

    monkeypatch.setattr(nrces, "train_stage", spy)
    config = load_config(nrces.Config, settings=["train.epochs=2", "train.budget=4096"])
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        nrces.train(Splits(weak=weak), config, Run(tmp_path / name, {"seed": seed}))
    spans = spans_of(weak, tmp_path)
    added = known["a"] & ~spans.as_annotated.targets.known
    assert not (added & ~spans.unlabeled).any()
    assert float(added.sum() / spans.unlabeled.sum()) == pytest.approx(0.5, abs=0.02)
    assert torch.equal(known["a"], known["b"]) and not torch.equal(known["a"], known["c"])


@pytest.mark.parametrize(
    ("recipe", "setting", "stages"), [("nrces", "w", {"w2", "w5"}), ("negative_sampling", "rate", {"rate2", "rate5"})]
)
def test_a_value_is_chosen_on_dev(
    recipe: str, setting: str, stages: set[str], weak: list[Document], tmp_path: Path
) -> None:
    lines: list[str] = []
    settings = [f"try_{setting}=[2.0, 5.0]", "train.epochs=1", "train.budget=128"]
    config = load_config(RECIPES[recipe].Config, settings=settings)
    train(recipe, Splits(weak=weak, dev=demo_corpus().dev[:10]), tmp_path / "a", config, log=lines.append)
    assert {path.name for path in (tmp_path / "a" / "stages").iterdir()} == stages
    assert any(f"with {setting} = 2" in line and f"with {setting} = 5" in line for line in lines)
    lines.clear()
    train(recipe, Splits(weak=weak), tmp_path / "b", config, log=lines.append)
    assert any(f"try_{setting} needs --dev" in line for line in lines)
    assert {path.name for path in (tmp_path / "b" / "stages").iterdir()} == {"train"}, "without dev the value is fixed"


def test_the_best_on_dev_is_kept(tmp_path: Path) -> None:
    models: dict[float, Any] = {0.1: object(), 0.2: object(), 0.3: object()}
    scores = {0.1: [0.5], 0.2: [0.4, 0.7, 0.6], 0.3: [0.6]}
    results = {rate: StageResult(models[rate], [{"dev": {"f1": f1}} for f1 in scores[rate]]) for rate in scores}
    kept = best_on_dev(list(scores), 0.5, lambda rate, _: results[rate], "rate", [], Run(tmp_path, {}))
    assert isinstance(kept, Tagger) and kept.model is models[0.2]


@pytest.mark.parametrize(
    "setting",
    [
        "mu=3.0",
        "temperature=2.0",
        "ablation.margin=all",
        "ablation.weighting=printed",
        "ablation.uniform_epochs=3",
        "ablation.oracle=heldout",
    ],
)
def test_settings_of_another_sampler_are_refused(setting: str) -> None:
    with pytest.raises(ConfigError, match="has no effect together with sampler=uniform"):
        load_config(negative_sampling.Config, settings=[setting])


@pytest.mark.parametrize("recipe", ["negative_sampling", "nrces"])
def test_they_refuse_a_token_head(recipe: str) -> None:
    with pytest.raises(ConfigError, match=r"head\.kind"):
        load_config(RECIPES[recipe].Config, settings=["head.kind=token"])


@pytest.mark.parametrize(
    ("threshold", "with_dev", "expected"), [(0.9, True, 0.9), ("argmax", True, None), ("dev", False, None)]
)
def test_a_threshold_is_kept_with_the_model(
    threshold: float | str, with_dev: bool, expected: float | None, weak: list[Document], tmp_path: Path
) -> None:
    config = load_config(nrces.Config, settings=["train.epochs=1", f"head.threshold={threshold}"])
    train("nrces", Splits(weak=weak, dev=demo_corpus().dev[:5] if with_dev else None), tmp_path, config)
    loaded = load(tmp_path)
    assert isinstance(loaded, Tagger) and loaded.model.head.threshold == expected


@pytest.mark.integration
def test_the_threshold_is_that_of_the_best_epoch(tmp_path: Path) -> None:
    demo = demo_corpus()
    config = load_config(negative_sampling.Config, settings=["train.epochs=6"])
    assert config.head.threshold == "dev"
    splits = Splits(weak=list(corrupt(demo.train[:200], Noise(drop=0.2))), dev=demo.dev[:60])
    trained = train("negative_sampling", splits, tmp_path, config)
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    best = max(row["dev"]["f1"] for row in rows)
    assert best > 0.1
    assert isinstance(trained.tagger, Tagger) and trained.tagger.model.head.threshold in THRESHOLDS
    assert score(demo.dev[:60], trained.tagger.predict(demo.dev[:60])).exact.f1 == pytest.approx(best)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["negative_sampling", "nrces"])
def test_with_lstm_and_without_dev(recipe: str, weak: list[Document], tmp_path: Path) -> None:
    config = load_config(RECIPES[recipe].Config, settings=["encoder.name=lstm", "train.epochs=2"])
    trained = train(recipe, Splits(weak=[replace(doc, complete=False) for doc in weak]), tmp_path, config)
    assert trained.tagger.labels


def test_each_half_is_scored_by_the_model_of_the_other_half(
    weak: list[Document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans, trained_on, scored, parts = spans_of(weak, tmp_path), [], [], []
    prepare, score = negative_sampling.weak_training_set, negative_sampling.score_corpus

    def prepare_half(model: Any, docs: list[Document], lost: Lost) -> WeakTrainingSet:
        trained_on.append({doc.id for doc in docs})
        return prepare(model, docs, lost)

    def score_half(model: Any, features: Any, extract: Any, sentences: np.ndarray) -> torch.Tensor:
        scored.append({weak[document].id for document in spans.as_annotated.sentences.document[sentences]})
        parts.append(score(model, features, extract, sentences))
        return parts[-1]

    monkeypatch.setattr(negative_sampling, "weak_training_set", prepare_half)
    monkeypatch.setattr(negative_sampling, "score_corpus", score_half)
    config = load_config(negative_sampling.Config, settings=["sampler=weighted", "train.epochs=1"])
    held_out = negative_sampling._held_out_weights(spans, weak, config, Run(tmp_path / "run", {"seed": 1}))
    everything = {doc.id for doc in weak}
    assert trained_on[0].isdisjoint(trained_on[1]) and trained_on[0] | trained_on[1] == everything
    assert scored == [everything - half for half in trained_on]
    assert torch.equal(held_out.known, spans.unlabeled) and torch.equal(held_out.weight, parts[0] + parts[1])
    assert not ((parts[0] != 0) & (parts[1] != 0)).any()


def test_a_half_without_labels_is_refused(weak: list[Document], tmp_path: Path) -> None:
    labeled = next(doc for doc in weak if doc.spans)
    config = load_config(
        negative_sampling.Config, settings=["sampler=weighted", "ablation.oracle=heldout", "train.epochs=1"]
    )
    with pytest.raises(TrainingError, match="too few documents"):
        train("negative_sampling", Splits(weak=[labeled]), tmp_path, config)


def test_cross_fitted_weights_train(weak: list[Document], tmp_path: Path) -> None:
    settings = ["sampler=weighted", "ablation.oracle=heldout", "train.epochs=1", "train.budget=128"]
    config = load_config(negative_sampling.Config, settings=settings)
    trained = train("negative_sampling", Splits(weak=weak), tmp_path, config)
    assert trained.tagger.labels
    assert {path.name for path in (tmp_path / "stages").iterdir()} == {"half0", "half1", "train"}
