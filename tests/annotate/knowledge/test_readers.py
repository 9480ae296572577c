"""Every format of `lacuner dictionary build`: files as the tools write them, and damaged and hostile ones."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import re
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lacuner.annotate import load_gazetteer
from lacuner.annotate.knowledge import KNOWLEDGE_FORMATS, KnowledgeFile, NameFilter, build_gazetteer
from lacuner.annotate.knowledge.build import BuildReport
from lacuner.errors import ConfigError, GazetteerError, LacunerError
from tests.annotate.knowledge import samples

Rows = set[tuple[str, str, str | None]]


def build(file: Path, label: str | None = None, classes: dict[str, str] | None = None, **options: object) -> Rows:
    """The entries that a file gives, as `--dictionary` then reads them."""
    return run(file, label, classes, **options)[0]


def run(
    file: Path, label: str | None = None, classes: dict[str, str] | None = None, **options: object
) -> tuple[Rows, BuildReport]:
    names = NameFilter(**options)  # type: ignore[arg-type]
    source = KnowledgeFile(file, wanted=frozenset(classes or ()), label=label)
    out = file.parent / "out" / "terms.tsv"
    report = build_gazetteer([source], out, labels=classes, names=names)
    gazetteer = load_gazetteer(out)
    assert gazetteer.problems == []
    return {(entry.surface, entry.label, entry.id) for entry in gazetteer.entries}, report


CITIES = {("Halden", "LOC", "Q101"), ("Fredrikshald", "LOC", "Q101")}


@pytest.mark.parametrize("name", ["dump.json", "dump.json.bz2", "dump.json.gz", "dump.json.xz"])
def test_wikidata_dumps(tmp_path: Path, name: str) -> None:
    pack = {"bz2": bz2.compress, "gz": gzip.compress, "xz": lzma.compress}.get(name.rpartition(".")[2], bytes)
    file = tmp_path / name
    file.write_bytes(pack(samples.WIKIDATA.encode()))
    classes = {"Q5": "PER", "Q515": "LOC"}
    rows, report = run(file, classes=classes, languages=("en",))
    assert rows == {*CITIES, ("Mara Teel", "PER", "Q102"), ("M. Teel", "PER", "Q102")}
    assert report.skipped == {"of another class": 1, "a property or lexeme, not an item": 1}
    assert report.filtered == {
        **{"in another language": 3, "too short": 1, "a common word": 1},
        "a duplicate": 1,  # Mara Teel in English and in all languages
    }
    german = build(file, classes=classes, languages=("de",))
    assert german == {("Bram Oster", "LOC", "Q104"), ("Bram Oster", "PER", "Q104"), ("Mara Teel", "PER", "Q102")}


def test_subclasses_in_wikidata(tmp_path: Path) -> None:
    """A class counts with everything below it, however deep, whatever the order of lines; cycles do no harm."""
    town = samples.wikidata_item("Q201", {"en": "Vorn"}, {}, "Q3957")
    hamlet = samples.wikidata_item("Q202", {"en": "Lesk"}, {}, "Q5084")
    person = samples.wikidata_item("Q203", {"en": "Mara Teel"}, {}, "Q5")
    deeper, middle, top = (
        samples.wikidata_subclass(*pair) for pair in (("Q5084", "Q3957"), ("Q3957", "Q486972"), ("Q486972", "Q5084"))
    )
    lines = ",\n".join(map(json.dumps, (town, deeper, hamlet, middle, person, top)))
    file = tmp_path / "dump.json"
    file.write_text(f"[\n{lines}\n]\n")
    classes = {"Q486972": "LOC"}
    with pytest.raises(GazetteerError, match="of another class"):
        build(file, classes=classes)
    source = KnowledgeFile(file, wanted=frozenset(classes), subclasses=True)
    report = build_gazetteer([source], tmp_path / "x.tsv", labels=classes)
    assert (report.entries, report.skipped["of another class"]) == ({"LOC": 2}, 4)


def test_old_wikidata_dumps_have_only_the_number_of_a_class(tmp_path: Path) -> None:
    file = tmp_path / "dump.json"
    file.write_text("[\n" + json.dumps(samples.ITEMS[0]).replace(', "id": "Q515"', "") + "\n]\n")
    assert build(file, classes={"Q515": "LOC"}, languages=("en",)) == CITIES


def test_sparql_results_and_tables(tmp_path: Path) -> None:
    entity = "http://www.wikidata.org/entity/"
    (tmp_path / "query.csv").write_text(f"item,itemLabel,alias,class\n{entity}Q1,Halden,Hald,{entity}Q515\n")
    binding = {"item": f"{entity}Q2", "itemLabel": "Mara Teel", "class": f"{entity}Q5"}
    bindings = [{key: {"type": "literal", "value": value} for key, value in binding.items()}]
    result = {"head": {"vars": list(binding)}, "results": {"bindings": bindings}}
    (tmp_path / "query.json").write_text(json.dumps(result))
    assert build(tmp_path / "query.csv", classes={"Q515": "LOC"}) == {("Halden", "LOC", "Q1"), ("Hald", "LOC", "Q1")}
    assert build(tmp_path / "query.json", classes={"Q5": "PER"}) == {("Mara Teel", "PER", "Q2")}
    (tmp_path / "terms.tsv").write_text("Halden\tLOC\nTeel\tPER\n")
    assert build(tmp_path / "terms.tsv") == {("Halden", "LOC", None), ("Teel", "PER", None)}
    (tmp_path / "list.txt").write_text("Halden\nMoss\n")
    assert build(tmp_path / "list.txt", label="LOC") == {("Halden", "LOC", None), ("Moss", "LOC", None)}


def test_languages_and_aliases_in_sparql_results(tmp_path: Path) -> None:
    """The result says in which language a label is, but `--language` kept them all."""
    entity = {"item": {"type": "uri", "value": "http://www.wikidata.org/entity/Q585"}}
    rows = []
    for label, alias, language in (("Oslo", "Kristiania", "nb"), ("Christiania", "Kristiania", "de")):
        literals = {"itemLabel": label, "alias": alias}
        literal = {name: {"type": "literal", "value": value, "xml:lang": language} for name, value in literals.items()}
        rows.append({**entity, **literal, "class": {"type": "uri", "value": "http://www.wikidata.org/entity/Q515"}})
    services = {"type": "literal", "value": "Oslo, Tigerstaden", "xml:lang": "nb"}
    rows.append({**entity, "itemLabel": rows[0]["itemLabel"], "itemAltLabel": services, "class": rows[0]["class"]})
    (tmp_path / "query.json").write_text(json.dumps({"results": {"bindings": rows}}))
    classes = {"Q515": "LOC"}

    def names(**options: object) -> set[str]:
        return {surface for surface, *_ in build(tmp_path / "query.json", classes=classes, **options)}

    assert names(languages=("nb",)) == {"Oslo", "Kristiania", "Tigerstaden"}
    assert names(languages=("de",)) == {"Christiania", "Kristiania"}
    assert names(kinds=("label",)) == {"Oslo", "Christiania"}
    assert names() == {"Oslo", "Christiania", "Kristiania", "Tigerstaden"}


def test_obo(tmp_path: Path) -> None:
    file = tmp_path / "doid.obo"
    file.write_text(samples.OBO)
    fever = {(text, "Disease", "DOID:77") for text in ("bowel fever", "enteric fever", 'fever of the "bowel"')}
    rows, report = run(file, classes={"DOID:4": "Disease"})
    assert rows == {*fever, ("ailment", "Disease", "DOID:4")}
    assert report.skipped == {"of another class": 1, "obsolete": 1} and report.filtered == {"of another kind": 2}
    assert build(file, classes={"disease_ontology": "D"}, kinds=("broad",)) == {("fever", "D", "DOID:77")}
    assert ("going on foot", "X", "GO:1") in build(file, label="X")


def test_owl(tmp_path: Path) -> None:
    file = tmp_path / "doid.owl.gz"
    file.write_bytes(gzip.compress(samples.OWL.encode()))
    fever = {(text, "Disease", "DOID:77") for text in ("bowel fever", "enteric fever & chill")}
    rows, report = run(file, classes={"DOID:4": "Disease"}, languages=("en",))
    assert rows == {*fever, ("ailment", "Disease", "DOID:4")}
    assert report.skipped == {"of another class": 1, "obsolete": 1}
    assert report.filtered == {"of another kind": 1, "in another language": 1}
    assert build(file, classes={"DOID:77": "X"}, kinds=("related",)) == {("typhus-like state", "X", "DOID:77")}


def test_skos_in_json_ld(tmp_path: Path) -> None:
    for name in ("thesaurus.jsonld", "thesaurus.json"):
        (tmp_path / name).write_text(json.dumps(samples.SKOS, indent=1))
        rows = build(tmp_path / name, classes={"fruit": "Fruit", "Place": "LOC"}, languages=("en",))
        assert rows == {
            *(("pome fruit", "Fruit", "fruit"), ("Grey Pippin", "Fruit", "apple"), ("pippin, grey", "Fruit", "apple")),
            ("Halden", "LOC", "halden"),
        }
    german = build(tmp_path / "thesaurus.jsonld", label="X", languages=("de",), kinds=("label",))
    assert german == {("Obst", "X", "fruit"), ("Graupepping", "X", "apple"), ("Halden", "X", "halden")}


def test_skos_in_rdf_xml(tmp_path: Path) -> None:
    """With the property of the concept scheme, and a concept as a typed description."""
    text = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:skos="http://www.w3.org/2004/02/skos/core#">
    <skos:Concept rdf:about="http://example.org/t#apple"><skos:prefLabel xml:lang="en">Grey Pippin</skos:prefLabel>
    <skos:inScheme rdf:resource="http://example.org/t#fruits"/></skos:Concept>
    <rdf:Description rdf:about="http://example.org/t#pear"><rdf:type rdf:resource="http://example.org/t#Pear"/>
    <skos:altLabel>Red Pear</skos:altLabel></rdf:Description></rdf:RDF>"""
    (tmp_path / "t.rdf").write_text(text)
    rows = build(tmp_path / "t.rdf", classes={"fruits": "F", "Pear": "P"})
    assert rows == {("Grey Pippin", "F", "apple"), ("Red Pear", "P", "pear")}


