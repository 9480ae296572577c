"""Probes record correct numbers and do not influence training."""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lacuner.audit.probes import (
    CallbackList,
    MissamplingProbe,
    SpanProbe,
    UnlabeledEntity,
    align_gold,
    entity_targets,
    find_unlabeled,
    gold_in_training_order,
    select_entities,
)
from lacuner.audit.sparsity import sampling_odds
from lacuner.config import load_config
from lacuner.data import Document, Lost, Span, Splits
from lacuner.errors import ConfigError, CorpusError
from lacuner.models.heads.span import SpanHead
from lacuner.recipes import RECIPES
from lacuner.trainer.train import train
from lacuner.training.dataset import training_set
from tests.audit.conftest import Corpus, span_model

SETTINGS = ["train.epochs=2", "train.budget=256"]


def weights(folder: Path) -> str:
    return hashlib.sha256((folder / "model" / "model.safetensors").read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("recipe", "more"), [("negative_sampling", []), ("negative_sampling", ["sampler=weighted"]), ("trust", [])]
)
def test_callbacks_do_not_change_the_weights(recipe: str, more: list[str], corpus: Corpus, tmp_path: Path) -> None:
    weak, gold = corpus
    config = load_config(RECIPES[recipe].Config, settings=[*SETTINGS, *more])
    sampling, spans = (
        MissamplingProbe(gold_in_training_order(weak, gold)),
        SpanProbe(select_entities(find_unlabeled(weak, gold), limit=5)),
    )
    train(recipe, Splits(weak=weak), tmp_path / "a", config, callback=CallbackList(sampling, spans))
    train(recipe, Splits(weak=weak), tmp_path / "b", config)
    assert weights(tmp_path / "a") == weights(tmp_path / "b")
    assert len(sampling.rows) == (2 if recipe == "negative_sampling" else 0)
    assert len(spans.rows) == 2 and all(len(row["probabilities"]) == 5 for row in spans.rows)
    assert [(row["stage"], row["epoch"]) for row in spans.rows] == [("train", 0), ("train", 1)]


def test_missampling_is_counted_right(corpus: Corpus, tmp_path: Path) -> None:
    """Against a count by hand, of characters in documents."""
    weak, gold = corpus
    shuffled = random.Random(3).sample(weak, len(weak))
    real = gold_in_training_order(shuffled, gold)
    inner = MissamplingProbe(real)
    there = {doc.id: {span[:2] for span in doc.spans} for doc in gold}
    counts = {0: [0, 0, 0.0], 1: [0, 0, 0.0]}
    shares: dict[int, list[float]] = {0: [], 1: []}

    class Slow:
        def on_negatives_sampled(
            self, epoch: int, data: Any, indices: np.ndarray, drawn: torch.Tensor, logits: torch.Tensor
        ) -> None:
            inner.on_negatives_sampled(epoch, data, indices, drawn, logits)
            wrong_of = np.zeros(len(indices))
            for row, first, width in drawn.nonzero().tolist():
                doc = real[data.sentences.document[indices[row]]]
                assert doc.words is not None
                place = doc.words[first][0], doc.words[first + width][1]
                probs = logits[row, first, width].detach().softmax(dim=-1)
                uncertainty = -float((probs * probs.log()).sum())
                wrong_of[row] += place in there[doc.id]
                for at, value in enumerate((1, place in there[doc.id], uncertainty)):
                    counts[epoch][at] += value
            drawn_of = drawn.sum((1, 2)).numpy()
            shares[epoch] += (wrong_of[drawn_of > 0] / drawn_of[drawn_of > 0]).tolist()

        def on_epoch_end(self, stage: str, epoch: int, model: Any) -> None:
            inner.on_epoch_end(stage, epoch, model)

    config = load_config(RECIPES["negative_sampling"].Config, settings=[*SETTINGS, "rate=3"])
    train("negative_sampling", Splits(weak=weak), tmp_path / "run", config, callback=Slow())
    for epoch, (drawn, wrong, uncertainty) in counts.items():
        row = inner.rows[epoch]
        assert row["drawn"] == drawn == sampling_odds(weak, gold, 3).sampled.sum() and wrong > 10
        assert row["missampling"] == pytest.approx(np.mean(shares[epoch]), abs=1e-6), "the mean over sentences"
        assert abs(row["missampling"] - wrong / drawn) > 1e-5, "not the share of all negatives"
        assert row["uncertainty"] == pytest.approx(uncertainty / drawn, abs=1e-5)


