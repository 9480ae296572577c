"""WebAnno TSV, CoNLL-U, spaCy 2 pairs, Parquet and Hugging Face data sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lacuner.corpus import read, write
from lacuner.corpus.reader import ReadOptions
from lacuner.data import Document, Lost, Span
from lacuner.errors import CorpusError
from tests.corpus.conftest import ReadSample

TEXT = "Mara Teel left Halden."
NAME, PLACE = Span(0, 9, "PERSON"), Span(15, 21, "PLACE")
WORDS = ((0, 4), (5, 9), (10, 14), (15, 21), (21, 22))

WEBANNO = """#FORMAT=WebAnno TSV 3.3
#T_SP=de.tudarmstadt.ukp.dkpro.core.api.lexmorph.type.pos.POS|PosValue
#T_SP=webanno.custom.Ner|note|value


#Text=Mara Teel left Halden.
1-1\t0-4\tMara\tNNP\t*[1]\tPERSON[1]\t
1-2\t5-9\tTeel\tNNP\t*[1]\tPERSON[1]\t
1-3\t10-14\tleft\tVBD\t_\t_\t
1-4\t15-21\tHalden\tNNP\t*|*[2]\tPLACE|A\\_B[2]\t
1-5\t21-22\t.\t.\t_\t_\t

#Text=🚀 Oslo \\\\ north
2-1\t23-25\t🚀\tX\t_\t_\t
2-2\t26-30\tOslo\tNNP\t*\tPLACE\t
2-2.1\t26-28\tOs\tNNP\t*\tPART\t
2-3\t31-32\t\\\\\tX\t_\t_\t
2-4\t33-38\tnorth\tX\t_\t_\t
"""


def test_webanno(read_sample: ReadSample) -> None:
    sample = read_sample(WEBANNO)
    assert sample.format == "webanno"
    first, second = sample.docs
    assert first.text == TEXT and first.words == WORDS
    assert first.spans == (NAME, Span(15, 21, "A_B"), PLACE), "stacked labels, and escapes"
    assert second.text == "🚀 Oslo \\ north"
    assert sample.surfaces()[1] == [("Oslo", "PLACE"), ("Os", "PART")], "offsets are UTF-16 units; parts of tokens"
    assert sample.lost.counts == {
        "layer de.tudarmstadt.ukp.dkpro.core.api.lexmorph.type.pos.POS not read": 1,
        "feature note of the layer webanno.custom.Ner not read": 1,
    }


def test_webanno_as_inception_writes_it(tmp_path: Path) -> None:
    write([Document("1", TEXT, WORDS, (NAME, PLACE))], tmp_path / "x.tsv", format="webanno")
    assert (tmp_path / "x.tsv").read_text().splitlines() == [
        "#FORMAT=WebAnno TSV 3.3",
        "#T_SP=de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|value",
        "",
        "",
        "#Text=Mara Teel left Halden.",
        "1-1\t0-4\tMara\tPERSON[1]\t",
        "1-2\t5-9\tTeel\tPERSON[1]\t",
        "1-3\t10-14\tleft\t_\t",
        "1-4\t15-21\tHalden\tPLACE[2]\t",
        "1-5\t21-22\t.\t_\t",
    ]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("webanno.custom.Ner", "some.Layer", "none of the layers"),
        ("0-4", "0-99", "outside its sentence"),
        ("5-9", "1-9", "out of order"),
        ("1-2\t", "x\t", "not a token"),
    ],
)
def test_webanno_mistakes(read_sample: ReadSample, old: str, new: str, words: str) -> None:
    with pytest.raises(CorpusError, match=words):
        read_sample(WEBANNO.replace(old, new, 1))


def test_webanno_annotation_without_a_value_is_unsure(read_sample: ReadSample) -> None:
    [doc, *_] = read_sample(WEBANNO.replace("PERSON[1]", "*[1]")).docs
    assert [doc.text[span.start : span.end] for span in doc.unsure if not span.label] == ["Mara Teel"]
    assert "PERSON" not in {span.label for span in doc.spans}


def test_webanno_labels_with_backslashes_and_marks(tmp_path: Path) -> None:
    labels = ("A\\", "B|[1]", "C->_*;", "\\")
    spans = tuple(Span(5 * i, 5 * i + 4, label) for i, label in enumerate(labels))
    write(
        [Document("1", "Mara Teel Nora Vorn", spans=(*spans, Span(0, 9, "\\|")))], tmp_path / "x.tsv", format="webanno"
    )
    [doc] = read(tmp_path / "x.tsv")
    assert {span.key for span in doc.spans} == {*[span.key for span in spans], (0, 9, "\\|")}


CONLLU = """# newdoc id = d1
# sent_id = s1
# text = Mara va au Havre.
1\tMara\tMara\tPROPN\t_\t_\t2\tnsubj\t_\tNER=B-PER
2\tva\taller\tVERB\t_\t_\t0\troot\t_\t_
3-4\tau\t_\t_\t_\t_\t_\t_\t_\t_
3\tà\tà\tADP\t_\t_\t5\tcase\t_\t_
4\tle\tle\tDET\t_\t_\t5\tdet\t_\t_
5\tHavre\tHavre\tPROPN\t_\t_\t2\tobl\t_\tSpaceAfter=No|NER=B-LOC
5.1\t_\t_\t_\t_\t_\t_\t_\t_\t_
6\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\t_

