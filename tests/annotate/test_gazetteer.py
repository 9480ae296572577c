"""Gazetteer files in all formats, and the problems reported about them."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuner.annotate import (
    GAZETTEER_FORMATS,
    Gazetteer,
    GazetteerWarning,
    load_gazetteer,
    read_patterns,
    read_stop_list,
)
from lacuner.annotate.gazetteer.files import read_file
from lacuner.errors import GazetteerError


def load(folder: Path, name: str, content: str | bytes, **options: object) -> Gazetteer:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return load_gazetteer(path, **options)  # type: ignore[arg-type]


def pairs(gazetteer: Gazetteer) -> list[tuple[str, str]]:
    return [(entry.surface, entry.label) for entry in gazetteer.entries]


def sentences(gazetteer: Gazetteer) -> list[str]:
    return [str(problem).split(": ", 1)[0].rsplit(":", 1)[-1] + " " + problem.problem for problem in gazetteer.problems]


TWO = [("aspirin", "Chemical"), ("heart attack", "Disease")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("d.tsv", "aspirin\tChemical\nheart attack\tDisease\n"),
        ("d.tsv", "surface\tlabel\naspirin\tChemical\nheart attack\tDisease"),
        ("d.tsv", "Label\tTerm\nChemical\taspirin\nDisease\theart attack\n"),
        ("d.csv", "aspirin,Chemical\r\nheart attack,Disease\r\n"),
        ("d.csv", "aspirin;Chemical\r\nheart attack;Disease\r\n"),
        ("d.csv", "\ufeffterm;type\r\naspirin;Chemical\r\nheart attack;Disease\r\n"),
        ("d.csv", 'sep=;\r\n"aspirin";"Chemical"\r\n"heart attack";"Disease"\r\n'),
        ("d.csv", "aspirin;Chemical;;\r\nheart attack;Disease;;\r\n;;;\r\n"),
        ("d.csv", "aspirin|Chemical\nheart attack|Disease\n"),
        ("d.csv", "aspirin\tChemical\rheart attack\tDisease\r"),
        ("d.tsv", "aspirin\tChemical\nheart attack\tDisease\n".encode("utf-16")),
        ("d.jsonl", '{"surface": "aspirin", "label": "Chemical"}\n\n{"term": "heart attack", "type": "Disease"}\n'),
        ("d.jsonl", '["aspirin", "Chemical"]\n["heart attack", "Disease"]\n'),
        ("d.jsonl", '{"pattern": "aspirin", "label": "Chemical"}\n'
         '{"label": "Disease", "pattern": [{"LOWER": "heart"}, {"ORTH": "attack"}]}\n'),
        ("d.json", '[{"surface": "aspirin", "label": "Chemical"}, {"surface": "heart attack", "label": "Disease"}]'),
    ],
)  # fmt: skip
def test_every_format_gives_the_same_entries(tmp_path: Path, name: str, content: str | bytes) -> None:
    gazetteer = load(tmp_path, name, content)
    assert pairs(gazetteer) == TWO
    assert gazetteer.problems == []


def test_a_list_of_terms_has_the_label_of_its_name_or_the_one_given(tmp_path: Path) -> None:
    assert pairs(load(tmp_path, "Chemical.txt", "aspirin\n\n ibuprofen \n")) == [
        ("aspirin", "Chemical"),
        ("ibuprofen", "Chemical"),
    ]
    assert pairs(load(tmp_path, "terms.txt", "aspirin", label="Drug")) == [("aspirin", "Drug")]
    assert pairs(load(tmp_path, "terms.csv", "term\naspirin\n", label="Drug")) == [("aspirin", "Drug")]


def test_weights_and_ids(tmp_path: Path) -> None:
    by_name = load(tmp_path, "a.csv", "id;surface;label;weight\nD1;aspirin;Chemical;0,8\nD2;gout;Disease;\n")
    assert [entry[:4] for entry in by_name.entries] == [
        ("aspirin", "Chemical", 0.8, "D1"),
        ("gout", "Disease", None, "D2"),
    ]
    by_count = load(tmp_path, "b.tsv", "aspirin\tChemical\t0.8\ngout\tDisease\t1\n")
    assert [entry.weight for entry in by_count.entries] == [0.8, 1.0]
    ids = load(tmp_path, "c.tsv", "aspirin\tChemical\tD1\ngout\tDisease\tD2\n")
    assert [(entry.weight, entry.id) for entry in ids.entries] == [(None, "D1"), (None, "D2")]
    both = load(tmp_path, "d.tsv", "aspirin\tChemical\t0.5\tD1\ngout\tDisease\t1\tD2\n")
    assert [(entry.weight, entry.id) for entry in both.entries] == [(0.5, "D1"), (1.0, "D2")]
    assert both.entries[-1].where == (str(tmp_path / "d.tsv"), 2, False)


def test_quotes_in_cells(tmp_path: Path) -> None:
    table = load(tmp_path, "a.csv", '"Smith, John",PER\n"the ""Bard""",PER\nRoe,PER\n')
    assert [entry.surface for entry in table.entries] == ["Smith, John", 'the "Bard"', "Roe"]
    torn = load(tmp_path, "b.csv", 'gout,D\n"aspirin,C\nflu,D\n"Weird Al" Yankovic,PER\n"cold",D\n')
    assert [entry.surface for entry in torn.entries] == ["gout", "flu", "cold"]
    assert [problem.line for problem in torn.problems] == [2, 4]
    assert "the quotes of this row do not match" in torn.problems[0].problem
    tabs = load(
        tmp_path, "a.tsv", '"Weird Al" Yankovic\tPER\n"Al ""Scarface"" Capone"\tPER\n5" disk\tTHING\n6"\tTHING\n'
    )
    assert [entry.surface for entry in tabs.entries] == ['"Weird Al" Yankovic', 'Al "Scarface" Capone', '5" disk', '6"']


