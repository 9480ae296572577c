"""WebAnno TSV, CoNLL-U, spaCy 2 pairs, Parquet and Hugging Face data sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lacuner.corpus import parquet, read, write
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
        ("Mara Teel left", "Nora Teel left", "the token 0-4 is 'Mara', but the text there is 'Nora'"),
        ("#T_SP=webanno", "#T_SP=x|y\n" * 200 + "#T_SP=webanno", "more than 100 layers"),
    ],
)
def test_webanno_mistakes(read_sample: ReadSample, old: str, new: str, words: str) -> None:
    with pytest.raises(CorpusError, match=words):
        read_sample(WEBANNO.replace(old, new, 1))


def test_webanno_annotation_without_a_value_is_unsure(read_sample: ReadSample) -> None:
    [doc, *_] = read_sample(WEBANNO.replace("PERSON[1]", "*[1]")).docs
    assert [doc.text[span.start : span.end] for span in doc.unsure if not span.label] == ["Mara Teel"]
    assert "PERSON" not in {span.label for span in doc.spans}


def test_webanno_words_with_thousands_of_spans(tmp_path: Path) -> None:
    """A format that repeats each span on each of its words must not turn kilobytes into gigabytes."""
    spans = tuple(Span(0, 2 * number + 1, "X") for number in range(1_000))
    lost = write([Document("1", "a " * 1_000, spans=spans)], tmp_path / "x.tsv", format="webanno")
    assert lost.counts["more than 100 spans on one word"] == 900
    [doc] = read(tmp_path / "x.tsv")
    assert len(doc.spans) == 100 and set(doc.spans) < set(spans)


def test_offsets_of_webanno_are_converted_once(tmp_path: Path) -> None:
    """They are UTF-16 units in the file, so --offsets must not convert them again."""
    doc = Document("1", "\U0001f680 Mara left", spans=(Span(2, 6, "PER"),))
    write([doc], tmp_path / "x.tsv", format="webanno")
    [read_back] = read(tmp_path / "x.tsv", options=ReadOptions(offsets="utf-16"))
    assert read_back.spans == doc.spans


def test_webanno_text_without_tokens_is_not_part_of_the_next_sentence(read_sample: ReadSample) -> None:
    sample = read_sample(WEBANNO.replace("#Text=Mara", "#Text=Nothing.\n\n#Text=Mara"))
    assert sample.docs[0].text == TEXT and sample.docs[0].words == WORDS
    assert sample.lost.counts["sentence without tokens not read"] == 1


def test_webanno_labels_with_backslashes_and_marks(tmp_path: Path) -> None:
    labels = ("A\\", "B|[1]", "C->_*;", "\\")
    spans = tuple(Span(5 * i, 5 * i + 4, label) for i, label in enumerate(labels))
    write(
        [Document("1", "Mara Teel Nora Vorn", spans=(*spans, Span(0, 9, "\\|")))], tmp_path / "x.tsv", format="webanno"
    )
    [doc] = read(tmp_path / "x.tsv")
    assert {span.key for span in doc.spans} == {*[span.key for span in spans], (0, 9, "\\|")}


@pytest.mark.parametrize("name", ["webanno", "conllu", "pubtator"])
def test_paragraphs_end(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file cannot hold a sentence, or a document, that fills the memory."""
    line = {
        "webanno": "#FORMAT=WebAnno TSV 3.3\n#T_SP=a.NamedEntity|value\n\n1-1\t0-1\ta\t_\t\n",
        "conllu": "1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n",
        "pubtator": "1|t|a\n",
    }[name]
    (tmp_path / "x").write_text(line + f"{line.splitlines()[-1]}\n" * 1_000)
    monkeypatch.setattr("lacuner.corpus.reader.MAX_LINES", 1_000)
    with pytest.raises(CorpusError, match=r"more than 1,000 lines or .* without a blank line"):
        list(read(tmp_path / "x", format=name))
    monkeypatch.undo()
    monkeypatch.setattr("lacuner.corpus.reader.MAX_TEXT", 1_000)
    with pytest.raises(CorpusError, match="or 1,000 characters without a blank line"):
        list(read(tmp_path / "x", format=name))


def test_metadata_of_conllu_has_the_order_of_the_file(read_sample: ReadSample) -> None:
    comments = "".join(f"# key{n} = {n}\n" for n in range(20))
    [doc, *_] = read_sample(comments + CONLLU, format="conllu").docs
    assert list(doc.meta)[:20] == [f"key{n}" for n in range(20)]


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
        ["train.parquet", "test.parquet"],
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


def test_a_small_parquet_file_cannot_become_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """550 bytes took 800 MB: all rows refer to one long text."""
    import pyarrow
    import pyarrow.parquet

    texts = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 300), pyarrow.array(["ab " * (1 << 18)]))
    pyarrow.parquet.write_table(
        pyarrow.table({"text": texts}), tmp_path / "x.parquet", compression="zstd", store_schema=False
    )
    monkeypatch.setattr(parquet, "MAX_BATCH", 4 << 20)
    pool = pyarrow.system_memory_pool()
    before = pyarrow.default_memory_pool()
    pyarrow.set_memory_pool(pool)
    try:
        assert len(next(iter(read(tmp_path / "x.parquet"))).text) == 3 << 18
        assert pool.max_memory() < 32 << 20
    finally:
        pyarrow.set_memory_pool(before)


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


def test_names_of_the_tags_under_another_key(tmp_path: Path) -> None:
    row = {"tokens": ["Mara", "left"], "fine_ner_tags": [1, 0]}
    write_table(tmp_path / "x.parquet", [row], {"fine_ner_tags": TAGS["ner_tags"]})
    lost = Lost()
    [doc] = read(tmp_path / "x.parquet", lost=lost)
    assert not doc.spans and lost.counts == {
        "`fine_ner_tags` has one value per word, and is not read: --tag-field reads tags": 1
    }
    [doc] = read(tmp_path / "x.parquet", options=ReadOptions(tag_field="fine_ner_tags"))
    assert doc.spans == (Span(0, 4, "PER"),)


def test_spacy2_pairs_one_per_line(read_sample: ReadSample) -> None:
    sample = read_sample([TEXT, {"entities": [[0, 9, "PERSON"]]}], ["Nobody.", {"entities": []}])
    assert sample.format == "spacy2" and [doc.spans for doc in sample.docs] == [(NAME,), ()]


@pytest.mark.parametrize(
    ("misc", "reason"),
    [
        ("Entity=(person-1)", "Entity in MISC not read: only NER is"),
        ("B-PER", "tag without NER= in MISC not read: --format conll --token-column 1 reads it"),
    ],
)
def test_conllu_with_entities_in_another_form(read_sample: ReadSample, misc: str, reason: str) -> None:
    sample = read_sample("1\tMara" + "\t_" * 7 + f"\t{misc}\n", name="x.conllu")
    assert sample.format == "conllu" and sample.lost.counts == {reason: 1}


def test_conllu_with_bare_labels(read_sample: ReadSample) -> None:
    line = "1\tMara" + "\t_" * 7 + "\tNER=PER\n"
    with pytest.raises(CorpusError, match="for bare labels, use --scheme IO"):
        read_sample(line)
    assert read_sample(line, scheme="IO").surfaces() == [[("Mara", "PER")]]
