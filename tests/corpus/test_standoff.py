"""brat, PubTator and BioC: offsets beside the text, and the ways in which they are wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lacuner.corpus import ReadOptions, read, write
from lacuner.data import Document, Lost, Span
from lacuner.errors import CorpusError
from tests.corpus.conftest import ReadSample
from tests.growth import assert_linear

TEXT = "Mara Teel left Halden."
NAME, PLACE = Span(0, 9, "PERSON"), Span(15, 21, "PLACE")


def read_brat(folder: Path, text: str, annotation: str | None) -> tuple[Document, Lost]:
    (folder / "a.txt").write_bytes(text.encode())
    if annotation is not None:
        (folder / "a.ann").write_text(annotation, encoding="utf-8")
    lost = Lost()
    [doc] = read(folder, lost=lost, format="brat")
    return doc, lost


def test_brat_folder(tmp_path: Path) -> None:
    lines = "T1\tPERSON 0 9\tMara Teel\nT2\tPLACE 15 21\tHalden\nR1\tleft Arg1:T1 Arg2:T2\n#1\tAnnotatorNotes T1\tx\n"
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.txt").write_text("Not annotated.")
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "a.ann").write_text(lines)
    lost = Lost()
    first, second = read(tmp_path, lost=lost)
    assert (first.id, first.spans, first.complete) == ("a", (NAME, PLACE), None)
    assert (second.id, second.complete) == ("sub/b", False), "without an .ann file nobody has looked at it"
    assert lost.counts == {"relation not read": 1, "note not read": 1}
    assert next(read(tmp_path / "a.ann")).spans == (NAME, PLACE)


def test_brat_joins_what_it_split_at_line_breaks_and_counts_other_fragments(tmp_path: Path) -> None:
    doc, lost = read_brat(tmp_path, "Mara\nTeel left Halden.", "T1\tPERSON 0 4;5 9\tMara Teel\n")
    assert doc.spans == (NAME,) and not len(lost)
    doc, lost = read_brat(tmp_path, TEXT, "T1\tPLACE 0 4;15 21\tMara Halden\n")
    assert doc.spans == () and doc.unsure == (Span(0, 21, "PLACE"),), "never a negative"
    assert [row.reason for row in lost.spans] == ["discontinuous span not read; the text around it became unsure"]


@pytest.mark.parametrize(
    ("text", "line"),
    [("one\r\ntwo Halden", "T1\tPLACE 8 14\tHalden\n"), ("🚀 Halden", "T1\tPLACE 3 9\tHalden\n")],
)
def test_brat_853_shifted_offsets_are_corrected(tmp_path: Path, text: str, line: str) -> None:
    doc, lost = read_brat(tmp_path, text, line)
    assert [doc.text[s.start : s.end] for s in doc.spans] == ["Halden"]
    assert lost.counts == {"offset corrected by the span's text": 1}


def test_offsets_are_converted_once(tmp_path: Path, read_sample: ReadSample) -> None:
    """Without --offsets the text of a span tells how they count; with it, both conversions were made."""
    text = "\U0001f680 Mara left."
    pubtator = f"1|t|{text}\n1|a|\n1\t3\t7\tMara\tPERSON\tX7\n"
    passages: list[dict[str, Any]] = [{"offset": 0, "text": text}, {"offset": 13, "text": text}]
    for passage in passages:
        place = {"offset": passage["offset"] + 3, "length": 4}
        passage["annotations"] = [
            {"infons": {"type": "PERSON", "identifier": "X7"}, "text": "Mara", "locations": [place]}
        ]
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    (tmp_path / "a.ann").write_text("T1\tPERSON 3 7\tMara\nT2\tPERSON 3 5;8 12\tMa left\n", encoding="utf-8")
    bioc = json.dumps({"documents": [{"id": "1", "passages": passages}]})
    for unit in ("characters", "utf-16"):
        for sample in (read_sample(pubtator, format="pubtator", offsets=unit), read_sample(bioc, offsets=unit)):
            [doc] = sample.docs
            assert {doc.text[span.start : span.end] for span in doc.spans} == {"Mara"}
            assert [place[:2] for place in doc.meta["identifiers"]] == [list(span[:2]) for span in doc.spans]
        [doc] = read(tmp_path / "a.ann", options=ReadOptions(offsets=unit))
        assert doc.spans == (Span(2, 6, "PERSON"),)
    assert doc.unsure == (Span(2, 11, "PERSON"),)


def test_brat_1190_and_1175_line_separators_and_tabs(tmp_path: Path) -> None:
    """U+2028 is a character like any other, and a tab inside a span is a space in the annotation."""
    text = "one\u2028Mara\tTeel left."
    doc, lost = read_brat(tmp_path, text, "T1\tPERSON 4 13\tMara Teel\n")
    assert (doc.text, doc.spans) == (text, (Span(4, 13, "PERSON"),)) and not len(lost)
    write([doc], tmp_path / "out", format="brat")
    [again] = read(tmp_path / "out")
    assert (again.text, again.spans) == (doc.text, doc.spans)


@pytest.mark.parametrize("line", ["T1 PERSON 0 9 Mara Teel", "T1\tPERSON 0\tMara", "T1\tPERSON 0 9\tNobody at all"])
def test_brat_mistakes_have_file_and_line(tmp_path: Path, line: str) -> None:
    with pytest.raises(CorpusError) as caught:
        read_brat(tmp_path, TEXT, f"T9\tPLACE 15 21\tHalden\n{line}\n")
    assert (caught.value.file, caught.value.line) == (str(tmp_path / "a.ann"), 2)


def test_brat_annotation_without_text(tmp_path: Path) -> None:
    (tmp_path / "a.ann").write_text("")
    with pytest.raises(CorpusError, match=r"there is no a\.txt beside"):
        list(read(tmp_path))


def test_brat_writes_no_file_outside_its_folder(tmp_path: Path) -> None:
    """Names that come from files are never paths."""
    docs = [Document(id_, TEXT) for id_ in ("../../evil", "/etc/x", "..", "a\0b", "CON", "con", "x" * 300, ".hidden")]
    lost = write(docs, tmp_path / "out", format="brat")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert len(names) == 16 and "CON.txt" in names and all(name[0] in "0C" for name in names)
    assert lost.counts["id not written: it cannot be the name of a file"] == 7
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_brat_does_not_mix_with_other_files(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(CorpusError, match="new folder"):
        write([], tmp_path, format="brat")
    with pytest.raises(CorpusError, match="standard output"):
        write([], "-", format="brat")

    def docs() -> Any:
        yield Document("1", "a")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write(docs(), tmp_path / "out", format="brat")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


PUBTATOR = (
    "17|t|Mara Teel left.\n17|a|She left Halden.\n"
    "17\t0\t9\tMara Teel\tPerson\t-\n17\t25\t31\tHalden\tPlace\tGEO:1\n17\tCID\tD1\tD2\n\n18|t|Nothing.\n18|a|\n"
)


def test_greenelab_18_nul_in_pubtator_is_an_error(read_sample: ReadSample) -> None:
    with pytest.raises(CorpusError, match=r":2: there is a NUL byte here"):
        read_sample("17|t|Mara.\n17|a|She\0 left.\n", format="pubtator")


def test_pubtator(read_sample: ReadSample) -> None:
    """Also MedMentions #6 and BERN #5: one character separates title and abstract."""
    sample = read_sample(PUBTATOR)
    assert sample.format == "pubtator"
    assert sample.surfaces() == [[("Mara Teel", "Person"), ("Halden", "Place")], []]
    assert [doc.id for doc in sample.docs] == ["17", "18"]
    assert sample.docs[0].meta == {"identifiers": [[25, 31, "GEO:1"]]}
    assert sample.lost.counts == {"relation or other line not read": 1}


