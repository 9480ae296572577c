"""Is the model better than the gazetteer it was trained from? Scores of the gazetteer, the model, and both."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from lacuner.atomic import read_regular_file, write_json
from lacuner.data import Document
from lacuner.errors import explain_damage
from lacuner.evaluate.scores import Count
from lacuner.evaluate.significance import f1_interval, sentence_counts
from lacuner.models.merging import DEFAULT_RULE, MERGE_RULES, MergeRule
from lacuner.models.tagger import Tagger
from lacuner.trainer.merge_rule import choose_rule, match_gazetteer, merge_all
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


@dataclass(frozen=True)
class Comparison:
    """Scores of the gazetteer, the model and both, and the rule by which both are merged."""

    rows: list[SystemScore]
    rule: MergeRule
    chosen_on: str | None
    """`dev`, `gold`, or None for the default rule."""


class _Predictions(NamedTuple):
    """Gold documents, and the same with the gazetteer's matches and with the model's predictions."""

    gold: list[Document]
    matched: list[Document]
    predicted: list[Document]


def compare_on_dev(tagger: Tagger, dev: Sequence[Document]) -> Comparison:
    """Scores of the tagger's gazetteer alone, its model alone, and both, on dev; its rule was chosen there."""
    assert tagger.gazetteer is not None
    own = _predict(tagger, dev)
    both = merge_all(own.matched, own.predicted, tagger.gazetteer.rule)
    return Comparison(_score_systems(own, both), tagger.gazetteer.rule, "dev")


def compare_on_gold(train: Callable[[int, list[Document]], Tagger], gold: Sequence[Document]) -> Comparison:
    """Scores on gold that is trained on: each document is scored by a model that was trained on the other parts.

    The merge rule is chosen on all of these predictions; for the score, on those of the other parts. `train` returns
    the tagger of a fold, trained on the given documents.
    """
    folds = assign_folds(gold, FOLDS)
    parts: list[_Predictions] = []
    for fold in range(FOLDS):
        tagger = train(fold, [doc for doc, own in zip(gold, folds, strict=True) if own != fold])
        parts.append(_predict(tagger, [doc for doc, own in zip(gold, folds, strict=True) if own == fold]))
    both: list[Document] = []
    for part in parts:
        rule = choose_rule(*_join([other for other in parts if other is not part]))
        both += merge_all(part.matched, part.predicted, rule)
    joined = _join(parts)
    return Comparison(_score_systems(joined, both), choose_rule(*joined), "gold")


def _predict(tagger: Tagger, docs: Sequence[Document]) -> _Predictions:
    assert tagger.gazetteer is not None
    return _Predictions(list(docs), match_gazetteer(tagger.gazetteer, docs), list(Tagger(tagger.model).predict(docs)))


def _join(parts: Sequence[_Predictions]) -> _Predictions:
    return _Predictions(*([doc for part in parts for doc in part[role]] for role in range(len(_Predictions._fields))))


def _score_systems(own: _Predictions, both: Sequence[Document]) -> list[SystemScore]:
    systems = {"gazetteer alone": own.matched, "model alone": own.predicted, "both": both}
    return [_score(system, own.gold, docs) for system, docs in systems.items()]


def write_comparison(comparison: Comparison, folder: Path) -> None:
    """Keep a comparison on gold in a run folder: to make it again, models would have to be trained."""
    rows = [{"system": row.system, **vars(row.count), "low": row.low, "high": row.high} for row in comparison.rows]
    facts = {"rule": comparison.rule, "chosen_on": comparison.chosen_on, "rows": rows}
    write_json(folder / FILE, facts)


def read_comparison(folder: Path) -> Comparison | None:
    """The comparison in a run folder; None if there is none.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = [SystemScore("both", Count(1, 2, 3), 0.1, 0.7)]
    ...     write_comparison(Comparison(rows, "model", "gold"), Path(folder))
    ...     read_comparison(Path(folder)).rows[0].count.f1
    0.4
    """
    if not (folder / FILE).exists():
        return None
    with explain_damage("this is not the comparison of a run", folder / FILE):
        stored = json.loads(read_regular_file(folder / FILE))
        if isinstance(stored, list):  # of an earlier version, which had one rule
            stored = {"rule": DEFAULT_RULE, "chosen_on": None, "rows": stored}
        rule, chosen_on = MERGE_RULES[MERGE_RULES.index(stored["rule"])], stored["chosen_on"]
        if chosen_on not in ("dev", "gold", None):
            raise ValueError("not a comparison")
        return Comparison([_parse_row(row) for row in stored["rows"]], rule, chosen_on)


def _parse_row(row: Mapping[str, Any]) -> SystemScore:
    count = Count(*(int(row[name]) for name in ("correct", "predicted", "gold")))
    return SystemScore(str(row["system"]), count, float(row["low"]), float(row["high"]))


def _score(system: str, gold: Sequence[Document], predicted: Sequence[Document]) -> SystemScore:
    counts = sentence_counts(gold, predicted)
    return SystemScore(system, Count(*counts.sum(axis=0).tolist()), *f1_interval(counts))
