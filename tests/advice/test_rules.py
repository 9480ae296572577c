"""The rules: the advice changes at each threshold and gives its reasons."""

from __future__ import annotations

import re
from math import sqrt

import pytest

from lacuner.advice import Advice, DataProfile, Size, advise
from lacuner.advice.mentions import Share
from lacuner.advice.profile import MIN_ENTITIES
from lacuner.advice.rules import (
    FEW_ENTITIES,
    GOLD_COVERAGE,
    LONG_ENTITIES,
    MAX_CONFLICTS,
    MAX_MISSING,
    MIN_GOLD_ENTITIES,
    MIN_PRECISION,
    PRETRAINING_WORDS,
)
from lacuner.config import load_config
from lacuner.errors import TrainingError
from lacuner.recipes import RECIPES

LABELS = ("LOC", "PER")
WEAK, DEV = Size(1000, 20_000, 900, LABELS, 0.0), Size(100, 2000, 200, LABELS, 0.0)
EPS = 0.001


def gold(entities: int) -> Size:
    return Size(50, 1000, entities, LABELS, 0.0)


def with_gold(entities: int, **more: object) -> DataProfile:
    """Gold of weak's labels beside weak."""
    return DataProfile(weak=WEAK, gold=gold(entities), gold_entities=entities, **more)  # type: ignore[arg-type]


def with_dev(missing: float, right: float | None = 1.0, **more: object) -> DataProfile:
    given = {"missing_rate": missing, "unlabeled_rate": missing, "precision": right, **more}
    return DataProfile(weak=WEAK, dev=DEV, reference="dev", **given)  # type: ignore[arg-type]


def share(value: float, of: int = 500) -> Share:
    return Share(value, of)


def surely(value: float, of: int = 500) -> Share:
    """So much that chance, twice its standard error, would leave this."""
    return share(value + 2.1 * sqrt(value * (1 - value) / of), of)


@pytest.mark.parametrize(
    ("data", "recipe"),
    [
        (with_dev(0.0), "trust"),
        (with_dev(MAX_MISSING), "trust"),
        (with_dev(MAX_MISSING + EPS), "ensemble"),
        (with_dev(1.0), "ensemble"),
        (with_dev(0.0, MIN_PRECISION), "trust"),
        (with_dev(0.0, MIN_PRECISION - EPS), "roster"),
        (with_dev(0.9, MIN_PRECISION - EPS), "roster"),
        (with_dev(0.3, None), "ensemble"),
        (with_dev(0.3, None, type_conflicts=surely(MAX_CONFLICTS)), "roster"),
        (with_dev(0.3, 1.0, type_conflicts=surely(MAX_CONFLICTS)), "ensemble"),
        (DataProfile(weak=WEAK), "ensemble"),
        (DataProfile(weak=WEAK, unlabeled_mentions=share(0.0)), "ensemble"),
        (DataProfile(weak=WEAK, unlabeled_mentions=share(0.4)), "ensemble"),
        (DataProfile(weak=WEAK, type_conflicts=surely(MAX_CONFLICTS)), "roster"),
        (DataProfile(weak=WEAK, type_conflicts=share(MAX_CONFLICTS + EPS)), "ensemble"),
        (DataProfile(weak=WEAK, type_conflicts=share(MAX_CONFLICTS + EPS, 10**6)), "roster"),
        (DataProfile(weak=WEAK, type_conflicts=share(MAX_CONFLICTS, MIN_ENTITIES - 1)), "ensemble"),
        (DataProfile(weak=WEAK, weak_complete=True), "trust"),
        (with_dev(0.8, weak_complete=True), "trust"),
        (DataProfile(gold=gold(5)), "supervised"),
        (DataProfile(weak=Size(9, 99, 0, (), 0.0), gold=gold(5)), "supervised"),
        (with_gold(MIN_GOLD_ENTITIES, in_gold=GOLD_COVERAGE), "supervised"),
        (with_gold(MIN_GOLD_ENTITIES, in_gold=GOLD_COVERAGE - EPS), "needle"),
        (with_gold(MIN_GOLD_ENTITIES - 1), "ensemble"),
        (with_gold(MIN_GOLD_ENTITIES, reference="gold", missing_rate=0.3), "needle"),
        (DataProfile(weak=WEAK, gold=gold(MIN_GOLD_ENTITIES)), "ensemble"),  # of other labels, or incomplete
    ],
)
def test_each_rule_at_its_threshold(data: DataProfile, recipe: str) -> None:
    assert advise(data, pretrained=True).recipe == recipe
    assert advise(data).recipe == ("ensemble" if recipe == "roster" else recipe), "roster needs a pre-trained encoder"


def test_little_gold_is_only_a_reference() -> None:
    estimates = {"reference": "gold", "missing_rate": 0.3, "unlabeled_rate": 0.3, "precision": 1.0}
    advice = advise(with_gold(MIN_GOLD_ENTITIES - 1, **estimates))
    assert advice.recipe == "ensemble"
    assert any("only used to estimate" in note for note in advice.notes)
    assert not any("only used to estimate" in note for note in advise(with_gold(MIN_GOLD_ENTITIES)).notes)
    unused = advise(with_gold(MIN_GOLD_ENTITIES - 1))  # not even a reference
    assert any("so it is not used" in note for note in unused.notes)


def test_the_decision_threshold_is_tuned_only_with_dev() -> None:
    assert advise(with_dev(0.0)).settings == ("head.threshold=dev",)
    assert advise(DataProfile(weak=WEAK, weak_complete=True)).settings == ()


