"""Folds of documents, and the confidence of completed sentences."""

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

from lacuner.corpus.stored import store_documents
from lacuner.data import Document, Span
from lacuner.evaluate.calibration import calibrate, select_complete
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.heads import build_head
from lacuner.models.lookup import LookupTagger
from lacuner.models.model import Model
from lacuner.models.tagger import Tagger
from lacuner.models.types import CRFScores
from lacuner.techniques.label_completion import predict_with_confidence, write_confidence
from lacuner.training.dataset import assign_folds
from tests.demo_corpus import demo_corpus

DOCS = demo_corpus().train[:60]


def test_folds_are_even_and_copies_stay_together(tmp_path: Path) -> None:
    docs = [*DOCS, *[replace(doc, id="copy") for doc in DOCS]]
    fold_of = assign_folds(docs, 4)
    assert (fold_of[:60] == fold_of[60:]).all()
    assert max(np.bincount(fold_of)) - min(np.bincount(fold_of)) <= 2 and set(fold_of) == {0, 1, 2, 3}
    assert (assign_folds(docs[::-1], 4) == fold_of[::-1]).all()
    stored = store_documents(docs[::-1], tmp_path, "v1", ordered=True)
    assert (assign_folds(stored, 4) == fold_of[::-1]).all(), "the same folds from disk"
    assert (assign_folds(stored.take(np.arange(60)), 3) == assign_folds(docs[:59:-1], 3)).all()


def test_only_completely_annotated_gold_is_scored() -> None:
    docs = [replace(DOCS[0], complete=False), replace(DOCS[1], unsure=(Span(0, 1, ""),)), DOCS[2]]
    assert select_complete(docs) == [DOCS[2]]


def crf_tagger(docs: Sequence[Document]) -> Tagger:
    torch.manual_seed(2)
    encoder = TinyEncoder(TinyConfig())
    head = build_head({"kind": "crf", "labels": ["X"]}, encoder.width)
    torch.nn.init.normal_(head.transitions)
    return Tagger(Model(encoder, head))


def test_the_confidence_of_a_crf_is_the_probability_of_its_best_sequence() -> None:
    docs = [Document("1", "one two three four"), Document("2", ""), Document("3", "five")]
    tagger = crf_tagger(docs)
    found, scores = predict_with_confidence(tagger, docs)
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


def test_the_confidence_of_a_long_document_is_that_of_all_its_windows() -> None:
    long = Document("long", " ".join(f"w{i % 40}" for i in range(700)))
    _, [score] = predict_with_confidence(crf_tagger([long]), [long])
    assert 0 <= score < 0.5


def test_the_confidence_of_other_models_is_their_lowest_span_probability() -> None:
    class Fixed(LookupTagger):
        def predict(self, docs: Any) -> Any:
            spans = [(Span(0, 1, "X", 0.9), Span(2, 3, "X", 0.4)), (), (Span(0, 1, "X"),)]
            return (replace(doc, spans=mine) for doc, mine in zip(docs, spans, strict=True))

    docs = [Document(str(i), "a b") for i in range(3)]
    assert predict_with_confidence(Fixed({}), docs)[1].tolist() == [0.4, 1.0, 1.0]


@pytest.mark.parametrize("sentences", [0, 1, 200])
def test_the_confidence_file(sentences: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    scores = rng.random(sentences)
    calibration = calibrate(scores, rng.random(sentences) < scores)
    write_confidence(tmp_path, calibration, rng.random(sentences))
    about = json.loads((tmp_path / "confidence.json").read_text(encoding="utf-8"))
    assert about["calibration"]["sentences"] == sentences == about["confidence"]["sentences"]
    assert len(about["calibration"]["bins"]) == sentences // 10 or sentences == 1
    write_confidence(tmp_path, calibration, rng.random(sentences), 2)
    assert json.loads((tmp_path / "confidence-2.json").read_bytes())["calibration"] == about["calibration"]