def test_every_mistake_is_one_sentence_with_file_and_line(tmp_path: Path) -> None:
    content = (
        "surface;label\naspirin;Chemical\n;Chemical\nibuprofen;\nonly\naspirin;Chemical\ngout,Disease\n"
        "a\0b;Chemical\nSmith; John;PER;x\naspirin;Drug\n"
    )
    gazetteer = load(tmp_path, "terms.csv", content)
    assert pairs(gazetteer) == [("aspirin", "Chemical"), ("aspirin", "Drug")]
    assert sentences(gazetteer) == [
        "3 the surface is empty",
        "4 the label of 'ibuprofen' is empty: --label is for rows without one",
        "5 this row has 1 column, but 2 columns are needed, separated by a semicolon, "
        "or one label for all rows (--label)",
        "6 'aspirin' as Chemical is a duplicate of line 2",
        "7 this row has 1 column, but 2 columns are needed, separated by a semicolon "
        "(is a comma used instead of a semicolon?)",
        "8 this row has a NUL character",
        "9 this row has 4 columns, the others have 2; is a field with a separator in it not quoted?",
    ]
    assert all(str(problem).startswith(str(tmp_path / "terms.csv")) for problem in gazetteer.problems)
    notes = [problem for problem in gazetteer.problems if isinstance(problem, GazetteerWarning)]
    assert [note.line for note in notes] == [6]
    assert gazetteer.skipped == 6
    assert gazetteer.skipped + len(notes) + len(gazetteer.entries) == 9


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("d.tsv", "aspirin,Chemical\ngout,Disease\n", r"d.tsv:1: this row has 1 column, but 2 columns are needed, "
         r"separated by a tab \(is a comma used instead of a tab\?\) \(and so for all 2 rows\)"),
        ("d.csv", "aspirin\ngout\n", r"d.csv:1: this row has 1 column"),
        ("d.txt", "aspirin\tChemical\n", r"d.txt:1: this term contains a tab"),
        ("d.csv", "", r"d.csv: there is no entry in this file"),
        ("d.csv", "surface,label\n", r"d.csv: there is no entry in this file"),
        ("d.xlsx", "PK", r"d.xlsx: the extension does not tell the format: name one of tsv, csv"),
        ("d.jsonl", "{'a': 1}\n", r"d.jsonl:1: this line is not JSON"),
        ("d.json", "{", r"d.json:1: this is not JSON"),
        ("d.json", '{"a": 1}', r"d.json: this is neither a list nor the result of a SPARQL query"),
        ("d.json", "[" * 100_000, r"d.json"),
        ("d.csv", '"aspirin,Chemical\n"gout,Disease\n', r"d.csv:1: the quotes of this row do not match"),
        ("d.tsv", "Москва\tLOC\nПетербург\tLOC\n".encode("cp1251"), r"d.tsv:1: the byte 0xCC is not UTF-8, and the "
         r"file does not look like Windows-1252; save the file as UTF-8, or name its encoding"),
        ("d.csv", "term;id\naspirin;17\n", r"d.csv:1: this header has no column of labels"),
        ("d.csv", "label;id\nChemical;17\n", r"d.csv:1: this header has no column of terms \(surface\)"),
        ("d.csv", b"PK\x03\x04\x14", r"d.csv: this is not text but a spreadsheet or another archive; save it as CSV"),
        ("d.csv", "aspirin;Chemical\n".encode("utf-16-le"), r"d.csv: this looks like UTF-16 without a byte order"),
        ("d.jsonl", '{"id": "1", "terms": "Will"}', r"d.jsonl:1: the terms of a document must be a list"),
        ("d.jsonl", '{"terms": [["Will", "PER"]]}', r"d.jsonl:1: these terms have no document id"),
        ("d.jsonl", '{"surface": "Mara", "label": "\\ud800"}', r"d.jsonl:1: this row has half of a surrogate pair"),
        ("d.jsonl", '{"surface": "Mara", "label": "PER", "id": "\\ud800"}', r"d.jsonl:1: this row has half of a"),
        ("d.tsv", "a\tLOC\n東京\tLOC\n".encode("shift-jis"), r"d.tsv:2: the byte 0x93 is not UTF-8"),
    ],
)  # fmt: skip
def test_unusable_files_raise(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    with pytest.raises(GazetteerError, match=message):
        load(tmp_path, name, content)


def test_missing_files_and_unknown_encodings(tmp_path: Path) -> None:
    with pytest.raises(GazetteerError, match=r"none\.tsv: cannot read this file: No such file"):
        load_gazetteer(tmp_path / "none.tsv")
    with pytest.raises(GazetteerError, match="this is a folder; name the files in it"):
        load_gazetteer(tmp_path)
    with pytest.raises(GazetteerError, match="there is no encoding called 'klingon'"):
        load(tmp_path, "d.tsv", "a\tb", encoding="klingon")
    with pytest.raises(GazetteerError, match="there is no dictionary format called 'xml'"):
        load(tmp_path, "d.tsv", "a\tb", format="xml")
    with pytest.raises(GazetteerError, match=r"d\.tsv:2: this is not ascii text"):
        load(tmp_path, "d.tsv", "a\tb\né\tb", encoding="ascii")


def test_the_encoding_of_western_spreadsheets(tmp_path: Path) -> None:
    content = "Adresse;Ortsart\r\nMüller’s Straße;Ort\r\nCafé;Ort\r\nBahnhof;Ort\r\n".encode("cp1252")
    gazetteer = load(tmp_path, "d.csv", content)
    assert ("Müller’s Straße", "Ort") in pairs(gazetteer)
    assert sentences(gazetteer) == [
        "1 only this row has the label 'Ortsart'; if it is a header, name its columns surface and label",
        "2 the byte 0xFC is not UTF-8; the file was read as Windows-1252; if that is wrong, name its encoding "
        "(--dictionary-encoding)",
    ]
    named = load(tmp_path, "d.tsv", "Москва\tLOC".encode("cp1251"), encoding="cp1251")
    assert pairs(named) == [("Москва", "LOC")]


def test_headers(tmp_path: Path) -> None:
    for header in ("Term;Type", "Begriff;Kategorie", "nom;étiquette", "名称;标签"):
        assert pairs(load(tmp_path, "d.csv", f"{header}\naspirin;Chemical\n")) == [("aspirin", "Chemical")]
    late = load(tmp_path, "d.csv", "Our terms;\nterm;label\naspirin;Chemical\nterm;Legal\n")
    assert pairs(late) == [("aspirin", "Chemical"), ("term", "Legal")]
    assert sentences(late)[1] == "2 this looks like a header, but it is not the first row"
    labeled = load(tmp_path, "d.csv", "term;id\naspirin;17\n", label="Chemical")
    assert pairs(labeled) == [("aspirin", "Chemical")]


def test_swapped_columns_give_a_warning(tmp_path: Path) -> None:
    gazetteer = load(tmp_path, "d.tsv", "".join(f"PER\tname {i}\n" for i in range(300)))
    assert sentences(gazetteer) == ["1 there are 300 different labels in column 2; is this the column of labels?"]


def test_spacy_patterns(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"label": "ORG", "pattern": "Apple", "id": "apple"},
        {"label": "D", "pattern": [{"LOWER": "parkinson"}, {"LOWER": "'s"}, {"TEXT": "disease"}]},
        {"label": "D", "pattern": [{"LOWER": "covid"}, {"ORTH": "-"}, {"ORTH": "19"}]},
        {"label": "D", "pattern": [{"LOWER": "big"}, {"POS": "NOUN"}]},
        {"label": "D", "pattern": [{"LOWER": {"IN": ["a", "b"]}}]},
        {"label": "D", "pattern": [{"LOWER": "a", "OP": "?"}]},
        {"label": "D", "pattern": []},
    ]
    gazetteer = load(tmp_path, "patterns.jsonl", "\n".join(map(json.dumps, rows)))
    assert [entry.surface for entry in gazetteer.entries] == ["Apple", "parkinson's disease", "covid-19"]
    assert gazetteer.entries[0].id == "apple"
    assert [problem.line for problem in gazetteer.problems] == [4, 5, 6, 7]
    assert "POS" in gazetteer.problems[0].problem