def test_pubtator_comes_back(read_sample: ReadSample, tmp_path: Path) -> None:
    docs = read_sample(PUBTATOR).docs
    write(docs, tmp_path / "x.pubtator")
    assert list(read(tmp_path / "x.pubtator")) == docs


def test_pubtator_normalised_mentions_are_counted(read_sample: ReadSample) -> None:
    sample = read_sample("17|t|TNF-α rose.\n17|a|\n17\t0\t5\tTNF-a\tGene\n")
    assert sample.surfaces() == [[("TNF-α", "Gene")]]
    assert sample.lost.counts == {"mention differs from the text at its offsets": 1}


@pytest.mark.parametrize("block", ["17\t0\t4\tMara\tX\n", "17|t|ab\n17\t0\t99\tab\tX\n", "17|t|ab\n17\t0\t2\tab\t\n"])
def test_pubtator_mistakes(read_sample: ReadSample, block: str) -> None:
    with pytest.raises(CorpusError):
        read_sample(block, format="pubtator")


def annotation(offset: int, length: int, label: str, text: str) -> dict[str, Any]:
    locations = [{"offset": offset, "length": length}]
    return {"id": "1", "infons": {"type": label}, "text": text, "locations": locations}


SECOND = annotation(25, 6, "PLACE", "Halden")
COLLECTION = {
    "source": "x",
    "date": "",
    "key": "",
    "infons": {},
    "documents": [
        {
            "id": "17",
            "infons": {"journal": "J"},
            "passages": [
                {
                    "offset": 0,
                    "infons": {"type": "title"},
                    "text": "Mara Teel left.",
                    "annotations": [annotation(0, 9, "PERSON", "Mara Teel")],
                },
                {
                    "offset": 16,
                    "infons": {"type": "abstract"},
                    "sentences": [
                        {
                            "offset": 16,
                            "text": "She left Halden.",
                            "annotations": [annotation(25, 6, "PLACE", "Halden")],
                        }
                    ],
                    "relations": [{"id": "R1"}],
                },
            ],
        }
    ],
}
XML = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE collection SYSTEM "BioC.dtd">
<collection><source>x</source><date></date><key></key>
<document><id>17</id><infon key="journal">J</infon>
<passage><infon key="type">title</infon><offset>0</offset><text>Mara Teel left.</text>
<annotation id="1"><infon key="type">PERSON</infon><location offset="0" length="9"/><text>Mara Teel</text></annotation>
</passage>
<passage><infon key="type">abstract</infon><offset>16</offset>
<sentence><offset>16</offset><text>She left Halden.</text>
<annotation id="1"><infon key="type">PLACE</infon><location offset="25" length="6"/><text>Halden</text></annotation>
</sentence><relation id="R1"/></passage>
</document></collection>
"""


@pytest.mark.parametrize("content", [json.dumps(COLLECTION), json.dumps(COLLECTION, indent=1), XML])
def test_bioc(read_sample: ReadSample, content: str) -> None:
    """Also kindred #18: offsets count from the beginning of the document, not of the passage."""
    sample = read_sample(content)
    assert sample.format == ("bioc" if content == XML else "bioc_json")
    assert [doc.text for doc in sample.docs] == ["Mara Teel left.\nShe left Halden."], (
        "kindred #18: offsets are the document's"
    )
    assert sample.surfaces() == [[("Mara Teel", "PERSON"), ("Halden", "PLACE")]]
    assert (sample.docs[0].id, sample.docs[0].meta) == ("17", {"journal": "J"})
    assert sample.lost.counts == {"relation not read": 1}