1\tOslo\t_\t_\t_\t_\t_\t_\t_\tNER=B-LOC|SpaceAfter=No
2\t.\t_\t_\t_\t_\t_\t_\t_\t_
"""


def test_conllu(read_sample: ReadSample) -> None:
    sample = read_sample(CONLLU)
    assert sample.format == "conllu"
    assert sample.surfaces() == [[("Mara", "PER"), ("Havre", "LOC")], [("Oslo", "LOC")]]
    assert [(doc.id, doc.text) for doc in sample.docs] == [("s1", "Mara va au Havre."), ("2", "Oslo.")]
    assert sample.docs[0].meta == {"document": "d1"}
    assert sample.docs[0].words == ((0, 4), (5, 7), (8, 10), (11, 16), (16, 17)), "a multi-word token is one word"
    assert sample.lost.counts == {"empty node not read": 1}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1\tMara", "ten columns"),
        ("# text = Bram\n" + "1\tMara" + "\t_" * 8, "differ"),
        ("1\ta" + "\t_" * 7 + "\tNER=X", "tag"),
    ],
)
def test_conllu_mistakes(read_sample: ReadSample, line: str, words: str) -> None:
    with pytest.raises(CorpusError, match=words):
        read_sample(line, format="conllu")


def test_spacy2_as_python_code_is_not_read_as_text(read_sample: ReadSample) -> None:
    code = 'import spacy\n\nTRAIN = [\n    ("Mara left", {"entities": [(0, 4, "PER")]}),\n]\n'
    for name in ("train.py", "train.txt"):
        with pytest.raises(CorpusError, match=r"Python code, which is not read: write them with json.dump"):
            read_sample(code, name=name)
    assert read_sample("[('Mara')] left\n", name="x.txt").format == "txt"


def test_spacy2(read_sample: ReadSample, tmp_path: Path) -> None:
    pairs = [[TEXT, {"entities": [[0, 9, "PERSON"], [15, 21, "PLACE"]], "cats": {"x": 1}}], ["Nobody.", {}]]
    sample = read_sample(json.dumps(pairs))
    assert sample.format == "spacy2"
    assert [doc.spans for doc in sample.docs] == [(NAME, PLACE), ()]
    assert sample.lost.counts == {"`cats` not read": 1}
    nested = Document("1", TEXT, spans=(NAME, Span(0, 4, "FIRST")))
    lost = write([nested], tmp_path / "x.json", format="spacy2")
    assert json.loads((tmp_path / "x.json").read_text()) == [[TEXT, {"entities": [[0, 9, "PERSON"]]}]]
    assert [row.label for row in lost.spans] == ["FIRST"]


@pytest.mark.parametrize("pair", [[TEXT], [TEXT, {"entities": [[0, 9]]}], [TEXT, {"entities": [[0, 99, "X"]]}]])
def test_spacy2_mistakes(read_sample: ReadSample, pair: list[Any]) -> None:
    with pytest.raises(CorpusError):
        read_sample(json.dumps([pair]), format="spacy2")


def write_table(path: Path, rows: list[dict[str, Any]], features: dict[str, Any] | None = None) -> None:
    """A table as Hugging Face's datasets writes it, with its features in the metadata."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.ipc
    import pyarrow.parquet

    table = pa.Table.from_pylist(rows)
    if features is not None:
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        with pyarrow.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table)