def wikidata(item: str, label: str, alias: str | None, kind: str) -> dict[str, object]:
    entity = "http://www.wikidata.org/entity/"
    row = {"item": {"type": "uri", "value": entity + item}, "itemLabel": {"type": "literal", "value": label}}
    if alias is not None:
        row["alias"] = {"type": "literal", "value": alias}
    return {**row, "class": {"type": "uri", "value": entity + kind}}


def test_sparql_results(tmp_path: Path) -> None:
    bindings = [
        wikidata("Q42", "Douglas Adams", "DNA", "Q5"),
        wikidata("Q42", "Douglas Adams", "Douglas Noel Adams", "Q5"),
        wikidata("Q90", "Paris", "City of Light|Paname", "Q515"),
        wikidata("Q91", "Q91", None, "Q515"),
        wikidata("Q92", "Foo", None, "Q1"),
    ]
    content = json.dumps({"head": {"vars": ["item"]}, "results": {"bindings": bindings}})
    gazetteer = load(tmp_path, "query.json", content, mapping={"Q5": "PER", "Q515": "LOC"})
    expected = [
        ("Douglas Adams", "PER"), ("DNA", "PER"), ("Douglas Noel Adams", "PER"),
        ("Paris", "LOC"), ("City of Light", "LOC"), ("Paname", "LOC"),
    ]  # fmt: skip
    assert pairs(gazetteer) == expected
    assert gazetteer.entries[0].id == "Q42"
    assert [problem.problem for problem in gazetteer.problems] == [
        "row 4: the item Q91 has no label in this language",
        "row 5: the mapping has no label for the class 'Q1'",
    ]
    table = "item,itemLabel,itemAltLabel,class\n" + "".join(
        f"http://www.wikidata.org/entity/{row}\n"
        for row in ('Q42,Douglas Adams,"DNA, Douglas Noel Adams",Q5', "Q90,Paris,City of Light|Paname,Q515")
    )
    assert pairs(load(tmp_path, "query.csv", table, mapping={"Q5": "PER", "Q515": "LOC"})) == expected
    assert pairs(load(tmp_path, "q.csv", "item,label,alias,class\nQ1,Rome,,city\n")) == [("Rome", "city")]
    flat = load(tmp_path, "flat.json", '[{"item": "http://x/Q1", "itemLabel": "Rome"}]', label="LOC")
    assert pairs(flat) == [("Rome", "LOC")]


