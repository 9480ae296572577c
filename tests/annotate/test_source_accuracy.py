"""Accuracy of sources, estimated from their agreement: against brute force, and in simulations with known truth."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuner.annotate import LabellingStatistics, LabelModel, function_source, label_documents
from lacuner.annotate.label_model import OUTVOTED
from lacuner.annotate.source_accuracy import (
    PRIOR_ACCURACY,
    ClaimCounts,
    Parameters,
    SourceAccuracy,
    estimate,
    fit_accuracy,
)
from lacuner.data import Document, Span
from lacuner.errors import ConfigError

PATTERNS = np.array([mask for mask in product([False, True], repeat=3) if any(mask)])
rates = st.floats(0.01, 0.99)


@given(st.lists(rates, min_size=3, max_size=3), st.lists(rates, min_size=3, max_size=3), st.floats(1, 50))
def test_probabilities_equal_those_of_brute_force(
    propensity: list[float], false_rate: list[float], names: float
) -> None:
    """Bayes' rule over all phrases: names are claimed with the propensities, other phrases with the false rates."""
    parameters = Parameters(names, 100.0, np.array(propensity), np.array(false_rate))
    for mask, probability in zip(PATTERNS, parameters.probability(PATTERNS), strict=True):
        name, other = names, 100.0
        for claims, p, q in zip(mask, propensity, false_rate, strict=True):
            name *= p if claims else 1 - p
            other *= q if claims else 1 - q
        assert probability == pytest.approx(name / (name + other))


def test_estimates_are_a_maximum_of_the_likelihood() -> None:
    """A small change of any parameter makes the observed counts less probable, those of unclaimed names included."""
    rng = np.random.default_rng(3)
    truth = Parameters(300.0, 0.0, np.array([0.5, 0.4, 0.6]), np.array([0.02, 0.05, 0.01]))

    def expected(parameters: Parameters, phrases: float) -> np.ndarray:
        def chance(rate: np.ndarray) -> np.ndarray:
            return np.prod(np.where(PATTERNS, rate, 1 - rate), axis=1)

        return parameters.names * chance(parameters.propensity) + phrases * chance(parameters.false_rate)

    counts = rng.poisson(expected(truth, 5_000)).astype(float)
    fitted = estimate(PATTERNS, counts)

    def likelihood(parameters: Parameters) -> float:
        mean = expected(parameters, fitted.phrases)
        return float((counts * np.log(mean) - mean).sum())

    best = likelihood(fitted)
    for source in range(3):
        for name, size in (("propensity", 0.05), ("false_rate", 0.004)):
            for sign in (-1, 1):
                values = getattr(fitted, name).copy()
                values[source] += sign * size
                assert likelihood(fitted._replace(**{name: values})) < best + 0.2, (name, source, sign)


def simulate(seed: int, propensity: list[float], accuracy: list[float], names: int = 15_000) -> tuple[float, float]:
    """Largest error of the estimated accuracies and propensities, for sources with known ones."""
    rng = np.random.default_rng(seed)
    claims = ClaimCounts(len(propensity))
    right, known = np.zeros(len(propensity)), np.zeros(len(propensity))
    for name, mentions in enumerate(np.minimum(rng.geometric(0.35, names), 30)):
        mask = rng.random(len(propensity)) < propensity
        known += mask
        right += mask * mentions
        for _ in range(mentions if mask.any() else 0):
            claims.add(name, "X", tuple(mask))
    for source, share in enumerate(accuracy):
        wrong = right[source] * (1 - share) / share
        while wrong > 0:
            mentions, error = min(int(wrong) + 1, int(rng.geometric(0.35))), int(rng.integers(10 * names))
            for _ in range(mentions):
                claims.add(("error", error), "X", tuple(source == other for other in range(len(accuracy))))
            wrong -= mentions
    rows = fit_accuracy([str(number) for number in range(len(propensity))], claims).rows
    errors = [abs(row.accuracy - share) for row, share in zip(rows, accuracy, strict=True)]
    return max(errors), max(abs((row.propensity or 0) - share / names) for row, share in zip(rows, known, strict=True))


