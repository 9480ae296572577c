"""Label completion: weak labels stay, and a model's predictions fill in the unlabeled tokens."""

import hashlib
import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from lacuner.atomic import atomic_write, write_json
from lacuner.corpus.intervals import IntervalSet
from lacuner.corpus.jsonl import as_line
from lacuner.corpus.stored import StoredDocuments, open_documents, store_documents, take_documents
from lacuner.corpus.words import flatten, to_words, words_of
from lacuner.data import Document, Lost, Span, sort_spans
from lacuner.evaluate.calibration import Calibration
from lacuner.models.heads.crf import CRFHead, log_likelihood, viterbi
from lacuner.models.inference import score_batches
from lacuner.models.storage import AnyTagger
from lacuner.models.tagger import Tagger, assemble
from lacuner.models.types import CRFScores, Targets
from lacuner.models.windows import cut_sentences
from lacuner.training.distributed import first_then_others, is_first

SOURCE = "completion"
"""`source` of the spans that the model added."""
COMPLETED = "completed"
"""`completed.jsonl` in a run folder holds the completed documents."""
GROUP = 20_000
"""Documents that are predicted and completed at a time."""
REASONS = {
    "empty": "sentences without a weak label skipped",
    "broken": "broken tag sequences repaired",
    "dropped": "sentences with broken tag sequences skipped",
    "added": "entities added",
    "extended": "weak labels extended",
    "ruled_out": "predictions ruled out by the labels",
    "unsure": "predictions that overlap an unsure span",
    "doubted": "predictions below the minimum probability",
}


@dataclass(frozen=True)
class Completion:
    """Completed weak documents, and the same with weak labels only (`weak`).

    For each of them, the model's confidence in the document as a whole, and the share of its words with a weak label.
    `counts` has what was done, by the keys of `REASONS`.
    """

    docs: Sequence[Document]
    weak: Sequence[Document]
    pseudo: dict[str, Any]
    """`count_labels` of the same documents with predictions only."""
    scores: np.ndarray
    labeled_share: np.ndarray
    counts: Counter[str]
    kept: np.ndarray
    """Places of these documents among those that were to be completed."""

    def __str__(self) -> str:
        steps = "; ".join(f"{reason}: {self.counts[name]:,}" for name, reason in REASONS.items() if self.counts[name])
        return f"{len(self.docs):,} weak documents: {steps or 'nothing was added'}"


def complete_weak(
    tagger: AnyTagger,
    weak: Sequence[Document],
    broken: Literal["repair", "drop"] = "repair",
    sure: float = 0.0,
    key: Sequence[object] = (),
) -> Completion:
    """Complete weak documents with a tagger's predictions; documents without any label are skipped.

    Documents marked complete stay as they are. Completed documents are stored on disk if the weak ones are.

    Args:
        tagger: predicts entities.
        weak: weak documents.
        broken: repair or drop a document in which a weak label interrupts a predicted entity of another type.
        sure: minimum probability of an added entity; words of others become unsure.
        key: what identifies the tagger, as JSON: where completed documents are stored depends on it.
    """
    parts: list[Completion] = []

    def complete_parts() -> Iterator[Document]:
        for start in range(0, max(len(weak), 1), GROUP):
            group = weak[start : start + GROUP]
            places = np.array([i for i, doc in enumerate(group) if doc.spans or doc.complete], dtype=np.int64)
            labeled = [group[i] for i in places]
            part = complete_all(labeled, *predict_with_confidence(tagger, labeled), broken, sure)
            yield from part.docs
            part.counts["empty"] = len(group) - len(labeled)
            parts.append(replace(part, docs=(), weak=(), kept=start + places[part.kept]))

    if isinstance(weak, StoredDocuments):
        identity = hashlib.sha256(json.dumps([*key, weak.key, broken, sure]).encode()).hexdigest()
        docs: Sequence[Document] = _store(complete_parts(), weak.folder / f"completed-{identity[:16]}", identity)
    else:
        docs = list(complete_parts())
    kept = np.concatenate([part.kept for part in parts])
    kept_weak = take_documents(weak, kept)
    scores, shares = (np.concatenate([getattr(p, name) for p in parts]) for name in ("scores", "labeled_share"))
    counts = sum((part.counts for part in parts), Counter[str]())
    return Completion(docs, kept_weak, _add_counts([p.pseudo for p in parts]), scores, shares, counts, kept)


