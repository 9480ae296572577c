# ruff: noqa: E402
"""GLiNER as a source: its own library with random models (`make test-libraries`), and folders that are refused."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from lacuner.corpus import read
from lacuner.data import Document
from lacuner.errors import ConfigError, ModelFileError
from lacuner.models.gliner_source import gliner_source
from tests.corpus.test_other_libraries import library

TEXT = "Mara Teel left Halden. 🚀 Élan near 北京, said Mara-Lou_x of état-major!"
LABELS = {"name of a person": "PERSON", "town": "PLACE", "place": "PLACE"}
ENCODER = {"vocab_size": 300, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
BERT = {**ENCODER, "model_type": "bert", "intermediate_size": 24}
DEBERTA = {**BERT, "model_type": "deberta-v2", "relative_attention": True, "position_biased_input": False}
DEBERTA |= {"pos_att_type": ["p2c", "c2p"], "position_buckets": 16, "share_att_key": True, "type_vocab_size": 0}
KINDS: dict[str, dict[str, Any]] = {
    "span": {},
    "deberta": {"encoder_config": DEBERTA},
    "token": {"span_mode": "token_level"},
    "bi-encoder": {"labels_encoder": "some/labels", "labels_encoder_config": BERT},
    "bi-encoder-token": {
        "labels_encoder": "some/labels",
        "labels_encoder_config": BERT,
        "span_mode": "token_level",
    },
    "relations": {"relations_layer": "dot"},
}


def save_tokenizer(folder: Path, limit: int) -> None:
    """A tokenizer with one sub-word per character."""
    characters = [chr(number) for number in range(33, 127)] + list("éÉ北京🚀")
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters, *(f"##{char}" for char in characters)]
    pieces = models.WordPiece({name: number for number, name in enumerate(names)}, unk_token="[UNK]")
    tokenizer = Tokenizer(pieces)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()  # type: ignore[assignment]
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)  # type: ignore[assignment]
    special = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=limit, **special)
    fast.save_pretrained(folder)


def make_gliner(folder: Path, kind: str = "span", limit: int = 512, **settings: Any) -> Path:
    """A random model of GLiNER, as its `save_pretrained` writes it; its config names an encoder on the hub."""
    gliner = library("gliner")
    save_tokenizer(folder / "tokenizer", limit)
    config = {"encoder_config": BERT, "hidden_size": 16, "max_len": 40, "max_width": 4, "name": "x", "max_types": 5}
    config |= {"span_mode": "markerV0", "dropout": 0.1, "class_token_index": -1, **KINDS[kind], **settings}
    local = {
        key: str(folder / "tokenizer") for key in ("model_name", "labels_encoder") if key in {"model_name", *config}
    }
    torch.manual_seed(1)
    model = gliner.GLiNER.from_config({**config, **local}, backbone_from_pretrained=False)
    with torch.no_grad():
        for weights in model.model.parameters():
            weights.mul_(1.6)  # scores that differ
    model.save_pretrained(folder / "model", safe_serialization=True)
    file = folder / "model" / "gliner_config.json"
    names = {key: f"some/{key}" for key in local}
    file.write_text(json.dumps({**json.loads(file.read_text()), **names}))
    return folder / "model"


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise AssertionError("GLiNER asked for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.integration
@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("kind", KINDS)
def test_spans_and_scores_are_those_of_the_library(tmp_path: Path, kind: str) -> None:
    folder = make_gliner(tmp_path, kind)
    theirs = library("gliner").GLiNER.from_pretrained(str(folder), local_files_only=True)
    scores = sorted(entity["score"] for entity in theirs.predict_entities(TEXT, list(LABELS), threshold=0.0))
    middle = scores[len(scores) // 2]
    sizes = []
    for threshold in (0.0, middle, 1.0):
        source = gliner_source(folder, LABELS, threshold=threshold)
        [output, empty, white] = source.find_all([Document("1", TEXT), Document("2", ""), Document("3", " \n ")])
        expected = theirs.predict_entities(TEXT, list(LABELS), threshold=threshold)
        assert [(span.start, span.end, span.label) for span in sorted(output.spans)] == [
            (entity["start"], entity["end"], LABELS[entity["label"]])
            for entity in sorted(expected, key=lambda entity: entity["start"])
        ]
        assert [TEXT[span.start : span.end] for span in sorted(output.spans)] == [
            entity["text"] for entity in sorted(expected, key=lambda entity: entity["start"])
        ]
        scores = [entity["score"] for entity in sorted(expected, key=lambda entity: entity["start"])]
        assert [span.score for span in sorted(output.spans)] == pytest.approx(scores, abs=1e-4)
        assert not empty.spans and not white.spans
        sizes.append(len(output.spans))
    assert sizes[0] >= 3 and sizes[1] >= 1 and sizes[2] == 0


@pytest.mark.integration
@pytest.mark.parametrize(
    ("limit", "settings"),
    [
        (512, {"max_len": 20}),
        (96, {}),
        (10**30, {"encoder_config": {**BERT, "max_position_embeddings": 96}}),
        (
            10**30,
            {"encoder_config": {**BERT, "model_type": "roberta", "max_position_embeddings": 96, "pad_token_id": 1}},
        ),
    ],
)
def test_every_word_of_a_long_text_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, settings: dict[str, Any]
) -> None:
    folder = make_gliner(tmp_path, limit=limit, **settings)
    text = " ".join(f"{TEXT} incomprehensibilities" for _ in range(20))
    source = gliner_source(folder, LABELS, threshold=0.0)
    from gliner.data_processing.processor import BaseProcessor

    lengths: list[int] = []
    tokenize = BaseProcessor.tokenize_inputs

    def record(self: Any, texts: Any, *args: Any, **options: Any) -> Any:
        inputs = tokenize(self, texts, *args, **options)
        lengths.append(inputs["input_ids"].shape[1])
        assert [int(mask.max()) for mask in inputs["words_mask"]] == [len(words) for words in texts], "truncated"
        assert max(len(words) for words in texts) <= self.config.max_len
        return inputs

    monkeypatch.setattr(BaseProcessor, "tokenize_inputs", record)
    [output] = source.find_all([Document("1", text)])
    assert len(lengths) > 1 and max(lengths) <= 512
    ends = {span.end for span in output.spans}
    assert len(text) in ends and all(0 <= span.start < span.end <= len(text) for span in output.spans)
    spans = [(span.start, span.end, span.label) for span in output.spans]
    assert len(set(spans)) == len(spans), "no span twice, from two windows"


@pytest.mark.integration
def test_labels_that_leave_no_room_are_refused(tmp_path: Path) -> None:
    folder = make_gliner(tmp_path, limit=60)
    with pytest.raises(ConfigError, match=r"take 61 sub-words, and the model reads 60 .*: give fewer --labels"):
        gliner_source(folder, {"name of somebody who has done something nobody else would have done": "X"})


@pytest.mark.integration
def test_pickled_and_incomplete_weights_of_the_library(tmp_path: Path) -> None:
    folder = make_gliner(tmp_path)
    (folder / "pytorch_model.bin").write_bytes(b"never read")
    gliner_source(folder, LABELS)
    tensors = load_file(folder / "model.safetensors")
    removed = next(key for key in sorted(tensors) if "span_rep" in key)
    save_file({key: value for key, value in tensors.items() if key != removed}, folder / "model.safetensors")
    with pytest.raises(ModelFileError, match=f"lacks 1 of the model's parameters, the first is {removed}"):
        gliner_source(folder, LABELS)
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelFileError, match=r"no model\.safetensors .*safe_serialization=True"):
        gliner_source(folder, LABELS)


@pytest.mark.integration
def test_annotate_with_the_library(tmp_path: Path) -> None:
    folder = make_gliner(tmp_path)
    (tmp_path / "texts.txt").write_text(f"{TEXT}\n\n{TEXT} {TEXT}\n", encoding="utf-8")
    command = [sys.executable, "-m", "lacuner", "annotate", "texts.txt", "--source", f"gliner:{folder}"]
    command += [
        "--labels",
        "name of a person=PERSON",
        "--labels",
        "town",
        "--gliner-threshold",
        "0",
        "--out",
        "w.jsonl",
    ]
    src = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={"PYTHONPATH": src, "PATH": "", "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr and "rror" not in done.stderr, done.stderr
    docs = list(read(tmp_path / "w.jsonl"))
    assert {span.label for doc in docs for span in doc.spans} <= {"PERSON", "town"}
    assert all(span.source == "model" and 0 < (span.score or 0) < 1 for doc in docs for span in doc.spans)
    assert sum(len(doc.spans) for doc in docs) >= 3


class FakeGLiNER:
    """Finds capitalised words, reads at most `max_len` words, as the real one does."""

    opened: tuple[str, dict[str, Any]] | None = None
    config = SimpleNamespace(max_len=8, ent_token="<<ENT>>", sep_token="<<SEP>>", encoder_config=None)
    model = torch.nn.Module()

    def __init__(self) -> None:
        def split(text: str) -> list[tuple[str, int, int]]:
            starts = [0, *(place + 1 for place, char in enumerate(text) if char == " ")]
            return [(word, at, at + len(word)) for word, at in zip(text.split(" "), starts, strict=True) if word]

        class Encoding(dict[str, list[int]]):
            def word_ids(self) -> list[int]:
                return self["input_ids"]

        def tokenizer(words: list[str], **options: Any) -> Encoding:
            return Encoding(input_ids=list(range(len(words))))

        tokenizer.model_max_length = 10**30  # type: ignore[attr-defined]
        self.data_processor = SimpleNamespace(words_splitter=split, transformer_tokenizer=tokenizer)

    @classmethod
    def from_pretrained(cls, folder: str, **options: Any) -> FakeGLiNER:
        cls.opened = folder, options
        return cls()

    def inference(self, texts: list[str], labels: list[str], **options: Any) -> list[list[dict[str, Any]]]:
        words = [self.data_processor.words_splitter(text)[: self.config.max_len] for text in texts]
        return [
            [
                {"start": start, "end": end, "text": word, "label": labels[0], "score": 0.75}
                for word, start, end in row
                if word[0].isupper() and options["threshold"] <= 0.75
            ]
            for row in words
        ]


CONFIG: dict[str, Any] = {"model_name": "some/encoder", "encoder_config": {"model_type": "bert"}}


@pytest.fixture
def gliner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    module = ModuleType("gliner")
    module.GLiNER = FakeGLiNER  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gliner", module)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    save_file({"x": torch.zeros(1)}, tmp_path / "model.safetensors")
    (tmp_path / "gliner_config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "tokenizer_config.json").write_text("{}")
    return tmp_path


def test_windows_of_a_long_text(gliner: Path) -> None:
    source = gliner_source(gliner, {"name of a person": "PER"}, name="zero-shot")
    text = " ".join(f"Name{n} is here" for n in range(30))
    docs = [Document("1", text), Document("2", ""), Document("3", "nothing")]
    outputs = source.find_all(docs)
    assert [text[s.start : s.end] for s in outputs[0].spans] == [f"Name{n}" for n in range(30)]
    assert {(s.label, s.score, s.source) for s in outputs[0].spans} == {("PER", 0.75, "zero-shot")}
    assert [len(output.spans) for output in outputs[1:]] == [0, 0]
    assert FakeGLiNER.opened is not None and FakeGLiNER.opened[1]["local_files_only"] is True


def test_labels_of_a_second_encoder_take_no_room_of_the_text(gliner: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = {f"type {number}": "X" for number in range(2100)}
    with pytest.raises(ConfigError, match="give fewer --labels"):
        gliner_source(gliner, many)
    monkeypatch.setattr(FakeGLiNER.config, "labels_encoder", "some/labels", raising=False)
    assert gliner_source(gliner, many).name == gliner.name


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"encoder_config": {"auto_map": {"AutoModel": "evil.Model"}}}, "auto_map=.*, which lacuner refuses"),
        ({"layers": [{"_attn_implementation": "evil/kernel"}]}, "_attn_implementation='evil/kernel', which lacuner"),
        ({"model_name": "/tmp"}, "names an encoder in another folder"),
        ({"labels_encoder": "/tmp", "labels_encoder_config": {"model_type": "bert"}}, "folder .labels_encoder."),
        ({"labels_encoder": "some/labels"}, "no labels_encoder_config, so GLiNER would fetch 'some/labels': save"),
        ({"labels_encoder": "a/b", "labels_encoder_config": {"model_type": "bert"}}, "no tokenizer_config.json"),
        ({"encoder_config": None}, "no encoder_config, so GLiNER would fetch 'some/encoder': save the model"),
        ({"encoder_config": {"model_type": "yoso"}}, "type 'yoso' is none that lacuner loads"),
        ({"encoder_config": {"model_type": []}}, "type '.*' is none that lacuner loads"),
        ({"words_splitter_type": "stanza"}, "the word splitter 'stanza' fetches models"),
        ({"labels_decoder": "gpt2"}, "generates text"),
        ({"model_type": "gliner_streaming_span"}, "as a stream"),
    ],
)
def test_unusable_folders(gliner: Path, config: dict[str, Any], sentence: str) -> None:
    (gliner / "gliner_config.json").write_text(json.dumps({**CONFIG, **config}))
    with pytest.raises(ModelFileError, match=sentence):
        gliner_source(gliner, {"person": "PER"})


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        (lambda path: (path / "gliner_config.json").write_text("{"), ModelFileError, "not readable as JSON"),
        (lambda path: (path / "gliner_config.json").unlink(), ModelFileError, "no gliner_config.json"),
        (lambda path: (path / "tokenizer_config.json").unlink(), ModelFileError, "no tokenizer_config.json"),
        (
            lambda path: (path / "tokenizer_config.json").write_text('{"auto_map": {"AutoTokenizer": "evil.T"}}'),
            ModelFileError,
            "auto_map",
        ),
        (lambda path: sys.modules.update(gliner=None), ConfigError, "pip install gliner"),  # type: ignore[arg-type]
        (lambda path: (path / "model.safetensors").write_bytes(b"x"), ModelFileError, "cannot read the weights"),
        (lambda path: (path / "model.safetensors").unlink(), ModelFileError, r"no model\.safetensors"),
    ],
)
def test_damaged_folders(gliner: Path, change: Callable[[Path], Any], error: type[Exception], sentence: str) -> None:
    change(gliner)
    with pytest.raises(error, match=sentence):
        gliner_source(gliner, {"person": "PER"})


def test_mistakes(gliner: Path) -> None:
    for labels in ({}, {"": "PER"}):
        with pytest.raises(ConfigError, match="--labels"):
            gliner_source(gliner, labels)
    with pytest.raises(ConfigError, match="between 0 and 1, not 50"):
        gliner_source(gliner, {"person": "PER"}, threshold=50)
    with pytest.raises(ModelFileError, match="no such folder"):
        gliner_source(gliner / "nowhere", {"person": "PER"})
