"""Distil a tagger into another encoder: pre-trained quality at the speed of a small model.

What it does: the teacher predicts unlabeled text, and a student learns its probabilities for every word, or for every
    span. If the student has another kind of head, it learns the teacher's predictions as labels instead. The gazetteer
    of the teacher passes to the student. Some texts are held out: they show how far student and teacher agree and,
    without dev, select the best epoch.
Assumes: that the text is like the text in which entities are to be found. The teacher's mistakes are learned, too.
Departs from the authors: soft labels of all positions instead of the logits, no temperature, no gold.
Reference: Hinton, Vinyals and Dean (2015), "Distilling the knowledge in a neural network".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from lacuner.config import Config
from lacuner.corpus.stored import (
    StoredDocuments,
    open_documents,
    store_documents,
    take_documents,
    treat_as_complete,
)
from lacuner.data import Document, Lost, remove_labels
from lacuner.errors import ConfigError
from lacuner.evaluate.scores import Count, count_exact
from lacuner.mapped import Parts
from lacuner.models.config import MAX_SPAN_WIDTH, EncoderConfig
from lacuner.models.encoders import open_encoder
from lacuner.models.heads import build_head
from lacuner.models.heads.crf import tag_marginals
from lacuner.models.inference import probabilities, score_corpus
from lacuner.models.model import Model
from lacuner.models.ragged import offsets_of, run_positions
from lacuner.models.storage import fingerprint, load, save
from lacuner.models.tagger import Tagger
from lacuner.models.targets import choose_span_width
from lacuner.models.types import CRFScores, HasThreshold, SpanScores
from lacuner.models.windows import Sentences, cut_sentences
from lacuner.techniques.distillation import distillation_step, soft_label_set
from lacuner.training.config import TrainConfig
from lacuner.training.dataset import TrainingSet, cut_parts, keep_rows, training_set
from lacuner.training.identity import run_identity, set_complete, sort_documents
from lacuner.training.run_folder import Run, quiet
from lacuner.training.stage import Selection, train_stage
from lacuner.training.steps import Step, loss_step

HELD_OUT_EVERY, MAX_HELD_OUT = 10, 500
"""Every tenth document is held out, at most 500."""
DOCS_AT_ONCE = 500
"""Documents that the teacher scores at a time."""


class DistilConfig(Config):
    """Settings of `lacuner distil`."""

    encoder: EncoderConfig = EncoderConfig(name="tiny")
    head: Literal["token", "crf", "span", "entity_type"] | None = None
    """Head of the student. None: that of the teacher, or a token classifier if the teacher has a CRF or a head that
    students cannot have (`tie_or_break`)."""
    scheme: Literal["BIO", "BIOES", "IO"] | None = None
    """Tag scheme of a `token` or `crf` student. None: that of the teacher, or BIO if it has none."""
    train: TrainConfig = TrainConfig()


@dataclass(frozen=True)
class Distilled:
    """A finished distillation."""

    tagger: Tagger
    run: Run
    agreement: Count
    """Spans of the student's model compared with those of the teacher's on held-out text."""


def distil(
    teacher: str | PathLike[str],
    docs: Sequence[Document],
    out: str | PathLike[str],
    config: DistilConfig | None = None,
    *,
    dev: Sequence[Document] | None = None,
    seed: int = 1,
    log: Callable[[str], None] = quiet,
) -> Distilled:
    """Train a student on unlabeled text that a teacher labels; an interrupted run resumes, a finished one is loaded.

    Args:
        teacher: run folder or model folder.
        docs: documents, whose labels are ignored; or stored ones, which must be stored without labels.
        out: run folder of the student.
        config: encoder, head and training of the student.
        dev: gold annotations for early stopping and tuning; without them, held-out predictions of the teacher are used.
        seed: random seed.
        log: receives one line per epoch.
    """
    config = config if config is not None else DistilConfig()
    source = load(teacher)
    if not isinstance(source, Tagger):
        raise ConfigError("this run only looks names up: it has no model to learn from", file=Path(teacher))
    texts = docs if isinstance(docs, StoredDocuments) else sort_documents(set_complete(remove_labels(docs), False))
    gold = sort_documents(set_complete(dev, True)) if dev else []
    if len(texts) < 2:
        raise ConfigError("distillation needs at least two texts (--text): one is held out")
    identity = run_identity("distil", seed, config, {"text": texts, **({"dev": gold} if gold else {})})
    run = Run(out, {**identity, "teacher": fingerprint(teacher)}, log)
    with run.locked():
        held_out = np.zeros(len(texts), dtype=bool)
        held_out[: HELD_OUT_EVERY * MAX_HELD_OUT : HELD_OUT_EVERY] = True
        predicted = Tagger(source.model).predict(take_documents(texts, np.flatnonzero(held_out)))
        reference = [replace(doc, complete=True) for doc in predicted]
        if run.finished:
            log("this run is already finished")
            tagger = load(run.model_folder)
            assert isinstance(tagger, Tagger)
        else:
            kept = take_documents(texts, np.flatnonzero(~held_out))
            tagger = Tagger(_train(source.model, kept, gold or reference, config, run), source.gazetteer)
            save(tagger, run.model_folder)
        agreement = count_exact(reference, list(Tagger(tagger.model).predict(reference)))
        if not run.finished:
            run.finish({"labels": list(tagger.labels), "agreement": {"f1": agreement.f1, "documents": len(reference)}})
    return Distilled(tagger, run, agreement)


def _train(teacher: Model, docs: Sequence[Document], dev: Sequence[Document], config: DistilConfig, run: Run) -> Model:
    """Train the student on the teacher's probabilities, or on its predictions if their heads differ."""
    own = teacher.head.config()
    kind = config.head or ("token" if own["kind"] in ("crf", "tie_or_break") else own["kind"])
    soft = kind == own["kind"] != "crf" or (kind, own["kind"]) == ("token", "crf")
    soft = soft and config.scheme in (None, own.get("scheme"))
    labeled = treat_as_complete(docs) if soft else _label(teacher, docs, run)
    torch.manual_seed(run.seed_for("weights", "model"))
    encoder = open_encoder(config.encoder, docs)
    settings: dict[str, Any] = {**own, "kind": kind} if soft else {"kind": kind, "labels": own["labels"]}
    if not soft and kind in ("token", "crf"):
        settings["scheme"] = config.scheme or own.get("scheme", "BIO")
    elif not soft and kind == "span":
        annotations = (annotation for part in cut_parts(labeled, encoder, Lost()) for annotation in part.annotations)
        settings["widths"] = min(choose_span_width(annotations), MAX_SPAN_WIDTH)
    student = Model(encoder, build_head(settings, encoder.width))
    lost = Lost()
    data = training_set(student, labeled, lost)
    what = "probabilities" if soft else "predictions"
    run.log(f"distil: learning the teacher's {what} for {len(docs):,} documents: {lost}")
    step: Step
    if soft:
        rows = keep_rows(data, [run.identity, "teacher"], _soft_labels(teacher, data))
        data = replace(data, targets=replace(data.targets, known=rows["known"]))
        data = soft_label_set(data, student, rows["probs"], weight_types=kind not in ("token", "prototype"))
        step = loss_step(data) if kind in ("token", "prototype") else distillation_step(data)
    else:
        step = loss_step(data)
    run.plan({"train": config.train.epochs})
    selection = Selection(dev, "dev" if isinstance(student.head, HasThreshold) else "argmax")
    return train_stage(data, lambda _: step, config.train, run, selection).model


