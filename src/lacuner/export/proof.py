"""The proof of an export: it is loaded in a new process and must predict what the tagger predicts.

Both sides read the same texts, without given words, each in a process of its own with one thread. The proof states how
many spans differ, how much scores differ, and how fast both are. An export that differs by more than its tolerance is
refused.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from lacuner.atomic import temporary_folder
from lacuner.corpus import read, words_of, write
from lacuner.data import Document, Span
from lacuner.errors import ConfigError
from lacuner.evaluate import score
from lacuner.processes import Request, run_requests
from lacuner.training.run_folder import installed_versions

PROOF = "proof.json"
MAX_TEXTS = 200
"""Texts that are compared, unless they are dev: dev is compared as a whole."""
EXAMPLES = 10


@dataclass(frozen=True)
class Tolerance:
    """How much an export may differ from the tagger."""

    score: float = 1e-3
    """Largest difference of the scores of the same span; not checked for int8."""
    changed: float = 0.001
    """Share of the spans that only one of the two predicts. In float arithmetic, two nearly equal probabilities may
    change places."""


class Comparison(NamedTuple):
    """Spans of the same documents, predicted by the tagger and by an export."""

    equal: int
    missing: list[tuple[str, Span]]
    """Spans that only the tagger predicts, with the ids of their documents."""
    extra: list[tuple[str, Span]]
    """Spans that only the export predicts."""
    score_difference: float
    scores: int
    """Number of spans whose scores were compared."""

    @property
    def changed(self) -> float:
        """Share of differing spans among all spans."""
        different = len(self.missing) + len(self.extra)
        return different / max(2 * self.equal + different, 1)


@dataclass(frozen=True)
class Proof:
    """What `proof.json` contains."""

    target: str
    documents: int
    texts: str
    """Where the texts come from."""
    words: int
    spans: int
    """Spans that the tagger predicts."""
    equal: int
    missing: int
    extra: int
    changed: float
    score_difference: float
    scores_compared: int
    tolerance: dict[str, float]
    documents_per_second: dict[str, float]
    """Speed of the tagger and of the export, in turns on the same machine, one thread each."""
    gazetteer: bool
    """Whether both sides used the gazetteer."""
    notes: dict[str, int]
    """Further counts of the export, such as spans that were expanded to spaCy's tokens."""
    f1: dict[str, float] | None
    """F1 of both sides if the texts are dev, from text alone: the words of the file are not used."""
    examples: list[dict[str, Any]]
    """The first spans that differ; `document` is the index of its text."""
    versions: dict[str, str]


def compare(
    expected: Sequence[Document], actual: Sequence[Document], scores: Literal["all", "single words"] = "all"
) -> Comparison:
    """Compare the spans and scores of two predictions of the same documents.

    >>> tagger = [Document("1", "Mara left Halden.", spans=(Span(0, 4, "PER", 0.9), Span(10, 16, "LOC", 0.8)))]
    >>> export = [Document("1", "Mara left Halden.", spans=(Span(0, 4, "PER", 0.91),))]
    >>> result = compare(tagger, export)
    >>> result.equal, len(result.missing), len(result.extra), round(result.score_difference, 3)
    (1, 1, 0, 0.01)
    """
    equal = compared = 0
    difference = 0.0
    missing: list[tuple[str, Span]] = []
    extra: list[tuple[str, Span]] = []
    for one, other in zip(expected, actual, strict=True):
        own, theirs = ({span.key: span for span in doc.spans} for doc in (one, other))
        missing += [(one.id, own[key]) for key in sorted(own.keys() - theirs.keys())]
        extra += [(one.id, theirs[key]) for key in sorted(theirs.keys() - own.keys())]
        common = own.keys() & theirs.keys()
        equal += len(common)
        if scores == "single words":
            words = set(words_of(one))
            common = {key for key in common if key[:2] in words}
        pairs = [(own[key].score, theirs[key].score) for key in common]
        differences = [abs(a - b) for a, b in pairs if a is not None and b is not None]
        compared += len(differences)
        difference = max([difference, *differences])
    return Comparison(equal, missing, extra, difference, compared)


class Sample(NamedTuple):
    """The documents of a proof, without words and labels, and gold if they are dev."""

    docs: list[Document]
    origin: str
    gold: list[Document] | None = None
    skipped: int = 0
    """Documents that the target does not read to their end."""


def make_sample(docs: Sequence[Document], origin: str, is_dev: bool, skipped: int = 0) -> Sample:
    """Documents for a proof, numbered; dev keeps its gold annotations."""
    bare = [Document(str(number), doc.text) for number, doc in enumerate(docs)]
    gold = [replace(doc, id=str(number), words=None) for number, doc in enumerate(docs)] if is_dev else None
    return Sample(bare, origin, gold, skipped)