def test_umls(tmp_path: Path) -> None:
    (tmp_path / "META").mkdir()
    (tmp_path / "META" / "MRCONSO.RRF").write_text(samples.MRCONSO)
    (tmp_path / "META" / "MRSTY.RRF.gz").write_bytes(gzip.compress(samples.MRSTY.encode()))
    classes = {"T121": "Chemical", "Disease or Syndrome": "Disease"}
    rows, report = run(tmp_path / "META", classes=classes, languages=("en",))
    drug = {(text, "Chemical", "C0000001") for text in ("Veltazine", "Veltazine hydrochloride")}
    assert rows == {*drug, ("Bowel fever", "Disease", "C0000002")}
    assert report.skipped == {"of another class": 1, "obsolete or suppressed": 1}
    assert report.filtered == {"in another language": 1}
    assert build(tmp_path / "META" / "MRCONSO.RRF", label="X", languages=("de",)) == {("Veltazin", "X", "C0000001")}
    (tmp_path / "META" / "MRCONSO.RRF").write_text("".join(reversed(samples.MRCONSO.splitlines(True))))
    with pytest.raises(GazetteerError, match=r"MRCONSO.RRF is not sorted by concept: sort it"):
        build(tmp_path / "META", label="X")
    (tmp_path / "META" / "MRSTY.RRF.gz").unlink()
    (tmp_path / "META" / "MRCONSO.RRF.ab").write_text("")
    with pytest.raises(GazetteerError, match=r"which of these is MRCONSO.RRF\? .*: MRCONSO.RRF, MRCONSO.RRF.ab"):
        build(tmp_path / "META", label="X")
    (tmp_path / "META" / "MRCONSO.RRF.ab").unlink()
    with pytest.raises(GazetteerError, match=r"no MRSTY.RRF beside the names, so --class cannot be used"):
        build(tmp_path / "META", classes=classes)