TAGS = {"ner_tags": {"feature": {"names": ["O", "B-PER", "B-LOC"], "_type": "ClassLabel"}, "_type": "List"}}
ROW = {"id": "7", "tokens": ["Mara", "left", "Oslo"], "ner_tags": [1, 0, 2], "pos_tags": [3, 4, 5]}


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_integer_tags_have_their_names_in_the_file(tmp_path: Path, ending: str) -> None:
    write_table(tmp_path / f"x{ending}", [ROW], TAGS)
    [doc] = read(tmp_path / f"x{ending}")
    assert (doc.id, doc.spans) == ("7", (Span(0, 4, "PER"), Span(10, 14, "LOC")))
    assert doc.meta == {"pos_tags": [3, 4, 5]}


def test_integer_tags_without_names(tmp_path: Path) -> None:
    write_table(tmp_path / "x.parquet", [ROW])
    with pytest.raises(CorpusError, match=r"row 1: the tags are numbers.*--label-names"):
        list(read(tmp_path / "x.parquet"))
    [doc] = read(tmp_path / "x.parquet", options=ReadOptions(label_names=("O", "B-A", "B-B")))
    assert [span.label for span in doc.spans] == ["A", "B"]


@pytest.mark.parametrize(
    "names",
    [
        ["train/data-00000-of-00001.arrow", "test/data-00000-of-00001.arrow"],
        ["data/train-00000-of-00001.parquet", "data/test-00000-of-00001.parquet"],
    ],
)
def test_a_folder_with_splits(tmp_path: Path, names: list[str]) -> None:
    for number, name in enumerate(names):
        write_table(tmp_path / name, [{**ROW, "id": str(number)}], TAGS)
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(CorpusError, match=r"the splits t\w+, t\w+: choose one with --split"):
        list(read(tmp_path))
    assert [doc.id for doc in read(tmp_path, options=ReadOptions(split="test"))] == ["1"]
    with pytest.raises(CorpusError, match="no split 'dev'"):
        list(read(tmp_path, options=ReadOptions(split="dev")))


def test_columns_of_argilla_in_parquet(tmp_path: Path) -> None:
    span = {"start": 0, "end": 9, "label": "PERSON"}
    row = {"id": "a", "text": TEXT, "ner.responses": [[span]], "ner.responses.status": ["submitted"]}
    write_table(tmp_path / "x.parquet", [row])
    [doc] = read(tmp_path / "x.parquet")
    assert (doc.spans, doc.complete) == ((NAME,), True)


def test_values_that_json_does_not_have(tmp_path: Path) -> None:
    import datetime

    write_table(tmp_path / "x.parquet", [{"text": "a", "when": datetime.date(2020, 1, 2), "score": float("nan")}])
    [doc] = read(tmp_path / "x.parquet")
    assert doc.meta == {"when": "2020-01-02", "score": None}


def test_a_data_set_has_class_labels(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    lost = write([Document("7", TEXT, WORDS, (NAME, PLACE))], tmp_path / "x.parquet", format="huggingface")
    schema = pq.read_schema(tmp_path / "x.parquet")
    names = json.loads(schema.metadata[b"huggingface"])["info"]["features"]["ner_tags"]["feature"]["names"]
    assert names == ["O", "B-PERSON", "I-PERSON", "B-PLACE"]
    assert lost.counts == {"text: other white space than the words' own": 1}
    [doc] = read(tmp_path / "x.parquet")
    assert [span.label for span in doc.spans] == ["PERSON", "PLACE"]


def test_lost_is_empty_for_our_own_parquet(tmp_path: Path) -> None:
    docs = [Document(str(i), TEXT, WORDS, (NAME,), meta={"n": [i, None]}) for i in range(5000)]
    lost = write(docs, tmp_path / "x.parquet")
    assert list(read(tmp_path / "x.parquet")) == docs
    assert isinstance(lost, Lost) and not len(lost)
