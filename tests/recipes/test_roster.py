"""RoSTER: label removal and its guard, presets, the files of each stage, and every ablation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lacuner.config import load_config
from lacuner.corpus.words import words_of
from lacuner.data import Document, Lost, Span, Splits
from lacuner.errors import ConfigError, ModelFileError
from lacuner.evaluate import Count
from lacuner.models.storage import load
from lacuner.pretraining.augmentation import MIN_TOP5
from lacuner.pretraining.pretrain import PretrainConfig, pretrain
from lacuner.recipes import roster
from lacuner.recipes.roster import PRESETS, Config
from lacuner.techniques import label_removal
from lacuner.techniques.distillation import distillation_step, soft_label_set
from lacuner.techniques.self_training import sharpen
from lacuner.trainer.train import TrainingResult, train
from lacuner.training import stage
from lacuner.training.dataset import WeakTrainingSet, weak_training_set
from lacuner.training.run_folder import Run
from lacuner.training.stage import new_model
from tests.demo_corpus import demo_corpus

GOLD = demo_corpus().train[:40]
WEAK = [replace(doc, spans=doc.spans[::2], complete=False) for doc in GOLD]
QUICK = ["train.epochs=2", "train.budget=256", "models=2"]


def run_roster(folder: Path, *settings: str, docs: Sequence[Document] = WEAK, log: Any = print) -> TrainingResult:
    torch.set_num_threads(1)
    config = load_config(Config, settings=[*QUICK, *settings])
    return train("roster", Splits(weak=docs), folder, config, log=log)


def stages(folder: Path) -> set[str]:
    return {str(path.parent.relative_to(folder / "stages")) for path in (folder / "stages").rglob("state.json")}


def test_sharpened_labels_equal_numpy() -> None:
    rng = np.random.default_rng(0)
    probs, counted = rng.dirichlet(np.ones(4), size=9), rng.random(9) < 0.7
    mass = probs[counted].sum(axis=0)
    want = probs**2 / mass
    want /= want.sum(axis=1, keepdims=True)
    got = sharpen(torch.from_numpy(probs), torch.from_numpy(counted)).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-12)
    np.testing.assert_allclose(got.sum(axis=1), 1)


def prepare(tmp_path: Path, docs: list[Document], *settings: str) -> tuple[Config, Any, WeakTrainingSet]:
    config = load_config(Config, settings=settings or ["head.kind=entity_type"])
    model = new_model(config, docs, Run(tmp_path, {"seed": 1}))
    return config, model, weak_training_set(model, docs, Lost())


def kept_labels(model: Any, weak: WeakTrainingSet, tau: float, guard: float) -> Any:
    return np.concatenate([part["kept"] for part in label_removal.keep_labels(model, weak, tau, guard)]).tolist()


def test_labels_that_the_model_rejects_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # 0 and 1 are labeled A and B; 2 and 3 are not; 4 is ruled out; 5 is unsure
    text = "aa bb cc dd ee ff"
    doc = Document("1", text, spans=(Span(0, 2, "A"), Span(3, 5, "B")), rejected=(Span(12, 14, ""),))
    doc = replace(doc, unsure=(Span(15, 17, ""),), complete=False)
    config, model, weak = prepare(tmp_path, [doc])
    assert words_of(doc)[4] == (12, 14)
    entity, types = [0.1, 0.1, 0.9, 0.1, 0.99, 0.99], [[0.9, 0.1], [0.9, 0.1], *[[0.5, 0.5]] * 4]
    joint = torch.cat([torch.tensor(entity).unsqueeze(1), torch.tensor(types)], dim=1)
    monkeypatch.setattr(label_removal, "score_parts", lambda *_: iter([(slice(0, 6), joint)]))
    kept = kept_labels(model, weak, config.tau, guard=1.0)
    assert kept == [True, False, False, True, True, True]
    # all of B would be removed, and half of O
    kept = kept_labels(model, weak, config.tau, guard=0.9)
    assert kept == [True, True, False, True, True, True]
    kept = kept_labels(model, weak, config.tau, guard=0.4)
    assert kept == [True] * 6


def test_the_preset_follows_from_the_head_or_the_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(*settings: str) -> dict[str, Any]:
        config = load_config(Config, settings=settings)
        values = {name: getattr(config, name) for name in PRESETS["tokens"] if name != "head"}
        return {**values, "preset": config.preset, "kind": config.head.kind, "threshold": config.head.threshold}

    paper = {"models": 5, "q": 0.7, "tau": 0.7, "guard": 0.9, "drop_unlabeled": 0.5}
    tokens = {**paper, "preset": "tokens", "kind": "entity_type", "threshold": "argmax"}
    tuned = {"models": 3, "q": 0.1, "tau": 0.5, "guard": 0.25, "drop_unlabeled": 0.0}
    spans = {**tuned, "preset": "spans", "kind": "span", "threshold": "dev"}
    assert chosen() == spans
    assert chosen("q=0.7") == {**spans, "q": 0.7}
    assert chosen("head.kind=entity_type") == tokens == chosen("preset=tokens")
    assert chosen("head.kind=span", "tau=0.7") == {**spans, "tau": 0.7}
    monkeypatch.setattr(roster, "names_transformer", lambda name: True)
    assert chosen() == tokens
    assert chosen("preset=spans") == spans
    with pytest.raises(ConfigError, match=r"head\.threshold=0\.3 has no effect together with head\.kind=entity_type"):
        chosen("head.threshold=0.3")


@pytest.mark.parametrize("first", ["head.kind=entity_type", "preset=paper", "preset=spans"])
def test_a_config_survives_being_written_and_read(first: str) -> None:
    config = load_config(Config, settings=[first, "q=0.3", "ablation.removal=false", "train.epochs=3"])
    assert Config.model_validate_json(config.model_dump_json()) == config


def test_the_paper_s_rates_are_a_preset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = load_config(Config, settings=["preset=paper", "models=2", "ablation.removal=false"])
    assert config.head.dropout == 0.1 and config.head.kind == "entity_type" and config.q == config.tau == 0.7
    assert not config.ablation.removal and config.ablation.self_training, "other switches keep their defaults"
    assert load_config(Config, settings=["preset=paper", "train.learning_rate=1e-4"]).train.head_learning_rate == 3e-5
    rates: dict[str, tuple[float, float]] = {}
    batches: set[int | None] = set()
    train_stage = roster.train_stage

    def spy(data: Any, make_step: Any, settings: Any, run: Run, selection: Any, name: str) -> Any:
        rates[name] = settings.learning_rate, settings.head_learning_rate
        batches.add(settings.batch_size)
        return train_stage(data, make_step, settings, run, selection, name)

    monkeypatch.setattr(roster, "train_stage", spy)
    config = config.model_copy(update={"train": config.train.with_epochs(1)})
    train("roster", Splits(weak=WEAK), tmp_path / "run", config, log=lambda _: None)
    assert batches == {32}
    for name, rate in (("robust/1", 3e-5), ("robust/2", 3e-5), ("ensemble", 1e-5), ("self_training", 5e-7)):
        assert rates[name] == pytest.approx((rate, rate)), name


@pytest.mark.integration
@pytest.mark.parametrize("keep_last", [False, True])
def test_dev_may_only_measure_self_training(keep_last: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    correct = iter(range(99, 0, -1))  # on dev, every epoch is worse than the one before
    monkeypatch.setattr(stage.DevScorer, "__call__", lambda self: Count(next(correct), 100, 100))
    settings = ["head.kind=entity_type", "self_epochs=2", f"ablation.keep_last={str(keep_last).lower()}"]
    config = load_config(Config, settings=[*QUICK, *settings])
    trained = train("roster", Splits(weak=WEAK, dev=GOLD[:3]), tmp_path / "run", config, log=lambda _: None)
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert len([row for row in rows if row["stage"] == "self_training" and row["dev"]]) == 2
    ensemble, model = trained.run.stage("ensemble").tensors, load(tmp_path / "run").model
    same = all(torch.equal(weights, ensemble[f"model.{name}"]) for name, weights in model.state_dict().items())
    assert same != keep_last, "dev threw self-training away, or kept its last epoch all the same"


def test_labels_are_removed_span_by_span(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    doc = Document("1", "aa bb cc", spans=(Span(0, 5, "A"), Span(6, 8, "B")), unsure=(), complete=False)
    config, model, weak = prepare(tmp_path, [doc], "head.kind=span", "head.width=2", "guard=1.0", "tau=0.7")
    joint = torch.tensor(
        [[[0.9, 0.5, 0.5], [0.1, 0.6, 0.4]], [[0.1, 0.5, 0.5], [0.4, 0.5, 0.5]], [[0.9, 0.1, 0.9]] * 2]
    )
    monkeypatch.setattr(label_removal, "score_parts", lambda *_: iter([(slice(0, 3), joint)]))
    # "aa" may be an entity, "aa bb" is hardly an A, "bb" is O, "bb cc" may be an entity, "cc" is a B
    assert kept_labels(model, weak, config.tau, config.guard) == [
        [False, False],
        [True, False],
        [True, True],
    ]


@pytest.mark.integration
def test_the_decision_threshold_is_tuned_on_dev(tmp_path: Path) -> None:
    config = load_config(Config, settings=[*QUICK, "train.epochs=3"])
    train("roster", Splits(weak=WEAK, dev=GOLD), tmp_path / "run", config, log=lambda _: None)
    assert 0 < load(tmp_path / "run").model.head.threshold < 1


@pytest.mark.integration
def test_each_model_never_sees_half_of_the_unlabeled_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labeled: list[torch.Tensor] = []
    seen: list[torch.Tensor] = []
    train_stage = roster.train_stage

    def spy(data: Any, make_step: Any, settings: Any, run: Run, selection: Any, name: str) -> Any:
        if name.startswith("robust/"):
            labeled.append(data.targets.labels > 0)
            seen.append(data.targets.known.clone())
        return train_stage(data, make_step, settings, run, selection, name)

    monkeypatch.setattr(roster, "train_stage", spy)
    lines: list[str] = []
    settings = ["head.kind=entity_type", "train.epochs=1", "ablation.self_training=false", "ensemble_epochs=3"]
    run_roster(tmp_path / "run", *settings, log=lines.append)
    assert any(line.startswith("ensemble: epoch 3/3") for line in lines)
    assert len(seen) == 2 and not torch.equal(*seen) and labeled[0].any()
    for known, with_label in zip(seen, labeled, strict=True):
        assert 0.4 < known[~with_label].float().mean() < 0.6 and known[with_label].all()


@pytest.mark.integration
@pytest.mark.parametrize("kind", ["entity_type", "span"])
def test_the_stages_and_the_removed_labels(kind: str, tmp_path: Path) -> None:
    lines: list[str] = []
    settings = [f"head.kind={kind}", "tau=0.6", "q=0.7", "guard=1.0", "removal_after=1"]
    run_roster(tmp_path / "run", *settings, log=lines.append)
    assert stages(tmp_path / "run") == {
        *("robust/1", "robust/1/removed/1", "robust/2", "robust/2/removed/1"),
        *("ensemble", "self_training", "self_training/0"),
    }
    rows = [json.loads(line) for line in (tmp_path / "run" / "removed.jsonl").read_text().splitlines()]
    assert rows and any("label removal left out" in line for line in lines)
    epochs = 4 if kind == "span" else 2
    assert any(line.startswith(f"ensemble: epoch {epochs}/{epochs}") for line in lines), "twice as many for spans"
    assert {row["kind"] for row in rows} <= {"missing", "doubtful"}
    docs = {doc.id: doc for doc in WEAK}
    for row in rows:
        doc = docs[row["document"]]
        assert doc.text[row["start"] : row["end"]] == row["text"]
        assert row["models"] and all(epochs == [2] for epochs in row["models"].values())
        place = (row["start"], row["end"])
        inside = [span for span in doc.spans if span.start <= row["start"] and row["end"] <= span.end]
        same = [span for span in inside if (span.start, span.end) == place]
        labeled = same if kind == "span" else inside
        assert [span.label for span in labeled] == ([row["label"]] if row["kind"] == "doubtful" else [])
    assert sum("augmentation is off: the encoder has no masked-LM head" in line for line in lines) == 1
    assert load(tmp_path / "run").labels


@pytest.mark.parametrize(
    ("setting", "missing", "there"),
    [
        ("ablation.removal=false", {"robust/1/removed/1"}, {"robust/2", "ensemble", "self_training"}),
        ("ablation.ensemble=false", {"robust/2", "ensemble"}, {"robust/1", "self_training"}),
        ("ablation.self_training=false", {"self_training", "self_training/0"}, {"robust/2", "ensemble"}),
    ],
)
@pytest.mark.integration
def test_ablated_stages_are_not_trained(setting: str, missing: set[str], there: set[str], tmp_path: Path) -> None:
    run_roster(tmp_path / "run", setting)
    found = stages(tmp_path / "run")
    assert not found & missing and there <= found


def test_with_q_0_the_loss_is_cross_entropy(tmp_path: Path) -> None:
    settings = ["ablation.self_training=false", "ablation.ensemble=false", "train.epochs=1"]
    run_roster(tmp_path / "run", "q=0", *settings)
    [row] = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    run_roster(tmp_path / "gce", "q=0.7", *settings)
    [other] = [json.loads(line) for line in (tmp_path / "gce" / "metrics.jsonl").read_text().splitlines()]
    assert row["loss"] > other["loss"], "p < 1 costs more in cross-entropy"


def test_each_epoch_has_new_augmented_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretrain(GOLD, tmp_path / "pre", load_config(PretrainConfig, settings=["train.epochs=1", "held_out=0.2"]))
    drawn: list[list[list[str]]] = []
    made = roster.augment_sentences

    def spy(*args: Any) -> Any:
        augmenter = made(*args)
        assert augmenter is not None
        draw = augmenter.draw

        class Spy:
            def draw(self, rate: float) -> list[list[str]]:
                drawn.append(draw(rate))
                return drawn[-1]

        return Spy()

    monkeypatch.setattr(roster, "augment_sentences", spy)
    settings = [f'encoder.name="run:{tmp_path / "pre"}"', "self_epochs=2", "train.epochs=1"]
    run_roster(tmp_path / "run", *settings, "ablation.least_top5=0")
    assert len(drawn) == 2 and drawn[0] != drawn[1]
    lines: list[str] = []
    monkeypatch.setattr(roster, "augment_sentences", made)
    run_roster(tmp_path / "off", *settings, "ablation.least_top5=1.0", log=lines.append)
    assert sum("augmentation is off: its top-5 accuracy" in line for line in lines) == 1
    run_roster(tmp_path / "without", *settings, "ablation.augmentation=false", log=lines.append)
    assert sum("augmentation is off" in line for line in lines) == 1, "it was not asked for"


def soft_data(folder: Path, weight: torch.Tensor) -> Any:
    """One sentence of three words with soft labels of two types, and a model without dropout."""
    doc = Document("1", "aa bb cc", spans=(Span(0, 2, "A"), Span(3, 5, "B")), complete=False)
    _, model, weak = prepare(folder, [doc])
    probs = torch.tensor([[0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.9, 0.05, 0.05]])
    data = soft_label_set(weak.as_complete, model.eval(), probs)
    data.targets.weight = weight
    return data, probs


def test_the_type_loss_is_weighted(tmp_path: Path) -> None:
    weight = torch.tensor([1.0, 0.5, 0.0])
    data, probs = soft_data(tmp_path / "run", weight)
    found = distillation_step(data)(np.array([0]))
    with torch.no_grad():
        scores = data.model(data.batch(np.array([0]))[0])
    inside, types = scores.entity[0].sigmoid().numpy(), scores.types[0].softmax(-1).numpy()
    want = 1 - probs[:, 0].numpy()
    entity = -(want * np.log(inside) + (1 - want) * np.log(1 - inside)).mean()
    shares = (probs[:, 1:] / probs[:, 1:].sum(-1, keepdim=True)).numpy()
    divergence = (shares * (np.log(shares) - np.log(types))).sum(-1)
    assert float(found.total.detach()) == pytest.approx(
        3 * (entity + (weight.numpy() * divergence).sum() / 1.5), rel=1e-4
    )


def test_augmented_sentences_count_where_the_predicted_type_is_the_same(tmp_path: Path) -> None:
    data, _ = soft_data(tmp_path / "run", torch.tensor([1.0, 1.0, 0.0]))
    one = np.array([0])
    plain = float(distillation_step(data)(one).total.detach())
    again = float(distillation_step(data, data.features)(one).total.detach())
    entity_only = replace(data, targets=replace(data.targets, weight=torch.zeros(3)))
    alone = float(distillation_step(entity_only)(one).total.detach())
    assert again - plain == pytest.approx(plain - alone, rel=1e-4), "an equal sentence counts once more, types only"
    with torch.no_grad():
        model, (batch, _) = data.model, data.batch(one)
        guess = model(batch).types[0].argmax(-1)
        other = model.encoder.prepare([["cc", "aa", "bb"]])
        agree = model(model.encoder.collate(other, one)).types[0].argmax(-1) == guess
    found = float(distillation_step(data, other)(one).total.detach())
    assert (found > plain) == bool(agree[:2].any()), "where the predictions differ, nothing is learned"


@pytest.mark.parametrize(("kind", "confident"), [("span", "1.0"), ("entity_type", "0.0")])
def test_where_types_are_learned(kind: str, confident: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []
    made = roster.distillation_step

    def spy(data: Any, *more: Any) -> Any:
        targets = data.targets.collate(np.arange(len(data.targets.offsets) - 1))
        seen.append((targets.weight, targets.probs))
        return made(data, *more)

    monkeypatch.setattr(roster, "distillation_step", spy)
    run_roster(tmp_path / "run", f"head.kind={kind}", f"ablation.confident={confident}", "train.epochs=1")
    (weight, probs), (sharp, _) = seen[0], seen[-1]
    assert torch.equal(weight, 1 - probs[..., 0] if kind == "span" else torch.ones_like(weight))
    assert not sharp.any() if confident == "1.0" else sharp.any()


def test_settings_can_be_read_without_the_run_of_the_encoder(tmp_path: Path) -> None:
    config = load_config(Config, settings=[f'encoder.name="run:{tmp_path / "missing"}"'])
    assert config.preset == "spans"
    with pytest.raises(ModelFileError):
        train("roster", Splits(weak=WEAK), tmp_path / "run", config)


def test_the_docstring_has_the_limit_of_augmentation() -> None:
    text = " ".join((roster.__doc__ or "").split())
    assert f"top-5 accuracy on these texts is at least {100 * MIN_TOP5:.0f} %" in text