@pytest.mark.integration
@pytest.mark.parametrize(
    ("propensity", "accuracy"),
    [
        ([0.5, 0.5, 0.5], [0.9, 0.7, 0.5]),
        ([0.3, 0.4, 0.6], [0.95, 0.6, 0.6]),
        ([0.4, 0.3, 0.5, 0.5], [0.9, 0.8, 0.6, 0.5]),
    ],
)
def test_known_accuracies_are_estimated_within_five_points(propensity: list[float], accuracy: list[float]) -> None:
    errors = simulate(2, propensity, accuracy)
    assert max(errors) < 0.05


def test_a_source_that_never_gives_a_label_has_no_influence_on_it() -> None:
    """It abstains: that is not a vote against the spans of the others."""
    claims, more = ClaimCounts(3), ClaimCounts(4)
    for number in range(200):
        mask = (number % 2 == 0, number % 3 > 0, number % 5 > 1)
        if any(mask):
            claims.add(number, "X", mask)
            more.add(number, "X", (*mask, False))
    more.add("other", "Y", (False, False, False, True))
    three, four = fit_accuracy(["a", "b", "c"], claims), fit_accuracy(["a", "b", "c", "d"], more)
    assert [row for row in four.rows if row.label == "X"] == three.rows
    assert four.probability(0, "X", (True, False, False, False)) == three.probability(0, "X", (True, False, False))


def test_labels_with_too_few_sources_get_the_accuracy_of_the_other_labels() -> None:
    claims = ClaimCounts(3)
    for number in range(300):
        mask = (number % 2 == 0, number % 3 > 0, number % 5 > 1)
        if any(mask):
            claims.add(number, "X", mask)
    claims.add("x", "RARE", (True, True, False))
    model = fit_accuracy(["a", "b", "c"], claims)
    accuracy = {(row.source, row.label): row.accuracy for row in model.rows}
    assert accuracy["a", "RARE"] == accuracy["a", "X"]
    expected = 1 - (1 - accuracy["a", "X"]) * (1 - accuracy["b", "X"])
    assert model.probability("x", "RARE", (True, True, False)) == pytest.approx(expected)
    empty = fit_accuracy(["a", "b", "c"], ClaimCounts(3))
    assert empty.rows == [] and empty.probability("x", "X", (True, False, False)) == pytest.approx(PRIOR_ACCURACY)


NAMES = [f"Name{number}" for number in range(120)]
FALSE = [f"false{number}" for number in range(120)]


def sources_of(doc_names: list[str]) -> LabelModel:
    """Three sources that know half of the names each; the third also claims every word that begins with `false`."""

    def find(number: int, doc: Document) -> list[tuple[int, int, str]]:
        spans = []
        start = 0
        for word in doc.text.split(" "):
            known = word in doc_names and doc_names.index(word) >> number & 1
            if known or (number == 2 and word.startswith("false")):
                spans.append((start, start + len(word), "PER"))
            start += len(word) + 1
        return spans

    functions = [lambda doc, number=number: find(number, doc) for number in range(3)]
    return LabelModel([function_source(name, f) for name, f in zip("abc", functions, strict=True)], by="model")


def corpus() -> list[Document]:
    return [Document(str(n), f"{name} met {other}") for n, (name, other) in enumerate(zip(NAMES, FALSE, strict=True))]


def test_claims_that_no_other_source_confirms_become_unsure() -> None:
    model, statistics = sources_of(NAMES), LabellingStatistics()
    weak = list(label_documents(corpus(), model, statistics=statistics))
    confirmed = [number for number in range(120) if number & 3]  # the first or the second source knows the name
    assert [number for number, doc in enumerate(weak) if doc.spans] == confirmed
    assert all(weak[number].text[: weak[number].spans[0].end] == NAMES[number] for number in confirmed)
    assert all(
        any(doc.text[s.start : s.end] == name for s in doc.unsure) for doc, name in zip(weak, FALSE, strict=True)
    )
    assert all(not doc.rejected and doc.complete is False for doc in weak)
    assert min(doc.spans[0].score or 0 for doc in weak if doc.spans) > 0.5
    assert max(doc.unsure[0].score or 1 for doc in weak) < 0.2
    assert weak[6].spans[0].source == "b+c"
    assert model.accuracy is not None
    assert {row.source: row.accuracy > 0.7 for row in model.accuracy.rows} == {"a": True, "b": True, "c": False}
    assert {row.source: row.kept for row in statistics.table()} == {"a": 60, "b": 60, "c": 60 + 120}