def test_a_gazetteer_per_document(tmp_path: Path) -> None:
    rows = [
        '{"id": "q1", "terms": [["red shoe", "Product"], ["", "X"]]}',
        '{"id": 2, "terms": [{"term": "a", "label": "B"}]}',
    ]
    gazetteer = load(tmp_path, "terms.jsonl", "\n".join(rows))
    assert {id: [entry[:2] for entry in terms] for id, terms in gazetteer.by_document.items()} == {
        "q1": [("red shoe", "Product")],
        "2": [("a", "B")],
    }
    assert sentences(gazetteer) == ["1 the surface is empty"]
    assert len(gazetteer) == 2


@pytest.mark.parametrize("format", GAZETTEER_FORMATS)
def test_any_bytes_give_entries_or_one_clear_error(tmp_path_factory: pytest.TempPathFactory, format: str) -> None:
    path = tmp_path_factory.mktemp("fuzz") / f"d.{format}"

    @given(st.binary(max_size=200) | st.text("a\"',;|\t\n\r{}[]:0 é\0", max_size=200).map(str.encode))
    def check(content: bytes) -> None:
        path.write_bytes(content)
        try:
            gazetteer = load_gazetteer(path)
        except GazetteerError as error:
            assert error.file == str(path)
            return
        assert len(gazetteer)
        for entry in gazetteer.entries:
            assert entry.surface and entry.label and "\0" not in entry.surface

    check()


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_cells_with_line_breaks(tmp_path: Path, ending: str) -> None:
    def table(content: str) -> Gazetteer:
        return load(tmp_path, f"d.{ending}", content.replace(",", "," if ending == "csv" else "\t"))

    two = table('surface,label\n"Mara\nTeel",PER\n"Bram\n\nvan ""X"" \n Oster","PER"\nOslo,LOC\n,LOC\n')
    assert pairs(two) == [("Mara Teel", "PER"), ('Bram van "X" Oster', "PER"), ("Oslo", "LOC")]
    assert [(entry.where or (0, 0))[1] for entry in two.entries] == [2, 4, 8]
    assert sentences(two) == ["9 the surface is empty"]
    notes = table('surface,label,id\nOslo,LOC,"a note\nof two lines"\nBergen,LOC,x\n')
    assert pairs(notes) == [("Oslo", "LOC"), ("Bergen", "LOC")]
    doubtful = load(tmp_path, "x.csv", 'Rome,LOC\n"Oslo\nBergen,LOC\nMoss",LOC\n')
    assert pairs(doubtful)[0] == ("Rome", "LOC") and len(pairs(doubtful)) == 2
    assert sentences(doubtful) == ["2 because of its quotes this row continues to line 4; is a quote not closed?"]
    inches = load(tmp_path, "x.tsv", 'DISK\t"3.5\nDISK\t5"\nTAPE\t8"\n')
    assert [entry.label for entry in inches.entries] == ['"3.5', '5"', '8"']