def _store(docs: Iterable[Document], folder: Path, identity: str) -> StoredDocuments:
    """Store documents in order. All processes compute them; the first one writes them."""
    if is_first():
        store_documents(docs, folder, identity, ordered=True)
    else:
        deque(docs, maxlen=0)
    stored = first_then_others(lambda: open_documents(folder, identity))
    assert stored is not None
    return stored


def complete_all(
    weak: Sequence[Document],
    pseudo: Sequence[Document],
    scores: np.ndarray,
    broken: Literal["repair", "drop"] = "repair",
    sure: float = 0.0,
) -> Completion:
    """Complete weak documents with predictions for the same documents."""
    counts: Counter[str] = Counter()
    docs, kept, shares = [], [], []
    for number, (weak_doc, predicted) in enumerate(zip(weak, pseudo, strict=True)):
        doc, doc_counts = complete(weak_doc, predicted, sure)
        if broken == "drop" and doc_counts["broken"]:
            counts["dropped"] += 1
            continue
        counts += doc_counts
        docs.append(doc)
        kept.append(number)
        shares.append(_labeled_share(weak_doc))
    weak_docs, pseudo_counts = [weak[number] for number in kept], count_labels([pseudo[number] for number in kept])
    places = np.array(kept, dtype=np.int64)
    return Completion(docs, weak_docs, pseudo_counts, scores[places], np.array(shares), counts, places)


def _labeled_share(weak: Document) -> float:
    if weak.complete:
        return 1.0
    aligned = to_words(weak, flatten(weak, weak.spans, Lost()), Lost())
    return sum(last - first for first, last, _ in aligned) / max(len(words_of(weak)), 1)


def complete(weak: Document, predicted: Document, sure: float = 0.0) -> tuple[Document, Counter[str]]:
    """Complete one document; also returns what was done, by the keys of `REASONS`.

    Word by word: the tag of the weak label if there is one, else the predicted tag. A predicted entity that starts
    under a weak label and continues after it extends the label if both have the same type; otherwise the rest is an
    entity of its own (the tag sequence was broken). Whatever overlaps an unsure span stays unknown, and so do the
    words of predictions below `sure`, or rejected ones. Predictions inside a span that is rejected for every type are
    dropped.

    >>> weak = Document("1", "Mara Teel left Halden", spans=(Span(0, 4, "PERSON"),))
    >>> predicted = Document("1", weak.text, spans=(Span(0, 9, "PERSON", 0.9), Span(15, 21, "PLACE", 0.8)))
    >>> doc, counts = complete(weak, predicted)
    >>> [weak.text[span.start : span.end] for span in doc.spans], dict(counts)
    (['Mara Teel', 'Halden'], {'extended': 1, 'added': 1})
    """
    counts: Counter[str] = Counter()
    if weak.complete:
        return weak, counts
    aligned = to_words(weak, flatten(weak, weak.spans, Lost()), Lost())
    spans = [span for *_, span in aligned]
    known = set(spans)
    misaligned = [span for span in weak.spans if span not in known]
    unclear = IntervalSet(span[:2] for span in (*weak.unsure, *misaligned))
    ruled_out = IntervalSet(span[:2] for span in weak.rejected if not span.label)
    rejected = {span.key for span in weak.rejected}
    span_of_word = {word: number for number, (first, last, _) in enumerate(aligned) for word in range(first, last)}
    words, unsure = words_of(weak), list(weak.unsure)
    for first, last, span in to_words(weak, predicted.spans, Lost()):
        if unclear.overlaps(*span[:2]):
            unsure.append(Span(span.start, span.end, ""))
            counts["unsure"] += 1
        elif ruled_out.covers(*span[:2]):
            counts["ruled_out"] += 1
        elif span.key in rejected or ruled_out.overlaps(*span[:2]):  # its words may be part of another entity
            unsure.append(Span(span.start, span.end, ""))
            counts["ruled_out"] += 1
        elif span.score is not None and span.score < sure:
            unsure += [Span(words[a][0], words[b - 1][1], "") for a, b in _unlabeled_runs(first, last, span_of_word)]
            counts["doubted"] += 1
        else:
            for start, end in _unlabeled_runs(first, last, span_of_word):
                before = span_of_word.get(start - 1) if start > first else None
                if before is not None and spans[before].label == span.label:
                    spans[before] = spans[before]._replace(end=words[end - 1][1])
                    counts["extended"] += 1
                else:
                    spans.append(Span(words[start][0], words[end - 1][1], span.label, span.score, SOURCE))
                    counts.update(added=1, broken=int(start > first))
    return replace(weak, spans=sort_spans([*spans, *misaligned]), unsure=tuple(unsure), complete=True), +counts