def test_bioc_sentences_that_repeat_the_text_of_their_passage(read_sample: ReadSample) -> None:
    """Their annotations and relations count, too."""
    sentence = {"offset": 2000, "text": "She left Halden.", "annotations": [annotation(2009, 6, "PLACE", "Halden")]}
    sentence["relations"] = [{"id": "R1"}]
    passage = {"offset": 2000, "text": "She left Halden.", "annotations": [], "sentences": [sentence]}
    sample = read_sample({"documents": [{"id": "1", "passages": [passage]}]})
    assert sample.surfaces() == [[("Halden", "PLACE")]]
    assert sample.lost.counts == {"relation not read": 1}


def test_bioc_scores_that_are_not_numbers_are_counted(read_sample: ReadSample) -> None:
    entry = annotation(0, 4, "PERSON", "Mara")
    entry["infons"]["score"] = "high"
    sample = read_sample(
        {"documents": [{"id": "1", "passages": [{"offset": 0, "text": "Mara", "annotations": [entry]}]}]}
    )
    assert [span.score for span in sample.docs[0].spans] == [None]
    assert sample.lost.counts == {"score not read: it is not a number": 1}


def test_bconv_2_offsets_in_bytes_are_corrected(read_sample: ReadSample) -> None:
    passages = [
        {"offset": 0, "text": "Éé left.", "annotations": []},
        {"offset": 11, "text": "éé Halden", "annotations": [annotation(16, 6, "PLACE", "Halden")]},
    ]
    sample = read_sample(json.dumps({"documents": [{"id": "1", "passages": passages}]}))
    assert sample.surfaces() == [[("Halden", "PLACE")]]


