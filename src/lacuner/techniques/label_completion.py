"""Weak labels completed by a model: where there is a label it stays, elsewhere the model says what is there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from lacuner.atomic import atomic_write
from lacuner.corpus.jsonl import as_line
from lacuner.corpus.words import flatten, to_words, words_of
from lacuner.data import Document, Lost, Span, sort_spans
from lacuner.evaluate.calibration import Calibration
from lacuner.models.heads.crf import CRFHead, log_likelihood, viterbi
from lacuner.models.inference import score_batches
from lacuner.models.model import Model
from lacuner.models.storage import AnyTagger
from lacuner.models.tagger import Tagger, assemble
from lacuner.models.types import CRFScores, Features, Targets
from lacuner.models.windows import cut_sentences

SOURCE = "completion"
"""The source of the spans that a model has added."""
COMPLETED = "completed"
"""`completed.jsonl` in a run folder has the completed documents."""
_LOSSLESS = ("utf-8", "surrogatepass")  # half a character in a text must not cost the run
REASONS = {
    "empty": "sentences without a weak entity left out",
    "broken": "broken sequences repaired",
    "dropped": "sentences with broken sequences left out",
    "added": "entities added",
    "extended": "weak entities made longer",
    "ruled_out": "predicted entities ruled out by the labels",
    "unsure": "predicted entities that touch what is unsure",
    "doubted": "predicted entities that are not sure enough",
}


@dataclass(frozen=True)
class Completed:
    """Weak documents that were completed; all lists are of the same documents."""

    docs: list[Document]
    weak: list[Document]
    pseudo: list[Document]
    """The same with nothing but the model's spans."""
    scores: np.ndarray
    """How sure the model was of each sentence."""
    trusted: np.ndarray
    """The share of each one's words that have a weak label."""
    counts: Counter[str]

    def __str__(self) -> str:
        found = "; ".join(f"{what}: {self.counts[name]:,}" for name, what in REASONS.items() if self.counts[name])
        return f"{len(self.docs):,} weak documents: {found or 'nothing was added'}"


def complete_by(
    tagger: AnyTagger, weak: Sequence[Document], broken: Literal["repair", "drop"] = "repair", sure: float = 0.0
) -> Completed:
    """Complete weak documents by what a tagger says of them; those in which nobody has labelled anything are left out.

    A document that says it is complete stays as it is. Of entities with a lower probability than `sure` nobody knows
    whether they are there.
    """
    kept = [doc for doc in weak if doc.spans or doc.complete]
    completed = complete_all(kept, *scored(tagger, kept), broken, sure)
    completed.counts["empty"] = len(weak) - len(kept)
    return completed


def complete_all(
    weak: Sequence[Document],
    pseudo: Sequence[Document],
    scores: np.ndarray,
    broken: Literal["repair", "drop"] = "repair",
    sure: float = 0.0,
) -> Completed:
    """Complete weak documents by the predictions of the same documents."""
    counts: Counter[str] = Counter()
    docs, kept, trusted = [], [], []
    for number, (its, predicted) in enumerate(zip(weak, pseudo, strict=True)):
        doc, found = complete(its, predicted, sure)
        if broken == "drop" and found["broken"]:
            counts["dropped"] += 1
            continue
        counts += found
        docs.append(doc)
        kept.append(number)
        trusted.append(_trusted(its))
    mine, yours = ([each[number] for number in kept] for each in (weak, pseudo))
    return Completed(docs, mine, yours, scores[kept], np.array(trusted), counts)


def _trusted(weak: Document) -> float:
    if weak.complete:
        return 1.0
    fitting = to_words(weak, flatten(weak, weak.spans, Lost()), Lost())
    return sum(last - first for first, last, _ in fitting) / max(len(words_of(weak)), 1)


def complete(weak: Document, predicted: Document, sure: float = 0.0) -> tuple[Document, Counter[str]]:
    """One document, and what was done to it.

    Word by word: the tag of the weak label if there is one, else the predicted tag. A predicted entity that begins
    under a weak label and goes on behind it makes that one longer if it is of the same type, and is an entity of its
    own if it is not: the sequence was broken. Whatever touches an unsure span stays unknown; so do the words of
    predicted entities that are not `sure` and have no weak label, or that are rejected. Only inside of what is rejected
    for every type nothing is.
    """
    counts: Counter[str] = Counter()
    if weak.complete:
        return weak, counts
    fitting = to_words(weak, flatten(weak, weak.spans, Lost()), Lost())
    spans = [span for *_, span in fitting]
    there = set(spans)
    misfits = [span for span in weak.spans if span not in there]
    owner = {word: number for number, (first, last, _) in enumerate(fitting) for word in range(first, last)}
    words, unsure = words_of(weak), list(weak.unsure)
    for first, last, span in to_words(weak, predicted.spans, Lost()):
        if any(_touch(span, other) for other in (*weak.unsure, *misfits)):
            unsure.append(Span(span.start, span.end, ""))
            counts["unsure"] += 1
        elif any(not other.label and other.start <= span.start and span.end <= other.end for other in weak.rejected):
            counts["ruled_out"] += 1
        elif any(_says_no(other, span) for other in weak.rejected):  # but its words may be part of something else
            unsure.append(Span(span.start, span.end, ""))
            counts["ruled_out"] += 1
        elif span.score is not None and span.score < sure:
            unsure += [Span(words[a][0], words[b - 1][1], "") for a, b in _free(first, last, owner)]
            counts["doubted"] += 1
        else:
            for begin, end in _free(first, last, owner):
                before = owner.get(begin - 1) if begin > first else None
                if before is not None and spans[before].label == span.label:
                    spans[before] = spans[before]._replace(end=words[end - 1][1])
                    counts["extended"] += 1
                else:
                    added = Span(words[begin][0], words[end - 1][1], span.label, span.score, SOURCE)
                    spans.append(added)
                    counts.update(added=1, broken=int(begin > first))
    done = sort_spans([*spans, *misfits])
    return replace(weak, spans=done, unsure=tuple(unsure), complete=True), +counts


