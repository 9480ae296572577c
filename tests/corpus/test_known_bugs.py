"""Bugs of other converters, by the number under which their users reported them: ours must not have them.

Those of one format are in the tests of that format; here are the ones between formats.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lacuner.cli.main import app
from lacuner.corpus import read, write
from lacuner.data import Document, Span
from lacuner.errors import CorpusError
from tests.corpus.conftest import ReadSample


def tagged(path: Path) -> list[str]:
    """The words of a column file that have an entity, with their tags."""
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.endswith("\tO")]


def label_studio_task(text: str, *spans: tuple[str, str]) -> str:
    regions = []
    for surface, label in spans:
        start = text.index(surface)
        value = {"start": start, "end": start + len(surface), "text": surface, "labels": [label]}
        regions.append({"type": "labels", "value": value, "from_name": "label", "to_name": "text"})
    return json.dumps([{"id": 1, "data": {"text": text}, "annotations": [{"result": regions}], "predictions": []}])


@pytest.mark.parametrize("ending", ["conll", "spacy"])
def test_doccano_936_and_transformer_39_a_command_writes_columns_and_docbin(tmp_path: Path, ending: str) -> None:
    """doccano had no such export, and its converter returned generators, which users did not know how to write."""
    if ending == "spacy":
        pytest.importorskip("spacy")
    row = {"id": 1, "text": "Mara Teel left.", "label": [[0, 9, "PERSON"]], "Comments": []}
    (tmp_path / "doccano.jsonl").write_text(json.dumps(row) + "\n")
    target = tmp_path / f"out.{ending}"
    result = CliRunner().invoke(app, ["convert", str(tmp_path / "doccano.jsonl"), str(target)])
    assert result.exit_code == 0, result.output
    assert [doc.spans for doc in read(target)] == [(Span(0, 9, "PERSON"),)]


def test_doccano_386_words_and_their_tags(read_sample: ReadSample, tmp_path: Path) -> None:
    """doccano only had characters; what to do about a word of which a part is labeled was left open."""
    text = "Two, Samsung based, electronic"
    sample = read_sample({"id": 1, "text": text, "label": [[5, 12, "ORG"], [20, 28, "X"]], "Comments": []})
    lost = write(sample.docs, tmp_path / "x.jsonl", format="tokens")
    [row] = map(json.loads, (tmp_path / "x.jsonl").read_text().splitlines())
    assert row["tokens"] == ["Two", ",", "Samsung", "based", ",", "electronic"]
    assert row["ner_tags"] == ["O", "O", "B-ORG", "O", "O", "O"]
    assert [(part.text, part.reason) for part in lost.spans] == [("electron", "span does not fit the words")]


@pytest.mark.parametrize("separator", ["\t", " "])
def test_spacy_1639_two_columns_to_docbin(tmp_path: Path, separator: str) -> None:
    """spaCy's converter expected columns of which the user had only two, and failed with an IndexError."""
    pytest.importorskip("spacy")
    lines = ["Mara B-PER", "Teel I-PER", "left O", "", "Oslo B-LOC", ""]
    (tmp_path / "train.txt").write_text("\n".join(line.replace(" ", separator) for line in lines))
    result = CliRunner().invoke(app, ["convert", str(tmp_path / "train.txt"), str(tmp_path / "train.spacy")])
    assert result.exit_code == 0, result.output
    docs = list(read(tmp_path / "train.spacy"))
    assert [[(doc.text[s.start : s.end], s.label) for s in doc.spans] for doc in docs] == [
        [("Mara Teel", "PER")],
        [("Oslo", "LOC")],
    ]


def test_doccano_transformer_24_a_word_of_one_letter_has_its_own_place(read_sample: ReadSample, tmp_path: Path) -> None:
    """It searched each word from where the one before began: `a` was found inside `as`, and all later labels moved."""
    text = "As a keeper, I asked a man named Arno."
    sample = read_sample({"text": text, "label": [[text.index("Arno"), len(text) - 1, "PERSON"]]})
    write(sample.docs, tmp_path / "x.conll")
    assert tagged(tmp_path / "x.conll") == ["Arno\tB-PERSON"]


@pytest.mark.parametrize("line", ["-DOCSTART- -X- O", "-DOCSTART- -X- O O", "-DOCSTART- -X- -X- O"])
def test_converter_10_and_spacy_10058_document_marks(read_sample: ReadSample, line: str) -> None:
    """Label Studio and spaCy write different marks between documents, and neither read the other's."""
    sample = read_sample(f"{line}\n\nMara NNP I-NP B-PER\nleft VBD I-VP O\n\n{line}\n\nOslo NNP I-NP B-LOC\n")
    assert sample.surfaces() == [[("Mara", "PER")], [("Oslo", "LOC")]]
    assert [doc.meta for doc in sample.docs] == [{"document": 1}, {"document": 2}]


def test_converter_10_document_marks_are_written_again(read_sample: ReadSample, tmp_path: Path) -> None:
    sample = read_sample("-DOCSTART- O\n\nMara B-PER\n\nleft O\n\n-DOCSTART- O\n\nOslo B-LOC\n")
    write(sample.docs, tmp_path / "x.conll")
    assert (tmp_path / "x.conll").read_text().count("-DOCSTART-") == 2
    assert list(read(tmp_path / "x.conll")) == sample.docs