def test_bioc_discontinuous_spans_are_lost_but_no_negatives(read_sample: ReadSample) -> None:
    broken = annotation(0, 4, "PLACE", "Mara Halden")
    broken["locations"].append({"offset": 15, "length": 6})
    passages = [{"offset": 0, "text": TEXT, "annotations": [broken]}]
    sample = read_sample(json.dumps({"documents": [{"id": "1", "passages": passages}]}))
    assert sample.docs[0].unsure == (Span(0, 21, "PLACE"),) and len(sample.lost.spans) == 1


BOMB = '<?xml version="1.0"?><!DOCTYPE collection [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (BOMB + "<collection><document><id>&b;</id></document></collection>", "declares entities"),
        ('<!DOCTYPE c [<!ENTITY x SYSTEM "file:///etc/passwd">]><collection>&x;</collection>', "declares entities"),
        ("<collection><document>", "not well-formed XML"),
        ("<collection><document><passage><offset>x</offset></passage></document></collection>", "whole number"),
        ("<collection><document>" + "<passage>" * 50, "nested too deeply"),
        ("<collection>" + "<x>" * 600, "nested too deeply"),
        *[
            (f'<?xml version="1.0" encoding="{name}"?><collection/>', "cannot be decoded .*: save it as UTF-8")
            for name in ("UTF7-8", "gbk", "zlib_codec", "utf-7", "idna", "punycode")
        ],
        ('<collection><document x="' + "x\n" * 10_000_000, "a tag or comment is longer than"),
        ("<collection><document>" + '<annotation id="1"/>' * 1_100_000, "more than 1,000,000 elements"),
        (
            '<collection><document><passage infons="1" annotations="x"><infon key="k">v</infon></document>',
            "well-formed",
        ),
    ],
)
def test_bioc_xml_is_parsed_safely(read_sample: ReadSample, content: str, words: str) -> None:
    with pytest.raises(CorpusError, match=words):
        read_sample(content)


def test_pubtator_3_names_its_list_otherwise(read_sample: ReadSample) -> None:
    passages = [{"offset": 0, "text": TEXT, "annotations": [annotation(0, 9, "PERSON", "Mara Teel")]}]
    sample = read_sample(json.dumps({"PubTator3": [{"_id": "1|None", "id": "1", "passages": passages}]}))
    assert sample.format == "bioc_json" and sample.docs[0].spans == (NAME,)


@pytest.mark.parametrize("format", ["bioc", "bioc_json", "pubtator"])
def test_identifiers_come_back(read_sample: ReadSample, tmp_path: Path, format: str) -> None:
    entry = annotation(0, 9, "PERSON", "Mara Teel")
    entry["infons"] |= {"identifier": "Q1", "database": "x"}
    passages = [{"offset": 0, "text": TEXT, "annotations": [entry, annotation(15, 6, "PLACE", "Halden")]}]
    sample = read_sample(json.dumps({"documents": [{"id": "1", "passages": passages}]}))
    assert sample.docs[0].meta == {"identifiers": [[0, 9, "Q1"]]}
    assert sample.lost.counts == {"other infons of an annotation not read": 1}
    lost = write(sample.docs, tmp_path / "x", format=format)
    assert [doc.meta for doc in read(tmp_path / "x")] == [doc.meta for doc in sample.docs]
    assert not any("meta" in reason for reason, _ in lost)


def test_equivalences_of_brat_are_counted(tmp_path: Path) -> None:
    _, lost = read_brat(tmp_path, TEXT, "T1\tPERSON 0 9\tMara Teel\n*\tEquiv T1 T2\n")
    assert lost.counts == {"equivalence not read": 1}