def _label(teacher: Model, docs: Sequence[Document], run: Run) -> Sequence[Document]:
    """The documents with the teacher's predictions as complete labels; stored if the documents are."""
    predicted = (replace(doc, complete=True) for doc in Tagger(teacher).predict(docs))
    if not isinstance(docs, StoredDocuments):
        return list(predicted)
    identity = [run.identity, docs.key]
    folder = docs.folder / f"predicted-{hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]}"
    return open_documents(folder, identity) or store_documents(predicted, folder, identity, ordered=True)


def _soft_labels(teacher: Model, data: TrainingSet) -> Parts:
    """The teacher's probabilities for every word of a training set, and what is known: all that it could score."""
    docs, first = data.sentences.docs, 0
    for start in range(0, len(docs), DOCS_AT_ONCE):
        part = docs[start : start + DOCS_AT_ONCE]
        probs = align_words(teacher_probs(teacher, part), cut_sentences(part, data.model.encoder))
        known = data.targets.known[first : first + len(probs)] & ~probs.isnan().any(dim=-1)
        first += len(probs)
        yield {"probs": probs.nan_to_num_().numpy(), "known": known.numpy()}


def teacher_probs(teacher: Model, docs: Sequence[Document]) -> Tensor:
    """Probabilities of every word of the documents, `[words, classes]` or `[words, widths, classes]`.

    A word's come from the window that owns it. Spans that reach beyond that window are NaN.
    """
    sentences = cut_sentences(docs, teacher.encoder)
    features = teacher.encoder.prepare(sentences.words)
    scores = score_corpus(teacher, features, _probs_of)
    starts = np.array([window.start for window in sentences.windows])
    own = np.array([(window.own_start, window.own_end) for window in sentences.windows]).reshape(-1, 2)
    rows = run_positions(offsets_of(features.lengths)[:-1] + own[:, 0] - starts, own[:, 1] - own[:, 0])
    return scores[torch.from_numpy(rows)]


def _probs_of(scores: Any) -> Tensor:
    if isinstance(scores, CRFScores):
        return tag_marginals(scores)
    probs = probabilities(scores)
    return probs.masked_fill(~scores.mask.unsqueeze(-1), torch.nan) if isinstance(scores, SpanScores) else probs


def align_words(probs: Tensor, sentences: Sentences) -> Tensor:
    """Rows of all words of documents, one after another, as rows of the words of (overlapping) windows."""
    last = np.zeros(int(sentences.document.max(initial=-1)) + 1, dtype=np.int64)
    for number, window in zip(sentences.document.tolist(), sentences.windows, strict=True):
        last[number] = window.end
    first = offsets_of(last)[sentences.document]
    edges = np.array([(window.start, window.end) for window in sentences.windows]).reshape(-1, 2)
    return probs[torch.from_numpy(run_positions(first + edges[:, 0], edges[:, 1] - edges[:, 0]))]
