"""ONNX: the graph and its program predict what the tagger predicts, for any text, also with weights in 8 bits."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lacuner.data import Document
from lacuner.errors import ConfigError
from lacuner.export.export import export
from lacuner.export.onnx_folder import write_onnx
from lacuner.export.options import ExportOptions
from lacuner.export.source import ExportSource
from lacuner.models.encoders.lstm import LSTMConfig, lstm_from_words
from lacuner.models.heads import build_head
from lacuner.models.lookup import LookupTagger
from lacuner.models.model import Model
from lacuner.models.storage import save
from lacuner.models.tagger import Tagger
from tests.export.conftest import LABELS, TEXTS, make_tagger, spans_of, texts
from tests.models.test_encoders import LengthEncoder

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

pytestmark = pytest.mark.integration
DOCS = [Document(str(number), text) for number, text in enumerate(TEXTS)]
HEADS: dict[str, dict[str, Any]] = {
    "span": {"widths": 4},
    "span biaffine": {"widths": 4, "variant": "biaffine"},
    "token": {"scheme": "BIOES", "non_entity": True},
    "crf": {},
    "prototype": {"prototypes": 2},
}
# decoding of all heads is tested without graphs in test_reference.py
EACH_HEAD = ["span", *(pytest.param(head, marks=pytest.mark.slow) for head in list(HEADS)[1:])]


def load_program(folder: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("tagger", folder / "tagger.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Tagger, Path, Any]]:
    """A tagger with each head, its export, and the proof, made once."""
    made: dict[str, tuple[Tagger, Path, Any]] = {}

    def make(head: str) -> tuple[Tagger, Path, Any]:
        if head not in made:
            folder = tmp_path_factory.mktemp(head)
            tagger = make_tagger(head.partition(" ")[0], gazetteer=True, **HEADS[head])
            save(tagger, folder / "run")
            proof = export(folder / "run", "onnx", folder / "out", DOCS).proof
            made[head] = tagger, folder / "out", proof
        return made[head]

    return make


@pytest.mark.parametrize("head", EACH_HEAD)
def test_the_proof_compares_the_model_without_its_gazetteer(head: str, exports: Any) -> None:
    _, folder, proof = exports(head)
    assert proof.equal == proof.spans > (4 if head == "prototype" else 10)  # in the scheme IO, neighbours merge
    assert proof.score_difference < 1e-4 and proof.scores_compared == proof.equal
    assert not proof.gazetteer
    assert "gazetteer of the tagger is **not** part" in (folder / "README.md").read_text(encoding="utf-8")
    assert json.loads((folder / "proof.json").read_text(encoding="utf-8"))["equal"] == proof.equal


@pytest.mark.parametrize("head", EACH_HEAD)
def test_any_text_gives_the_same_spans(head: str, exports: Any) -> None:
    tagger, folder, _ = exports(head)
    model, program = Tagger(tagger.model), load_program(folder).Tagger(folder, threads=1)

    @given(texts)
    @settings(max_examples=40)
    def check(text: str) -> None:
        [spans] = program.predict([text])
        assert [span[:3] for span in spans] == spans_of(model, [text])[0]

    check()


def test_the_folder_predicts_where_lacuner_torch_and_regex_are_not(exports: Any, tmp_path: Path) -> None:
    tagger, folder, _ = exports("span")
    shutil.copytree(folder, tmp_path / "elsewhere")
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    block = "sys.modules |= dict.fromkeys(['lacuner', 'torch', 'regex', 'tokenizers', 'transformers'])"
    run = "runpy.run_path(sys.argv[2], run_name='__main__')"
    code = f"import runpy, sys; {block}; sys.argv[0] = 'tagger'; sys.argv.insert(1, sys.argv.pop()); {run}"
    command = [sys.executable, "-I", "-c", code, tmp_path / "elsewhere" / "tagger.py", tmp_path / "texts.jsonl"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
    rows = [json.loads(line)["spans"] for line in done.stdout.splitlines()]
    predicted = [[(span["start"], span["end"], span["label"]) for span in row] for row in rows]
    assert predicted == spans_of(Tagger(tagger.model), TEXTS) and sum(map(len, predicted)) > 10


@pytest.mark.slow
def test_fifty_thousand_words(exports: Any) -> None:
    tagger, folder, _ = exports("span")
    model, program = Tagger(tagger.model), load_program(folder).Tagger(folder, threads=1)
    long = "Mara Teel of Halden sailed on and on .\n" * 5_600
    assert [[span[:3] for span in spans] for spans in program.predict([long])] == spans_of(model, [long])


def make_lstm_tagger(head: str, layers: int) -> Tagger:
    """A tagger with random weights, whose vocabulary has some of the words and characters of the texts."""
    torch.manual_seed(5)
    settings = LSTMConfig(width=12, layers=layers, word=8, character=6)
    encoder = lstm_from_words([["Mara", "left", "Halden", "é", "玛", "!"]], settings)
    model = Model(encoder, build_head({"kind": head, "labels": LABELS}, encoder.width)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.7)
        model.head.output.bias[0] = -2.0
    return Tagger(model)


@pytest.mark.parametrize("head, layers", [("token", 2), pytest.param("span", 1, marks=pytest.mark.slow)])
def test_an_lstm_gives_the_same_spans(head: str, layers: int, tmp_path: Path) -> None:
    """Sentences of different length share a batch: padding must change neither direction of the LSTM."""
    tagger = make_lstm_tagger(head, layers)
    save(tagger, tmp_path / "run")
    proof = export(tmp_path / "run", "onnx", tmp_path / "out", DOCS).proof
    assert proof.equal == proof.spans > 4 and proof.score_difference < 1e-4
    program = load_program(tmp_path / "out").Tagger(tmp_path / "out", threads=1)

    @given(st.lists(texts, min_size=1, max_size=4))
    @settings(max_examples=40)
    def check(several: list[str]) -> None:
        assert [[span[:3] for span in spans] for spans in program.predict(several)] == spans_of(tagger, several)

    check()


def test_int8_states_how_many_spans_changed(tmp_path: Path) -> None:
    save(make_tagger("span", widths=4), tmp_path / "run")
    options = ExportOptions(int8=True)
    proof = export(tmp_path / "run", "onnx", tmp_path / "out", DOCS, max_changed=0.9, options=options).proof
    assert proof.missing + proof.extra > 0
    assert 0 < proof.changed < 0.9
    assert proof.equal + proof.missing == proof.spans
    assert proof.tolerance == {"score": 1.0, "changed": 0.9}


def test_what_cannot_be_exported_is_refused_with_one_sentence(tmp_path: Path) -> None:
    save(LookupTagger({"Halden": "LOC"}), tmp_path / "lookup")
    with pytest.raises(ConfigError, match="only looks names up"):
        export(tmp_path / "lookup", "onnx", tmp_path / "out", DOCS)
    encoder = LengthEncoder()
    other = Tagger(Model(encoder, build_head({"kind": "token", "labels": LABELS}, encoder.width)))
    with pytest.raises(ConfigError, match="tiny, lstm and hf: encoders can; `lacuner distil"):
        write_onnx(ExportSource(tmp_path, other), tmp_path / "out", ExportOptions())
    gaps = ExportSource(tmp_path, make_tagger("tie_or_break"))
    with pytest.raises(ConfigError, match=r"'tie_or_break' cannot be exported to ONNX: .* heads can; `lacuner distil"):
        write_onnx(gaps, tmp_path / "out", ExportOptions())
    save(make_tagger("token"), tmp_path / "run")
    with pytest.raises(ConfigError, match="--wheel has no meaning with --to onnx"):
        export(tmp_path / "run", "onnx", tmp_path / "out", DOCS, options=ExportOptions(wheel=True))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("x")
    with pytest.raises(ConfigError, match="not an empty folder"):
        export(tmp_path / "run", "onnx", tmp_path / "out", DOCS)
    with pytest.raises(ConfigError, match="give some with --dev or --text"):
        export(tmp_path / "run", "onnx", tmp_path / "new")