@pytest.mark.parametrize("data", [DataProfile(), DataProfile(weak=Size(9, 99, 0, (), 0.0)), DataProfile(dev=DEV)])
def test_data_without_labels_is_an_error(data: DataProfile) -> None:
    with pytest.raises(TrainingError, match=r"no labeled spans.*lacuner annotate"):
        advise(data)


def everything() -> list[Advice]:
    judges = [with_dev(missing, right) for missing in (0.0, 0.3, 0.9) for right in (None, 0.5, 1.0)]
    names = [with_dev(0.5, unlabeled_mentions=share(value)) for value in (0.05, 0.5)]
    blind = [DataProfile(weak=WEAK, unlabeled_mentions=each) for each in (None, share(0.0), share(0.4))]
    others = [
        DataProfile(weak=WEAK, type_conflicts=share(0.6)),
        DataProfile(weak=WEAK, weak_complete=True),
        DataProfile(gold=gold(9)),
    ]
    others += [
        with_dev(0.5, weak_complete=True),
        with_dev(0.2, labels_not_in_reference=("X",), in_dev=0.4),
        DataProfile(weak=WEAK, dev=DEV, reference_gaps=0.5),
    ]
    every = (*judges, *names, *blind, *others, with_gold(500))
    return [advise(data, pretrained) for data in every for pretrained in (False, True)]


def test_every_advice_is_valid_and_gives_reasons() -> None:
    found = everything()
    assert {advice.recipe for advice in found} == {
        "trust", "ensemble", "roster", "needle", "supervised",
    }  # fmt: skip
    for advice in found:
        assert load_config(RECIPES[advice.recipe].Config, settings=advice.settings)
        assert advice.reasons
        for sentence in (*advice.reasons, *advice.notes):
            assert re.fullmatch(r"[A-Z0-9`].*\.", sentence), sentence
            assert "None" not in sentence


def test_reasons_and_notes_give_the_figures() -> None:
    assert "about 47 % of the entities" in advise(with_dev(0.471)).reasons[0]
    assert "about 60 % of the labels are wrong" in advise(with_dev(0.5, 0.4)).reasons[0]
    by_name = advise(with_dev(0.5, unlabeled_mentions=share(0.02)))
    assert "whole names are missing" in by_name.reasons[0] and any("label_issues.tsv" in note for note in by_name.notes)
    at_random = advise(with_dev(0.5, unlabeled_mentions=share(0.5)))
    assert "mentions of all names" in at_random.reasons[0] and not at_random.notes
    assert (
        "40 % of the other mentions of labeled names have no label"
        in advise(DataProfile(weak=WEAK, unlabeled_mentions=share(0.4))).reasons[0]
    )
    assert "only dev or gold can tell" in advise(DataProfile(weak=WEAK, unlabeled_mentions=share(0.01))).reasons[0]
    few = Size(9, 99, FEW_ENTITIES - 1, LABELS, 0.0)
    assert any("labeled entities, more labels" in note for note in advise(DataProfile(weak=few)).notes)
    unlike = DataProfile(weak=WEAK, dev=Size(9, 99, 90, ("X",), 0.0), labels_not_in_weak=("X",))
    assert any("no label in common" in note for note in advise(unlike).notes)
    assert any(
        "Weak has no entity labeled X" in note for note in advise(with_dev(0.2, labels_not_in_weak=("X",))).notes
    )
    assert not any("labeled X" in note for note in advise(with_gold(500, labels_not_in_weak=("X",))).notes), (
        "gold teaches it"
    )


def test_gold_without_entities_may_be_a_column_file() -> None:
    data = DataProfile(weak=WEAK, gold=Size(490, 1254, 0, (), 0.0))
    assert any("no entity in gold: a column file" in note for note in advise(data).notes)


def test_pretraining_is_recommended_for_large_corpora() -> None:
    for words, said in ((PRETRAINING_WORDS, True), (PRETRAINING_WORDS - 1, False)):
        size = Size(1000, words, 900, LABELS, 0.0)
        for data in (DataProfile(weak=size), DataProfile(gold=size)):
            assert any("lacuner pretrain" in note for note in advise(data).notes) == said


def test_unusable_reference_data_is_explained() -> None:
    def notes(data: DataProfile) -> str:
        return " ".join(advise(data).notes)

    assert "because 50 % of the other mentions" in notes(DataProfile(weak=WEAK, dev=DEV, reference_gaps=0.5))
    assert "Dev has no entity labeled X" in notes(with_dev(0.2, labels_not_in_reference=("X",)))
    assert "40 % of the dev documents" in notes(with_dev(0.2, in_dev=0.4))
    claims = advise(with_dev(0.8, weak_complete=True))
    assert "but according to dev about 80 %" in claims.reasons[0] and "complete: false" in claims.reasons[1]


def test_long_entities_call_for_a_span_head_where_labels_are_missing() -> None:
    def notes(data: DataProfile) -> str:
        return " ".join(advise(data).notes)

    assert "5.9 words on average" in notes(DataProfile(weak=WEAK, entity_width=5.9))
    assert "head.kind=span" in notes(with_dev(0.5, entity_width=LONG_ENTITIES))
    assert "head.kind=span" not in notes(with_dev(0.5, entity_width=LONG_ENTITIES - EPS))
    assert "head.kind=span" not in notes(with_dev(MAX_MISSING, entity_width=5.9))
    assert "head.kind=span" not in notes(DataProfile(weak=WEAK, entity_width=5.9, weak_complete=True))
