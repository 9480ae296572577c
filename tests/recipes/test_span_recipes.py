"""Negative sampling and NRCES: what is drawn, what is not, and what dev may choose."""

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
from lacuner.demo import build
from lacuner.errors import ConfigError
from lacuner.evaluate import score
from lacuner.evaluate.threshold import THRESHOLDS
from lacuner.losses.negatives import how_many
from lacuner.models.files import load
from lacuner.models.tagger import Tagger
from lacuner.noise import Noise, corrupt
from lacuner.recipes import RECIPES, negative_sampling, nrces
from lacuner.recipes.heldout import judged_by_halves
from lacuner.recipes.parts import Splits
from lacuner.recipes.spans import SpanSet, new_span_set
from lacuner.recipes.train import train
from lacuner.training.run import Run
from lacuner.types import Batch, Document, Span, SpanScores

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


@pytest.mark.parametrize(
    ("recipe", "setting", "stages"), [("nrces", "w", {"w2", "w5"}), ("negative_sampling", "rate", {"rate2", "rate5"})]
)
def test_dev_chooses(recipe: str, setting: str, stages: set[str], weak: list[Document], tmp_path: Path) -> None:
    said: list[str] = []
    settings = [f"try_{setting}=[2.0, 5.0]", "train.epochs=1", "train.budget=128"]
    config = load_config(RECIPES[recipe].Config, settings=settings)
    train(recipe, Splits(weak=weak, dev=build().dev[:10]), tmp_path / "a", config, say=said.append)
    assert {path.name for path in (tmp_path / "a" / "stages").iterdir()} == stages
    assert any(f"with {setting} = 2" in line and f"with {setting} = 5" in line for line in said)
    train(recipe, Splits(weak=weak), tmp_path / "b", config)
    assert {path.name for path in (tmp_path / "b" / "stages").iterdir()} == {"train"}, "without dev it is fixed"


@pytest.mark.parametrize("recipe", ["negative_sampling", "nrces"])
def test_they_refuse_a_token_head(recipe: str) -> None:
    with pytest.raises(ConfigError, match=r"head\.kind"):
        load_config(RECIPES[recipe].Config, settings=["head.kind=token"])


def test_a_threshold_is_kept_with_the_model_and_without_dev_there_is_none(weak: list[Document], tmp_path: Path) -> None:
    dev = build().dev[:20]
    for settings, given, expected in ([["head.threshold=0.9"], dev, 0.9], [[], None, None], [[], dev, "dev"]):
        config = load_config(nrces.Config, settings=["train.epochs=2", *settings])
        folder = tmp_path / str(expected)
        trained = train("nrces", Splits(weak=weak, dev=given), folder, config)
        loaded = load(folder)
        assert isinstance(loaded, Tagger)
        if expected != "dev":
            assert loaded.model.head.threshold == expected
            continue
        assert loaded.model.head.threshold in THRESHOLDS
        rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        best = max(row["dev"]["f1"] for row in rows)
        assert score(dev, trained.tagger.predict(dev)).exact.f1 == pytest.approx(best), "as it was when it was chosen"


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["negative_sampling", "nrces"])
def test_with_lstm_and_without_dev(recipe: str, weak: list[Document], tmp_path: Path) -> None:
    config = load_config(RECIPES[recipe].Config, settings=["encoder.name=lstm", "train.epochs=2"])
    trained = train(recipe, Splits(weak=[replace(doc, complete=False) for doc in weak]), tmp_path, config)
    assert trained.tagger.labels


def test_halves_are_judged_by_the_model_of_the_other_half(weak: list[Document], tmp_path: Path) -> None:
    """A model that says of every span how many documents it learned from, and that no other half looked in."""
    spans = spans_of(weak, tmp_path)
    seen: list[set[str]] = []

    class Model(torch.nn.Module):
        def __init__(self, number: float) -> None:
            super().__init__()
            self.encoder, self.number = spans.model.encoder, torch.nn.Parameter(torch.tensor(number))

        def forward(self, batch: Batch) -> SpanScores:
            shape = (*batch.mask.shape, spans.model.head.widths, 2)
            return SpanScores(torch.full(shape, self.number.item()), torch.ones(shape[:-1], dtype=torch.bool))

    def learn(docs: Sequence[Document], name: str) -> Any:
        seen.append({doc.id for doc in docs})
        return Model(float(len(seen)))

    found = judged_by_halves(spans, weak, learn, lambda logits: logits[..., 0])
    assert seen[0].isdisjoint(seen[1]) and seen[0] | seen[1] == {doc.id for doc in weak}
    for number, (start, end) in enumerate(zip(spans.open.offsets[:-1], spans.open.offsets[1:], strict=True)):
        half = spans.data.sentences.document[number] % 2
        assert (found[start:end] == half + 1).all()
        assert weak[spans.data.sentences.document[number]].id not in seen[half]


def test_a_held_out_oracle_trains(weak: list[Document], tmp_path: Path) -> None:
    settings = ["sampler=weighted", "oracle=heldout", "train.epochs=1", "train.budget=128"]
    config = load_config(negative_sampling.Config, settings=settings)
    trained = train("negative_sampling", Splits(weak=weak), tmp_path, config)
    assert trained.tagger.labels
    assert {path.name for path in (tmp_path / "stages").iterdir()} == {"half0", "half1", "train"}