def predict_in_process(
    kind: str, folder: Path, docs: Sequence[Document], scratch: Path
) -> tuple[list[Document], dict[str, Any]]:
    """Predictions of a run or an export in a new process, and what it reports: `seconds` and further counts.

    `scratch` is a private folder for texts and predictions.
    """
    texts, predictions = scratch / "texts.jsonl", scratch / "predictions.jsonl"
    write(docs, texts)
    if kind == "onnx":
        return _run_program(folder / "tagger.py", texts)
    reports: list[str] = []
    request = {"kind": kind, "folder": str(folder), "texts": str(texts), "out": str(predictions)}
    run_requests("lacuner.export.proof_worker", [request], 1, _raise_failure, reports.append)
    return list(read(predictions)), json.loads(reports[-1])


def _raise_failure(request: Request, failure: str | None) -> None:
    if failure is not None:
        raise ConfigError(f"the exported model cannot be used: {failure}")


def _run_program(program: Path, texts: Path) -> tuple[list[Document], dict[str, Any]]:
    """Run the program of an ONNX export, isolated from this folder and from PYTHONPATH."""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-I", str(program), str(texts)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False, env=env)
    messages = done.stderr.strip().splitlines() or [""]
    if done.returncode:
        raise ConfigError(f"the exported model cannot be used: {messages[-1]}")
    rows = map(json.loads, done.stdout.splitlines())
    docs = [Document(row["id"], row["text"], spans=tuple(Span(**span) for span in row["spans"])) for row in rows]
    return docs, {"seconds": max(json.loads(messages[-1])["seconds"], 1e-6)}


def prove(
    target: str,
    run: Path,
    folder: Path,
    sample: Sample,
    tolerance: Tolerance,
    *,
    gazetteer: bool = True,
    exact_scores: bool = True,
) -> Proof:
    """Compare an export with its run on sample documents, or raise an error if they differ too much.

    Temporary data is kept beside `folder`; the caller holds the lock of the folder that contains both. Without
    `gazetteer`, the run predicts with its model alone. Without `exact_scores`, the target defines the score of an
    entity of several words differently (Hugging Face), and only those of single words are compared.
    """
    with temporary_folder(folder.parent) as scratch:
        expected, own = predict_in_process("tagger" if gazetteer else "model", run, sample.docs, scratch)
        actual, theirs = predict_in_process(target, folder, sample.docs, scratch)
    result = compare(expected, actual, "all" if exact_scores else "single words")
    seconds = {"lacuner": own.pop("seconds"), target: theirs.pop("seconds")}
    proof = Proof(
        target=target,
        documents=len(sample.docs),
        texts=sample.origin,
        words=sum(len(words_of(doc)) for doc in sample.docs),
        spans=sum(len(doc.spans) for doc in expected),
        equal=result.equal,
        missing=len(result.missing),
        extra=len(result.extra),
        changed=round(result.changed, 6),
        score_difference=round(result.score_difference, 8),
        scores_compared=result.scores,
        tolerance=asdict(tolerance),
        documents_per_second={side: round(len(sample.docs) / took, 1) for side, took in seconds.items()},
        gazetteer=gazetteer,
        notes={**theirs, "documents too long to be compared": sample.skipped},
        f1=_f1(sample.gold, {"lacuner": expected, target: actual}),
        examples=_examples(result),
        versions=installed_versions(),
    )
    _refuse_difference(proof, tolerance, sample.docs)
    return proof


def _f1(gold: list[Document] | None, sides: dict[str, list[Document]]) -> dict[str, float] | None:
    if gold is None:
        return None
    return {side: round(score(gold, docs).exact.f1, 4) for side, docs in sides.items()}


def _examples(result: Comparison) -> list[dict[str, Any]]:
    """The first differences, without text: an export may be published where its texts may not."""
    rows = [("missing", *item) for item in result.missing] + [("extra", *item) for item in result.extra]
    return [{"kind": kind, "document": int(number), **span._asdict()} for kind, number, span in rows[:EXAMPLES]]


def _refuse_difference(proof: Proof, tolerance: Tolerance, docs: Sequence[Document]) -> None:
    if not proof.spans and not proof.extra:
        raise ConfigError(
            f"the tagger predicts no entity in the {proof.documents:,} documents of the proof, so they show nothing: "
            "give others with --dev or --text"
        )
    if proof.changed > tolerance.changed:
        first = proof.examples[0]
        surface = docs[first["document"]].text[first["start"] : first["end"]]
        raise ConfigError(
            f"the export differs from the tagger in {100 * proof.changed:.2f} % of the spans, tolerance "
            f"{100 * tolerance.changed:g} % (--max-changed): {proof.equal:,} equal, {proof.missing:,} missing, "
            f"{proof.extra:,} extra; first {first['kind']} is {first['label']} {surface!r} in document "
            f"{first['document'] + 1}"
        )
    if not proof.score_difference <= tolerance.score:
        raise ConfigError(
            f"scores of the export differ from those of the tagger by up to {proof.score_difference:g}, tolerance "
            f"{tolerance.score:g}"
        )
