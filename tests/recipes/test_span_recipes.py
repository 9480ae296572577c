"""Negative sampling and NRCES: what is drawn, what is not, and what dev may choose."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from lacuner.config import load_config
from lacuner.demo import build
from lacuner.errors import ConfigError
from lacuner.losses.negatives import how_many
from lacuner.noise import Noise, corrupt
from lacuner.recipes import RECIPES, negative_sampling, nrces
from lacuner.recipes.parts import Splits
from lacuner.recipes.spans import SpanSet, new_span_set
from lacuner.recipes.train import train
from lacuner.training.run import Run
from lacuner.types import Document, Span

SAMPLERS = ["uniform", "weighted", "top", "middle", "bottom"]


def spans_of(docs: list[Document], folder: Path) -> SpanSet:
    torch.set_num_threads(1)
    config = negative_sampling.Config()
    return new_span_set(config, docs, Run(folder, {"seed": 1}))


@pytest.fixture
def weak() -> list[Document]:
    return list(corrupt(build().train[:30], Noise(drop=0.5)))


class Looking:
    """Keeps what was drawn."""

    def __init__(self) -> None:
        self.drawn: list[torch.Tensor] = []

    def drew(self, *args: object) -> None:
        drawn = args[3]
        assert isinstance(drawn, torch.Tensor)
        self.drawn.append(drawn.clone())

    def epoch_done(self, *args: object) -> None:
        pass


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_step_learns_from_labels_and_as_many_negatives_as_stated(
    sampler: str, weak: list[Document], tmp_path: Path
) -> None:
    spans = spans_of(weak, tmp_path)
    config = load_config(negative_sampling.Config, settings=[f"sampler={sampler}", "rate=0.5"])
    indices, watch = np.arange(12), Looking()
    found = negative_sampling.sampled(spans, config, 0, watch)(indices)
    [drawn] = watch.drawn
    _, targets = spans.data.batch(indices)
    assert not (drawn & targets.known).any(), "a labelled span is never a negative"
    words = torch.from_numpy(spans.data.features.lengths[indices])
    assert drawn.sum((1, 2)).tolist() == how_many(words, 0.5).tolist()
    assert found.known == float(drawn.sum() + targets.known.sum())


def test_the_same_seed_draws_the_same_negatives(weak: list[Document], tmp_path: Path) -> None:
    spans, watch = spans_of(weak, tmp_path), Looking()
    for seed in (7, 7, 8):
        torch.manual_seed(seed)
        negative_sampling.sampled(spans, negative_sampling.Config(), 0, watch)(np.arange(12))
    first, second, other = watch.drawn
    assert torch.equal(first, second) and not torch.equal(first, other)


def test_complete_documents_give_all_their_negatives_and_nothing_is_drawn(tmp_path: Path) -> None:
    gold = build().train[:10]
    assert all(doc.complete for doc in gold)
    spans, watch = spans_of(gold, tmp_path), Looking()
    found = negative_sampling.sampled(spans, negative_sampling.Config(), 0, watch)(np.arange(10))
    assert not watch.drawn[0].any() and found.known == found.positions


def test_what_touches_an_unsure_span_is_never_a_candidate(tmp_path: Path) -> None:
    doc = Document("1", "one two three four", spans=(Span(0, 3, "X"),), unsure=(Span(8, 13, ""),), complete=False)
    spans = spans_of([doc], tmp_path)
    candidates = spans.candidates(np.array([0]), torch.zeros(0))[0]
    # spans by first word and width: "one" is labelled, whatever reaches "three" is unsure
    assert {(int(i), int(w)) for i, w in candidates.nonzero()} == {(0, 1), (1, 0), (3, 0)}


def test_nrces_draws_its_negatives_once_and_about_half(weak: list[Document], tmp_path: Path) -> None:
    spans = spans_of(weak, tmp_path)
    before = spans.data.targets.known.clone()
    nrces.take_part(spans, 0.5, seed=3)
    added = spans.data.targets.known & ~before
    assert not (added & ~spans.open.known).any()
    assert float(added.sum() / spans.open.known.sum()) == pytest.approx(0.5, abs=0.02)
    other = spans_of(weak, tmp_path)
    nrces.take_part(other, 0.5, seed=3)
    assert torch.equal(other.data.targets.known, spans.data.targets.known)


def test_nrces_chooses_w_by_dev(weak: list[Document], tmp_path: Path) -> None:
    said: list[str] = []
    settings = ["try_w=[2.0, 5.0]", "train.epochs=1", "train.budget=128"]
    config = load_config(nrces.Config, settings=settings)
    dev = build().dev[:10]
    train("nrces", Splits(weak=weak, dev=dev), tmp_path / "a", config, say=said.append)
    assert {path.name for path in (tmp_path / "a" / "stages").iterdir()} == {"w2", "w5"}
    assert any("with w = 2" in line and "with w = 5" in line for line in said)
    train("nrces", Splits(weak=weak), tmp_path / "b", config)
    assert {path.name for path in (tmp_path / "b" / "stages").iterdir()} == {"train"}, "without dev w is fixed"


@pytest.mark.parametrize("recipe", ["negative_sampling", "nrces"])
def test_they_refuse_a_token_head(recipe: str) -> None:
    with pytest.raises(ConfigError, match=r"head\.kind"):
        load_config(RECIPES[recipe].Config, settings=["head.kind=token"])


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["negative_sampling", "nrces"])
def test_with_lstm_and_without_dev(recipe: str, weak: list[Document], tmp_path: Path) -> None:
    config = load_config(RECIPES[recipe].Config, settings=["encoder.name=lstm", "train.epochs=2"])
    trained = train(recipe, Splits(weak=[replace(doc, complete=False) for doc in weak]), tmp_path, config)
    assert trained.tagger.labels