def test_a_superfluous_quote_swallows_no_rows(tmp_path: Path) -> None:
    rows = "".join(f"name {i},X\n" for i in range(2_000))
    for content in (f'"aspirin,X\n{rows}', f'"aspirin,X\n{rows}gout",X\n', f'"aspirin,X\n{rows[:40]}gout",X\n'):
        table = load(tmp_path, "d.csv", content)
        assert sentences(table)[0] == "1 the quotes of this row do not match"
        assert [entry.surface for entry in table.entries][:3] == ["name 0", "name 1", "name 2"]


def test_only_the_label_service_separates_aliases_by_commas(tmp_path: Path) -> None:
    rows = '\nQ1,Rome,"Rome, Italy",city\n'
    for column, aliases in (("alias", ["Rome, Italy"]), ("altLabel", ["Italy"]), ("itemAltLabel", ["Italy"])):
        table = load(tmp_path, "q.csv", f"item,itemLabel,{column},class{rows}")
        assert [entry.surface for entry in table.entries] == ["Rome", *aliases]
        row = {"item": "http://x/Q1", "itemLabel": "Rome", column: "Rome, Italy", "class": "city"}
        assert pairs(load(tmp_path, "q.json", json.dumps([row]))) == pairs(table)


@pytest.mark.parametrize("read", [partial(load_gazetteer, format="tsv"), read_stop_list, read_patterns])
def test_files_without_an_end_are_refused(read: Callable[[Path], object]) -> None:
    with pytest.raises(GazetteerError, match="this is a device, not a file"):
        read(Path("/dev/zero"))
    with pytest.raises(GazetteerError, match="cannot read this file"):
        read(Path("a\0b.tsv"))