def test_spreadsheets(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (("Term", "Type", "ID"), ("Halden", "PLACE", 7.0), ("Mara\nTeel", "PERSON", None), (None, None, None)):
        book.active.append(row)
    book.active.append(("Vorn", "PLACE", 1234567.5))
    book.active.append(("=1+1", "PLACE"))  # a formula without a stored value is empty
    book.create_sheet("More").append(("Moss",))
    book.save(tmp_path / "terms.xlsx")
    rows, report = run(tmp_path / "terms.xlsx")
    assert rows == {("Halden", "PLACE", "7"), ("Mara Teel", "PERSON", None), ("Vorn", "PLACE", "1234567.5")}
    assert report.skipped == {"the surface is empty": 1}
    source = KnowledgeFile(tmp_path / "terms.xlsx", sheet="More", label="LAKE")
    assert build_gazetteer([source], tmp_path / "more.tsv").entries == {"LAKE": 1}
    with pytest.raises(GazetteerError, match="no sheet called 'Les': --sheet is one of Sheet, More"):
        build_gazetteer([KnowledgeFile(tmp_path / "terms.xlsx", sheet="Les")], tmp_path / "more.tsv")
    (tmp_path / "broken.xlsx").write_bytes(b"PK\x03\x04nothing")
    with pytest.raises(GazetteerError, match="not an Excel file"):
        build(tmp_path / "broken.xlsx")


def change_member(file: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    """Rewrite a member of an archive, or add it."""
    with zipfile.ZipFile(file) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    members[name] = change(members.get(name, b""))
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members.items():
            archive.writestr(member, data)


def add_rows(rows: bytes) -> Callable[[bytes], bytes]:
    return lambda sheet: sheet.replace(b"</sheetData>", rows + b"</sheetData>")


DECLARATION, ENTITY = re.compile(rb"^(<\?xml[^>]*>)?"), rb'\1<!DOCTYPE x [<!ENTITY a "b">]>'
SHEET = "xl/worksheets/sheet1.xml"
STRINGS = b'<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
SPREADSHEETS: dict[str, tuple[str, Callable[[bytes], bytes], str]] = {
    "a row after a gap": (
        SHEET,
        add_rows(b'<row r="2000000"><c r="A2000000"><v>1</v></c></row>'),
        "too large",
    ),
    "cells far to the right": (
        SHEET,
        add_rows(b'<row><c r="XFD3"><v>1</v></c></row>' * 500),
        "too large",
    ),
    "a row of thousands of cells": (SHEET, add_rows(b"<row>" + b"<c/>" * 150_000 + b"</row>"), "too many cells"),
    "a string of many parts": (
        "xl/sharedStrings.xml",
        lambda _: STRINGS + b"<si>" + b"<t/>" * 150_000,
        "too many",
    ),
    "deep": (SHEET, add_rows(b"<x>" * 600), "too many cells"),
    "entities": ("xl/workbook.xml", lambda book: DECLARATION.sub(ENTITY, book, count=1), "declares XML entities"),
    "damaged": (SHEET, lambda sheet: sheet[:-20], "not well-formed XML"),
}


def test_a_device_is_not_read_as_a_spreadsheet(tmp_path: Path) -> None:
    """It was read until the memory was full."""
    (tmp_path / "terms.xlsx").symlink_to("/dev/zero")
    with pytest.raises(LacunerError, match="this is a device, not a file"):
        build(tmp_path / "terms.xlsx")


@pytest.mark.parametrize("name", SPREADSHEETS)
def test_a_small_spreadsheet_cannot_become_large(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "terms.xlsx"
    book = pytest.importorskip("openpyxl").Workbook()
    book.active.append(["surface", "label"])
    book.active.append(["Halden", "LOC"])
    book.save(file)
    monkeypatch.setattr("lacuner.annotate.knowledge.spreadsheets.MAX_ROWS", 100_000)
    monkeypatch.setattr("lacuner.annotate.knowledge.spreadsheets.MAX_CELLS", 1_000_000)
    change_member(file, SHEET, lambda sheet: re.sub(rb"A1:B2", b"A1:XFD1048576", sheet))
    assert build(file) == {("Halden", "LOC", None)}, "a wrong size that the file states"
    member, change, sentence = SPREADSHEETS[name]
    change_member(file, member, change)
    with pytest.raises(GazetteerError, match=sentence):
        build(file)


def test_compressed_tables_are_not_read_as_something_else(tmp_path: Path) -> None:
    (tmp_path / "terms.jsonl.gz").write_bytes(gzip.compress(b'{"surface": "Halden", "label": "LOC"}\n'))
    with pytest.raises(GazetteerError, match="a compressed table is not read: unpack it"):
        build(tmp_path / "terms.jsonl.gz")


def test_the_format_of_json_is_recognised_in_its_encoding(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(samples.WIKIDATA, encoding="utf-16-le")
    report = build_gazetteer([KnowledgeFile(tmp_path / "x.json", "utf-16-le", label="X")], tmp_path / "x.tsv")
    assert report.entries["X"] > 0


def test_filters(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("Halden\nwill\n42\n3-1\nx\n北\n北京\n" + "long " * 30 + "\nbell\x07\n")
    rows, report = run(tmp_path / "list.txt", label="X")
    assert {surface for surface, *_ in rows} == {"Halden", "北", "北京"}
    counts = {"a common word": 1, "a number": 2, "too short": 1, "too long": 1, "has control characters": 1}
    assert report.filtered == counts and report.concepts == 9
    more = build(tmp_path / "list.txt", label="X", keep_common=True, keep_numbers=True, min_length=1, max_length=1000)
    assert len(more) == 8
    assert len(build(tmp_path / "list.txt", label="X", common_words=frozenset({"halden", "北京"}))) == 1
    for options in ({"kinds": ("nickname",)}, {"min_length": 5, "max_length": 4}):
        with pytest.raises(ConfigError, match="--"):
            NameFilter(**options)  # type: ignore[arg-type]


def test_formulas_are_not_evaluated_by_spreadsheets(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("=cmd|' /C calc'!A0\n+1 receptor\n-ine\n@home\n")
    rows = build(tmp_path / "list.txt", label="=LABEL")
    assert {surface for surface, *_ in rows} == {"=cmd|' /C calc'!A0", "+1 receptor", "-ine", "@home"}
    for line in (tmp_path / "out" / "terms.tsv").read_text().splitlines():
        assert not any(cell.startswith(("=", "+", "-", "@")) for cell in line.split("\t"))


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("x.obo", "[Term]\nid: X:1\n", r"none of 1 concepts gives an entry"),
        ("x.obo", "[Term]\nid: X:1\nname: of\n", r"1 are a common word; change the filters"),
        ("x.obo", "[Term]\nid: X:1\nsynonym: no quotes\n", r"x.obo:3: the text of this synonym is not in quotes"),
        ("x.owl", "<a></b>", r"x.owl:1: this is not well-formed XML"),
        ("x.owl", "<a></a>", r"x.owl: this XML is not RDF"),
        ("x.jsonld", "{", r"x.jsonld:1: this is not JSON"),
        ("x.jsonld", "[" * 200_000, r"x.jsonld:1: this is not readable JSON: nested too deeply"),
        ("x.json", '[\n{"type":"item","id":"Q1","labels":\n]\n', r"x.json:2: this line is not an entity"),
        ("x.rrf", "C1|ENG\n", r"x.rrf:1: this row has fewer than 18 columns"),
        ("x.dat", "x", r"x.dat: the format is not recognised: name one of wikidata, .*\(--format\)"),
        ("x.ttl", "@prefix x: <y> .", r"x.ttl: this RDF is neither XML nor JSON-LD: convert it"),
        ("x.obo", "name\udcff", r"x.obo:1: this is not utf-8 text .*--encoding"),
    ],
)
def test_mistakes_are_one_sentence(tmp_path: Path, name: str, text: str, sentence: str) -> None:
    (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(LacunerError, match=sentence):
        build(tmp_path / name, label="X")
    assert not (tmp_path / "out" / "terms.tsv").exists()


def test_a_label_is_needed(tmp_path: Path) -> None:
    (tmp_path / "x.obo").write_text(samples.OBO)
    with pytest.raises(ConfigError, match=r"--label.*--class CLASS=LABEL"):
        build(tmp_path / "x.obo")
    with pytest.raises(GazetteerError, match=r"--class names Q5; is it spelt as in the file\?"):
        build(tmp_path / "x.obo", classes={"Q5": "PER"})
    with pytest.raises(GazetteerError, match="no such file or folder"):
        build(tmp_path / "nowhere.obo", label="X")
    with pytest.raises(GazetteerError, match=r"no MRCONSO\.RRF in this folder"):
        build(tmp_path, label="X")


LAUGHS = """<!DOCTYPE rdf:RDF [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">&b;</rdf:RDF>"""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (LAUGHS, "the XML entity 'b' is refused"),
        (f'<!DOCTYPE r [<!ENTITY a "{"x" * 300}">]><r/>', "the XML entity 'a' is refused"),
        ('<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]><r>&a;</r>', "the XML entity 'a' is refused"),
        ('<!DOCTYPE r [<!ENTITY % a "x">]><r/>', "the XML entity 'a' is refused"),
        ("<r>" * 600, "nested too deeply"),
        ('<r a="' + "x\n" * 10_000_000, "a tag or comment is longer than 16,777,216 bytes"),
    ],
)
def test_hostile_xml(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "x.owl").write_text(text)
    with pytest.raises(GazetteerError, match=sentence):
        build(tmp_path / "x.owl", label="X")


RDF = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:s="http://x.org/#">'
ENDLESS = {
    "x.obo": ("[Term]\nid: X:1\n", 'synonym: "wheeze" EXACT []\n'),
    "x.owl": (f'{RDF}<s:Concept rdf:about="http://x.org/7">', "<s:altLabel>wheeze</s:altLabel>\n"),
    "x.rrf": ("", "C1|ENG|P|L1|PF|S1|Y|A1||M1|D1|MSH|MH|D1|wheeze|0|N|256|\n"),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_small_file_cannot_hold_a_concept_that_never_ends(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lacuner.annotate.knowledge.concepts.MAX_PARTS", 1_000)
    head, part = ENDLESS[name]
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress((head + part * 1_500).encode()))
    with pytest.raises(GazetteerError, match="this concept has more than 1,000 names"):
        build(tmp_path / f"{name}.gz", label="X")


def test_the_graph_of_a_json_ld_file_may_be_longer_than_a_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its nodes are read one by one; anything else of this length is refused before it fills the memory."""
    monkeypatch.setattr("lacuner.corpus.json_stream.MAX_LINE", 1_000)
    nodes = [{"@id": f"x:{n}", "prefLabel": f"name {n}"} for n in range(1_000)]
    for content in ({"@context": {}, "@graph": nodes}, nodes):
        (tmp_path / "x.jsonld").write_text(json.dumps(content, indent=1))
        assert len(build(tmp_path / "x.jsonld", label="X")) == 1_000
    (tmp_path / "x.jsonld").write_text("\n".join(map(json.dumps, nodes)))
    assert len(build(tmp_path / "x.jsonld", label="X")) == 1_000
    (tmp_path / "x.jsonld").write_text(json.dumps(dict(zip(map(str, range(1_000)), nodes, strict=True))))
    with pytest.raises(LacunerError, match="this object is longer than 1,000 characters"):
        build(tmp_path / "x.jsonld", label="X")


def test_nested_and_short_forms_of_rdf_xml(tmp_path: Path) -> None:
    """A concept inside a statement, a name as an attribute, the language on an element around it."""
    text = f"""{RDF.replace(">", ' xml:lang="en">')}
    <s:Concept rdf:about="http://x.org/#pome"><s:prefLabel>pome</s:prefLabel>
      <s:narrower><s:Concept rdf:about="http://x.org/#pear" s:prefLabel="pear"/></s:narrower></s:Concept>
    <s:Concept rdf:about="http://x.org/#quince"><s:prefLabel>quince</s:prefLabel>
      <s:altLabel xml:lang="de">Quitte</s:altLabel>
      <s:broader><s:Concept rdf:about="http://x.org/#drupe"><s:prefLabel>drupe</s:prefLabel></s:Concept></s:broader>
    </s:Concept></rdf:RDF>"""
    (tmp_path / "x.rdf").write_text(text)
    rows = build(tmp_path / "x.rdf", label="X", languages=("en",))
    assert {surface for surface, *_ in rows} == {"pome", "pear", "quince", "drupe"}
    assert {surface for surface, *_ in build(tmp_path / "x.rdf", label="X", languages=("de",))} == {"Quitte"}
    below = build(tmp_path / "x.rdf", classes={"drupe": "F"})
    assert {surface for surface, *_ in below} == {"drupe", "quince", "Quitte"}


def test_the_encoding_of_an_xml_declaration_is_not_applied_twice(tmp_path: Path) -> None:
    text = f'<?xml version="1.0" encoding="ISO-8859-1"?>{RDF}<s:C rdf:about="http://x.org/#1"><s:prefLabel>Plön'
    (tmp_path / "x.rdf").write_text(f"{text}</s:prefLabel></s:C></rdf:RDF>", encoding="latin-1")
    with pytest.raises(LacunerError, match="--encoding"):
        build(tmp_path / "x.rdf", label="X")
    source = KnowledgeFile(tmp_path / "x.rdf", "latin-1", label="X")
    build_gazetteer([source], tmp_path / "x.tsv")
    assert "Plön\t" in (tmp_path / "x.tsv").read_text(encoding="utf-8")


def test_terms_of_obo_have_the_default_namespace(tmp_path: Path) -> None:
    terms = "[Term]\nid: X:1\nname: asthma\n\n[Term]\nid: X:2\nname: pear\nnamespace: fruit\n"
    (tmp_path / "x.obo").write_text(f"default-namespace: ailments\n\n{terms}")
    assert build(tmp_path / "x.obo", classes={"ailments": "D"}) == {("asthma", "D", "X:1")}


def test_cycles_and_long_chains_of_parents(tmp_path: Path) -> None:
    chain = [f"[Term]\nid: X:{n}\nname: name {n}\nis_a: X:{n + 1}\n" for n in range(3_000)]
    (tmp_path / "x.obo").write_text("".join(chain) + "[Term]\nid: X:3000\nname: top\nis_a: X:2999\n")
    assert len(build(tmp_path / "x.obo", classes={"X:2990": "T"})) == 2_991


@pytest.mark.integration
def test_memory_does_not_grow_with_the_dump(tmp_path: Path) -> None:
    peaks = []
    for size in (3_000, 9_000):
        file = tmp_path / f"{size}.json"
        items = (samples.wikidata_item(f"Q{n}", {"en": "Halden"}, {}, "Q515") for n in range(size))
        file.write_text("[\n" + ",\n".join(map(json.dumps, items)) + "\n]\n")
        tracemalloc.start()
        assert build_gazetteer(
            [KnowledgeFile(file, wanted=frozenset({"Q515"}))], tmp_path / "x.tsv", labels={"Q515": "LOC"}
        ).filtered == {"a duplicate": size - 1}
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0], peaks


ENDINGS = {
    **{"wikidata": "x.json", "table": "x.csv", "xlsx": "x.xlsx", "obo": "x.obo", "owl": "x.owl"},
    **{"json-ld": "x.jsonld", "rrf": "x.rrf"},
}
SEEDS = {
    **{"wikidata": samples.WIKIDATA, "table": "surface,label\nHalden,LOC\n", "xlsx": "PK", "obo": samples.OBO},
    **{"owl": samples.OWL, "json-ld": json.dumps(samples.SKOS), "rrf": samples.MRCONSO},
}


def test_every_format_is_fuzzed() -> None:
    assert set(ENDINGS) == set(SEEDS) == set(KNOWLEDGE_FORMATS)


@pytest.mark.parametrize("format", KNOWLEDGE_FORMATS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_files_give_entries_or_one_sentence(tmp_path: Path, format: str, data: st.DataObject) -> None:
    """Random bytes, and good files with a part cut out or replaced."""
    good = SEEDS[format].encode()
    start, end = sorted(data.draw(st.tuples(st.integers(0, len(good)), st.integers(0, len(good)))))
    noise = data.draw(st.binary(max_size=20))
    content = data.draw(st.sampled_from([good[:start] + noise + good[end:], good[:end] + noise, noise]))
    file = tmp_path / ENDINGS[format]
    file.write_bytes(content)
    try:
        build_gazetteer([KnowledgeFile(file, label="X")], tmp_path / "out.tsv", format=format)
        load_gazetteer(tmp_path / "out.tsv")
    except LacunerError as error:
        assert "\n" not in str(error)
