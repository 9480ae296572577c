"""The gazetteer that travels with a tagger: matching, merging, saving, and files that are not one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lacuner.annotate import Entry
from lacuner.data import Document, Span
from lacuner.errors import ModelFileError
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.gazetteer import TaggerGazetteer, parse_gazetteer
from lacuner.models.heads import build_head
from lacuner.models.merging import MERGE_RULES, MergeRule, merge_spans
from lacuner.models.model import Model
from lacuner.models.sidecar import read_sidecars, write_sidecar
from lacuner.models.storage import load, load_with_entries, save
from lacuner.models.tagger import Tagger

ENTRIES = [Entry("Halden", "LOC"), Entry("aspirin", "DRUG"), Entry("Vorn", "LOC"), Entry("Vorn", "PER")]


def tagger(gazetteer: TaggerGazetteer | None = None) -> Tagger:
    torch.manual_seed(0)
    encoder = TinyEncoder(TinyConfig(rows=64, width=16, feature=4, heads=2))
    model = Model(encoder, build_head({"kind": "span", "labels": ["LOC", "PER"], "threshold": 0.999}, encoder.width))
    return Tagger(model.eval(), gazetteer)


def test_matches_are_added_to_what_the_model_predicts() -> None:
    found = tagger(TaggerGazetteer(ENTRIES))("Mara left Halden with Aspirin for Vorn.")
    assert [(found.text[s.start : s.end], s.label) for s in found.spans] == [("Halden", "LOC"), ("Aspirin", "DRUG")]
    assert {span.source for span in found.spans} == {"gazetteer"}, "an entry with two labels is left to the model"
    assert not tagger()("Mara left Halden.").spans


def test_a_saved_tagger_has_its_gazetteer(tmp_path: Path) -> None:
    gazetteer = TaggerGazetteer(ENTRIES, case="exact", stop=["Halden"])
    save(tagger(gazetteer), tmp_path)
    again = load(tmp_path)
    assert again.gazetteer is not None and again.gazetteer.sha256 == gazetteer.sha256
    assert [span.label for span in again("halden Halden aspirin Aspirin").spans] == ["DRUG"]
    (tmp_path / "gazetteer.json").write_text("{}")
    with pytest.raises(ModelFileError, match="has changed"):
        load(tmp_path)


def as_file(case: str = "smart", row: str = '["a", "B"]') -> str:
    return f'{{"format": 1, "case": "{case}", "spacing": "given", "stop": [], "entries": [{row}]}}'


@pytest.mark.parametrize(
    "data",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        as_file(row='["a"]'),
        as_file("upside"),
        as_file(row='["a", 7]'),
        as_file(row='["a", ""]'),
        as_file().replace("{", '{"rule": "coin", ', 1),
        as_file().replace("{", '{"rule": [], ', 1),
    ],
)
def test_a_file_that_is_no_gazetteer(data: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="not a valid gazetteer file"):
        parse_gazetteer(data.encode(), tmp_path / "gazetteer.json")


def test_the_first_gazetteer_has_priority(tmp_path: Path) -> None:
    write_sidecar(TaggerGazetteer([Entry("Halden", "LOC")]), tmp_path / "a.jsonl")
    write_sidecar(TaggerGazetteer([Entry("halden", "PER"), Entry("Moss", "LOC")]), tmp_path / "b.jsonl")
    both = read_sidecars([tmp_path / "a.jsonl", tmp_path / "b.jsonl", tmp_path / "c.jsonl"])
    assert both is not None
    assert [span.label for span in both.find(Document("1", "Halden, Moss"))] == ["LOC", "LOC"]
    assert read_sidecars([tmp_path / "c.jsonl"]) is None


def test_merging() -> None:
    match, second = Span(4, 8, "LOC", None, "gazetteer"), Span(10, 14, "LOC", None, "gazetteer")
    same, wide, apart = Span(4, 8, "LOC", 0.4), Span(0, 8, "ORG", 0.9), Span(16, 18, "PER", 0.3)
    assert merge_spans([match], [same, apart]) == (match._replace(score=0.4), apart)
    assert merge_spans([match], [wide, apart]) == (wide, apart), "a probable extension of one match wins"
    assert merge_spans([match], [wide._replace(score=0.5), apart]) == (match, apart), "an improbable one does not"
    assert merge_spans([match], [Span(6, 9, "LOC", 0.9)]) == (match,), "nor one that cuts the match"
    assert merge_spans([match], [Span(4, 8, "ORG", 0.9)]) == (match,), "nor another label"
    assert merge_spans([match, second], [Span(4, 14, "LOC", 0.99)]) == (match, second), "nor one that joins two matches"
    assert merge_spans([], [apart]) == (apart,) and merge_spans([match], []) == (match,)


@st.composite
def disjoint_spans(draw: st.DrawFn) -> list[Span]:
    edges = sorted(draw(st.lists(st.integers(0, 24), max_size=10, unique=True)))
    labels, scores = st.sampled_from(["LOC", "PER"]), st.sampled_from([0.2, 0.5, 0.6])
    pairs = zip(edges[::2], edges[1::2], strict=False)
    return [Span(start, end, draw(labels), draw(scores)) for start, end in pairs]


@given(disjoint_spans(), disjoint_spans(), st.sampled_from(MERGE_RULES))
def test_merging_equals_the_definition(matches: list[Span], predicted: list[Span], rule: MergeRule) -> None:
    """`merge_spans` searches; this compares every match with every prediction."""
    matches = [match._replace(score=None, source="gazetteer") for match in matches]

    def wins(span: Span) -> bool:
        own = [match for match in matches if span.overlaps(match)]
        if rule == "match" or (span.score or 0) <= 0.5 or span.key in {match.key for match in own}:
            return False
        longer = all(span.start <= m.start and m.end <= span.end and span[:2] != m[:2] for m in own)
        return rule == "prediction" or (longer and (rule == "longer" or len(own) == 1))

    winners = [span for span in predicted if wins(span)]
    kept = [match for match in matches if not any(span.overlaps(match) for span in winners)]
    scores = {span.key: span.score for span in predicted}
    expected = [match._replace(score=scores.get(match.key)) for match in kept]
    expected += [span for span in predicted if not any(span.overlaps(match) for match in kept)]
    assert merge_spans(matches, predicted, rule) == tuple(sorted(predicted if rule == "model" else expected))


def test_the_merge_rule_is_saved(tmp_path: Path) -> None:
    plain = TaggerGazetteer(ENTRIES)
    both = plain.join(TaggerGazetteer([Entry("Moss", "LOC")], case="exact")).with_rule("model")
    assert plain.rule == "extension" and b"rule" not in plain.to_json(), "the default is not written"
    assert both.extend([Entry("Oslo", "LOC")]).rename_labels({"LOC": "PLACE"}).rule == "model"
    save(tagger(both), tmp_path / "run")
    again = load(tmp_path / "run")
    assert again.gazetteer is not None and again.gazetteer.rule == "model"
    assert not again("Mara left Halden.").spans, "matches are not used"
    (tmp_path / "more.tsv").write_text("Mara\tPER\n")
    more = load_with_entries(tmp_path / "run", dictionary=[tmp_path / "more.tsv"])
    assert [s.label for s in more("Mara left Halden.").spans] == ["PER"], "but entries that the user adds are"


def test_labels_are_renamed_with_those_of_the_documents() -> None:
    renamed = TaggerGazetteer(ENTRIES, stop=["Moss"]).rename_labels({"DRUG": "Chemical"})
    assert renamed.labels == ("Chemical", "LOC", "PER") and renamed.stop == ("Moss",)


def test_gazetteers_with_different_options_keep_their_own(tmp_path: Path) -> None:
    """One file of weak labels was made with `--case exact`, the other with the default and a stop list."""
    write_sidecar(
        TaggerGazetteer([Entry("aspirin", "DRUG"), Entry("Halden", "LOC")], case="exact"), tmp_path / "a.jsonl"
    )
    second = TaggerGazetteer([Entry("Moss", "LOC"), Entry("Vorn", "LOC"), Entry("Halden", "PER")], stop=["vorn"])
    write_sidecar(second, tmp_path / "b.jsonl")
    joined = read_sidecars([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    assert joined is not None and len(joined) == 4, "Halden is in the first"
    doc = Document("1", "Aspirin and aspirin, MOSS, Halden, HALDEN, Vorn.")
    assert [(doc.text[s.start : s.end], s.label) for s in joined.find(doc)] == [
        *(("aspirin", "DRUG"), ("MOSS", "LOC"), ("Halden", "LOC")),
    ]
    again = parse_gazetteer(joined.to_json(), Path("x"))
    assert again.find(doc) == joined.find(doc) and again.sha256 == joined.sha256
    assert again.labels == ("DRUG", "LOC")
    renamed = again.rename_labels({"LOC": "PLACE"}).extend([Entry("Oslo", "PLACE"), Entry("moss", "X")])
    assert renamed.labels == ("DRUG", "PLACE") and [part.case for part in renamed.parts] == ["exact", "smart"]


def test_gazetteers_with_the_same_options_are_one(tmp_path: Path) -> None:
    one, two = TaggerGazetteer(ENTRIES[:1]), TaggerGazetteer(ENTRIES[:2])
    assert one.join(two).others == () and one.join(two).to_json() == two.to_json()


def test_matches_of_gazetteers_do_not_overlap() -> None:
    joined = TaggerGazetteer([Entry("New Vorn", "LOC")], case="exact").join(
        TaggerGazetteer([Entry("Vorn Bank", "ORG")])
    )
    assert [span.key for span in joined.find(Document("1", "New Vorn Bank, vorn bank"))] == [
        (0, 8, "LOC"),
        (15, 24, "ORG"),
    ]


@pytest.mark.parametrize(
    "others", ['"x"', "[1]", '[{"case": "loud", "spacing": "given", "stop": [], "entries": []}]', "null"]
)
def test_damaged_files_of_several_gazetteers(others: str) -> None:
    data = f'{{"format": 2, "case": "fold", "spacing": "given", "stop": [], "entries": [], "others": {others}}}'
    with pytest.raises(ModelFileError, match="not a valid gazetteer file"):
        parse_gazetteer(data.encode(), Path("x"))


def test_it_is_said_which_added_entries_are_not_used(tmp_path: Path) -> None:
    save(tagger(TaggerGazetteer(ENTRIES)), tmp_path / "model")
    file = tmp_path / "more.tsv"
    file.write_text("Halden\tPER\nOslo\tLOC\nMoss\n")
    lines: list[str] = []
    extended = load_with_entries(tmp_path / "model", dictionary=[file], log=lines.append)
    assert [span.label for span in extended("Halden Oslo Moss").spans] == ["LOC", "LOC"]
    assert lines[0].startswith(f"{file}:3: ") and lines[1:] == [
        f"read {file}: 2 entries, 1 row skipped",
        f"{file}: 1 of these entries already in the tagger's gazetteer, whose labels stay",
    ]