def test_files_that_are_too_large_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_bytes(b"x" * (3 << 20))
    with pytest.raises(GazetteerError, match="this file has more than 2 MiB"):
        read_file(tmp_path / "x.tsv", 2 << 20)
    assert len(read_file(tmp_path / "x.tsv")) == 3 << 20


@pytest.mark.parametrize("column", ["Synonyms", "aliases"])
def test_synonyms_in_a_column_of_their_own_are_entries(tmp_path: Path, column: str) -> None:
    table = load(
        tmp_path, "t.csv", f"name,type,{column}\nHalden,PLACE,Fredrikshald; H-town\nMara,PERSON,\nVorn,PLACE,Nova|New\n"
    )
    assert pairs(table)[:4] == [("Halden", "PLACE"), ("Fredrikshald", "PLACE"), ("H-town", "PLACE"), ("Mara", "PERSON")]
    assert pairs(table)[-2:] == [("Nova", "PLACE"), ("New", "PLACE")] and not table.problems


def test_a_table_of_synonyms_alone(tmp_path: Path) -> None:
    assert pairs(load(tmp_path, "t.csv", "synonym,label\nHalden; or so,PLACE\n")) == [("Halden; or so", "PLACE")]


def test_a_cell_with_two_labels_gives_a_warning(tmp_path: Path) -> None:
    gazetteer = load(
        tmp_path, "d.tsv", "aspirin\tChemical\nzinc\tChemical\nnaloxone\tChemical;Drug\nziconotide\tChemical;Drug\n"
    )
    assert sentences(gazetteer) == ["3 'Chemical;Drug' is read as one label; several labels of a term need a row each"]


def test_compressed_files_and_addresses_are_no_gazetteers(tmp_path: Path) -> None:
    with pytest.raises(GazetteerError, match=r"d\.csv\.gz: a gazetteer must not be compressed: unpack it first"):
        load(tmp_path, "d.csv.gz", "a,b")
    with pytest.raises(GazetteerError, match=r"https://example\.org/d\.tsv: a gazetteer is read from a file: download"):
        load_gazetteer("https://example.org/d.tsv")
