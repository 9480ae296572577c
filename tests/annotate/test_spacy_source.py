# ruff: noqa: E402
"""spaCy as a source: files of patterns, pipelines, and pipelines that are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

spacy = pytest.importorskip("spacy")

from lacuner.annotate import annotate, spacy_source
from lacuner.annotate.label_model import MISALIGNED
from lacuner.annotate.statistics import LabellingStatistics
from lacuner.data import Document, Span
from lacuner.errors import ConfigError, LacunerError, ModelFileError

PATTERNS = [
    {"label": "ORG", "pattern": "Halden Bank"},
    {"label": "GPE", "pattern": [{"LOWER": "new"}, {"LOWER": "vorn"}], "id": "vorn"},
    {"label": "YEAR", "pattern": [{"TEXT": {"REGEX": "^1[89][0-9]{2}$"}}]},
]
TEXT = "Halden Bank opened in New Vorn in 1897."


def write_patterns(folder: Path) -> Path:
    """As `ruler.to_disk("patterns.jsonl")` writes them."""
    file = folder / "patterns.jsonl"
    file.write_text("\n".join(map(json.dumps, PATTERNS)) + "\n")
    return file


def test_patterns_of_the_entity_ruler(tmp_path: Path) -> None:
    source = spacy_source(write_patterns(tmp_path))
    spans = source.find(Document("1", TEXT)).spans
    assert [(TEXT[s.start : s.end], s.label, s.source) for s in spans] == [
        ("Halden Bank", "ORG", "patterns"),
        ("New Vorn", "GPE", "patterns"),
        ("1897", "YEAR", "patterns"),
    ]


def test_a_pipeline_as_spacy_saves_it(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("entity_ruler").add_patterns(PATTERNS)
    nlp.add_pipe("span_ruler").add_patterns([{"label": "PLACE", "pattern": "Vorn"}])
    nlp.to_disk(tmp_path / "rules")
    found = spacy_source(tmp_path / "rules").find(Document("1", TEXT)).spans
    assert {(TEXT[s.start : s.end], s.label) for s in found} == {
        *(("Halden Bank", "ORG"), ("New Vorn", "GPE"), ("1897", "YEAR")),
        ("Vorn", "PLACE"),
    }


def test_a_trained_component_is_loaded(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("ner").add_label("PER")
    nlp.initialize()
    nlp.to_disk(tmp_path / "ner")
    output = spacy_source(tmp_path / "ner").find(Document("1", TEXT))
    assert all(span.label == "PER" for span in output.spans)


def test_the_words_of_the_corpus_are_kept(tmp_path: Path) -> None:
    """The text has no space before the full stop, and the words are not those that spaCy would choose."""
    words = ((0, 11), (12, 18), (19, 21), (22, 25), (26, 30), (31, 33), (34, 39))
    doc = Document("1", TEXT, words)
    statistics = LabellingStatistics()
    [weak] = annotate([doc], [spacy_source(write_patterns(tmp_path))], statistics=statistics)
    assert [TEXT[s.start : s.end] for s in weak.spans] == ["New Vorn"]
    assert weak.words == words
    assert MISALIGNED not in statistics.lost.counts


def test_words_that_leave_out_some_of_the_text(tmp_path: Path) -> None:
    """The corpus has no word for the bank; what spaCy finds there does not fit the words."""
    doc = Document("1", TEXT, ((12, 18), (22, 25), (26, 30)))
    statistics = LabellingStatistics()
    [weak] = annotate([doc], [spacy_source(write_patterns(tmp_path))], statistics=statistics)
    assert [TEXT[s.start : s.end] for s in weak.spans] == ["New Vorn"]
    assert statistics.lost.counts == {MISALIGNED: 2}


def test_an_empty_document_and_line_breaks(tmp_path: Path) -> None:
    source = spacy_source(write_patterns(tmp_path))
    assert [list(output.spans) for output in source.find_all([Document("1", ""), Document("2", "\n\n")])] == [[], []]
    text = "  in\r\n1897\u2028x"
    assert source.find(Document("1", text)).spans == [Span(6, 10, "YEAR", None, "patterns")]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", r"patterns.jsonl:1: this is not a pattern"),
        ('{"label": "X"}', r"patterns.jsonl:1: this is not a pattern"),
        ('{"label": "X", "pattern": [{"COLOUR": "red"}]}', r"patterns.jsonl:1: this is not a pattern"),
        ("[]", r"patterns.jsonl:1: this is not a pattern"),
        ("", r"patterns.jsonl: there is no pattern"),
    ],
)
def test_mistakes_in_patterns(tmp_path: Path, line: str, sentence: str) -> None:
    (tmp_path / "patterns.jsonl").write_text(line)
    with pytest.raises(ConfigError, match=sentence):
        spacy_source(tmp_path / "patterns.jsonl")


def test_patterns_that_need_a_tagger(tmp_path: Path) -> None:
    (tmp_path / "patterns.jsonl").write_text('{"label": "X", "pattern": [{"POS": "NOUN"}]}')
    with pytest.raises(LacunerError, match="the source 'patterns' failed"):
        spacy_source(tmp_path / "patterns.jsonl").find(Document("1", TEXT))


def save_with(folder: Path, change: tuple[str, str]) -> Path:
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler")
    nlp.to_disk(folder)
    config = (folder / "config.cfg").read_text()
    assert change[0] in config
    (folder / "config.cfg").write_text(config.replace(*change))
    return folder


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (('factory = "entity_ruler"', 'factory = "llm"'), "component 'llm', which is not one of spaCy's own"),
        (("before_creation = null", 'before_creation = {"@callbacks": "evil.run"}'), "names the function 'evil.run'"),
        (('lang = "en"', 'lang = "nowhere"'), "cannot load this spaCy pipeline"),
    ],
)
def test_pipelines_with_code_of_others_are_refused(tmp_path: Path, change: tuple[str, str], sentence: str) -> None:
    with pytest.raises(ModelFileError, match=sentence):
        spacy_source(save_with(tmp_path / "pipeline", change))


def test_not_a_pipeline(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="not a spaCy pipeline"):
        spacy_source(tmp_path)
    with pytest.raises(ConfigError, match="no such file or folder"):
        spacy_source(tmp_path / "nowhere")
    (tmp_path / "patterns.txt").write_text("x")
    with pytest.raises(ConfigError, match=r"a \.jsonl file of patterns"):
        spacy_source(tmp_path / "patterns.txt")
