"""The lookup tagger: exact matches of the labeled names."""

from __future__ import annotations

from pathlib import Path

import pytest

from lacuner.annotate.gazetteer.entries import Entry
from lacuner.data import Document, Span, Splits
from lacuner.models.gazetteer import TaggerGazetteer
from lacuner.models.lookup import LookupTagger, build_lookup_tagger
from lacuner.models.storage import load, load_with_entries, save
from lacuner.trainer.train import train

SEEN = [
    Document("1", "She left Rome for New York .", spans=(Span(9, 13, "CITY"), Span(18, 26, "CITY"))),
    Document("2", "Rome won .", spans=(Span(0, 4, "TEAM"),)),
    Document("3", "In Rome .", spans=(Span(3, 7, "CITY"),)),
]


@pytest.mark.parametrize("words", [(), ((0, 4), (5, 9), (10, 14), (15, 19), (20, 21))])
def test_names_are_found_where_they_stand(words: tuple[tuple[int, int], ...]) -> None:
    doc = Document("4", "From Rome York , New York"[:20] + ".", words=words)
    [found] = build_lookup_tagger(SEEN).predict([doc])
    assert found.spans == (Span(5, 9, "CITY", 1.0),) and found.complete is None


def test_the_longest_name_counts_and_the_most_frequent_label(tmp_path: Path) -> None:
    tagger = build_lookup_tagger(SEEN)
    save(tagger, tmp_path)
    text = "New York and Rome"
    assert load(tmp_path)(text).spans == tagger(text).spans == (Span(0, 8, "CITY", 1.0), Span(13, 17, "CITY", 1.0))


def test_a_gazetteer_is_matched_instead_of_the_labeled_names(tmp_path: Path) -> None:
    tagger = LookupTagger(build_lookup_tagger(SEEN).names, TaggerGazetteer([Entry("Oslo", "CITY")]))
    save(tagger, tmp_path)
    text = "From Rome to Oslo"
    assert [span.key for span in load(tmp_path)(text).spans] == [(13, 17, "CITY")]
    assert load(tmp_path).labels == ("CITY",)
    without = load_with_entries(tmp_path, gazetteer=False)
    assert [span.key for span in without(text).spans] == [(5, 9, "CITY")]


def test_the_recipe_dictionary_uses_the_gazetteer_of_the_weak_labels(tmp_path: Path) -> None:
    lines: list[str] = []
    gazetteer = TaggerGazetteer([Entry("Oslo", "CITY")])
    train("dictionary", Splits(weak=SEEN), tmp_path / "run", log=lines.append, gazetteer=gazetteer)
    assert any("matches the 1 gazetteer entries, not the labeled names" in line for line in lines)
    assert [span.key for span in load(tmp_path / "run")("Rome, Oslo").spans] == [(6, 10, "CITY")]
