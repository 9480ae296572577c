"""The soft labels of the last model: the members' mean where nothing is labeled, the labels elsewhere."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from lacuner.advice.entity_ratio import entity_ratio
from lacuner.config import load_config
from lacuner.data import Document, Lost, Span, Splits, labels_of
from lacuner.noise import Noise, corrupt
from lacuner.recipes import ensemble
from lacuner.training import parallel
from lacuner.training.dataset import weak_training_set
from lacuner.training.run_folder import Run
from lacuner.training.stage import new_model
from tests.demo_corpus import demo_corpus

TEXT = "Ada met Bo in Cork"
FAST = ("train.epochs=2", "train.budget=256", "models=2", "encoder.name=tiny")


def run_ensemble(folder: Path, *settings: str) -> tuple[ensemble.Tagger, list[str]]:
    lines: list[str] = []
    weak = list(corrupt(demo_corpus().train[:60], Noise(drop=0.5)))
    config = load_config(ensemble.Config, settings=[*FAST, *settings])
    return ensemble.train(Splits(weak=weak), config, Run(folder, {"seed": 1}, lines.append)), lines


def test_annotations_are_not_overruled(tmp_path: Path) -> None:
    weak = Document("1", TEXT, spans=(Span(0, 3, "P"),), unsure=(Span(8, 10, ""),), rejected=(Span(14, 18, ""),))
    whole = Document("2", TEXT, spans=(Span(0, 3, "P"),), complete=True)
    config = load_config(ensemble.Config)
    model = new_model(config, [weak, whole], Run(tmp_path, {"seed": 1}))
    data = weak_training_set(model, [weak, whole], Lost())
    known = data.as_complete.targets.known
    mean = torch.full((*known.shape, 2), 0.5)
    probs = ensemble.soft_labels(data, mean, None)
    assert probs[0, 0].tolist() == [0.0, 1.0], "a label stays a label"
    assert probs[1, 0].tolist() == [0.5, 0.5], "an unlabeled span gets the mean of the members"
    assert probs[4, 0].tolist() == [1.0, 0.0], "what was ruled out stays ruled out"
    assert not known[2, 0], "an unsure span is not trained on"
    assert probs[6, 0].tolist() == [1.0, 0.0], "a complete document has no unlabeled span"
    fewer = ensemble.soft_labels(data, mean, 0.2)
    assert fewer[0, 0].tolist() == [0.0, 1.0] and 0 < fewer[1, 0, 1] < 0.2, "as if a fifth of an entity were missing"


@pytest.mark.integration
def test_the_last_model_is_trained_on_the_mean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    members: list[torch.Tensor] = []
    targets: list[torch.Tensor] = []
    score_corpus, soft_label_set = ensemble.score_corpus, ensemble.soft_label_set

    def spy_scores(*args):  # type: ignore[no-untyped-def]
        members.append(score_corpus(*args))
        return members[-1]

    def spy_labels(data, model, probs, **more):  # type: ignore[no-untyped-def]
        targets.append(probs)
        return soft_label_set(data, model, probs, **more)

    monkeypatch.setattr(ensemble, "score_corpus", spy_scores)
    monkeypatch.setattr(ensemble, "soft_label_set", spy_labels)
    run_ensemble(tmp_path / "run", "models=3", "scale=false")
    assert len(members) == 3 and not torch.equal(members[0], members[1]), "they differ in weights and negatives"
    unlabeled = ((targets[0] > 0).all(dim=-1)).nonzero(as_tuple=True)
    assert len(unlabeled[0]) > 100
    torch.testing.assert_close(targets[0][unlabeled], (members[0] + members[1] + members[2])[unlabeled] / 3)


@pytest.mark.parametrize("missing", [0.0, 3.0, 400.0, 900.0])
def test_probabilities_are_scaled_to_the_number_of_missing_entities(missing: float) -> None:
    rng = np.random.default_rng(4)
    probs = torch.from_numpy(rng.dirichlet([5, 1, 1], size=1_000))
    got = ensemble.scale_to_count(probs, missing)
    assert float((1 - got[:, 0]).sum()) == pytest.approx(missing, abs=1e-3)
    torch.testing.assert_close(got.sum(dim=-1), torch.ones(1_000, dtype=torch.float64))
    types = probs[:, 1] / probs[:, 1:].sum(dim=-1)
    some = got[:, 0] < 1 - 1e-6
    torch.testing.assert_close((got[:, 1] / got[:, 1:].sum(dim=-1))[some], types[some], msg="types are what they were")
    factor = (1 - got[:, 0]) / ((1 - probs[:, 0]) / probs[:, 0])
    assert missing == 0 or float(factor[(got[:, 0] > 1e-9) & some].std()) < 1e-9, "one number for all"


def test_more_entities_missing_than_spans() -> None:
    probs = torch.tensor([[0.9, 0.1], [0.5, 0.5]])
    assert ensemble.scale_to_count(probs, 5.0)[:, 0].tolist() == [0.0, 0.0]
    assert ensemble.scale_to_count(probs[:0], 5.0).shape == (0, 2)


def test_missing_entities_are_estimated_from_dev() -> None:
    demo = demo_corpus()
    weak = list(corrupt(demo.train, Noise(drop=0.5)))
    missing = sum(len(doc.spans) for doc in demo.train) - sum(len(doc.spans) for doc in weak)
    assert ensemble.missing_entities(Splits(weak=weak, dev=demo.dev)) == pytest.approx(missing, rel=0.1)
    assert ensemble.missing_entities(Splits(weak=weak, dev=demo.dev[:10])) is None
    assert ensemble.missing_entities(Splits(weak=weak)) is None
    foreign = [Document(doc.id, doc.text, spans=(*doc.spans, Span(0, 1, "ONLY_WEAK"))) for doc in weak]
    assert ensemble.missing_entities(Splits(weak=foreign, dev=demo.dev)) == pytest.approx(missing, rel=0.1), (
        "dev says nothing about labels that it lacks"
    )


def test_a_known_entity_ratio_replaces_the_estimates() -> None:
    demo = demo_corpus()
    weak, labels = list(corrupt(demo.train, Noise(drop=0.5))), labels_of(demo.train)
    missing = sum(len(doc.spans) for doc in demo.train) - sum(len(doc.spans) for doc in weak)
    config = load_config(ensemble.Config, settings=[f"entity_ratio={entity_ratio(demo.train, labels)}"])
    log: list[str] = []
    for dev in (None, demo.dev):
        count = ensemble.estimate_missing_entities(Splits(weak=weak, dev=dev), config, None, log.append)
        assert count == pytest.approx(missing, rel=0.05)
    assert "entities are unlabeled, estimated from the entity ratio" in log[0] and log[0] == log[1]
    assert ensemble.estimate_missing_entities(Splits(weak=weak), ensemble.Config(), None, log.append) is None
    assert "entity_ratio" not in ensemble.Config().model_dump(), "runs of earlier versions stay the same runs"


@pytest.mark.integration
def test_parallel_members_are_the_same_as_in_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = {}
    for count in (1, 2):
        monkeypatch.setattr(parallel.torch, "get_num_threads", lambda count=count: count)
        lines[count] = run_ensemble(tmp_path / str(count))[1]
        monkeypatch.undo()
    assert any("2 models, 2 at a time" in line for line in lines[2])
    assert not any("at a time" in line for line in lines[1])
    one, two = (
        {p.relative_to(f): p.read_bytes() for p in sorted(f.rglob("*.safetensors"))}
        for f in (tmp_path / "1", tmp_path / "2")
    )
    assert one == two and len(one) >= 3


@pytest.mark.integration
def test_metrics_are_in_order_if_a_killed_process_has_trained_the_first_member(tmp_path: Path) -> None:
    run_ensemble(tmp_path / "whole", "last_epochs=1")
    shutil.copytree(tmp_path / "whole/stages/models/0", tmp_path / "killed/stages/models/0")
    assert any("stage 2 of 3" in line for line in run_ensemble(tmp_path / "killed", "last_epochs=1")[1])
    whole, killed = ((tmp_path / name / "metrics.jsonl").read_text() for name in ("whole", "killed"))
    assert killed == whole


@pytest.mark.integration
def test_without_dev_the_decision_threshold_is_low(tmp_path: Path) -> None:
    for name, settings, threshold in (
        ("plain", ("hide=false",), 0.2),
        ("own", ("lenient=0.4", "hide=false"), 0.4),
        ("argmax", ("head.threshold=argmax",), None),
        ("said", ("head.threshold=0.7",), 0.7),
    ):
        assert run_ensemble(tmp_path / name, *settings)[0].model.head.threshold == threshold


@pytest.mark.integration
def test_if_hidden_names_tell_too_little_only_probable_predictions_are_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 50 sentences and a threshold of 0.2, model and gazetteer together were worse than the gazetteer alone."""
    monkeypatch.setattr("lacuner.techniques.hidden_entries.MIN_HIDDEN", 10_000)
    tagger, lines = run_ensemble(tmp_path / "run")
    assert tagger.model.head.threshold == 0.5
    assert "ensemble: decision threshold 0.500: the models find too few hidden names to choose another" in lines


