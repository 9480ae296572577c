"""Data profiles at known noise rates."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import pytest

from lacuner.advice import DataProfile, profile
from lacuner.advice.profile import MIN_ENTITIES, size_of
from lacuner.annotate import annotate, gazetteer_source
from lacuner.annotate.gazetteer.entries import Entry
from lacuner.data import Document, Span
from lacuner.demo import Demo
from lacuner.noise import Noise, corrupt
from tests.demo_corpus import demo_corpus
from tests.growth import assert_linear


@pytest.fixture(scope="module")
def demo() -> Demo:
    return demo_corpus()


def weak_of(demo: Demo, **noise: object) -> list[Document]:
    return list(corrupt(demo.train, Noise(**noise)))  # type: ignore[arg-type]


@pytest.mark.parametrize("by_surface", [False, True])
@pytest.mark.parametrize("rate", [0.0, 0.2, 0.5, 0.8])
def test_missing_rate_from_dev(demo: Demo, rate: float, by_surface: bool) -> None:
    data = profile(weak_of(demo, drop=rate, by_surface=by_surface), dev=demo.dev)
    assert data.reference == "dev"
    assert data.missing_rate == pytest.approx(rate, abs=0.05)
    assert data.precision is not None and data.precision > 0.85


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.8])
def test_unlabeled_mentions_from_weak_labels_alone(demo: Demo, rate: float) -> None:
    data = profile(weak_of(demo, drop=rate))
    assert data.reference is None and data.missing_rate is None and data.missing_kind is None
    assert data.unlabeled_mentions is not None
    assert rate <= data.unlabeled_mentions.value <= rate + 0.1, "some names are plain words elsewhere, so a little more"


@pytest.mark.parametrize("rate", [0.5, 0.8])
def test_missing_mentions_or_missing_names(demo: Demo, rate: float) -> None:
    assert profile(weak_of(demo, drop=rate), dev=demo.dev).missing_kind == "mentions"
    assert profile(weak_of(demo, drop=rate, by_surface=True), dev=demo.dev).missing_kind == "names"
    assert profile(weak_of(demo), dev=demo.dev).missing_kind is None


def test_a_gazetteer_lacks_whole_names(demo: Demo) -> None:
    source = gazetteer_source([Entry(surface, label) for surface, label in demo.dictionary])
    data = profile(list(annotate(demo.train, [source])), dev=demo.dev)
    assert data.missing_kind == "names"
    assert data.missing_rate == pytest.approx(0.61, abs=0.05), "what noise measure says of it"


@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_precision_with_wrong_types(demo: Demo, rate: float) -> None:
    data = profile(weak_of(demo, drop=0.3, wrong_type=rate), dev=demo.dev)
    assert data.precision == pytest.approx(1 - rate, abs=0.1)
    assert data.missing_rate == pytest.approx(1 - 0.7 * (1 - rate), abs=0.07), "a wrong label is missing, too"


@pytest.mark.parametrize("rate", [0.2, 0.5])
def test_precision_with_wrong_boundaries(demo: Demo, rate: float) -> None:
    data = profile(weak_of(demo, drop=0.3, shift=rate), dev=demo.dev)
    assert data.precision == pytest.approx(1 - rate, abs=0.12)


@pytest.mark.parametrize("noise", [{}, {"drop": 0.5}, {"drop": 0.5, "by_surface": True}])
def test_precision_of_correct_labels(demo: Demo, noise: dict[str, Any]) -> None:
    data = profile(weak_of(demo, **noise), dev=demo.dev)
    assert data.precision is not None and data.precision > 0.95


def test_dev_documents_that_are_in_weak_are_ignored(demo: Demo) -> None:
    weak = weak_of(demo, drop=0.5, by_surface=True)
    copies = [replace(doc, complete=None) for doc in weak]
    data = profile(weak, dev=copies)
    assert (data.reference, data.missing_rate, data.precision, data.in_dev) == (None, None, None, 1.0)
    both = profile(weak, dev=[*copies, *demo.dev])
    assert both.missing_rate == profile(weak, dev=demo.dev).missing_rate and 0 < both.in_dev < 1


def test_incomplete_gold_does_not_replace_weak_labels(demo: Demo) -> None:
    weak = weak_of(demo, drop=0.5)
    assert profile(weak, gold=weak).in_gold == 0.0 and profile(weak, gold=demo.train).in_gold == 1.0


def test_type_conflicts_grow_with_the_rate_of_wrong_types(demo: Demo) -> None:
    found = [profile(weak_of(demo, wrong_type=rate)).type_conflicts for rate in (0.0, 0.2, 0.5)]
    values = [share.value for share in found if share is not None]
    assert values[0] + 0.1 < values[1] < values[2] - 0.1


def test_gold_of_the_same_texts_gives_exact_figures(demo: Demo) -> None:
    weak = weak_of(demo, drop=0.4, wrong_type=0.2)
    data = profile(weak[:300], gold=demo.train[:200], dev=demo.dev)
    truth = {doc.text: doc for doc in demo.train[:200]}
    labels = [(doc, span) for doc in weak[:200] for span in doc.spans]
    right = sum(span in truth[doc.text].spans for doc, span in labels)
    assert data.reference == "gold of the same texts"
    assert data.precision == pytest.approx(right / len(labels))
    assert data.missing_rate == pytest.approx(1 - right / sum(len(doc.spans) for doc in demo.train[:200]))
    assert data.in_gold == pytest.approx(2 / 3)


def test_gold_of_other_texts_is_used_like_dev(demo: Demo) -> None:
    weak = weak_of(demo, drop=0.5)
    assert profile(weak, gold=demo.dev).reference == "gold"
    assert profile(weak, gold=demo.dev).missing_rate == profile(weak, dev=demo.dev).missing_rate
    both = profile(weak, gold=demo.dev[:200], dev=demo.dev[200:])
    assert both.reference == "gold and dev" and both.missing_rate == profile(weak, dev=demo.dev).missing_rate


def test_incomplete_dev_is_not_a_reference(demo: Demo) -> None:
    dev = [replace(doc, complete=False) for doc in demo.dev]
    assert profile(weak_of(demo, drop=0.5), dev=dev).reference is None
    silent = [replace(doc, complete=None) for doc in demo.dev]
    assert profile(weak_of(demo, drop=0.5), dev=silent).reference == "dev"


def test_too_little_dev_is_not_a_reference(demo: Demo) -> None:
    few = demo.dev[:20]
    assert 0 < size_of(few).entities < MIN_ENTITIES
    assert profile(weak_of(demo, drop=0.5), dev=few).reference is None


def test_no_precision_from_too_few_common_names(demo: Demo) -> None:
    data = profile(weak_of(demo, drop=0.5), dev=demo.dev[:150])
    assert data.reference == "dev" and data.missing_rate is not None and data.precision is None


def test_only_common_labels_are_compared(demo: Demo) -> None:
    dropped = demo.train[0].spans[0].label
    weak = [replace(doc, spans=tuple(s for s in doc.spans if s.label != dropped), complete=False) for doc in demo.train]
    data = profile(weak, dev=demo.dev)
    assert data.labels_not_in_weak == (dropped,)
    assert data.missing_rate is not None and data.missing_rate < 0.05, "of the types that weak has, all are there"
    renamed = [replace(d, spans=tuple(s._replace(label="x" + s.label) for s in d.spans)) for d in demo.dev]
    other = profile(weak, dev=renamed)
    assert other.reference is None and not other.comparable and len(other.labels_not_in_weak) == 5


def test_no_estimate_from_too_few_weak_labels(demo: Demo) -> None:
    few = [replace(doc, complete=False) for doc in demo.train[:10]]
    assert 0 < size_of(few).entities < MIN_ENTITIES
    assert profile(few, dev=demo.dev).reference is None


def test_wrong_labels_are_not_missing_names(demo: Demo) -> None:
    data = profile(weak_of(demo, wrong_type=0.8), dev=demo.dev)
    assert (
        data.missing_rate is not None
        and data.missing_rate > 0.5
        and data.unlabeled_rate is not None
        and data.unlabeled_rate < 0.05
    )
    assert data.missing_kind is None, "nothing is missing but right labels"


def test_dev_with_missing_labels_is_not_a_reference(demo: Demo) -> None:
    weak = weak_of(demo, drop=0.5)
    data = profile(weak, dev=[replace(doc, complete=None) for doc in corrupt(demo.dev, Noise(drop=0.5))])
    assert data.reference is None and data.reference_gaps == pytest.approx(0.55, abs=0.1) and data.in_dev == 0
    assert profile(weak, dev=demo.dev).reference_gaps is None and profile(weak, dev=demo.dev).in_dev == 0


def test_gold_entities_count_if_complete_and_of_weak_types(demo: Demo) -> None:
    weak, some = weak_of(demo, drop=0.5), demo.dev[:100]
    assert profile(weak, gold=some).gold_entities == size_of(some).entities
    assert profile(weak, gold=[replace(doc, complete=False) for doc in some]).gold_entities == 0
    other = [replace(d, spans=tuple(s._replace(label="x" + s.label) for s in d.spans)) for d in some]
    data = profile(weak, gold=other)
    assert data.gold_entities == 0 and len(data.labels_not_in_reference) == len(data.labels_not_in_weak) == 5


def test_word_splitting_does_not_change_the_estimate(demo: Demo) -> None:
    weak = weak_of(demo, drop=0.5)
    coarse = [
        replace(doc, words=tuple((m.start(), m.end()) for m in re.finditer(r"\S+", doc.text))) for doc in demo.dev
    ]
    assert profile(weak, dev=coarse).unlabeled_rate == profile(weak, dev=demo.dev).unlabeled_rate


def test_the_order_of_documents_does_not_matter(demo: Demo) -> None:
    weak = weak_of(demo, drop=0.5, wrong_type=0.1)
    mixed = random.Random(3).sample(weak, len(weak))
    dev = random.Random(4).sample(demo.dev, len(demo.dev))
    assert profile(weak, gold=demo.train[:99], dev=demo.dev) == profile(mixed, gold=demo.train[98::-1], dev=dev)
    assert profile(weak, dev=demo.dev) == profile(mixed, dev=dev)


def test_sizes_and_scripts() -> None:
    docs = [Document("1", "王小明 came", spans=(Span(0, 3, "PER"),)), Document("2", "")]
    size = size_of(docs)
    assert (size.documents, size.words, size.entities, size.labels) == (2, 4, 1, ("PER",))
    assert size.cjk == pytest.approx(3 / 7)
    assert size_of([]).density == 0.0


def test_empty_data(demo: Demo) -> None:
    assert profile() == DataProfile()
    assert profile([]).weak == size_of([])
    bare = [Document("1", "nothing"), Document("2", "")]
    data = profile(bare, gold=[], dev=demo.dev)
    assert (data.unlabeled_mentions, data.type_conflicts, data.missing_rate, data.precision) == (None, None, None, None)
    one = profile([Document("1", "Mara left", spans=(Span(0, 4, "PER"),))], dev=bare)
    assert one.unlabeled_mentions is None and one.type_conflicts is None and one.missing_rate is None


def test_weak_documents_marked_as_complete(demo: Demo) -> None:
    assert profile(demo.train[:50]).weak_complete
    assert not profile([*demo.train[:50], replace(demo.train[50], complete=None)]).weak_complete


def test_a_long_document_with_thousands_of_labels_takes_linear_time() -> None:
    def long_document(words: int) -> Document:
        spans = tuple(Span(5 * i, 5 * i + 4, "PER") for i in range(0, words, 2))
        unsure = tuple(Span(5 * i, 5 * i + 4, "") for i in range(1, words, 4))
        return Document("1", "Mara " * words, spans=spans, unsure=unsure)

    data = profile([long_document(20_000)])
    assert_linear(long_document, lambda doc: profile([doc]), 5000)
    assert data.unlabeled_mentions is not None and data.unlabeled_mentions.value == pytest.approx(1 / 3, abs=0.01)
