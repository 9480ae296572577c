"""Distillation: probabilities fit the words of any windows, and a student learns what its teacher predicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lacuner import api
from lacuner.config import load_config
from lacuner.corpus.stored import store_documents
from lacuner.data import Document, remove_labels
from lacuner.errors import ConfigError
from lacuner.export.distil import DistilConfig, align_words, distil, teacher_probs
from lacuner.models.lookup import LookupTagger
from lacuner.models.storage import load, save
from lacuner.models.tagger import Tagger
from lacuner.models.windows import cut_sentences
from lacuner.training.identity import set_complete
from tests.demo_corpus import demo_corpus
from tests.export.conftest import GAZETTEER, LABELS, make_tagger

DOCS = [Document(str(i), text) for i, text in enumerate(["Mara left Halden.", "", "word " * 700, "Mara"])]


@pytest.mark.parametrize(
    ("head", "settings"), [("token", {}), ("span", {"widths": 3}), ("crf", {}), ("entity_type", {}), ("prototype", {})]
)
def test_every_word_has_the_probabilities_of_the_window_that_owns_it(head: str, settings: dict[str, Any]) -> None:
    model = make_tagger(head, **settings).model
    probs = teacher_probs(model, DOCS)
    assert len(probs) == 4 + 0 + 700 + 1
    assert torch.allclose(probs.nan_to_num(0.5).sum(dim=-1)[~probs.isnan().any(dim=-1)], torch.tensor(1.0), atol=1e-3)
    sentences = cut_sentences(DOCS, model.encoder)
    aligned = align_words(probs, sentences)
    assert len(aligned) == sum(map(len, sentences.words)) > len(probs)  # windows overlap
    features = model.encoder.prepare(sentences.words)
    with torch.no_grad():
        scores = model(model.encoder.collate(features, [0]))
    if head != "crf":
        expected = scores.logits.softmax(dim=-1)[0]
        known = ~aligned[:4].isnan()
        assert torch.allclose(aligned[:4][known], expected[known], atol=1e-5)
    if head == "span":  # what would reach beyond the end of a sentence
        assert aligned[:4].isnan().any(dim=-1).tolist() == [
            [False] * 3,
            [False] * 3,
            [False, False, True],
            [False, True, True],
        ]


def test_windows_of_another_encoder() -> None:
    """Rows are found by their words, whatever windows they came from."""
    sentences = cut_sentences(DOCS, make_tagger("token").model.encoder)
    numbers = torch.arange(705.0).unsqueeze(-1)
    aligned = align_words(numbers, sentences).squeeze(-1).numpy()
    at = 0
    for number, window in zip(sentences.document, sentences.windows, strict=True):
        first = [0, 4, 4, 704][number] + window.start
        assert (
            aligned[at : at + window.end - window.start] == np.arange(first, first + window.end - window.start)
        ).all()
        at += window.end - window.start


@pytest.mark.integration
@pytest.mark.parametrize(
    ("head", "student", "least"),
    [pytest.param("crf", None, 0.5, marks=pytest.mark.slow), ("span", None, 0.5), ("span", "token", 0.2)],
)
def test_a_student_learns_from_its_teacher(head: str, student: str | None, least: float, tmp_path: Path) -> None:
    """Random teachers, whose decisions a few epochs teach only roughly, and less well as labels of another head."""
    teacher = make_tagger(head, **({"widths": 3} if head == "span" else {}))
    save(Tagger(teacher.model, GAZETTEER), tmp_path / "teacher")
    docs = [Document(doc.id, doc.text) for doc in demo_corpus().train[:300]]
    config = load_config(DistilConfig, settings=["train.epochs=4", *([f'head="{student}"'] if student else [])])
    result = distil(tmp_path / "teacher", docs, tmp_path / "student", config)
    assert result.agreement.gold > 50
    assert result.agreement.f1 > least
    assert result.tagger.labels == tuple(LABELS)
    saved = load(tmp_path / "student")
    assert isinstance(saved, Tagger) and saved.gazetteer is not None and len(saved.gazetteer) == len(GAZETTEER)
    assert saved.model.head.config()["kind"] == (student or ("token" if head == "crf" else head))
    again = distil(tmp_path / "teacher", docs[::-1], tmp_path / "student", config)  # finished: loaded
    assert again.agreement == result.agreement


def test_another_tag_scheme_is_learned_from_predictions(tmp_path: Path) -> None:
    """So a tagger with BIOES tags, which the pipeline of transformers does not read, can be exported after all."""
    save(make_tagger("token", scheme="BIOES"), tmp_path / "teacher")
    messages: list[str] = []
    for scheme, what in {"BIO": "predictions", "BIOES": "probabilities"}.items():
        config = load_config(DistilConfig, settings=["train.epochs=1", f'scheme="{scheme}"'])
        student = distil(tmp_path / "teacher", DOCS, tmp_path / scheme, config, log=messages.append).tagger
        assert student.model.head.config()["scheme"] == scheme
        assert any(f"the teacher's {what}" in message for message in messages)
        messages.clear()


@pytest.mark.parametrize("settings", [[], ['head="token"']], ids=["probabilities", "predictions"])
def test_texts_on_disk_give_the_same_student(
    settings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the teacher reads them in several parts, one of which has a text longer than a window."""
    monkeypatch.setattr("lacuner.export.distil.DOCS_AT_ONCE", 3)
    save(make_tagger("span", widths=3), tmp_path / "teacher")
    docs = [Document(str(i), f"Mara {i} left Halden.", complete=True) for i in range(12)] + DOCS
    bare = set_complete(remove_labels(docs), False)
    stored = store_documents(bare, tmp_path / "stored", "v1")
    config = load_config(DistilConfig, settings=["train.epochs=1", *settings])
    runs = [
        distil(tmp_path / "teacher", texts, tmp_path / name, config) for name, texts in (("a", docs), ("b", stored))
    ]
    weights = [(result.run.model_folder / "model.safetensors").read_bytes() for result in runs]
    assert weights[0] == weights[1] and runs[0].agreement == runs[1].agreement
    assert list((tmp_path / "stored").rglob("arrays-*"))


def test_what_cannot_be_distilled(tmp_path: Path) -> None:
    save(LookupTagger({"Halden": "LOC"}), tmp_path / "lookup")
    with pytest.raises(ConfigError, match="no model to learn from"):
        distil(tmp_path / "lookup", DOCS, tmp_path / "student")
    save(make_tagger("token"), tmp_path / "teacher")
    with pytest.raises(ConfigError, match="at least two texts"):
        distil(tmp_path / "teacher", DOCS[:1], tmp_path / "student")
    assert not (tmp_path / "student").exists()


def test_from_python(tmp_path: Path) -> None:
    """`lacuner.api.distil` trains the same student as the function below it."""
    save(make_tagger("token"), tmp_path / "teacher")
    texts = ["Mara left Halden.", "Nora came to Halden.", "Mara Teel left."]
    settings = ["train.epochs=1", "scheme=IO"]
    result = api.distil(tmp_path / "teacher", "tiny", texts, tmp_path / "a", settings=settings, progress=False)
    assert result.tagger.labels == tuple(LABELS) and result.agreement.gold > 0
    config = load_config(DistilConfig, settings=[*settings, "encoder.name=tiny"])
    docs = [Document(str(number), text) for number, text in enumerate(texts, 1)]
    again = distil(tmp_path / "teacher", docs, tmp_path / "b", config)
    weights = [(run / "model.safetensors").read_bytes() for run in (result.run.model_folder, again.run.model_folder)]
    assert weights[0] == weights[1]
