# ruff: noqa: E402
"""Models of others as sources: token classifiers built here, and GLiNER behind a module of the same interface."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file
from tokenizers import pre_tokenizers

from lacuner.annotate import annotate, tagger_source
from lacuner.corpus.words import split_words
from lacuner.data import Document
from lacuner.errors import ConfigError, ModelFileError
from lacuner.models.model_sources import gliner_source, open_token_classifier
from tests.models.test_huggingface import make_model

TEXT = "Ada Lovelace met Charles Babbage in London ."
TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")


def make_classifier(folder: Path, tags: tuple[str, ...] = TAGS, kind: str = "bert") -> Path:
    """A random classifier, as `save_pretrained` writes it."""
    make_model(kind, folder)
    config = transformers.AutoConfig.from_pretrained(folder)
    config.id2label = dict(enumerate(tags))
    config.label2id = {tag: number for number, tag in enumerate(tags)}
    torch.manual_seed(1)
    model = transformers.AutoModelForTokenClassification.from_config(config)
    with torch.no_grad():
        model.classifier.weight.normal_(std=1.0)
    model.save_pretrained(folder)
    return folder


def tags_of_the_library(folder: Path, text: str) -> list[str]:
    """The tag of each word's first sub-word, by transformers itself."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    if "ByteLevel" in str(tokenizer.backend_tokenizer.pre_tokenizer):  # every word follows a space
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    model = transformers.AutoModelForTokenClassification.from_pretrained(folder).eval()
    words = [text[start:end] for start, end in split_words(text)]
    encoded = tokenizer(words, is_split_into_words=True, return_tensors="pt", truncation=False, padding=False)
    with torch.no_grad():
        best = model(**{k: v for k, v in encoded.items() if k != "token_type_ids"}).logits[0].argmax(-1).tolist()
    of_word: dict[int, str] = {}
    for position, word in enumerate(encoded.word_ids()):
        if word is not None:
            of_word.setdefault(word, model.config.id2label[best[position]])
    return [of_word[number] for number in range(len(words))]


@pytest.mark.parametrize("kind", ["bert", "roberta", "electra"])
def test_the_tags_are_those_of_the_library(tmp_path: Path, kind: str) -> None:
    folder = make_classifier(tmp_path, kind=kind)
    tagger = open_token_classifier(folder)
    expected = tags_of_the_library(folder, TEXT)
    assert len(set(expected)) > 1, "a model that always gives the same tag shows nothing"
    features = tagger.model.encoder.prepare([[TEXT[a:b] for a, b in split_words(TEXT)]])
    with torch.no_grad():
        logits = tagger.model.eval()(tagger.model.encoder.collate(features, [0])).logits[0]
    names = tagger.model.head.tags.names  # type: ignore[attr-defined]
    assert [names[tag] for tag in logits.argmax(-1).tolist()] == expected


def test_a_classifier_is_a_source_and_reads_long_documents_to_the_end(tmp_path: Path) -> None:
    source = tagger_source("hf", open_token_classifier(make_classifier(tmp_path)))
    doc = Document("1", " ".join([TEXT] * 20))
    [weak] = annotate([doc], [source], workers=2)  # models run in this process, whatever the number of workers
    assert weak.words is None, "the words that the tagger needs are not written"
    assert max(span.start for span in weak.spans) > len(doc.text) * 0.9
    assert all(span.source == "hf" and 0 < (span.score or 0) <= 1 for span in weak.spans)
    assert {span.label for span in weak.spans} <= {"PER", "LOC"}


