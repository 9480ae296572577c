"""The weighted partial CRF: what is guessed, by whom, and of which words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch

from lacuner.config import load_config
from lacuner.data import Document, Lost, Span, Splits
from lacuner.models.heads.crf import viterbi
from lacuner.models.types import Targets
from lacuner.noise import Noise, corrupt
from lacuner.recipes import weighted_partial
from lacuner.training.dataset import Believed, believed_set
from lacuner.training.run_folder import Run
from lacuner.training.stage import new_model
from tests.demo_corpus import demo_corpus

QUICK = ["train.epochs=2", "train.budget=256"]


@pytest.fixture
def weak() -> list[Document]:
    torch.set_num_threads(1)
    return list(corrupt(demo_corpus().train[:30], Noise(drop=0.5)))


@pytest.fixture
def believed(weak: list[Document], tmp_path: Path) -> Believed:
    config = weighted_partial.Config()
    model = new_model(config.encoder, config.head, weak, Run(tmp_path / "new", {"seed": 1}))
    found = believed_set(model, weak, Lost())
    found.data.targets.known &= ~torch.from_numpy(found.plain)
    return found


@pytest.mark.parametrize("weights", ["soft", "hard"])
def test_a_guess_agrees_with_the_labels(weights: Literal["soft", "hard"], believed: Believed) -> None:
    data = believed.data
    mine = np.array([1, 4, 7])
    row = weighted_partial.guess(data, mine, weights)
    inside = np.repeat(np.isin(np.arange(len(data.features)), mine), data.features.lengths)
    assert torch.allclose(row.sum(-1), torch.from_numpy(inside).float(), atol=1e-5), "zeros in other sentences"
    labelled = inside & believed.labelled
    assert labelled.any()
    own = row[torch.from_numpy(labelled)].gather(1, data.targets.labels[torch.from_numpy(labelled)].long()[:, None])
    assert torch.allclose(own, torch.ones_like(own), atol=1e-5)
    if weights == "hard":
        assert set(row.unique().tolist()) == {0.0, 1.0}
        free = [
            i for i in mine if not believed.labelled[slice(*np.cumsum([0, *data.features.lengths])[i : i + 2])].any()
        ]
        data.model.eval()
        for i in free:  # without labels it is the best path of the sentence
            start = int(data.features.lengths[:i].sum())
            path = viterbi(data.model(data.model.encoder.collate(data.features, [int(i)])))[0]
            assert row[start : start + len(path)].argmax(-1).tolist() == path.tolist()


def test_a_fold_is_guessed_by_who_has_not_seen_it(
    weak: list[Document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned: dict[str, set[int]] = {}
    guessed: dict[int, set[int]] = {}
    fit, guess = weighted_partial.fit, weighted_partial.guess

    def spy(model: Any, features: Any, make_step: Any, config: Any, stage: Any, dev: Any = None) -> Any:
        seen = learned.setdefault(stage.name, set())

        def remember(epoch: int) -> Any:
            step = make_step(epoch)
            return lambda indices: seen.update(indices.tolist()) or step(indices)

        return fit(model, features, remember, config, stage, dev)

    def watched(data: Any, sentences: Any, weights: Any) -> Any:
        guessed[len(guessed)] = set(sentences.tolist())
        return guess(data, sentences, weights)

    monkeypatch.setattr(weighted_partial, "fit", spy)
    monkeypatch.setattr(weighted_partial, "guess", watched)
    config = load_config(weighted_partial.Config, settings=[*QUICK, "iterations=2"])
    weighted_partial.train(Splits(weak=weak), config, Run(tmp_path, {"seed": 1}))
    assert list(learned) == ["fold/1/1", "fold/1/2", "fold/2/1", "fold/2/2", "train"]
    everything = set(range(30))
    assert learned["train"] == everything
    for number, name in enumerate(list(learned)[:4]):
        assert learned[name] | guessed[number] == everything and not learned[name] & guessed[number]


def test_only_words_that_nobody_spoke_of_have_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["Mara", "met", "nobody", "in", "Halden"]
    edges = np.cumsum([0, *[len(word) + 1 for word in words]])
    place = [Span(int(a), int(a) + len(word), "") for a, word in zip(edges, words, strict=False)]
    doc = Document("1", " ".join(words), spans=(place[0]._replace(label="X"),), complete=False)
    docs = [replace(doc, id=str(i), rejected=(place[1],), unsure=(place[4],)) for i in range(4)]
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
    assert (first[:, 2, 0] == 1).all() and (last[:, 2, 0] < 1).all(), "O to begin with, then what others guess"
