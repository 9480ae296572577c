"""The rules: the advice changes at the limits, and says why."""

from __future__ import annotations

import re
from math import sqrt

import pytest

from lacuner.advice import Advice, Seen, Size, advise
from lacuner.advice.mentions import Share
from lacuner.advice.profile import LEAST
from lacuner.advice.rules import CONTRADICTING, COVERED, FEW, GOLD, LITTLE, READABLE, RIGHT
from lacuner.config import load_config
from lacuner.errors import TrainingError
from lacuner.recipes import RECIPES

LABELS = ("LOC", "PER")
WEAK, DEV = Size(1000, 20_000, 900, LABELS, 0.0), Size(100, 2000, 200, LABELS, 0.0)
EPS = 0.001


def gold(entities: int) -> Size:
    return Size(50, 1000, entities, LABELS, 0.0)


def taught(entities: int, **more: object) -> Seen:
    """Gold of weak's labels beside weak."""
    return Seen(weak=WEAK, gold=gold(entities), teaching=entities, **more)  # type: ignore[arg-type]


def judged(missing: float, right: float | None = 1.0, **more: object) -> Seen:
    given = {"missing": missing, "bare": missing, "right": right, **more}
    return Seen(weak=WEAK, dev=DEV, judge="dev", **given)  # type: ignore[arg-type]


def share(value: float, of: int = 500) -> Share:
    return Share(value, of)


def surely(value: float, of: int = 500) -> Share:
    """So much that chance, twice its standard error, would leave this."""
    return share(value + 2.1 * sqrt(value * (1 - value) / of), of)


@pytest.mark.parametrize(
    ("seen", "recipe"),
    [
        (judged(0.0), "trust"),
        (judged(FEW), "trust"),
        (judged(FEW + EPS), "ensemble"),
        (judged(1.0), "ensemble"),
        (judged(0.0, RIGHT), "trust"),
        (judged(0.0, RIGHT - EPS), "roster"),
        (judged(0.9, RIGHT - EPS), "roster"),
        (judged(0.3, None), "ensemble"),
        (judged(0.3, None, contradicting=surely(CONTRADICTING)), "roster"),
        (judged(0.3, 1.0, contradicting=surely(CONTRADICTING)), "ensemble"),
        (Seen(weak=WEAK), "ensemble"),
        (Seen(weak=WEAK, forgotten=share(0.0)), "ensemble"),
        (Seen(weak=WEAK, forgotten=share(0.4)), "ensemble"),
        (Seen(weak=WEAK, contradicting=surely(CONTRADICTING)), "roster"),
        (Seen(weak=WEAK, contradicting=share(CONTRADICTING + EPS)), "ensemble"),
        (Seen(weak=WEAK, contradicting=share(CONTRADICTING + EPS, 10**6)), "roster"),
        (Seen(weak=WEAK, contradicting=share(CONTRADICTING, LEAST - 1)), "ensemble"),
        (Seen(weak=WEAK, whole=True), "trust"),
        (judged(0.8, whole=True), "trust"),
        (Seen(gold=gold(5)), "supervised"),
        (Seen(weak=Size(9, 99, 0, (), 0.0), gold=gold(5)), "supervised"),
        (taught(GOLD, in_gold=COVERED), "supervised"),
        (taught(GOLD, in_gold=COVERED - EPS), "needle"),
        (taught(GOLD - 1), "ensemble"),
        (taught(GOLD, judge="gold", missing=0.3), "needle"),
        (Seen(weak=WEAK, gold=gold(GOLD)), "ensemble"),  # of other labels, or incomplete
    ],
)
def test_each_rule_at_its_limit(seen: Seen, recipe: str) -> None:
    assert advise(seen, "hf:some").recipe == recipe
    assert advise(seen).recipe == ("ensemble" if recipe == "roster" else recipe), "from scratch nobody can doubt"


def test_little_gold_is_only_looked_at() -> None:
    advice = advise(taught(GOLD - 1, judge="gold", missing=0.3, bare=0.3, right=1.0))
    assert advice.recipe == "ensemble"
    assert any("Gold was only looked at" in note for note in advice.notes)
    assert not any("only looked at" in note for note in advise(taught(GOLD)).notes)


