"""Is the model better than the gazetteer it was trained from? Scores of the gazetteer, the model, and both."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lacuner.atomic import atomic_write
from lacuner.data import Document
from lacuner.errors import ModelFileError
from lacuner.evaluate.scores import Count
from lacuner.evaluate.significance import f1_interval, sentence_counts
from lacuner.evaluate.threshold import tune_threshold
from lacuner.models.gazetteer import TaggerGazetteer, merge_spans
from lacuner.models.tagger import Tagger, predict_all
from lacuner.models.types import HasThreshold
from lacuner.training.dataset import assign_folds

FILE = "comparison.json"
FOLDS = 3
MIN_GOLD, MAX_GOLD = 20, 500
"""Gold documents between which models are trained on parts of gold to be scored on the rest. With fewer, the parts are
too small; with more, it takes too long, and there is enough gold to keep some as dev."""


@dataclass(frozen=True)
class SystemScore:
    """Counts of one system on gold sentences, and the 95 % interval of its F1 (bootstrap over documents)."""

    system: str
    count: Count
    low: float
    high: float


def compare_with_gazetteer(tagger: Tagger, dev: Sequence[Document]) -> list[SystemScore]:
    """Scores of the tagger's gazetteer alone, its model alone, and both, on dev."""
    return [_score(system, dev, docs) for system, docs in _predict_systems(tagger, dev).items()]


def compare_on_gold(train: Callable[[int, list[Document]], Tagger], gold: Sequence[Document]) -> list[SystemScore]:
    """Scores on gold that is trained on: each document is scored by a model that was trained on the other parts.

    `train` returns the tagger of a fold, trained on the given documents.
    """
    folds = assign_folds(gold, FOLDS)
    held_out: list[Document] = []
    predicted: dict[str, list[Document]] = {}
    for fold in range(FOLDS):
        tagger = train(fold, [doc for doc, own in zip(gold, folds, strict=True) if own != fold])
        docs = [doc for doc, own in zip(gold, folds, strict=True) if own == fold]
        held_out += docs
        for system, own_docs in _predict_systems(tagger, docs).items():
            predicted.setdefault(system, []).extend(own_docs)
    return [_score(system, held_out, docs) for system, docs in predicted.items()]


def _predict_systems(tagger: Tagger, docs: Sequence[Document]) -> dict[str, list[Document]]:
    assert tagger.gazetteer is not None
    return {
        "gazetteer alone": match_gazetteer(tagger.gazetteer, docs),
        "model alone": list(Tagger(tagger.model).predict(docs)),
        "both": list(tagger.predict(docs)),
    }


def write_comparison(rows: Sequence[SystemScore], folder: Path) -> None:
    """Keep a comparison on gold in a run folder: to make it again, models would have to be trained."""
    facts = [{"system": row.system, **vars(row.count), "low": row.low, "high": row.high} for row in rows]
    with atomic_write(folder / FILE) as stream:
        stream.write((json.dumps(facts, indent=1) + "\n").encode())


def read_comparison(folder: Path) -> list[SystemScore] | None:
    """The comparison in a run folder; None if there is none.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_comparison([SystemScore("both", Count(1, 2, 3), 0.1, 0.7)], Path(folder))
    ...     read_comparison(Path(folder))[0].count.f1
    0.4
    """
    if not (folder / FILE).exists():
        return None
    try:
        rows = json.loads((folder / FILE).read_bytes())
        counts = [Count(*(int(row[name]) for name in ("correct", "predicted", "gold"))) for row in rows]
        return [
            SystemScore(str(row["system"]), count, float(row["low"]), float(row["high"]))
            for row, count in zip(rows, counts, strict=True)
        ]
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ModelFileError("this is not the comparison of a run", file=folder / FILE) from error


def match_gazetteer(gazetteer: TaggerGazetteer, docs: Sequence[Document]) -> list[Document]:
    """Documents with the matches of a gazetteer in place of their labels."""
    return [replace(doc, spans=tuple(gazetteer.find(doc)), rejected=(), unsure=(), complete=None) for doc in docs]


def tune_with_gazetteer(tagger: Tagger, dev: Sequence[Document]) -> None:
    """Tune the decision threshold of a span model for use together with its gazetteer."""
    head, gazetteer = tagger.model.head, tagger.gazetteer
    if gazetteer is None or not isinstance(head, HasThreshold):
        return
    matched = match_gazetteer(gazetteer, dev)
    merged = [
        replace(doc, spans=merge_spans([span._replace(score=1.0) for span in match.spans], doc.spans))
        for match, doc in zip(matched, predict_all(tagger.model, dev), strict=True)
    ]
    # a match stays whatever the model says: it must not get the model's score
    merged = [
        replace(doc, spans=tuple(span._replace(score=1.0) if span.source else span for span in doc.spans))
        for doc in merged
    ]
    head.threshold = tune_threshold(dev, merged)[0]


def _score(system: str, dev: Sequence[Document], predicted: Sequence[Document]) -> SystemScore:
    counts = sentence_counts(dev, predicted)
    correct, spans, gold = counts.sum(axis=0).tolist()
    return SystemScore(system, Count(correct, spans, gold), *f1_interval(counts))