def test_the_result_does_not_depend_on_the_sample_if_it_is_the_whole_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    docs = corpus()
    whole = list(label_documents(docs, sources_of(NAMES)))
    monkeypatch.setattr("lacuner.annotate.pipeline.SAMPLE", 100)
    part = list(label_documents(docs, sources_of(NAMES)))
    assert [doc.id for doc in part] == [doc.id for doc in docs]
    assert [len(doc.spans) for doc in part] == [len(doc.spans) for doc in whole], "names outside the sample, too"


def fitted(*rows: tuple[str, float]) -> SourceAccuracy:
    """A model without estimates: each source has a fixed accuracy."""
    return SourceAccuracy(
        [], {}, {}, {}, {}, {}, {"X": [share for _, share in rows], "Y": [share for _, share in rows]}
    )


def test_overlapping_claims() -> None:
    spans = {"a": (0, 4, "X"), "b": (0, 9, "X"), "c": (0, 9, "Y")}
    sources = [function_source(name, lambda doc, span=span: [span]) for name, span in spans.items()]
    model = LabelModel(sources, by="model", accuracy=fitted(("a", 0.9), ("b", 0.8), ("c", 0.5)))
    layer = model(Document("1", "Mara Teel"))
    assert [(*span.key, span.score) for span in layer.spans] == [(0, 9, "X", pytest.approx(0.8))], "the longer one"
    assert {(span.key, reason) for span, reason in layer.lost} == {((0, 9, "Y"), OUTVOTED), ((0, 4, "X"), OUTVOTED)}
    model.accuracy = fitted(("a", 0.9), ("b", 0.1), ("c", 0.05))
    assert [span.key for span in model(Document("1", "Mara Teel")).spans] == [(0, 4, "X")], "the longer is improbable"
    model.min_probability = 0.95
    layer = model(Document("1", "Mara Teel"))
    assert (layer.spans, [span.key for span in layer.unsure]) == ((), [(0, 4, "X")])


def test_mistakes() -> None:
    one = function_source("one", lambda doc: [(0, 1, "A")])
    two, three = function_source("two", lambda doc: [(0, 1, "B")]), function_source("three", lambda doc: [(0, 1, "C")])
    with pytest.raises(ConfigError, match="--by model needs at least 3 sources; combine the sources by --by vote"):
        LabelModel([one, two], by="model")
    with pytest.raises(ConfigError, match="no label has spans of 3 sources: rename labels"):
        list(label_documents([Document("1", "x")], LabelModel([one, two, three], by="model")))
    assert list(label_documents([], LabelModel([one, two, three], by="model"))) == []
    with pytest.raises(ConfigError, match="--min-probability is from 0 to 1"):
        LabelModel([one], min_probability=2.0)
    with pytest.raises(ValueError, match="must be fitted"):
        LabelModel([one, two, three], by="model")(Document("1", "x"))


def test_scores_of_unsure_spans_are_probabilities() -> None:
    weak = label_documents(corpus(), sources_of(NAMES))
    assert all(isinstance(span, Span) and 0 <= (span.score or 0) <= 1 for doc in weak for span in doc.unsure)


triples = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 5), st.sampled_from("XY")).map(lambda t: (t[0], t[0] + t[1], t[2])),
    max_size=6,
)


@given(st.lists(triples, min_size=3, max_size=4), st.lists(rates, min_size=4, max_size=4), rates)
def test_layers_are_flat_and_every_span_is_accounted_for(
    spans_by_source: list[list[tuple[int, int, str]]], accuracy: list[float], min_probability: float
) -> None:
    sources = [function_source(str(n), lambda doc, spans=spans: spans) for n, spans in enumerate(spans_by_source)]
    known = fitted(*((str(n), accuracy[n]) for n in range(len(sources))))
    layer = LabelModel(sources, by="model", min_probability=min_probability, accuracy=known)(Document("1", "x" * 20))
    places = sorted({(span.start, span.end) for span in (*layer.spans, *layer.unsure)})
    assert all(one[1] <= two[0] for one, two in pairwise(places))
    kept = {span[:3] for span in (*layer.spans, *layer.unsure)} | {span[:3] for span, _ in layer.lost}
    assert kept == {triple for spans in spans_by_source for triple in spans}
    assert all((span.score or 0) >= min_probability for span in layer.spans)
