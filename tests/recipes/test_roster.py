"""RoSTER: what is left out, what is guarded, what the stages leave behind, and every part that can be switched off."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lacuner.config import load_config
from lacuner.corpus.words import words_of
from lacuner.data import Document, Lost, Span, Splits
from lacuner.errors import ConfigError
from lacuner.models.config import EntityTypeHeadConfig
from lacuner.models.storage import load
from lacuner.pretraining.pretrain import PretrainConfig, pretrain
from lacuner.recipes import noise_robust, roster
from lacuner.recipes.roster import SPANS, WORDS, Config, suited
from lacuner.techniques.self_training import sharpen
from lacuner.trainer.train import Trained, train
from lacuner.training.dataset import Believed, believed_set
from lacuner.training.run_folder import Run
from lacuner.training.stage import new_model
from tests.demo_corpus import demo_corpus

GOLD = demo_corpus().train[:40]
WEAK = [replace(doc, spans=doc.spans[::2], complete=False) for doc in GOLD]
QUICK = ["train.epochs=2", "train.budget=256", "models=2"]


def run_roster(folder: Path, *settings: str, docs: list[Document] = WEAK, say: Any = print) -> Trained:
    torch.set_num_threads(1)
    config = load_config(Config, settings=[*QUICK, *settings])
    return train("roster", Splits(weak=docs), folder, config, say=say)


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


def believed(tmp_path: Path, docs: list[Document]) -> tuple[Any, Believed]:
    config = suited(Config(head=EntityTypeHeadConfig()), docs)
    model = new_model(config.encoder, config.head, docs, Run(tmp_path, {"seed": 1}))
    return model, believed_set(model, docs, Lost())


def opinion(weak: Believed, inside: list[float], types: list[list[float]]) -> torch.Tensor:
    return torch.cat([torch.tensor(inside).unsqueeze(1), torch.tensor(types)], dim=1)


def test_what_the_model_does_not_believe_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # 0 and 1 are labelled A and B; 2 and 3 are not; 4 is ruled out; 5 is unsure
    text = "aa bb cc dd ee ff"
    doc = Document("1", text, spans=(Span(0, 2, "A"), Span(3, 5, "B")), rejected=(Span(12, 14, ""),))
    doc = replace(doc, unsure=(Span(15, 17, ""),), complete=False)
    model, weak = believed(tmp_path, [doc])
    assert words_of(doc)[4] == (12, 14)
    joint = opinion(weak, [0.1, 0.1, 0.9, 0.1, 0.99, 0.99], [[0.9, 0.1], [0.9, 0.1], *[[0.5, 0.5]] * 4])
    monkeypatch.setattr(noise_robust, "score_corpus", lambda *_: joint)
    words = suited(Config(head=EntityTypeHeadConfig()), [doc])
    kept = noise_robust.kept_words(model, weak, words.model_copy(update={"guard": 1.0})).tolist()
    assert kept == [True, False, False, True, True, True]
    # of B all would be lost, of O half
    kept = noise_robust.kept_words(model, weak, words.model_copy(update={"guard": 0.9})).tolist()
    assert kept == [True, True, False, True, True, True]
    kept = noise_robust.kept_words(model, weak, words.model_copy(update={"guard": 0.4})).tolist()
    assert kept == [True] * 6


def test_what_is_not_said_follows_from_the_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(*settings: str) -> dict[str, Any]:
        config = suited(load_config(Config, settings=["train.epochs=5", *settings]), WEAK)
        found = {name: getattr(config, name) for name in WORDS}
        return {**found, "kind": config.head.kind, "epochs": config.ensemble_epochs}

    words = {**WORDS, "kind": "entity_type", "epochs": 5}
    spans = {**SPANS, "kind": "span", "epochs": 10}
    assert chosen() == spans
    assert chosen("q=0.7", "ensemble_epochs=3") == {**spans, "q": 0.7, "epochs": 3}
    assert chosen("head.kind=entity_type") == words
    assert chosen("head.kind=span", "tau=0.7") == {**spans, "tau": 0.7}
    monkeypatch.setattr(roster, "is_transformer", lambda config: True)
    assert chosen() == words
    with pytest.raises(ConfigError, match=r"head\.threshold=0\.3 has no effect together with head\.kind=entity_type"):
        chosen("head.threshold=0.3")


def test_spans_are_doubted_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    doc = Document("1", "aa bb cc", spans=(Span(0, 5, "A"), Span(6, 8, "B")), unsure=(), complete=False)
    config = suited(load_config(Config, settings=["head.kind=span", "head.width=2", "guard=1.0", "tau=0.7"]), [doc])
    model = new_model(config.encoder, config.head, [doc], Run(tmp_path, {"seed": 1}))
    weak = believed_set(model, [doc], Lost())
    joint = torch.tensor(
        [[[0.9, 0.5, 0.5], [0.1, 0.6, 0.4]], [[0.1, 0.5, 0.5], [0.4, 0.5, 0.5]], [[0.9, 0.1, 0.9]] * 2]
    )
    monkeypatch.setattr(noise_robust, "score_corpus", lambda *_: joint)
    # "aa" may be an entity, "aa bb" is hardly an A, "bb" is nothing, "bb cc" may be something, "cc" is a B
    assert noise_robust.kept_words(model, weak, config).tolist() == [[False, False], [True, False], [True, True]]


@pytest.mark.integration
def test_a_threshold_is_chosen_on_dev(tmp_path: Path) -> None:
    config = load_config(Config, settings=[*QUICK, "train.epochs=3"])
    train("roster", Splits(weak=WEAK, dev=GOLD), tmp_path / "run", config, say=lambda _: None)
    assert 0 < load(tmp_path / "run").model.head.threshold < 1


def test_half_of_the_unlabelled_words_are_never_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labelled: list[torch.Tensor] = []
    seen: list[torch.Tensor] = []
    made = noise_robust._step

    def spy(data: Any, q: float) -> Any:
        labelled.append(data.targets.labels > 0)
        seen.append(data.targets.known.clone())
        return made(data, q)

    monkeypatch.setattr(noise_robust, "_step", spy)
    run_roster(tmp_path / "run", "head.kind=entity_type", "train.epochs=1", "self_training=false", "ensemble_epochs=1")
    assert len(seen) == 2 and not torch.equal(*seen) and labelled[0].any()
    for known, mine in zip(seen, labelled, strict=True):
        assert 0.4 < known[~mine].float().mean() < 0.6 and known[mine].all()


@pytest.mark.integration
@pytest.mark.parametrize("kind", ["entity_type", "span"])
def test_the_stages_and_what_was_left_out(kind: str, tmp_path: Path) -> None:
    said: list[str] = []
    run_roster(
        tmp_path / "run", f"head.kind={kind}", "tau=0.6", "q=0.7", "guard=1.0", "removal_after=1", say=said.append
    )
    assert stages(tmp_path / "run") == {
        *("robust/1", "robust/1/removed/1", "robust/2", "robust/2/removed/1"),
        *("ensemble", "self_training", "self_training/0"),
    }
    rows = [json.loads(line) for line in (tmp_path / "run" / "removed.jsonl").read_text().splitlines()]
    assert rows and any("spans were left out" in line for line in said)
    assert {row["kind"] for row in rows} <= {"missing", "doubtful"}
    docs = {doc.id: doc for doc in WEAK}
    for row in rows:
        doc = docs[row["document"]]
        assert doc.text[row["start"] : row["end"]] == row["text"]
        assert row["models"] and all(epochs == [2] for epochs in row["models"].values())
        place = (row["start"], row["end"])
        inside = [span for span in doc.spans if span.start <= row["start"] and row["end"] <= span.end]
        same = [span for span in inside if (span.start, span.end) == place]
        labelled = same if kind == "span" else inside
        assert [span.label for span in labelled] == ([row["label"]] if row["kind"] == "doubtful" else [])
    assert sum("augmentation is off: the encoder has no masked-word head" in line for line in said) == 1
    assert load(tmp_path / "run").labels


@pytest.mark.parametrize(
    ("setting", "missing", "there"),
    [
        ("removal=false", {"robust/1/removed/1"}, {"robust/2", "ensemble", "self_training"}),
        ("ensemble=false", {"robust/2", "ensemble"}, {"robust/1", "self_training"}),
        ("self_training=false", {"self_training", "self_training/0"}, {"robust/2", "ensemble"}),
    ],
)
@pytest.mark.integration
def test_parts_that_are_switched_off(setting: str, missing: set[str], there: set[str], tmp_path: Path) -> None:
    run_roster(tmp_path / "run", setting)
    found = stages(tmp_path / "run")
    assert not found & missing and there <= found


def test_without_generalised_cross_entropy_it_is_cross_entropy(tmp_path: Path) -> None:
    run_roster(tmp_path / "run", "q=0", "self_training=false", "ensemble=false", "train.epochs=1")
    [row] = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    run_roster(tmp_path / "gce", "q=0.7", "self_training=false", "ensemble=false", "train.epochs=1")
    [other] = [json.loads(line) for line in (tmp_path / "gce" / "metrics.jsonl").read_text().splitlines()]
    assert row["loss"] > other["loss"], "p < 1 costs more in cross entropy"


def test_sentences_are_said_otherwise_in_each_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretrain(GOLD, tmp_path / "pre", load_config(PretrainConfig, settings=["train.epochs=1", "held_out=0.2"]))
    drawn: list[list[list[str]]] = []
    made = roster.augmenter_for

    def spy(*args: Any) -> Any:
        found = made(*args)
        assert found is not None
        draw = found.draw

        class Spy:
            def draw(self, rate: float) -> list[list[str]]:
                drawn.append(draw(rate))
                return drawn[-1]

        return Spy()

    monkeypatch.setattr(roster, "augmenter_for", spy)
    settings = [f'encoder.name="run:{tmp_path / "pre"}"', "self_epochs=2", "train.epochs=1"]
    run_roster(tmp_path / "run", *settings, "least_top5=0")
    assert len(drawn) == 2 and drawn[0] != drawn[1]
    said: list[str] = []
    monkeypatch.setattr(roster, "augmenter_for", made)
    run_roster(tmp_path / "off", *settings, "least_top5=1.0", say=said.append)
    assert sum("augmentation is off: a hidden word" in line for line in said) == 1
    run_roster(tmp_path / "without", *settings, "augmentation=false", say=said.append)
    assert sum("augmentation is off" in line for line in said) == 1, "nobody asked for it"


def soft_data(folder: Path, weight: torch.Tensor) -> Any:
    """One sentence of three words with soft labels of two types, and a model that always says the same of it."""
    doc = Document("1", "aa bb cc", spans=(Span(0, 2, "A"), Span(3, 5, "B")), complete=False)
    model, weak = believed(folder, [doc])
    probs = torch.tensor([[0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.9, 0.05, 0.05]])
    task = noise_robust.Task([doc], None, weak, None)  # type: ignore[arg-type]
    data = roster.soft_set(task.weak.data, model.eval(), probs)
    data.targets.weight = weight
    return data, probs


def test_soft_labels_count_as_much_as_they_weigh(tmp_path: Path) -> None:
    weight = torch.tensor([1.0, 0.5, 0.0])
    data, probs = soft_data(tmp_path / "run", weight)
    found = roster.soft_step(data)(np.array([0]))
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


def test_sentences_said_otherwise_count_where_the_guess_is_the_same(tmp_path: Path) -> None:
    data, _ = soft_data(tmp_path / "run", torch.tensor([1.0, 1.0, 0.0]))
    one = np.array([0])
    plain = float(roster.soft_step(data)(one).total.detach())
    again = float(roster.soft_step(data, data.features)(one).total.detach())
    entity_only = replace(data, targets=replace(data.targets, weight=torch.zeros(3)))
    alone = float(roster.soft_step(entity_only)(one).total.detach())
    assert again - plain == pytest.approx(plain - alone, rel=1e-4), "said the same, it counts once more, types only"
    with torch.no_grad():
        model, (batch, _) = data.model, data.batch(one)
        guess = model(batch).types[0].argmax(-1)
        other = model.encoder.prepare([["cc", "aa", "bb"]])
        agree = model(model.encoder.collate(other, one)).types[0].argmax(-1) == guess
    found = float(roster.soft_step(data, other)(one).total.detach())
    assert (found > plain) == bool(agree[:2].any()), "where it guesses otherwise, it learns nothing from it"


@pytest.mark.parametrize(("weigh", "confident"), [("true", "1.0"), ("false", "0.0")])
def test_where_types_are_learned(weigh: str, confident: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []
    made = roster.soft_step

    def spy(data: Any, *more: Any) -> Any:
        seen.append((data.targets.weight.clone(), data.targets.probs.clone()))
        return made(data, *more)

    monkeypatch.setattr(roster, "soft_step", spy)
    run_roster(tmp_path / "run", f"weigh_types={weigh}", f"confident={confident}", "train.epochs=1")
    (weight, probs), (sharp, _) = seen[0], seen[-1]
    assert torch.equal(weight, 1 - probs[..., 0] if weigh == "true" else torch.ones_like(weight))
    assert not sharp.any() if confident == "1.0" else sharp.any()