@pytest.mark.parametrize(
    ("tags", "labels"),
    [
        (("O", "PER", "LOC"), ("PER", "LOC")),
        (("I-PER", "O", "I-LOC"), ("PER", "LOC")),
        (("O", "B-X", "I-X", "L-X", "U-X"), ("X",)),
        (("O", "B-X-Y", "I-X-Y"), ("X-Y",)),
    ],
)
def test_tag_schemes(tmp_path: Path, tags: tuple[str, ...], labels: tuple[str, ...]) -> None:
    tagger = open_token_classifier(make_classifier(tmp_path, tags))
    assert tagger.labels == labels
    assert {span.label for span in tagger(TEXT).spans} <= set(labels)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"id2label": None}, "names no labels"),
        ({"id2label": {"0": "O", "2": "X"}}, "not numbered"),
        ({"id2label": {"0": "A", "1": "B-X", "2": "I-X", "3": "C", "4": "D"}}, "no tag O"),
        ({"id2label": {"0": "O", "1": "B-X", "2": "I-X", "3": "odd", "4": "I-Y"}}, "'odd' is not a tag"),
        ({"architectures": ["BertForMaskedLM"]}, "not a token classifier but BertForMaskedLM"),
        ({"auto_map": {"AutoModel": "evil.Model"}}, "may run code"),
        ({"id2label": {"0": "O", "1": "B-X"}}, "not one linear layer"),
    ],
)
def test_unusable_classifiers(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    make_classifier(tmp_path)
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(ModelFileError, match=sentence):
        open_token_classifier(tmp_path)


def test_a_classifier_of_another_form_is_refused(tmp_path: Path) -> None:
    make_classifier(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["classifier.dense.weight"] = tensors.pop("classifier.weight")
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ModelFileError, match="not one linear layer"):
        open_token_classifier(tmp_path)
    with pytest.raises(ModelFileError, match="no such folder: download"):
        open_token_classifier("someone/some-model")


class FakeGLiNER:
    """Finds capitalised words, reads at most `max_len` words, as the real one does."""

    opened: tuple[str, dict[str, Any]] | None = None
    config = SimpleNamespace(max_len=8)

    @classmethod
    def from_pretrained(cls, folder: str, **options: Any) -> FakeGLiNER:
        cls.opened = folder, options
        return cls()

    def inference(self, texts: list[str], labels: list[str], **options: Any) -> list[list[dict[str, Any]]]:
        assert options["threshold"] == 0.5
        found = []
        for text in texts:
            words = split_words(text)[: self.config.max_len]
            found.append(
                [
                    {"start": a, "end": b, "text": text[a:b], "label": labels[0], "score": 0.75}
                    for a, b in words
                    if text[a].isupper()
                ]
            )
        return found


@pytest.fixture
def gliner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    module = ModuleType("gliner")
    module.GLiNER = FakeGLiNER  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gliner", module)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "model.safetensors").write_bytes(b"")
    (tmp_path / "gliner_config.json").write_text(json.dumps({"model_name": "some/encoder", "encoder_config": {}}))
    return tmp_path


def test_gliner_reads_every_word_of_a_long_text(gliner: Path) -> None:
    source = gliner_source(gliner, {"name of a person": "PER"}, name="zero-shot")
    text = " ".join(f"Name{n} is here" for n in range(30))
    docs = [Document("1", text), Document("2", ""), Document("3", "nothing")]
    outputs = source.find_all(docs)
    assert [text[s.start : s.end] for s in outputs[0].spans] == [f"Name{n}" for n in range(30)]
    assert {(s.label, s.score, s.source) for s in outputs[0].spans} == {("PER", 0.75, "zero-shot")}
    assert [len(output.spans) for output in outputs[1:]] == [0, 0]
    assert FakeGLiNER.opened is not None and FakeGLiNER.opened[1]["local_files_only"] is True


@pytest.mark.integration
def test_the_real_gliner(tmp_path: Path) -> None:
    """A random model: what it finds has no meaning, but it finds something up to the end of a long text."""
    library = pytest.importorskip("gliner")
    make_model("bert", tmp_path / "encoder")
    encoder = json.loads((tmp_path / "encoder" / "config.json").read_text())
    settings = {"model_name": str(tmp_path / "encoder"), "encoder_config": encoder, "hidden_size": 16, "max_len": 12}
    settings |= {"name": "x", "max_width": 4, "subtoken_pooling": "first", "span_mode": "markerV0", "max_types": 5}
    settings |= {"ent_token": "<<ENT>>", "sep_token": "<<SEP>>", "class_token_index": -1, "dropout": 0.1}
    library.GLiNER.from_config(settings).save_pretrained(tmp_path / "model", safe_serialization=True)
    file = tmp_path / "model" / "gliner_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "model_name": "some/encoder"}))
    source = gliner_source(tmp_path / "model", {"person": "PER", "place": "LOC"}, threshold=0.0)
    text = f"{TEXT} " * 6
    outputs = source.find_all([Document("1", text), Document("2", "")])
    assert max(span.end for span in outputs[0].spans) > 0.9 * len(text) and len(outputs[1].spans) == 0
    assert {span.label for span in outputs[0].spans} <= {"PER", "LOC"}


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"encoder_config": {"auto_map": {"AutoModel": "evil.Model"}}}, "auto_map=.*, which lacuner refuses"),
        (
            {"layers": [{"_attn_implementation": "evil/kernel"}]},
            "_attn_implementation='evil/kernel', which lacuner refuses",
        ),
        ({"model_name": "/tmp"}, "names an encoder in another folder"),
    ],
)
def test_hostile_gliner_folders(gliner: Path, config: dict[str, Any], sentence: str) -> None:
    (gliner / "gliner_config.json").write_text(json.dumps(config))
    with pytest.raises(ModelFileError, match=sentence):
        gliner_source(gliner, {"person": "PER"})


def test_gliner_mistakes(gliner: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="--labels"):
        gliner_source(gliner, {})
    (gliner / "gliner_config.json").write_text("{")
    with pytest.raises(ModelFileError, match="not readable as JSON"):
        gliner_source(gliner, {"person": "PER"})
    (gliner / "gliner_config.json").unlink()
    monkeypatch.setitem(sys.modules, "gliner", None)
    with pytest.raises(ConfigError, match="pip install gliner"):
        gliner_source(gliner, {"person": "PER"})
    (gliner / "model.safetensors").unlink()
    with pytest.raises(ModelFileError, match=r"no model\.safetensors .*safe_serialization=True"):
        gliner_source(gliner, {"person": "PER"})
    with pytest.raises(ModelFileError, match="no such folder"):
        gliner_source(gliner / "nowhere", {"person": "PER"})
