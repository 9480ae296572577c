"""spaCy: the component in any pipeline, its offsets with any tokenizer, and the exported folder and package."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from lacuner.data import Document, Span
from lacuner.errors import ConfigError, ModelFileError
from lacuner.export.export import EXPORTERS, export
from lacuner.export.options import ExportOptions
from lacuner.models.tagger import Tagger
from tests.export.conftest import TEXTS, make_tagger, needs_entry_point, spans_of, texts

spacy = pytest.importorskip("spacy")

import srsly  # noqa: E402
from spacy.tokens import Doc  # noqa: E402

from lacuner.export.spacy_component import LacunerComponent, annotate_doc  # noqa: E402

TAGGER = make_tagger("span", gazetteer=True, widths=4)
RunOf = Callable[[Tagger], Path]


def pipeline(language: str = "xx", **config: object) -> spacy.Language:
    nlp = spacy.blank(language)
    nlp.add_pipe("lacuner", config=config).tagger = TAGGER
    return nlp


def offsets(doc: Doc) -> list[tuple[int, int, str]]:
    group = doc.spans["lacuner"]
    return [(start, end, span.label_) for (start, end), span in zip(group.attrs["offsets"], group, strict=True)]


PIPELINES = {language: pipeline(language) for language in ("xx", "en", "zh")}


@pytest.mark.parametrize("language", PIPELINES)
@given(text=texts)
@settings(max_examples=40)
def test_any_text_gives_the_same_spans(language: str, text: str) -> None:
    doc = PIPELINES[language](text)
    assert doc.text == text
    assert offsets(doc) == spans_of(TAGGER, [text])[0]
    for span, (start, end) in zip(doc.spans["lacuner"], doc.spans["lacuner"].attrs["offsets"], strict=True):
        assert span.start_char <= start < end <= span.end_char
    for ent in doc.ents:  # each is a span of the group
        assert (ent.start, ent.end, ent.label_) in [(s.start, s.end, s.label_) for s in doc.spans["lacuner"]]


def test_pipe_gives_what_predict_gives() -> None:
    docs = list(PIPELINES["en"].pipe(TEXTS * 3, batch_size=4))
    assert [offsets(doc) for doc in docs] == spans_of(TAGGER, TEXTS * 3)
    assert sum(len(doc.ents) for doc in docs) > 20
    [reference] = TAGGER.predict([Document("1", TEXTS[0])])
    scores = docs[0].spans["lacuner"].attrs["scores"]
    expected = [np.nan if span.score is None else span.score for span in reference.spans]
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    assert docs[0].spans["lacuner"].attrs["sources"] == [span.source or "" for span in reference.spans]


@pytest.mark.integration
def test_fifty_thousand_words() -> None:
    text = "Mara Teel of Halden sailed on and on .\n" * 5_600
    doc = PIPELINES["xx"](text)
    assert len(text.split()) > 50_000
    assert offsets(doc) == spans_of(TAGGER, [text])[0]


def test_spans_that_cut_through_tokens_are_expanded_and_counted() -> None:
    doc = spacy.blank("xx")("Haldenshire men")
    predicted = Document(
        "1", doc.text, spans=(Span(0, 6, "LOC", 0.4), Span(6, 11, "PER", 0.6), Span(12, 15, "PER", 0.9))
    )
    assert annotate_doc(doc, predicted) == 2
    group = doc.spans["lacuner"]
    assert [span.text for span in group] == ["Haldenshire", "Haldenshire", "men"]
    assert group.attrs["offsets"] == [[0, 6], [6, 11], [12, 15]]
    assert group.attrs["expanded"] == 2
    assert [(ent.text, ent.label_) for ent in doc.ents] == [("Haldenshire", "PER"), ("men", "PER")]


@pytest.mark.parametrize("overwrite", [False, True])
def test_entities_of_earlier_components(overwrite: bool) -> None:
    doc = spacy.blank("xx")("Mara Teel left Halden")
    doc.set_ents([doc.char_span(0, 9, "SHIP"), doc.char_span(10, 14, "VERB")])
    predicted = Document("1", doc.text, spans=(Span(5, 9, "PER", 0.9), Span(15, 21, "LOC")))
    annotate_doc(doc, predicted, overwrite_ents=overwrite)
    kept = [("Teel", "PER")] if overwrite else [("Mara Teel", "SHIP")]
    assert [(ent.text, ent.label_) for ent in doc.ents] == [*kept, ("left", "VERB"), ("Halden", "LOC")]


def test_a_pipeline_is_saved_with_its_model_and_survives_a_moved_run(run_of: RunOf, tmp_path: Path) -> None:
    folder = run_of(TAGGER)
    nlp = spacy.blank("en")
    nlp.add_pipe("lacuner", config={"model": str(folder)})
    before = offsets(nlp(TEXTS[3]))
    assert before
    nlp.to_disk(tmp_path / "pipeline")
    folder.rename(tmp_path / "elsewhere")
    assert offsets(spacy.load(tmp_path / "pipeline")(TEXTS[3])) == before
    other = spacy.blank("en")
    other.add_pipe("lacuner")
    other.from_bytes(nlp.to_bytes())
    assert offsets(other(TEXTS[3])) == before
    assert other.pipe_labels["lacuner"] == ["LOC", "PER"]


def test_files_of_a_message_stay_in_their_folder(tmp_path: Path) -> None:
    data = srsly.msgpack_dumps({f"../{tmp_path.name}": b"x", "config.json": b"{}"})
    with pytest.raises(ModelFileError, match="leaves the folder"):
        LacunerComponent().from_bytes(data)


def test_a_component_without_a_model_says_how_to_give_it_one() -> None:
    with pytest.raises(ConfigError, match="add_pipe"):
        LacunerComponent()(spacy.blank("xx")("Mara"))


@needs_entry_point
@pytest.mark.integration
def test_export_with_proof_and_package(run_of: RunOf, tmp_path: Path) -> None:
    docs = [Document(str(number), text) for number, text in enumerate(TEXTS)]
    options = ExportOptions(name="halden", version="1.2.0", license="mit", language="en", wheel=True)
    result = export(run_of(TAGGER), "spacy", tmp_path / "out", docs, options=options)
    assert result.proof.equal == result.proof.spans > 20
    assert result.proof.gazetteer
    assert result.wheel == tmp_path / "out" / "en_halden-1.2.0-py3-none-any.whl"
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(site)]
    subprocess.run([*pip, str(result.wheel)], check=True)
    code = "import sys; sys.path.insert(0, sys.argv[1]); import spacy; print(spacy.load('en_halden')(sys.argv[2]).ents)"
    done = subprocess.run([sys.executable, "-c", code, site, TEXTS[0]], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(spacy.load(tmp_path / "out")(TEXTS[0]).ents)


@needs_entry_point
@pytest.mark.integration
def test_an_export_that_differs_is_refused(run_of: RunOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that drops the gazetteer: the proof sees it, and nothing is left behind."""
    row = EXPORTERS["spacy"]

    def write_without(source, folder, options):
        row.write(replace(source, tagger=Tagger(source.tagger.model)), folder, options)

    monkeypatch.setitem(EXPORTERS, "spacy", replace(row, write=write_without))
    docs = [Document(str(number), text) for number, text in enumerate(TEXTS)]
    with pytest.raises(ConfigError, match=r"differs from the tagger in .*--max-changed.* missing"):
        export(run_of(TAGGER), "spacy", tmp_path / "out", docs)
    assert list(tmp_path.iterdir()) == []
