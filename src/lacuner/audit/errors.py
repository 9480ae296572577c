"""Which errors of the first model of a `needle` run its last model fixed, and which it made instead."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from lacuner.corpus import read
from lacuner.data import Document
from lacuner.errors import ModelFileError, explain_damage
from lacuner.evaluate.calibration import select_complete
from lacuner.models.storage import load
from lacuner.models.tagger import Tagger
from lacuner.techniques.label_completion import COMPLETED
from lacuner.training.run_folder import Run, stored_identity
from lacuner.training.stage import load_stage

INITIAL = "initial"
"""Stage whose model is trained on gold alone."""
COLUMNS = ("entities", "in gold", "wrong before", "fixed", "made", "fixed / made")


@dataclass(frozen=True)
class ErrorCounts:
    """Gold entities that two models find; an entity is found if its place and label are predicted."""

    gold: int
    wrong_before: int
    """Entities that the first model does not find."""
    fixed: int
    """Of these, entities that the last model finds."""
    made: int
    """Entities that the first model finds and the last does not."""


class SystematicError(NamedTuple):
    """A name whose usual weak label is not its gold label."""

    name: str
    weak_label: str
    gold_label: str
    entities: int
    """Entities with this name and gold label."""
    right_before: int
    right_after: int


@dataclass(frozen=True)
class ErrorAudit:
    """Errors of the first and the last model of a run on gold documents."""

    documents: int
    all: ErrorCounts
    labeled_names: ErrorCounts
    """Only entities whose name has a weak label somewhere: the others are not affected by the weak labels directly."""
    systematic: Sequence[SystematicError]
    """The most frequent first."""

    def as_json(self) -> dict[str, Any]:
        return {
            "documents": self.documents,
            "all": asdict(self.all),
            "labeled_names": asdict(self.labeled_names),
            "systematic": [error._asdict() for error in self.systematic],
        }


def audit_errors(run_folder: str | PathLike[str], gold: Iterable[Document]) -> ErrorAudit:
    """Compare the model of stage I and the final model of a `needle` run on gold documents that it has not seen."""
    before, after = load_both_models(run_folder)
    docs = select_complete(list(gold))
    names = count_weak_names(Path(run_folder))
    first, last = ([{span.key for span in doc.spans} for doc in tagger.predict(docs)] for tagger in (before, after))
    return count_errors(docs, first, last, names)


def load_both_models(run_folder: str | PathLike[str]) -> tuple[Tagger, Tagger]:
    """The model of stage I and the final model, both without gazetteer."""
    folder = Path(run_folder)
    identity, tagger = stored_identity(folder), load(folder)
    if identity is None or not isinstance(tagger, Tagger):
        raise ModelFileError("this is not a run of needle", file=folder)
    first = deepcopy(tagger.model)
    if load_stage(Run(folder, identity), INITIAL, first) is None:
        raise ModelFileError("this run has no model of stage I: it is not a run of needle", file=folder)
    return Tagger(first.eval()), Tagger(tagger.model)


def count_weak_names(folder: Path) -> dict[str, Counter[str]]:
    """How often the weak documents of a run give each label to a name."""
    path = folder / f"{COMPLETED}.jsonl"
    if not path.is_file():
        raise ModelFileError("this run has no weak labels: it is not a run of needle", file=folder)
    names: dict[str, Counter[str]] = {}
    with explain_damage("these are not the completed documents of a run", path):
        for doc in read(path):
            for start, end, label in doc.meta["weak"]:
                names.setdefault(doc.text[int(start) : int(end)], Counter())[str(label)] += 1
    return names


def count_errors(
    gold: Sequence[Document],
    before: Sequence[set[tuple[int, int, str]]],
    after: Sequence[set[tuple[int, int, str]]],
    names: Mapping[str, Counter[str]],
) -> ErrorAudit:
    """Count the errors of two models; `before` and `after` are their predictions, `names` the labels of weak names.

    >>> from lacuner.data import Span
    >>> gold = [Document("1", "red amiibo", spans=(Span(0, 3, "MISC"), Span(4, 10, "LINE")))]
    >>> audit = count_errors(gold, [{(4, 10, "LINE")}], [{(0, 3, "MISC")}], {"red": Counter(COLOR=2)})
    >>> audit.all
    ErrorCounts(gold=2, wrong_before=1, fixed=1, made=1)
    >>> audit.labeled_names
    ErrorCounts(gold=1, wrong_before=1, fixed=1, made=0)
    >>> audit.systematic
    [SystematicError(name='red', weak_label='COLOR', gold_label='MISC', entities=1, right_before=0, right_after=1)]
    """
    outcomes, systematic = [], Counter[tuple[str, str, str]]()
    right: dict[tuple[str, str, str], list[int]] = {}
    for doc, first, last in zip(gold, before, after, strict=True):
        for span in doc.spans:
            name, correct = doc.text[span.start : span.end], (span.key in first, span.key in last)
            outcomes.append((name in names, *correct))
            usual = min(names[name], key=lambda label: (-names[name][label], label)) if name in names else span.label
            if usual != span.label:
                key = name, usual, span.label
                systematic[key] += 1
                right[key] = [a + b for a, b in zip(right.get(key, [0, 0]), correct, strict=True)]
    errors = [SystematicError(*key, count, *right[key]) for key, count in systematic.items()]
    errors.sort(key=lambda error: (-error.entities, error))
    labeled = [outcome for outcome in outcomes if outcome[0]]
    return ErrorAudit(len(gold), _count(outcomes), _count(labeled), errors)


def _count(outcomes: Sequence[tuple[bool, bool, bool]]) -> ErrorCounts:
    """Counts from whether each entity's name has a weak label, and whether it is found before and after."""
    pairs = Counter((before, after) for _, before, after in outcomes)
    wrong = pairs[False, False] + pairs[False, True]
    return ErrorCounts(len(outcomes), wrong, pairs[False, True], pairs[True, False])


def error_rows(audit: ErrorAudit) -> list[tuple[str, ...]]:
    """The rows of a table with the columns `COLUMNS`."""
    rows = []
    for name, counts in (("all", audit.all), ("with a weakly labeled name", audit.labeled_names)):
        ratio = f"{counts.fixed / counts.made:.2f}" if counts.made else ""
        rows.append((name, *[f"{value:,}" for value in asdict(counts).values()], ratio))
    return rows