def test_a_threshold_is_chosen_on_dev_only_where_there_is_dev() -> None:
    assert advise(judged(0.0)).settings == ("head.threshold=dev",)
    assert advise(Seen(weak=WEAK, whole=True)).settings == ()


@pytest.mark.parametrize("seen", [Seen(), Seen(weak=Size(9, 99, 0, (), 0.0)), Seen(dev=DEV)])
def test_nothing_to_learn_from_is_said_in_one_sentence(seen: Seen) -> None:
    with pytest.raises(TrainingError, match=r"no labelled span.*lacuner annotate"):
        advise(seen)


def everything() -> list[Advice]:
    judges = [judged(missing, right) for missing in (0.0, 0.3, 0.9) for right in (None, 0.5, 1.0)]
    names = [judged(0.5, forgotten=share(value)) for value in (0.05, 0.5)]
    blind = [Seen(weak=WEAK, forgotten=each) for each in (None, share(0.0), share(0.4))]
    others = [Seen(weak=WEAK, contradicting=share(0.6)), Seen(weak=WEAK, whole=True), Seen(gold=gold(9))]
    others += [judged(0.5, whole=True), judged(0.2, unjudged=("X",), in_dev=0.4), Seen(weak=WEAK, dev=DEV, gappy=0.5)]
    every = (*judges, *names, *blind, *others, taught(500))
    return [advise(seen, encoder) for seen in every for encoder in ("tiny", "hf:some")]


def test_every_advice_can_be_followed_and_explains_itself() -> None:
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


def test_what_was_seen_is_in_the_reasons() -> None:
    assert "about 47 % of the entities" in advise(judged(0.471)).reasons[0]
    assert "about 60 % of the labels are wrong" in advise(judged(0.5, 0.4)).reasons[0]
    by_name = advise(judged(0.5, forgotten=share(0.02)))
    assert "names as a whole" in by_name.reasons[0] and any("suspects.tsv" in note for note in by_name.notes)
    at_random = advise(judged(0.5, forgotten=share(0.5)))
    assert "mentions of all names alike" in at_random.reasons[0] and not at_random.notes
    assert "40 % have no label" in advise(Seen(weak=WEAK, forgotten=share(0.4))).reasons[0]
    assert "without dev nobody can tell" in advise(Seen(weak=WEAK, forgotten=share(0.01))).reasons[0]
    few = Size(9, 99, LITTLE - 1, LABELS, 0.0)
    assert any("are few" in note for note in advise(Seen(weak=few)).notes)
    unlike = Seen(weak=WEAK, dev=Size(9, 99, 90, ("X",), 0.0), unlike=("X",))
    assert any("no label is in both" in note for note in advise(unlike).notes)
    assert any("labelled X in weak: no recipe" in note for note in advise(judged(0.2, unlike=("X",))).notes)
    assert not any("labelled X" in note for note in advise(taught(500, unlike=("X",))).notes), "gold teaches it"


def test_gold_without_an_entity_may_be_another_kind_of_file() -> None:
    seen = Seen(weak=WEAK, gold=Size(490, 1254, 0, (), 0.0))
    assert any("no entity in gold: a column file" in note for note in advise(seen).notes)


def test_where_there_is_much_text_it_should_be_read_first() -> None:
    for words, said in ((READABLE, True), (READABLE - 1, False)):
        size = Size(1000, words, 900, LABELS, 0.0)
        for seen in (Seen(weak=size), Seen(gold=size)):
            assert any("lacuner pretrain" in note for note in advise(seen).notes) == said


def test_judges_that_are_none_are_named() -> None:
    def notes(seen: Seen) -> str:
        return " ".join(advise(seen).notes)

    assert "having gaps: 50 % of the other mentions" in notes(Seen(weak=WEAK, dev=DEV, gappy=0.5))
    assert "labelled X in dev: nobody judged" in notes(judged(0.2, unjudged=("X",)))
    assert "texts of 40 % of the dev documents" in notes(judged(0.2, in_dev=0.4))
    claims = advise(judged(0.8, whole=True))
    assert "but by dev about 80 % is missing" in claims.reasons[0] and "complete: false" in claims.reasons[1]
