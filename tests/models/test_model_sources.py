# ruff: noqa: E402
"""Models of others as sources: token classifiers that are built here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file
from tokenizers import pre_tokenizers

from lacuner.annotate import annotate, tagger_source
from lacuner.corpus.words import split_words
from lacuner.data import Document
from lacuner.errors import ModelFileError
from lacuner.models.model_sources import open_token_classifier
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
