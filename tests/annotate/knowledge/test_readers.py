"""Every format of `lacuner dictionary build`: files as the tools write them, and damaged and hostile ones."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import tracemalloc
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


def test_filters(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("Halden\nwill\n42\n3-1\nx\n北\n北京\n" + "long " * 30 + "\nbell\x07\n")
    rows, report = run(tmp_path / "list.txt", label="X")
    assert {surface for surface, *_ in rows} == {"Halden", "北", "北京"}
    counts = {"a common word": 1, "a number": 2, "too short": 1, "too long": 1, "has control characters": 1}
    assert report.filtered == counts and report.concepts == 9
    more = build(tmp_path / "list.txt", label="X", keep_common=True, keep_numbers=True, min_length=1, max_length=1000)
    assert len(more) == 8
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
        ("x.jsonld", "[" * 200_000, r"x.jsonld: this JSON is nested too deeply"),
        ("x.json", '[\n{"type":"item","id":"Q1","labels":\n]\n', r"x.json:2: this line is not an entity"),
        ("x.rrf", "C1|ENG\n", r"x.rrf:1: this row has fewer than 18 columns"),
        ("x.dat", "x", r"x.dat: the format is not recognised: name one of wikidata, .*\(--format\)"),
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
    ],
)
def test_hostile_xml(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "x.owl").write_text(text)
    with pytest.raises(GazetteerError, match=sentence):
        build(tmp_path / "x.owl", label="X")


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
