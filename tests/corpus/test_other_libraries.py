"""Other tools' own libraries read what we write, and we read what they write: the same spans.

They are not part of `make setup`, because some are heavy: `make test-libraries` installs those of `libraries.txt` into
an environment of their own and runs this file there. Elsewhere the tests of missing libraries are skipped.

No library on PyPI reads WebAnno TSV 3: dkpro-cassis has only the XML and JSON of UIMA, pycaprio only INCEpTION's API.
doccano-client needs a server, and an old version of pydantic.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from lacuner.corpus import read, write
from lacuner.data import Document, Span

DOCS = [
    Document("1", "Mara Teel left Halden.", spans=(Span(0, 9, "PERSON"), Span(15, 21, "PLACE")), complete=True),
    Document("2", "🚀 Élan near 北京, said Mara.", spans=(Span(2, 6, "PLACE"), Span(12, 14, "PLACE")), complete=True),
    Document("3", "Nobody left.", complete=True),
]
SURFACES = [[("Mara Teel", "PERSON"), ("Halden", "PLACE")], [("Élan", "PLACE"), ("北京", "PLACE")], []]


def library(name: str) -> Any:
    """A module of another tool; where it is not installed, the test is skipped, or fails in `make test-libraries`."""
    if os.environ.get("LACUNER_TEST_LIBRARIES"):
        return importlib.import_module(name)
    return pytest.importorskip(name, reason=f"{name} is not installed: make test-libraries installs it")


def surfaces(docs: list[Document]) -> list[list[tuple[str, str]]]:
    return [[(doc.text[span.start : span.end], span.label) for span in doc.spans] for doc in docs]


def test_spacy_trains_from_our_pairs(tmp_path: Path) -> None:
    spacy = library("spacy")
    from spacy.training import Example

    write(DOCS, tmp_path / "x.json", format="spacy2")
    nlp = spacy.blank("en")
    pairs = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    examples = [Example.from_dict(nlp.make_doc(text), annotation) for text, annotation in pairs]
    assert [[(ent.text, ent.label_) for ent in example.reference.ents] for example in examples] == SURFACES


def test_spacy_converts_our_columns_and_docbin(tmp_path: Path) -> None:
    spacy = library("spacy")
    from spacy.tokens import DocBin
    from spacy.training.converters import conll_ner_to_docs

    words = [doc for doc in DOCS if doc.text.isascii()]
    write(words, tmp_path / "x.conll")
    docs = list(conll_ner_to_docs((tmp_path / "x.conll").read_text(encoding="utf-8"), n_sents=1, no_print=True))
    assert [[(ent.text, ent.label_) for ent in doc.ents] for doc in docs] == [SURFACES[0], SURFACES[2]]
    write(DOCS, tmp_path / "x.spacy")
    docs = list(DocBin().from_disk(tmp_path / "x.spacy").get_docs(spacy.blank("en").vocab))
    assert [[(ent.text, ent.label_) for ent in doc.ents] for doc in docs] == SURFACES
    DocBin(docs=docs).to_disk(tmp_path / "theirs.spacy")
    assert surfaces(list(read(tmp_path / "theirs.spacy"))) == SURFACES


def test_datasets_finds_tokens_and_names(tmp_path: Path) -> None:
    datasets = library("datasets")
    write(DOCS, tmp_path / "x.parquet", format="huggingface")
    loaded = datasets.Dataset.from_parquet(str(tmp_path / "x.parquet"), cache_dir=str(tmp_path / "cache"))
    names = loaded.features["ner_tags"].feature.names
    assert names == ["O", "B-PERSON", "I-PERSON", "B-PLACE", "I-PLACE"]
    assert [names[tag] for tag in loaded[0]["ner_tags"]] == ["B-PERSON", "I-PERSON", "O", "B-PLACE", "O"]
    loaded.save_to_disk(tmp_path / "saved")
    splits = datasets.DatasetDict({"train": loaded, "test": loaded.select([0])})
    splits.save_to_disk(tmp_path / "splits")
    loaded.to_parquet(tmp_path / "theirs.parquet")
    loaded.to_json(tmp_path / "theirs.json")
    from lacuner.corpus import ReadOptions

    for path in ("saved", "theirs.parquet"):
        assert surfaces(list(read(tmp_path / path))) == SURFACES
    assert surfaces(list(read(tmp_path / "splits", options=ReadOptions(split="test")))) == SURFACES[:1]
    assert surfaces(list(read(tmp_path / "theirs.json", options=ReadOptions(label_names=tuple(names))))) == SURFACES


CONFIG = """<View><Labels name="label" toName="text"><Label value="PERSON"/><Label value="PLACE"/></Labels>
<Text name="text" value="$text"/></View>"""


def test_label_studio_accepts_our_tasks(tmp_path: Path) -> None:
    library("label_studio_sdk")
    from label_studio_sdk.label_interface import LabelInterface

    incomplete = [Document("4", "Mara left.", spans=(Span(0, 4, "PERSON", 0.8, "gazetteer"),), complete=False)]
    write(DOCS + incomplete, tmp_path / "x.json", format="labelstudio")
    tasks = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    interface = LabelInterface(CONFIG)
    for task in tasks:
        assert all(interface.validate_annotation(annotation) for annotation in task["annotations"])
        assert all(interface.validate_prediction(prediction) for prediction in task["predictions"])
    assert len(tasks[3]["predictions"]) == 1


def test_label_studio_exports_are_read(tmp_path: Path) -> None:
    library("label_studio_sdk")
    from label_studio_sdk.converter import Converter

    write(DOCS, tmp_path / "x.json", format="labelstudio")
    tasks = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    for number, task in enumerate(tasks):
        task["id"] = task["annotations"][0]["id"] = number
        task["annotations"][0]["completed_by"] = 1
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    converter = Converter(CONFIG, str(tmp_path), download_resources=False)
    for format in ("JSON", "JSON_MIN"):
        (tmp_path / format).mkdir()
        converter.convert(str(tmp_path / "tasks.json"), str(tmp_path / format), format, is_dir=False)
        [path] = (tmp_path / format).glob("*.json")
        assert surfaces(list(read(path))) == SURFACES


def test_argilla_records(tmp_path: Path) -> None:
    rg = library("argilla")
    from argilla.records._io._generic import GenericIO

    incomplete = Document("4", "Mara left.", spans=(Span(0, 4, "PERSON", 0.8, "gazetteer"),), complete=False)
    write([*DOCS, incomplete], tmp_path / "x.json", format="argilla")
    rows = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    records = [rg.Record.from_dict(row) for row in rows]
    [suggestion] = records[3].suggestions
    assert (suggestion.value, suggestion.score, suggestion.agent) == (
        [{"start": 0, "end": 4, "label": "PERSON"}],
        [0.8],
        "gazetteer",
    )
    assert [len(list(record.responses)) for record in records] == [1, 1, 1, 0]
    (tmp_path / "nested.json").write_text(json.dumps([record.to_dict() for record in records], default=str))
    flat: list[Any] = GenericIO.to_list(records, flatten=True)
    (tmp_path / "flat.json").write_text(json.dumps(flat, default=str))
    for name in ("nested.json", "flat.json"):
        assert surfaces(list(read(tmp_path / name))) == [*SURFACES, [("Mara", "PERSON")]]


def test_argilla_records_as_a_data_set(tmp_path: Path) -> None:
    rg, datasets = library("argilla"), library("datasets")
    from argilla.records._io._generic import GenericIO

    write(DOCS, tmp_path / "x.json", format="argilla")
    rows = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    columns: Any = GenericIO.to_dict([rg.Record.from_dict(row) for row in rows], flatten=True)
    data_set = datasets.Dataset.from_dict({key: column for key, column in columns.items() if key != "_server_id"})
    data_set.to_parquet(tmp_path / "x.parquet")
    assert surfaces(list(read(tmp_path / "x.parquet"))) == SURFACES


def test_feedback_data_sets_of_argilla_1(tmp_path: Path) -> None:
    """Argilla 1.29 needs pydantic 1; this is the data set that its exporter builds, with the same features."""
    datasets = library("datasets")
    string, number = datasets.Value("string"), datasets.Value("int32")
    spans = datasets.Sequence({"start": number, "end": number, "label": string, "text": string})
    score = datasets.Sequence(datasets.Value("float32"))
    features = {
        "text": string,
        "ner": [{"user_id": string, "value": spans, "status": string}],
        "ner-suggestion": spans,
        "ner-suggestion-metadata": {"type": string, "score": score, "agent": string},
        "external_id": string,
        "metadata": string,
    }
    rows = []
    for doc in DOCS:
        keys = [(span.start, span.end, span.label, doc.text[span.start : span.end]) for span in doc.spans]
        columns = map(list, zip(*keys, strict=True)) if keys else ([], [], [], [])
        value = dict(zip(("start", "end", "label", "text"), columns, strict=True))
        responses = [{"user_id": "u", "value": value, "status": "submitted"}]
        empty = {"type": None, "score": None, "agent": None}
        row = {"text": doc.text, "ner": responses, "ner-suggestion": None, "ner-suggestion-metadata": empty}
        rows.append({**row, "external_id": doc.id, "metadata": "{}"})
    data_set = datasets.Dataset.from_list(rows, features=datasets.Features(features))
    data_set.to_parquet(tmp_path / "x.parquet")
    data_set.to_json(tmp_path / "x.json")
    data_set.save_to_disk(tmp_path / "saved")
    for name in ("x.parquet", "x.json", "saved"):
        docs = list(read(tmp_path / name))
        assert surfaces(docs) == SURFACES and all(doc.complete for doc in docs)


@pytest.mark.parametrize("format", ["bioc", "bioc_json"])
def test_bioc(tmp_path: Path, format: str) -> None:
    library("bioc")
    from bioc import biocjson, biocxml

    module = biocxml if format == "bioc" else biocjson
    write(DOCS, tmp_path / "ours", format=format)
    with (tmp_path / "ours").open(encoding="utf-8") as stream:
        collection = module.load(stream)
    theirs = [
        [(annotation.text, annotation.infons["type"]) for annotation in passage.annotations]
        for document in collection.documents
        for passage in document.passages
    ]
    assert theirs == SURFACES
    with (tmp_path / "theirs").open("w", encoding="utf-8") as stream:
        module.dump(collection, stream)
    assert surfaces(list(read(tmp_path / "theirs"))) == SURFACES


def test_pubtator(tmp_path: Path) -> None:
    library("bioc")
    from bioc import pubtator

    write(DOCS, tmp_path / "ours.pubtator")
    with (tmp_path / "ours.pubtator").open(encoding="utf-8") as stream:
        documents = pubtator.load(stream)
    assert [[(mention.text, mention.type) for mention in doc.annotations] for doc in documents] == SURFACES
    with (tmp_path / "theirs").open("w", encoding="utf-8") as stream:
        pubtator.dump(documents, stream)
    assert surfaces(list(read(tmp_path / "theirs", format="pubtator"))) == SURFACES


def test_brat(tmp_path: Path) -> None:
    pybrat = library("pybrat.parser")
    write(DOCS, tmp_path / "ours", format="brat")
    examples = sorted(pybrat.BratParser().parse(tmp_path / "ours"), key=lambda example: str(example.id))
    assert [example.text for example in examples] == [doc.text for doc in DOCS]
    theirs = [
        sorted((entity.start, entity.mention, entity.type) for entity in example.entities) for example in examples
    ]
    assert [[(mention, label) for _, mention, label in entities] for entities in theirs] == SURFACES


def test_doccano_transformer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # it imports a function of spaCy 2, which it needs for another format only
    old_spacy = types.ModuleType("spacy.gold")
    old_spacy.biluo_tags_from_offsets = None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "spacy.gold", old_spacy)
    datasets = library("doccano_transformer.datasets")
    spaced = [Document("1", "Mara Teel left Halden .", spans=DOCS[0].spans), Document("2", "Nobody left")]
    write(spaced, tmp_path / "ours.jsonl", format="doccano")
    lines = (tmp_path / "ours.jsonl").read_text(encoding="utf-8").replace('"label":', '"labels":')  # as in old exports
    (tmp_path / "labels.jsonl").write_text(lines, encoding="utf-8")
    converted = list(datasets.NERDataset.from_jsonl(str(tmp_path / "labels.jsonl")).to_conll2003(str.split))
    (tmp_path / "theirs.conll").write_text("".join(row["data"] for row in converted), encoding="utf-8")
    assert surfaces(list(read(tmp_path / "theirs.conll"))) == SURFACES[:1], "it leaves out documents without spans"
    assert surfaces(list(read(tmp_path / "labels.jsonl"))) == [SURFACES[0], []]


def test_conllu(tmp_path: Path) -> None:
    conllu = library("conllu")
    write(DOCS, tmp_path / "x.conllu")
    sentences = conllu.parse((tmp_path / "x.conllu").read_text(encoding="utf-8"))
    tags = [[(token["misc"] or {}).get("NER", "O") for token in sentence] for sentence in sentences]
    assert tags[0] == ["B-PERSON", "I-PERSON", "O", "B-PLACE", "O"]
    assert [sentence.metadata["text"] for sentence in sentences] == [doc.text for doc in DOCS]
    (tmp_path / "theirs.conllu").write_text("".join(sentence.serialize() for sentence in sentences), encoding="utf-8")
    assert surfaces(list(read(tmp_path / "theirs.conllu"))) == SURFACES