def _unlabeled_runs(first: int, last: int, span_of_word: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """The runs of words from `first` to `last` that have no weak label."""
    for unlabeled, run in groupby(range(first, last), key=lambda word: word not in span_of_word):
        if unlabeled:
            words = list(run)
            yield words[0], words[-1] + 1


def predict_with_confidence(tagger: AnyTagger, docs: Sequence[Document]) -> tuple[list[Document], np.ndarray]:
    """Predictions, and the probability that each document is right as a whole, `[documents]`.

    For a CRF that is the probability of its best tag sequence, for any other model the lowest span probability.
    """
    if not isinstance(tagger, Tagger) or not isinstance(tagger.model.head, CRFHead):
        predicted = list(tagger.predict(docs))
        lowest = [min((1.0 if s.score is None else s.score for s in doc.spans), default=1.0) for doc in predicted]
        return predicted, np.array(lowest, dtype=np.float64)
    sentences = cut_sentences(docs, tagger.model.encoder)
    features = tagger.model.encoder.prepare(sentences.words)
    predicted = list(assemble(docs, sentences, tagger.decode(features), tagger.labels))
    by_sentence, by_document = np.zeros(len(features)), np.zeros(len(docs))
    for indices, logs in score_batches(tagger.model, features, _best_sequence_logs):
        by_sentence[indices] = logs
    np.add.at(by_document, sentences.document, by_sentence)
    return predicted, np.exp(np.minimum(by_document, 0.0))


def _best_sequence_logs(scores: CRFScores) -> np.ndarray:
    """The log probability of each sentence's best tag sequence, `[batch]`."""
    path = viterbi(scores)
    best = Targets(path, scores.mask, torch.ones(path.shape, device=path.device))
    logs: np.ndarray = log_likelihood(scores, best).double().cpu().numpy()
    return logs


def count_labels(docs: Sequence[Document]) -> dict[str, Any]:
    """Number of documents, words, and entities by label."""
    labels = Counter(span.label for doc in docs for span in doc.spans)
    words = sum(len(words_of(doc)) for doc in docs)
    return {"documents": len(docs), "words": words, "entities": dict(sorted(labels.items()))}


def _add_counts(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """`count_labels` of all documents from those of their parts."""
    entities = sum((Counter(part["entities"]) for part in parts), Counter[str]())
    totals = {name: sum(part[name] for part in parts) for name in ("documents", "words")}
    return {**totals, "entities": dict(sorted(entities.items()))}


def write_completed(
    folder: Path, gold: Sequence[Document], completion: Completion, confidence: np.ndarray | None, round_: int = 1
) -> None:
    """Write the completed documents, each with its weak labels and its confidence (if known), and label counts."""
    suffix = "" if round_ == 1 else f"-{round_}"
    with atomic_write(folder / f"{COMPLETED}{suffix}.jsonl") as stream:
        for number, (doc, weak) in enumerate(zip(completion.docs, completion.weak, strict=True)):
            meta: dict[str, Any] = {"weak": [list(span.key) for span in weak.spans]}
            if confidence is not None:
                meta["confidence"] = round(float(confidence[number]), 6)
            stream.write(as_line(replace(doc, meta=meta)).encode())
    kinds = {"gold": gold, "weak": completion.weak, "completed": completion.docs}
    counts = {kind: count_labels(docs) for kind, docs in kinds.items()} | {"pseudo": completion.pseudo}
    row = {"labels": counts, "completion": {name: completion.counts[name] for name in REASONS}}
    write_json(folder / f"labels{suffix}.json", row)


def write_confidence(folder: Path, calibration: Calibration, confidence: np.ndarray, round_: int = 1) -> None:
    """Write the calibration bins and the quartiles of the confidences; `lacuner audit completion` plots them."""
    suffix = "" if round_ == 1 else f"-{round_}"
    quartiles = np.quantile(confidence, (0, 0.25, 0.5, 0.75, 1)).round(6).tolist() if len(confidence) else []
    summary = {"sentences": len(confidence), "quartiles": quartiles}
    row = {"calibration": calibration.as_json(), "confidence": summary}
    write_json(folder / f"confidence{suffix}.json", row)