@pytest.mark.parametrize(
    ("count", "threshold"), [(0, 0.9), (0.4, 0.9), (1, 0.9), (2, 0.3), (3.2, 0.2), (4, 0.02), (9, 0.02)]
)
def test_the_threshold_gives_as_many_new_entities(count: float, threshold: float) -> None:
    """No missing entity means no new one: the threshold must not be the lowest."""
    doc = Document("1", TEXT, spans=(Span(0, 3, "P"),), unsure=(Span(4, 7, ""),))
    scores = {0: 0.99, 4: 0.95, 8: 0.3, 9: 0.9, 11: 0.2, 14: 0.01}
    predicted = Document("1", TEXT, spans=tuple(Span(start, start + 1, "P", score) for start, score in scores.items()))
    assert ensemble.match_count([doc], [predicted], count) == threshold
    assert ensemble.match_count([doc], [doc], count) == 0.5, "nothing new is predicted"


@pytest.mark.integration
def test_the_last_model_has_twice_as_many_epochs(tmp_path: Path) -> None:
    for settings, epochs in (((), 4), (("last_epochs=1",), 1)):
        lines = run_ensemble(tmp_path / str(epochs), *settings)[1]
        assert any(f"train: epoch {epochs}/{epochs}" in line for line in lines), lines
