"""Mention statistics: counted by hand, and at known noise rates."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from lacuner.advice.mentions import (
    UNLABELED,
    agreement,
    boundary_precision,
    conflicting_share,
    count_boundaries,
    count_labels,
    count_mentions,
    self_agreement,
    unlabeled_share,
)
from lacuner.data import Document, Span


def doc(text: str, *spans: tuple[str, str], **more: tuple[Span, ...]) -> Document:
    """A document in which the first mention of each surface is labeled."""
    found = [Span(text.index(surface), text.index(surface) + len(surface), label) for surface, label in spans]
    return Document(text, text, spans=tuple(found), **more)  # type: ignore[arg-type]


def test_mentions_by_hand() -> None:
    docs = [
        doc("Mara met Teel", ("Mara", "PER"), ("Teel", "LOC")),
        doc("Mara left New York", ("New York", "LOC")),  # Mara is not labeled here
        doc("York and Mara", ("York", "LOC"), ("Mara", "ORG")),  # the York of New York is none of its own
        doc("Marathon"),  # no mention of Mara
    ]
    found = count_mentions(count_labels(docs), docs)
    assert found["Mara"] == Counter({"PER": 1, "ORG": 1, UNLABELED: 1})
    assert found["York"] == Counter({"LOC": 1})
    assert found["New York"] == Counter({"LOC": 1})
    assert found["Teel"] == Counter({"LOC": 1})


def test_a_mention_of_which_only_a_part_is_labeled_counts_as_unlabeled() -> None:
    docs = [doc("New York", ("New York", "LOC")), doc("New York is far", ("York", "LOC"))]
    assert count_mentions(count_labels(docs), docs)["New York"] == Counter({"LOC": 1, UNLABELED: 1})


@pytest.mark.parametrize("kind", ["unsure", "rejected"])
def test_unsure_and_rejected_spans_do_not_count_as_unlabeled(kind: str) -> None:
    docs = [doc("Mara left", ("Mara", "PER")), doc("Oh Mara left", **{kind: (Span(3, 7, ""),)})]
    assert count_mentions(count_labels(docs), docs)["Mara"] == Counter({"PER": 1})


def test_mentions_follow_the_words_of_the_file() -> None:
    first = doc("Mara left", ("Mara", "PER"))
    other = Document("2", "Mara-Teel", words=((0, 9),))
    assert count_mentions(["Mara"], [first, other])["Mara"] == Counter({"PER": 1})
    other = Document("2", "Mara-Teel", words=((0, 4), (4, 5), (5, 9)))
    assert count_mentions(["Mara"], [first, other])["Mara"] == Counter({"PER": 1, UNLABELED: 1})


def test_unlabeled_share_by_hand() -> None:
    found = {"a": Counter({"X": 2, UNLABELED: 2}), "b": Counter({"X": 1}), "c": Counter({UNLABELED: 5})}
    # of the three other mentions of each label of a, two have none; b stands alone; c was never labeled
    assert unlabeled_share(found) == (pytest.approx(2 / 3), 2)
    assert unlabeled_share({"b": Counter({"X": 1})}) is None
    assert unlabeled_share({}) is None


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.8])
def test_unlabeled_share_is_the_rate_at_which_mentions_lose_their_label(rate: float) -> None:
    rng = random.Random(5)
    found = {}
    for name in map(str, range(3000)):
        labels = [UNLABELED if rng.random() < rate else "X" for _ in range(rng.randint(1, 6))]
        found[name] = Counter(labels)
    share = unlabeled_share(found)
    assert share is not None and share.value == pytest.approx(rate, abs=0.03)


def test_conflicting_share_by_hand() -> None:
    names = {"a": Counter({"X": 2, "Y": 1}), "b": Counter({"X": 9, "Y": 0}), "c": Counter({"Y": 1})}
    # a: two labels see 1 of 2 others contradict, one sees 2 of 2; b: none of nine
    assert conflicting_share(names) == (pytest.approx((2 * 0.5 + 1 * 1) / 12), 12)


def test_boundaries_by_hand() -> None:
    text = "Ada Byron met Bo in New York and Ada"
    places = ((0, 9), (14, 16), (20, 28), (33, 36))
    right = Document("1", text, spans=tuple(Span(*place, "X") for place in places))
    names = ["Ada", "New York", "Bo"]
    assert count_boundaries(names, [right]) == {"labels": 4, "same": 3, "other": 1}, (
        "Ada Byron is a longer name than Ada"
    )
    wrong = replace(right, spans=(Span(10, 16, "X"), Span(24, 28, "X"), Span(17, 19, "X")))
    assert count_boundaries(names, [wrong]) == {"labels": 3, "other": 2}, "met Bo, York, and in, which is no name"
    assert count_boundaries([], [right]) == {"labels": 4} and count_boundaries(names, []) == {}
    assert boundary_precision([right], []) is None


def test_agreement_by_hand() -> None:
    names = {"a": Counter({"X": 3}), "b": Counter({"X": 1, "Y": 1}), "c": Counter({"X": 7})}
    found = {"a": Counter({"X": 1, UNLABELED: 1}), "b": Counter({"Y": 4}), "c": Counter()}
    assert agreement(names, found) == (pytest.approx((3 * 0.5 + 0 + 1) / 5), 5)
    assert agreement(names, {}) is None


def test_self_agreement_by_hand() -> None:
    found = {"a": Counter({"X": 2, UNLABELED: 1}), "b": Counter({"X": 1})}
    assert self_agreement(found) == (pytest.approx(0.5), 2)
