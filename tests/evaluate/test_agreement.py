"""T8, the scorer's half: our scores equal seqeval's (strict, IOB2) and conlleval's on valid and invalid tags."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from seqeval.metrics import classification_report, f1_score, precision_score, recall_score
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import BILOU, IOB2, IOBES, Entities

from lacuner.corpus import ReadOptions, read
from lacuner.corpus.tags import decode, decode_strict, encode
from lacuner.evaluate import Evaluation, score
from tests.evaluate.conlleval import chunks

SIZE = 10_000


def sequences(letters: str, seed: int, valid: float = 0.5) -> list[list[str]]:
    """Half of them anything, half of them what the scheme allows."""
    rng = random.Random(seed)
    tags = ["O", *[f"{letter}-{label}" for letter in letters for label in ("PER", "LOC", "A-B")]]
    made = []
    for _ in range(SIZE):
        row = rng.choices(tags, weights=[len(tags) / 2] + [1] * (len(tags) - 1), k=rng.randint(1, 12))
        made.append(
            encode(decode(row), len(row), "BIOES" if "E" in letters else "IOB2") if rng.random() < valid else row
        )
    return made


def as_corpus(folder: Path, name: str, rows: list[list[str]]) -> Path:
    path = folder / f"{name}.conll"
    path.write_text("\n\n".join("\n".join(f"w{i}\t{tag}" for i, tag in enumerate(row)) for row in rows) + "\n")
    return path


def scored(folder: Path, gold: list[list[str]], guess: list[list[str]], strict: bool) -> Evaluation:
    options = ReadOptions(scheme="IOB2", strict=strict)
    files = [as_corpus(folder, name, rows) for name, rows in (("gold", gold), ("guess", guess))]
    return score(*[read(file, complete=True, options=options) for file in files])


def mutated(rows: list[list[str]], seed: int) -> list[list[str]]:
    rng = random.Random(seed)
    pool = sorted({tag for row in rows for tag in row})
    return [[rng.choice(pool) if rng.random() < 0.2 else tag for tag in row] for row in rows]


def test_strict_scores_equal_seqeval(tmp_path: Path) -> None:
    gold = sequences("BI", 1)
    guess = mutated(gold, 2)
    ours = scored(tmp_path, gold, guess, strict=True)
    p, r, f = (metric(gold, guess, mode="strict", scheme=IOB2) for metric in (precision_score, recall_score, f1_score))
    assert (ours.exact.precision, ours.exact.recall, ours.exact.f1) == pytest.approx((p, r, f), abs=1e-12)
    report = classification_report(gold, guess, mode="strict", scheme=IOB2, output_dict=True)
    assert ours.macro == pytest.approx(
        [report["macro avg"][key] for key in ("precision", "recall", "f1-score")], abs=1e-12
    )
    for label, count in ours.per_type.items():
        assert count.f1 == pytest.approx(report[label]["f1-score"], abs=1e-12)
        assert count.gold == report[label]["support"]


def test_default_scores_equal_conlleval(tmp_path: Path) -> None:
    gold = sequences("BI", 3)
    guess = mutated(gold, 4)
    ours = scored(tmp_path, gold, guess, strict=False)
    pairs = [(chunks(a), chunks(b)) for a, b in zip(gold, guess, strict=True)]
    correct = sum(len(a & b) for a, b in pairs)
    assert (ours.exact.correct, ours.exact.predicted, ours.exact.gold) == (
        correct,
        sum(len(b) for _, b in pairs),
        sum(len(a) for a, _ in pairs),
    )
    words = [(a, b) for left, right in zip(gold, guess, strict=True) for a, b in zip(left, right, strict=True)]
    assert ours.words == len(words)
    assert ours.documents_correct == sum(a == b for a, b in pairs)


@pytest.mark.parametrize(
    ("letters", "scheme", "theirs"), [("BI", "IOB2", IOB2), ("BIES", "BIOES", IOBES), ("BILU", "BILOU", BILOU)]
)
def test_strict_entities_equal_seqeval_sequence_by_sequence(letters: str, scheme: str, theirs: type) -> None:
    rows = sequences(letters, 5, valid=0.3)
    for row in rows:
        expected = [entity.to_tuple()[1:] for entity in Entities([row], theirs).entities[0]]
        assert [(c.label, c.start, c.end) for c in decode_strict(row, scheme)] == expected, row


@pytest.mark.parametrize("letters", ["BI", "BIES"])
def test_default_entities_equal_conlleval_and_seqeval_sequence_by_sequence(letters: str) -> None:
    for row in sequences(letters, 6, valid=0.2):
        ours = decode(row)
        assert {tuple(chunk) for chunk in ours} == chunks(row), row
        assert [(c.label, c.start, c.end - 1) for c in ours] == get_entities(row), row