def test_other_xml_is_not_an_empty_corpus(read_sample: ReadSample) -> None:
    with pytest.raises(CorpusError, match="this XML is not BioC: it begins with <article>"):
        read_sample("<article><p>Mara</p></article>", name="x.xml")


def test_bioc_attributes_cannot_replace_what_the_reader_collects(read_sample: ReadSample) -> None:
    text = XML.replace("<passage>", '<passage infons="x" annotations="y" text="z">').replace(
        '<location offset="0"', '<location id="3" offset="0"'
    )
    assert read_sample(text).surfaces() == [[("Mara Teel", "PERSON"), ("Halden", "PLACE")]]


def test_bioc_annotations_of_the_document_after_a_gap_that_is_not_kept(read_sample: ReadSample) -> None:
    """Their offsets are those of the file, where the second passage is 5,000 characters after the first."""
    passages = [{"offset": 0, "text": "Mara Teel left."}, {"offset": 5_000, "text": "She left Halden."}]
    entries = [annotation(0, 9, "PERSON", ""), annotation(5_009, 6, "PLACE", "")]
    for entry in entries:
        del entry["text"]
    sample = read_sample({"documents": [{"id": "1", "passages": passages, "annotations": entries}]})
    assert sample.surfaces() == [[("Mara Teel", "PERSON"), ("Halden", "PLACE")]]


@pytest.mark.parametrize("name", ["pubtator", "bioc_json", "brat", "argilla"])
def test_the_work_grows_with_the_number_of_annotations(name: str, tmp_path: Path) -> None:
    """Also where all of them cover the text and say something else, or are discontinuous."""

    def make(size: int) -> Path:
        text = "a " * size
        folder = tmp_path / str(size)
        folder.mkdir(exist_ok=True)
        file = folder / "x.json"
        if name == "pubtator":
            file.write_text(f"1|t|{text}\n" + f"1\t0\t{len(text)}\tb\tX\n" * size)
        elif name == "brat":
            file = folder / "x.ann"
            (folder / "x.txt").write_text(text)
            file.write_text(f"T1\tX 0 1;{2 * size - 2} {2 * size - 1}\ta a\n" * size)
        elif name == "bioc_json":
            places = [{"offset": 0, "length": 1}, {"offset": 6, "length": 1}]
            entry = {"id": "1", "infons": {"type": "X"}, "text": "b", "locations": places}
            passages = [{"offset": 0, "text": text, "annotations": [entry] * size}]
            file.write_text(json.dumps({"documents": [{"id": "1", "passages": passages}]}))
        else:
            suggestions = {f"q{n}": {"value": [{"start": 0, "end": 1, "label": "X"}]} for n in range(size)}
            row = {"id": "1", "fields": {"text": text}, "responses": {}, "suggestions": suggestions}
            file.write_text(json.dumps([row]))
        return file

    assert_linear(make, lambda file: list(read(file, format=name)), 2_000)


def test_lost_spans_of_a_long_text_do_not_fill_the_memory() -> None:
    lost = Lost()
    for _ in range(3):
        lost.span(Document("1", "a" * 5_000), Span(0, 5_000, "X"), "lost")
    assert [len(row.text) for row in lost.spans] == [1_000] * 3 and lost.spans[0].end == 5_000


def test_fragments_of_brat_in_any_order(tmp_path: Path) -> None:
    doc, _ = read_brat(tmp_path, TEXT, "T1\tPERSON 5 9;0 4\tMara Teel\n")
    assert doc.spans == (Span(0, 9, "PERSON"),)


def test_brat_leaves_nothing_readable_after_a_kill_and_the_next_run_removes_it(tmp_path: Path) -> None:
    def docs() -> Any:
        yield Document("1", "a")
        [staging] = tmp_path.iterdir()
        assert staging.stat().st_mode & 0o777 == 0o700
        (staging / "new" / "left.txt").write_text("by a process that was killed")
        shutil.copytree(staging, tmp_path / "kept")
        yield Document("2", "b")

    write(docs(), tmp_path / "out", format="brat")
    shutil.rmtree(tmp_path / "out")
    (tmp_path / "kept").rename(tmp_path / ".out.part")
    write([Document("1", "a")], tmp_path / "out", format="brat")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["1.ann", "1.txt", "out"]