def test_entity_targets_across_windows_and_types() -> None:
    text = " ".join(f"w{i}" for i in range(700))
    words = [(found, found + len(word)) for word, found in zip(text.split(), _starts(text), strict=True)]
    places = [(0, 1), (120, 123), (221, 222), (255, 258), (400, 409), (698, 700)]
    spans = tuple(Span(words[a][0], words[b - 1][1], "NEW" if a == 120 else "X") for a, b in places)
    gold = Document("1", text, spans=spans, complete=True)
    weak = replace(gold, spans=spans[-1:], complete=False)
    model = span_model([weak])
    data = training_set(model, [weak], Lost())
    assert len(data.sentences.windows) > 2
    found = entity_targets(data, gold_in_training_order([weak], [gold]))
    seen = set()
    for number, window in enumerate(data.sentences.windows):
        for first, width in found.collate([number]).known[0].nonzero().tolist():
            seen.add((window.start + first, window.start + first + width + 1))
    assert seen == set(places) and int(found.known.sum()) == len(places), "each once, in the window that owns it"


def _starts(text: str) -> list[int]:
    return [0, *(at + 1 for at, char in enumerate(text) if char == " ")]


def test_gold_of_other_documents_is_refused(corpus: Corpus) -> None:
    weak, gold = corpus
    data = training_set(span_model(weak), [doc for doc, _ in align_gold(weak, gold)], Lost())
    real = gold_in_training_order(weak, gold)
    for wrong in (real[1:], [*real[:3], real[4], real[3], *real[5:]]):
        with pytest.raises(CorpusError, match="not those that the recipe is trained on"):
            entity_targets(data, wrong)
    with pytest.raises(CorpusError, match="is not in gold"):
        gold_in_training_order(weak, gold[1:])


def test_probabilities_are_those_of_the_model(corpus: Corpus) -> None:
    weak, gold = corpus
    followed = select_entities(find_unlabeled(weak, gold), limit=12)
    model = span_model(weak)
    wide = max(followed, key=lambda each: len(each.document.words or ()))
    wide = wide._replace(span=Span(0, (wide.document.words or ())[10][1], wide.span.label))
    strange = followed[0]._replace(span=followed[0].span._replace(label="NOBODY"))
    watch = SpanProbe([*followed, wide, strange])
    model.train()
    watch.on_epoch_end("train", 0, model)
    assert model.training
    *found, no_width, no_label = watch.rows[0]["probabilities"]
    assert no_width is None and no_label is None
    model.eval()
    head = model.head
    assert isinstance(head, SpanHead)
    for each, value in zip(followed, found, strict=True):
        words = list(each.document.words or ())
        tokens = [each.document.text[start:end] for start, end in words]
        batch = model.encoder.collate(model.encoder.prepare([tokens]), [0])
        first = [start for start, _ in words].index(each.span.start)
        width = [end for _, end in words].index(each.span.end) - first
        probs = model(batch).logits[0, first, width].detach().softmax(dim=-1)
        assert value == pytest.approx(float(probs[1 + head.labels.index(each.span.label)]), abs=1e-3)


def test_selection_of_unlabeled_entities(corpus: Corpus) -> None:
    weak, gold = corpus
    found = find_unlabeled(weak, gold)
    labeled = {(doc.id, *span[:2]) for doc in weak for span in doc.spans}
    everything = {(doc.id, *span[:2]) for doc in gold for span in doc.spans}
    assert {(doc.id, *span[:2]) for doc, span in found} == everything - labeled
    name = found[-1].as_json()["text"]
    first, *rest = select_entities(found, [name], limit=10)
    assert first.as_json()["text"] == name and len(rest) == 9 and first not in rest
    assert (
        select_entities(found, [name], limit=10) == [first, *rest] != select_entities(found, [name], limit=10, seed=2)
    )
    assert len(select_entities(found)) == len(found), "all, if there are not more"
    with pytest.raises(ConfigError, match="no unlabeled entity 'Nobody'"):
        select_entities(found, ["Nobody"])
    assert f"[{name}]" in UnlabeledEntity(*found[-1]).context


def test_probes_need_a_span_classifier() -> None:
    from lacuner.models.heads import build_head

    weak = [Document("1", "a b", spans=(Span(0, 1, "X"),))]
    model = span_model(weak)
    model.head = build_head({"kind": "token", "labels": ["X"], "scheme": "BIO"}, model.encoder.width)
    with pytest.raises(ConfigError, match="only a span classifier gives every span a probability"):
        SpanProbe([UnlabeledEntity(weak[0], Span(2, 3, "X"))]).on_epoch_end("train", 0, model)
