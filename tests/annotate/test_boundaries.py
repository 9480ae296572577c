"""Entries that are usually inside a longer phrase: found without gold, and never suggested for the stop list."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from lacuner.annotate import (
    Entry,
    EntryPrecision,
    LabellingStatistics,
    LintRow,
    NeighbourSample,
    annotate,
    boundaries,
    format_longer_phrases,
    format_stop_list,
    gazetteer_source,
    lint,
)
from lacuner.annotate.lint import WRONG
from lacuner.data import Document, Span

HEARING_LOSS = Entry("hearing loss", "Disease")


def lint_texts(texts: Sequence[str], entries: Sequence[Entry]) -> dict[str, LintRow]:
    """Lint rows by surface, with one document per text."""
    source, statistics = gazetteer_source(entries), LabellingStatistics(neighbours=NeighbourSample())
    docs = [Document(str(number), text) for number, text in enumerate(texts)]
    list(annotate(docs, [source], statistics=statistics))
    return {row.surface: row for row in lint(source, statistics)}


def modified(*words: str, noun: str = "hearing loss") -> list[str]:
    """One text per word in which it precedes the noun."""
    return [f"They had {word} {noun}." for word in words]


MOSTLY = ["non-syndromic"] * 7 + ["sensorineural"] * 5


def test_an_entry_inside_longer_phrases() -> None:
    rows = lint_texts(
        [*modified(*MOSTLY), "A hearing loss.", "of hearing loss"], [HEARING_LOSS, Entry("gout", "Disease")]
    )
    row = rows["hearing loss"]
    assert row.reasons == (
        "12 of 14 matches are inside a longer phrase: non-syndromic hearing loss (7), sensorineural hearing loss (5)",
    )
    assert row.longer == (("non-syndromic hearing loss", 7), ("sensorineural hearing loss", 5))
    assert not row.stop and format_stop_list([row]) == ""
    assert format_longer_phrases([row]) == "non-syndromic hearing loss\tDisease\nsensorineural hearing loss\tDisease\n"


def test_tokenised_hyphens_and_capitals_at_the_start_of_a_sentence() -> None:
    texts = [
        *modified(*["non - syndromic"] * 4),
        "Non - syndromic hearing loss .",
        "Fine. Non - syndromic hearing loss",
    ]
    row = lint_texts(texts, [HEARING_LOSS])["hearing loss"]
    assert row.longer == (("non - syndromic hearing loss", 6),)


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(modified(*["sensorineural"] * 4), id="too few matches"),
        pytest.param([" ".join(modified(*["sensorineural"] * 9))], id="one document"),
        pytest.param(modified(*["the", "with", "some", "any", "whereas", "via"]), id="function words"),
        pytest.param(modified(*["developed"] * 6), id="participles"),
        pytest.param(modified(*["12", "3", "type-2", "(sensorineural)", "sensorineural,"] * 2), id="no words"),
        pytest.param([f"{word}\nhearing loss" for word in MOSTLY], id="another line"),
        pytest.param([f"Rarely {word}. hearing loss" for word in MOSTLY], id="another sentence"),
        pytest.param(modified(*MOSTLY, *["the"] * 9), id="not dominant"),
        pytest.param(modified("profound", "mild", "bilateral", "sudden", "congenital"), id="never repeated"),
        pytest.param([f"hearing loss {verb} it" for verb in ["worsens", "affects"] * 5], id="verbs after the entry"),
        pytest.param(
            [f"DNA hearing loss {verb} it" for verb in ["worsens"] * 6], id="acronym before a lower-case entry"
        ),
        pytest.param(modified("x" * 60, *["y" * 60] * 6), id="very long words"),
    ],
)
def test_not_reported(texts: list[str]) -> None:
    assert "hearing loss" not in lint_texts(texts, [HEARING_LOSS])


def test_a_word_that_precedes_many_entries_is_not_part_of_a_name() -> None:
    nouns = ["gout", "asthma", "anuria", "hearing loss"]
    texts = [text for noun in nouns for text in modified(*["transient"] * 6, noun=noun)]
    assert lint_texts(texts, [Entry(noun, "Disease") for noun in nouns]) == {}
    assert set(lint_texts(texts, [HEARING_LOSS])) == {"hearing loss"}


def test_a_neighbour_with_another_label_is_an_entity_of_its_own() -> None:
    texts = modified(*["cocaine"] * 8, noun="overdose")
    overdose = Entry("overdose", "Disease")
    assert lint_texts(texts, [overdose])["overdose"].longer == (("cocaine overdose", 8),)
    assert lint_texts(texts, [overdose, Entry("cocaine", "Chemical")]) == {}


def test_longer_entries_with_the_same_ending_are_support() -> None:
    texts = [*modified(*["sensorineural"] * 6), *["of hearing loss"] * 4]
    assert lint_texts(texts, [HEARING_LOSS]) == {}, "60 % are not enough"
    rows = lint_texts(texts, [HEARING_LOSS, Entry("conductive Hearing Loss", "Disease")])
    assert rows["hearing loss"].longer == (("sensorineural hearing loss", 6),)


def test_the_rest_of_a_capitalised_name() -> None:
    texts = ["At Halden University."] * 5 + ["at Halden University they met"] * 2
    assert lint_texts(texts, [Entry("Halden", "PLACE")])["Halden"].longer == (("Halden University", 7),)
    assert lint_texts(["in Halden people met"] * 9, [Entry("Halden", "PLACE")]) == {}
    assert lint_texts(["the UNO Report of"] * 9, [Entry("UNO", "ORG")]) == {}


@pytest.mark.parametrize("text", ["患者感音性听力损失严重", "感音性 听力损失 严重", "重度听力损失"])
def test_text_without_cases_is_not_reported(text: str) -> None:
    assert lint_texts([text] * 9, [Entry("听力损失", "Disease")]) == {}


def test_gold_does_not_put_the_entry_on_the_stop_list() -> None:
    docs = [Document(str(number), text) for number, text in enumerate(modified(*["sensorineural"] * 6))]
    gold = [Document(doc.id, doc.text, spans=(Span(9, 35, "Disease"),)) for doc in docs]
    source, precision = gazetteer_source([HEARING_LOSS]), EntryPrecision()
    statistics = LabellingStatistics(neighbours=NeighbourSample())
    for weak, true in zip(annotate(docs, [source], statistics=statistics), gold, strict=True):
        precision.add(weak, true)
    (row,) = lint(source, statistics, precision)
    assert row.reasons[0] == WRONG and row.longer and not row.stop
    statistics.neighbours = None
    (row,) = lint(source, statistics, precision)
    assert row.stop and not row.longer, "without the neighbours only gold counts"


@pytest.mark.integration
def test_the_sample_is_bounded_and_does_not_depend_on_order_or_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundaries, "MAX_SAMPLE", 20)
    monkeypatch.setattr("lacuner.annotate.pipeline.CHUNK_FOR_WORKER", 200)
    texts = modified(*["sensorineural", "profound", "the"] * 40)
    docs = [Document(str(number), text) for number, text in enumerate(texts)]
    source = gazetteer_source([HEARING_LOSS])
    samples = []
    for workers, seed in ((1, 0), (2, 0), (1, 1), (2, 2)):
        shuffled = random.Random(seed).sample(docs, len(docs))
        statistics = LabellingStatistics(neighbours=NeighbourSample())
        list(annotate(shuffled, [source], statistics=statistics, workers=workers))
        assert statistics.neighbours is not None
        assert statistics.neighbours.totals["dictionary"] == {"hearing loss": 120}
        samples.append(sorted(statistics.neighbours.matches["dictionary"]["hearing loss"]))
    assert len(samples[0]) == 20
    assert samples.count(samples[0]) == 4


def test_a_sampled_entry_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundaries, "MAX_SAMPLE", 20)
    (reason,) = lint_texts(modified(*["sensorineural"] * 30), [HEARING_LOSS])["hearing loss"].reasons[-1:]
    assert reason.startswith("20 of 20 sampled matches are inside")


def test_ambiguous_entries_and_longer_entries_are_not_counted_twice() -> None:
    texts = modified(*["sensorineural"] * 6)
    row = lint_texts(texts, [HEARING_LOSS, Entry("hearing loss", "Finding")])["hearing loss"]
    assert row.longer == (("sensorineural hearing loss", 6),)
    every = gazetteer_source([HEARING_LOSS, Entry("sensorineural hearing loss", "Disease")], overlaps="all")
    statistics = LabellingStatistics(neighbours=NeighbourSample())
    docs = [Document(str(number), text) for number, text in enumerate(texts)]
    list(annotate(docs, [every], statistics=statistics, overlaps="all"))
    assert lint(every, statistics) == [], "the longer phrase is an entry already"
