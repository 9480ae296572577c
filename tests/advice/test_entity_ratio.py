"""The entity ratio: from complete documents and from capital letters, with intervals."""

from dataclasses import replace

import pytest

from lacuner.advice import profile
from lacuner.advice.entity_ratio import (
    entity_ratio,
    entity_ratios,
    estimate_entity_ratio,
    ratio_from_capitals,
    ratio_from_complete,
)
from lacuner.corpus.words import words_of
from lacuner.data import Document, Span, labels_of
from lacuner.noise import Noise, corrupt
from tests.demo_corpus import demo_corpus


def slow_ratio(docs: list[Document], labels: set[str]) -> float:
    words = [(doc, word) for doc in docs for word in words_of(doc)]
    spans = [[span for span in doc.spans if span.label in labels] for doc, _ in words]
    inside = [
        any(span.start < end and start < span.end for span in own)
        for (_, (start, end)), own in zip(words, spans, strict=True)
    ]
    return sum(inside) / len(words)


def test_the_ratio_equals_counting_word_by_word() -> None:
    docs = demo_corpus().train[:50]
    for labels in (set(labels_of(docs)), set(list(labels_of(docs))[:1]), set()):
        assert entity_ratio(docs, labels) == pytest.approx(slow_ratio(docs, labels))
    nested = Document("1", "The Halden Works Ltd", spans=(Span(0, 20, "ORG"), Span(4, 10, "LOC")))
    assert entity_ratio([nested], ["ORG", "LOC"]) == 1.0 and entity_ratio([nested], ["LOC"]) == 0.25


def test_ratios_of_labels_equal_those_of_each_label_alone() -> None:
    docs = demo_corpus().train[:50]
    docs = [replace(doc, spans=(*doc.spans, Span(0, len(doc.text), f"X{i % 3}"))) for i, doc in enumerate(docs)]
    labels = ["none", *labels_of(docs)]
    assert entity_ratios(docs, labels) == {label: entity_ratio(docs, [label]) for label in labels}
    for label in labels:
        assert entity_ratio(docs, [label]) == pytest.approx(slow_ratio(docs, {label}))


def test_the_interval_of_dev_holds_the_ratio_of_the_training_texts() -> None:
    """90 % are asked for: of 20 disjoint pairs of small dev and training sets at least 15."""
    docs = [*demo_corpus().train[:1000]]
    labels = set(labels_of(docs))
    held = 0
    for at in range(20):
        train, dev = docs[at::40], docs[at + 20 :: 40]
        weak = list(corrupt(train, Noise(drop=0.5, seed=at)))
        ratio = ratio_from_complete(weak, dev)
        assert ratio is not None and ratio.low <= ratio.value <= ratio.high
        assert sum(ratio.by_label.values()) == pytest.approx(ratio.value)
        held += ratio.low <= entity_ratio(train, labels) <= ratio.high
    assert held >= 15


def test_a_label_that_dev_lacks_is_estimated_from_the_others() -> None:
    demo = demo_corpus()
    weak = list(corrupt(demo.train[:400], Noise(drop=0.5)))
    label = labels_of(weak)[0]
    dev = [replace(doc, spans=tuple(span for span in doc.spans if span.label != label)) for doc in demo.dev]
    whole, part = ratio_from_complete(weak, demo.dev), ratio_from_complete(weak, dev)
    assert whole is not None and part is not None
    assert part.by_label[label] == pytest.approx(whole.by_label[label], rel=0.35)
    assert part.value == pytest.approx(whole.value, rel=0.15)


def test_gold_and_dev_that_cannot_tell_are_not_used() -> None:
    demo = demo_corpus()
    weak = list(corrupt(demo.train[:200], Noise(drop=0.5)))
    assert estimate_entity_ratio(weak, dev=demo.dev).source == "dev"
    assert estimate_entity_ratio(weak, gold=demo.dev[:50], dev=demo.dev[50:]).source == "gold and dev"
    incomplete = [replace(doc, complete=False) for doc in demo.dev]
    of_weak = [replace(doc, spans=(), complete=True) for doc in demo.train[:200]]
    for dev in (demo.dev[:2], incomplete, of_weak, [], None):
        assert estimate_entity_ratio(weak, dev=dev).source == "capitals"


def test_capitals_give_an_upper_limit_where_entities_have_them() -> None:
    demo = demo_corpus()
    weak = list(corrupt(demo.train[:400], Noise(drop=0.8)))
    ratio = ratio_from_capitals(weak)
    assert ratio is not None and ratio.source == "capitals"
    assert ratio.low < entity_ratio(demo.train[:400], set(labels_of(weak))) < ratio.high
    small = [replace(doc, text=doc.text.lower()) for doc in weak]
    assert ratio_from_capitals(small) is None
    assert ratio_from_capitals([Document("1", "Mara left", spans=(Span(0, 4, "PER"),))]) is None


def test_the_profile_has_the_ratio() -> None:
    demo = demo_corpus()
    weak = list(corrupt(demo.train[:200], Noise(drop=0.5)))
    data = profile(weak, dev=demo.dev)
    assert data.entity_ratio == ratio_from_complete(weak, demo.dev)
    assert data.as_json()["entity_ratio"]["source"] == "dev" and 1 < data.entity_width < 3
    gappy = [replace(doc, complete=None) for doc in corrupt(demo.dev, Noise(drop=0.6))]
    data = profile(weak, dev=gappy)
    assert data.reference_gaps is not None and data.entity_ratio.source == "capitals"