def _touch(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end


def _says_no(rejected: Span, span: Span) -> bool:
    """Whether a rejected span speaks against one that it does not hold."""
    return rejected[:3] == span[:3] if rejected.label else _touch(rejected, span)


def _free(first: int, last: int, owner: dict[int, int]) -> Iterator[tuple[int, int]]:
    """The runs of words that have no weak label."""
    for free, run in groupby(range(first, last), key=lambda word: word not in owner):
        if free:
            found = list(run)
            yield found[0], found[-1] + 1


def label_counts(docs: Iterable[Document]) -> dict[str, Any]:
    """How many entities of each label some documents have, and in how many words."""
    labels: Counter[str] = Counter()
    documents = words = 0
    for doc in docs:
        documents += 1
        words += len(words_of(doc))
        labels.update(span.label for span in doc.spans)
    return {"documents": documents, "words": words, "entities": dict(sorted(labels.items()))}


def write_completed(
    folder: Path, gold: Sequence[Document], completed: Completed, confidence: np.ndarray | None, round_: int = 1
) -> None:
    """Write the completed documents, each with its weak labels and its confidence, if anybody has asked for it, and how
    often each label occurs."""
    end = "" if round_ == 1 else f"-{round_}"
    with atomic_write(folder / f"{COMPLETED}{end}.jsonl") as stream:
        for number, (doc, weak) in enumerate(zip(completed.docs, completed.weak, strict=True)):
            about: dict[str, Any] = {"weak": [list(span[:3]) for span in weak.spans]}
            if confidence is not None:
                about["confidence"] = round(float(confidence[number]), 6)
            stream.write(as_line(replace(doc, meta=about)).encode(*_LOSSLESS))
    kinds = {"gold": gold, "weak": completed.weak, "completed": completed.docs, "pseudo": completed.pseudo}
    counts = {kind: label_counts(docs) for kind, docs in kinds.items()}
    about = {"labels": counts, "completion": {name: completed.counts[name] for name in REASONS}}
    with atomic_write(folder / f"labels{end}.json") as stream:
        stream.write((json.dumps(about, ensure_ascii=False, indent=1) + "\n").encode(*_LOSSLESS))


def scored(tagger: AnyTagger, docs: Sequence[Document]) -> tuple[list[Document], np.ndarray]:
    """What a tagger finds in documents, and how sure it is of each one as a whole.

    A CRF knows how probable its best sequence is; of any other model the least certain span must do.
    """
    if not isinstance(tagger, Tagger) or not isinstance(tagger.model.head, CRFHead):
        found = list(tagger.predict(docs))
        least = [min((1.0 if s.score is None else s.score for s in doc.spans), default=1.0) for doc in found]
        return found, np.array(least, dtype=np.float64)
    sentences = cut_sentences(docs, tagger.model.encoder)
    features = tagger.model.encoder.prepare(sentences.words)
    found = list(assemble(docs, sentences, tagger.decode(features), tagger.labels))
    logs = np.zeros(len(docs))
    np.add.at(logs, sentences.document, _best_logs(tagger.model, features))
    return found, np.exp(np.minimum(logs, 0.0))


def _best_logs(model: Model, features: Features) -> np.ndarray:
    """The log probability of the best tag sequence of each sentence."""
    logs = np.zeros(len(features))

    def best_log_likelihood(scores: CRFScores) -> np.ndarray:
        path = viterbi(scores)
        best = Targets(path, scores.mask, torch.ones(path.shape, device=path.device))
        values: np.ndarray = log_likelihood(scores, best).double().cpu().numpy()
        return values

    for indices, values in score_batches(model, features, best_log_likelihood):
        logs[indices] = values
    return logs


def write_confidence(folder: Path, calibration: Calibration, found: np.ndarray, round_: int = 1) -> None:
    """Write the calibration bins and the quartiles of the confidences; `lacuner audit completion` plots them."""
    end = "" if round_ == 1 else f"-{round_}"
    quantiles = np.quantile(found, (0, 0.25, 0.5, 0.75, 1)).round(6).tolist() if len(found) else []
    about = {"calibration": calibration.as_json(), "confidence": {"sentences": len(found), "quartiles": quantiles}}
    with atomic_write(folder / f"confidence{end}.json") as stream:
        stream.write((json.dumps(about, indent=1) + "\n").encode())
