"""Confidence: bins of held-out sentences, models that have not seen what they judge, and the scores they have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lacuner.data import Document, Span
from lacuner.evaluate.calibration import calibrate, exact_match, label_confidence, select_complete
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.heads import build_head
from lacuner.models.lookup import LookupTagger
from lacuner.models.model import Model
from lacuner.models.tagger import Tagger
from lacuner.models.types import CRFScores
from lacuner.techniques.cross_fitting import held_out, parts_of
from lacuner.techniques.label_completion import scored, write_confidence
from tests.demo_corpus import demo_corpus

DOCS = demo_corpus().train[:60]


def test_a_bin_is_the_share_of_its_sentences() -> None:
    rng = np.random.default_rng(1)
    scores = rng.random(1000)
    right = rng.random(1000) < scores
    found = calibrate(scores, right, 20)
    assert len(found.accuracy) == 20 and found.sizes.tolist() == [50] * 20
    order = np.argsort(scores)
    for number in range(20):
        mine = order[50 * number : 50 * (number + 1)]
        assert found.accuracy[number] == pytest.approx(right[mine].mean())
        assert (found(scores[mine]) == found.accuracy[number]).all()
    assert np.abs(found(scores) - scores).mean() < 0.1
    assert found(np.array([-5.0, 5.0])).tolist() == [found.accuracy[0], found.accuracy[-1]]


@pytest.mark.parametrize(("sentences", "bins"), [(1, 1), (9, 1), (40, 4), (500, 50), (5000, 50)])
def test_few_sentences_have_few_bins(sentences: int, bins: int) -> None:
    found = calibrate(np.linspace(0, 1, sentences), np.ones(sentences, dtype=bool))
    assert len(found.accuracy) == bins and found.sizes.sum() == sentences and (found.accuracy == 1).all()


def test_scores_that_are_the_same_share_a_bin() -> None:
    scores = np.array([0.5] * 30 + [1.0] * 70)
    found = calibrate(scores, np.arange(100) < 15, 10)
    assert found.sizes.tolist() == [30, 70] and found.accuracy.tolist() == [0.5, 0.0]
    same = calibrate(np.ones(100), np.arange(100) < 25, 10)
    assert same.accuracy.tolist() == [0.25]


def test_without_held_out_gold_a_score_is_itself() -> None:
    nothing = calibrate(np.zeros(0), np.zeros(0, dtype=bool))
    assert nothing(np.array([0.2, 0.9])).tolist() == [0.2, 0.9]


def test_confidence_equals_the_formula() -> None:
    m, p = np.array([0.0, 0.5, 1.0, 0.9]), np.array([0.3, 0.4, 0.0, 0.9])
    want = [min(0.95, a + (1 - a) * b) for a, b in zip(m, p, strict=True)]
    assert label_confidence(m, p).tolist() == pytest.approx(want) and max(want) == 0.95


def test_parts_are_even_and_copies_stay_together() -> None:
    docs = [*DOCS, *[replace(doc, id="copy") for doc in DOCS]]
    part = parts_of(docs, 4)
    assert (part[:60] == part[60:]).all()
    assert max(np.bincount(part)) - min(np.bincount(part)) <= 2 and set(part) == {0, 1, 2, 3}
    assert (parts_of(docs[::-1], 4) == part[::-1]).all()


@pytest.mark.parametrize("all_parts", [True, False])
def test_nobody_judges_what_it_has_seen(all_parts: bool) -> None:
    seen: list[tuple[set[str], set[str]]] = []

    class Spy(LookupTagger):
        def __init__(self, texts: set[str]) -> None:
            super().__init__({})
            self.texts = texts

        def predict(self, docs: Any) -> Any:
            docs = list(docs)
            seen.append((self.texts, {doc.text for doc in docs}))
            return iter(docs)

    def learn(chosen: np.ndarray, name: str) -> Spy:
        assert name == f"calibrate/{len(seen) + 1}"
        return Spy({doc.text for doc, mine in zip(DOCS, chosen, strict=True) if mine})

    scores, right = held_out(DOCS, 4, learn, all_parts)
    assert len(seen) == (4 if all_parts else 1) and right.all() and len(scores) == len(right)
    assert all(not learned & asked and learned | asked == {doc.text for doc in DOCS} for learned, asked in seen)
    assert len(right) == (60 if all_parts else 15)


def test_gold_that_cannot_judge_is_not_asked() -> None:
    docs = [replace(DOCS[0], complete=False), replace(DOCS[1], unsure=(Span(0, 1, ""),)), DOCS[2]]
    assert select_complete(docs) == [DOCS[2]]
    scores, right = held_out(docs, 3, lambda *_: None, True)
    assert len(scores) == len(right) == 0


def test_right_means_every_span_and_nothing_else() -> None:
    doc = Document("1", "a b c", spans=(Span(0, 1, "X", 0.5), Span(2, 3, "Y")))
    others = [replace(doc, spans=spans) for spans in (doc.spans[::-1], doc.spans[:1], (*doc.spans, Span(4, 5, "X")))]
    assert exact_match([doc] * 3, others).tolist() == [True, False, False]


def crf_tagger(docs: Sequence[Document]) -> Tagger:
    torch.manual_seed(2)
    encoder = TinyEncoder(TinyConfig())
    head = build_head({"kind": "crf", "labels": ["X"]}, encoder.width)
    torch.nn.init.normal_(head.transitions)
    return Tagger(Model(encoder, head))


def test_a_crf_knows_how_probable_its_best_sequence_is() -> None:
    docs = [Document("1", "one two three four"), Document("2", ""), Document("3", "five")]
    tagger = crf_tagger(docs)
    found, scores = scored(tagger, docs)
    assert [doc.text for doc in found] == [doc.text for doc in docs] and scores[1] == 1
    model, features = tagger.model.eval(), tagger.model.encoder.prepare([["one", "two", "three", "four"]])
    with torch.inference_mode():
        out: CRFScores = model(model.encoder.collate(features, [0]))
    values = {
        path: float(
            out.start[path[0]] + out.end[path[-1]] + sum(out.logits[0, t, tag] for t, tag in enumerate(path))
            + sum(out.transitions[a, b] for a, b in pairwise(path))
        )
        for path in product(range(3), repeat=4)
    }  # fmt: skip
    total = np.logaddexp.reduce(list(values.values()))
    assert scores[0] == pytest.approx(np.exp(max(values.values()) - total), rel=1e-4)


def test_a_long_document_is_as_probable_as_all_its_windows() -> None:
    long = Document("long", " ".join(f"w{i % 40}" for i in range(700)))
    _, [score] = scored(crf_tagger([long]), [long])
    assert 0 <= score < 0.5


def test_other_models_have_their_least_certain_span() -> None:
    class Fixed(LookupTagger):
        def predict(self, docs: Any) -> Any:
            spans = [(Span(0, 1, "X", 0.9), Span(2, 3, "X", 0.4)), (), (Span(0, 1, "X"),)]
            return (replace(doc, spans=mine) for doc, mine in zip(docs, spans, strict=True))

    docs = [Document(str(i), "a b") for i in range(3)]
    assert scored(Fixed({}), docs)[1].tolist() == [0.4, 1.0, 1.0]


@pytest.mark.parametrize("sentences", [0, 1, 200])
def test_what_it_leaves_behind(sentences: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    scores = rng.random(sentences)
    calibration = calibrate(scores, rng.random(sentences) < scores)
    write_confidence(tmp_path, calibration, rng.random(sentences))
    about = json.loads((tmp_path / "confidence.json").read_text(encoding="utf-8"))
    assert about["calibration"]["sentences"] == sentences == about["confidence"]["sentences"]
    assert len(about["calibration"]["bins"]) == sentences // 10 or sentences == 1
    write_confidence(tmp_path, calibration, rng.random(sentences), 2)
    assert json.loads((tmp_path / "confidence-2.json").read_bytes())["calibration"] == about["calibration"]
