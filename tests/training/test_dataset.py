"""Documents prepared part by part are those prepared at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from lacuner.corpus.jsonl import as_line
from lacuner.data import Document, Lost, Span
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.heads import build_head
from lacuner.models.model import Model
from lacuner.noise import Noise, corrupt
from lacuner.training import dataset
from lacuner.training.dataset import TrainingSet, training_set, weak_training_set
from lacuner.training.identity import sort_documents
from tests.demo_corpus import demo_corpus

WEAK = list(corrupt(demo_corpus().train[:12], Noise(drop=0.3)))
LONG = Document("long", "Mara Teel left Halden . " * 70, spans=(Span(0, 9, "PERSON"), Span(24, 33, "PERSON")))
"""Two windows."""
CUT = Document("cut", "Mara Teel left.", spans=(Span(0, 3, "PERSON"),))
"""A span that does not fit the words."""
DOCS = [*WEAK[:5], LONG, replace(WEAK[5], complete=True), CUT, Document("empty", ""), *WEAK[6:]]


def assert_equal(one: TrainingSet, other: TrainingSet) -> None:
    for left, right in ((one.targets.labels, other.targets.labels), (one.targets.known, other.targets.known)):
        assert left.dtype == right.dtype and torch.equal(left, right)
    assert np.array_equal(one.targets.offsets, other.targets.offsets)
    assert np.array_equal(one.sentences.document, other.sentences.document)
    assert one.sentences.windows == other.sentences.windows
    assert one.sentences.words() == other.sentences.words()
    assert one.sentences.annotations() == other.sentences.annotations()
    for name, values in one.features.arrays.items():
        assert np.array_equal(values, other.features.arrays[name]), name


@pytest.mark.parametrize("kind", ["token", "span", "crf", "entity_type"])
def test_documents_are_prepared_part_by_part(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = TinyEncoder(TinyConfig(width=32, layers=1, rows=512))
    labels = sorted({span.label for doc in DOCS for span in doc.spans})
    width = {"widths": 3} if kind == "span" else {}
    model = Model(encoder, build_head({"kind": kind, "labels": labels, **width}, encoder.width))
    results = []
    for size in (1000, 3):
        monkeypatch.setattr(dataset, "PART", size)
        lost, weak_lost = Lost(), Lost()
        data, weak = training_set(model, DOCS, lost), weak_training_set(model, DOCS, weak_lost)
        assert lost.counts == weak_lost.counts and lost.counts["span does not fit the words"] == 1
        assert_equal(data, weak.as_annotated)
        results.append((data, weak, lost))
    (whole, whole_weak, whole_lost), (parts, parts_weak, parts_lost) = results
    assert len(whole.sentences.windows) > len(DOCS), "one document has several windows"
    assert_equal(whole, parts)
    assert_equal(whole_weak.as_complete, parts_weak.as_complete)
    assert torch.equal(whole_weak.unlabeled, parts_weak.unlabeled) and whole_weak.unlabeled.any()
    assert whole_lost.counts == parts_lost.counts
    assert all(annotation.complete for annotation in parts_weak.as_complete.sentences.annotations())
    assert not all(annotation.complete for annotation in parts_weak.as_annotated.sentences.annotations())


def test_no_documents_are_an_empty_training_set() -> None:
    encoder = TinyEncoder(TinyConfig(width=32, layers=1, rows=512))
    data = training_set(Model(encoder, build_head({"kind": "token", "labels": ["PER"]}, encoder.width)), [], Lost())
    assert len(data.features) == len(data.targets.labels) == len(data.sentences.document) == 0


def test_the_order_of_documents_depends_on_their_content_only() -> None:
    same_text = [replace(WEAK[0], id=id_, spans=spans) for id_ in ("a", "b") for spans in ((), WEAK[0].spans)]
    docs = [*same_text, *WEAK[1:4]]
    lines = [as_line(doc) for doc in sort_documents(docs)]
    assert lines == [as_line(doc) for doc in sort_documents(reversed(docs))]
    assert lines == [as_line(doc) for doc in sorted(docs, key=lambda doc: (doc.text, doc.id, as_line(doc)))]