def test_converter_15_entities_inside_words_with_hyphens(read_sample: ReadSample, tmp_path: Path) -> None:
    """Identifiers became one token with the label of their first part; the second entity was gone."""
    sample = read_sample(label_studio_task("PMP-B2-7-Run-St", ("PMP-B2-7", "Device"), ("Run-St", "Point")))
    lost = write(sample.docs, tmp_path / "x.conll")
    [again] = read(tmp_path / "x.conll")
    assert [span.label for span in again.spans] == ["Device", "Point"] and not lost.spans
    assert [line.split("\t")[0] for line in tagged(tmp_path / "x.conll")] == [
        *["PMP", "-", "B2", "-", "7", "Run", "-", "St"]
    ]


def test_converter_37_shift_that_grows_with_the_text(read_sample: ReadSample) -> None:
    """Line ends that the browser counts once: the shift was larger for every later label, in a text of another key."""
    text = "".join(f"line {number}\r\n" for number in range(50)) + "neuropathy, no fever"
    shown = text.replace("\r\n", "\n")
    regions = []
    for surface in ("line 7", "neuropathy", "fever"):
        start = shown.index(surface)
        value = {"start": start, "end": start + len(surface), "text": surface, "labels": ["X"]}
        regions.append({"type": "labels", "value": value})
    sample = read_sample(json.dumps([{"id": 1, "data": {"r_TEXT": text}, "annotations": [{"result": regions}]}]))
    assert sample.surfaces() == [[("line 7", "X"), ("neuropathy", "X"), ("fever", "X")]]


def test_label_studio_2845_punctuation_is_a_word_of_its_own(read_sample: ReadSample, tmp_path: Path) -> None:
    sample = read_sample(label_studio_task("He left (Halden), alone.", ("Halden", "PLACE")))
    write(sample.docs, tmp_path / "x.conll")
    words = [line.split("\t")[0] for line in (tmp_path / "x.conll").read_text().splitlines() if line]
    assert words == ["He", "left", "(", "Halden", ")", ",", "alone", "."]
    assert tagged(tmp_path / "x.conll") == ["Halden\tB-PLACE"]


def test_skweak_64_and_spacy_conll_20_docbin_to_columns(tmp_path: Path) -> None:
    """There was no way, or one that failed at characters beyond Latin and joined neighbouring entities."""
    spacy = pytest.importorskip("spacy")
    from spacy.tokens import Doc, DocBin
    from spacy.tokens import Span as SpacySpan

    nlp = spacy.blank("en")
    doc = Doc(nlp.vocab, words=["Élan", "Татьяна", "北京", "left"])
    doc.ents = [SpacySpan(doc, 0, 1, "PER"), SpacySpan(doc, 1, 2, "PER"), SpacySpan(doc, 2, 3, "LOC")]
    DocBin(docs=[doc]).to_disk(tmp_path / "x.spacy")
    write(read(tmp_path / "x.spacy"), tmp_path / "x.conll")
    assert tagged(tmp_path / "x.conll") == ["Élan\tB-PER", "Татьяна\tB-PER", "北京\tB-LOC"]


def test_gliner_8_its_training_data_is_not_read_as_something_else(read_sample: ReadSample) -> None:
    """Both ends of its spans are inclusive, so a reader of `[start, end, label]` would cut every entity."""
    row = {"tokenized_text": ["Mara", "Teel", "left"], "ner": [[0, 1, "person"]]}
    for format in (None, "jsonl", "doccano"):
        with pytest.raises(CorpusError, match=r"`text`.*--text-field"):
            read_sample(row, format=format)


def test_flair_2010_and_spacy_6513_overlapping_spans_are_counted(tmp_path: Path) -> None:
    """Tags cannot express them: the longest is written, and the others are named."""
    text = "open EVERY 6 HOURS today"
    doc = Document("1", text, spans=(Span(5, 18, "TIME"), Span(11, 18, "TIME")), complete=True)
    lost = write([doc], tmp_path / "x.conll")
    assert tagged(tmp_path / "x.conll") == ["EVERY\tB-TIME", "6\tI-TIME", "HOURS\tI-TIME"]
    assert [(row.start, row.end, row.reason) for row in lost.spans] == [(11, 18, "span overlaps a longer one")]


def test_flair_3034_a_word_of_white_space_moves_no_label(read_sample: ReadSample) -> None:
    sample = read_sample("Nora\tB-NAME\nVorn\tI-NAME\nwent\tO\n \tO\nOslo\tB-CITY\n")
    assert sample.surfaces() == [[("Nora Vorn", "NAME"), ("Oslo", "CITY")]]


def test_spacy_8737_words_with_spaces_are_no_silent_loss(read_sample: ReadSample) -> None:
    """Where columns are separated by spaces, such a word has too many columns: its tag was dropped."""
    with pytest.raises(CorpusError, match="this line has 5 columns where the file has 4") as caught:
        read_sample("Name _ O B-PER\nLast Name _ O I-PER\nleft _ O O\n")
    assert caught.value.line == 2
    assert read_sample("Name\tB-PER\nLast Name\tI-PER\nleft\tO\n").surfaces() == [[("Name Last Name", "PER")]]
