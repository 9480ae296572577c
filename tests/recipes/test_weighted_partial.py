"""The weighted partial CRF: tag distributions, the models they come from, and the words that have one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch

from lacuner.config import load_config
from lacuner.corpus.words import words_of
from lacuner.data import Document, Lost, Span, Splits
from lacuner.errors import TrainingError
from lacuner.models.heads.crf import viterbi
from lacuner.models.types import Targets
from lacuner.noise import Noise, corrupt
from lacuner.recipes import weighted_partial
from lacuner.trainer.train import train
from lacuner.training.dataset import WeakTrainingSet, weak_training_set
from lacuner.training.run_folder import Run
from lacuner.training.stage import new_model
from tests.demo_corpus import demo_corpus

QUICK = ["train.epochs=2", "train.budget=256"]


@pytest.fixture
def weak() -> list[Document]:
    torch.set_num_threads(1)
    return list(corrupt(demo_corpus().train[:30], Noise(drop=0.5)))


@pytest.fixture
def weak_set(weak: list[Document], tmp_path: Path) -> WeakTrainingSet:
    config = weighted_partial.Config()
    model = new_model(config, weak, Run(tmp_path / "new", {"seed": 1}))
    prepared = weak_training_set(model, weak, Lost())
    prepared.as_complete.targets.known &= ~prepared.unlabeled
    return prepared


@pytest.mark.parametrize("weights", ["soft", "hard"])
def test_tag_distributions_agree_with_the_labels(weights: Literal["soft", "hard"], weak_set: WeakTrainingSet) -> None:
    data = weak_set.as_complete
    mine = np.array([1, 4, 7])
    row = weighted_partial.tag_distributions(data, mine, weights)
    inside = np.repeat(np.isin(np.arange(len(data.features)), mine), data.features.lengths)
    assert torch.allclose(row.sum(-1), torch.from_numpy(inside).float(), atol=1e-5), "zeros in other sentences"
    labeled = torch.from_numpy(inside) & weak_set.labeled
    assert labeled.any()
    own = row[labeled].gather(1, data.targets.labels[labeled].long()[:, None])
    assert torch.allclose(own, torch.ones_like(own), atol=1e-5)
    if weights == "hard":
        assert set(row.unique().tolist()) == {0.0, 1.0}
        free = [i for i in mine if not weak_set.labeled[slice(*data.targets.offsets[i : i + 2])].any()]
        data.model.eval()
        for i in free:  # without labels it is the best path of the sentence
            start = int(data.features.lengths[:i].sum())
            path = viterbi(data.model(data.model.encoder.collate(data.features, [int(i)])))[0]
            assert row[start : start + len(path)].argmax(-1).tolist() == path.tolist()


def test_a_fold_is_predicted_by_a_model_that_has_not_seen_it(
    weak: list[Document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained_on: dict[str, set[int]] = {}
    predicted: dict[int, set[int]] = {}
    train_stage, distributions = weighted_partial.train_stage, weighted_partial.tag_distributions

    def spy(data: Any, make_step: Any, train: Any, run: Any, selection: Any, name: str) -> Any:
        seen = trained_on.setdefault(name, set())

        def remember(epoch: int) -> Any:
            step = make_step(epoch)
            return lambda indices: seen.update(indices.tolist()) or step(indices)

        return train_stage(data, remember, train, run, selection, name)

    def watched(data: Any, sentences: Any, weights: Any) -> Any:
        predicted[len(predicted)] = set(sentences.tolist())
        return distributions(data, sentences, weights)

    monkeypatch.setattr(weighted_partial, "train_stage", spy)
    monkeypatch.setattr(weighted_partial, "tag_distributions", watched)
    config = load_config(weighted_partial.Config, settings=[*QUICK, "iterations=2"])
    weighted_partial.train(Splits(weak=weak), config, Run(tmp_path, {"seed": 1}))
    assert list(trained_on) == ["fold/1/1", "fold/1/2", "fold/2/1", "fold/2/2", "train"]
    everything = set(range(30))
    assert trained_on["train"] == everything
    for number, name in enumerate(list(trained_on)[:4]):
        assert trained_on[name] | predicted[number] == everything and not trained_on[name] & predicted[number]


def test_only_unlabeled_words_have_a_distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docs = []
    for name in ("Mara", "Nora", "Vera", "Zora"):  # copies of a text would share a fold
        doc = Document(name, f"{name} met nobody in Halden")
        first_word, second_word, *_, last_word = (Span(*edges, "") for edges in words_of(doc))
        labels = {"spans": (first_word._replace(label="X"),), "rejected": (second_word,), "unsure": (last_word,)}
        docs.append(replace(doc, **labels, complete=False))
    seen: list[Targets] = []
    loss = weighted_partial.weighted_crf_loss
    monkeypatch.setattr(weighted_partial, "weighted_crf_loss", lambda scores, t: seen.append(t) or loss(scores, t))
    config = load_config(weighted_partial.Config, settings=QUICK)
    weighted_partial.train(Splits(weak=docs), config, Run(tmp_path, {"seed": 1}))
    for targets in seen:
        assert targets.probs is not None
        weighed = targets.probs.sum(-1)
        assert torch.allclose(weighed, torch.tensor([0.0, 0, 1, 1, 0]).expand_as(weighed), atol=1e-5)
        assert targets.known.tolist() == [[True, True, False, False, False]] * len(targets.known)
    first, last = seen[0].probs, seen[-1].probs
    assert first is not None and last is not None
    assert (first[:, 2, 0] == 1).all(), "O at first"
    assert (last[:, 2, 0] < 1).all(), "then the predictions of the other fold"


def test_copies_of_one_text_cannot_be_cross_fitted(tmp_path: Path) -> None:
    doc = Document("1", "Mara left", spans=(Span(0, 4, "PERSON"),), complete=False)
    config = load_config(weighted_partial.Config, settings=["train.epochs=1"])
    with pytest.raises(TrainingError, match="different texts"):
        train("weighted_partial", Splits(weak=[doc, replace(doc, id="2")]), tmp_path, config)
