"""What is filled, and how it is decided."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lacuner.config import load_config
from lacuner.demo import build
from lacuner.errors import TrainingError
from lacuner.noise import Noise, corrupt
from lacuner.recipes import fill
from lacuner.recipes.heldout import cut
from lacuner.recipes.parts import Splits
from lacuner.training.run import Run
from lacuner.types import Document, Span

TEXT = "Ada met Bo in Cork and Dee in Eton"


def evidence(entities: int, labelled: float, found: float, wrong: int, seed: int = 1) -> fill.Evidence:
    """Models that are surer of entities than of others, and do not care whether somebody has labelled them."""
    rng = np.random.default_rng(seed)
    known = rng.random(entities) < labelled
    seen = rng.random(entities) < found
    scores = rng.beta(4, 2, entities)
    return fill.Evidence(
        int(known.sum()), scores[known & seen], np.concatenate([scores[~known & seen], rng.beta(1, 6, wrong)])
    )


@pytest.mark.parametrize("labelled", [0.2, 0.5, 0.8])
def test_how_many_are_missing_follows_from_what_is_found_again(labelled: float) -> None:
    found = evidence(20_000, labelled, 0.7, 30_000)
    missing = 20_000 - found.labels
    assert found.missing() == pytest.approx(missing, rel=0.1)


def test_the_threshold_keeps_its_promise() -> None:
    rng = np.random.default_rng(2)
    known, missing, wrong = rng.beta(4, 2, 4_000), rng.beta(4, 2, 6_000), rng.beta(1, 4, 20_000)
    found = fill.Evidence(5_000, known, np.concatenate([missing, wrong]))  # 7,500 are missing, of which 6,000 are found
    assert found.missing() == pytest.approx(7_500, rel=0.1)
    for share in (0.5, 0.7, 0.9):
        limit = found.threshold(share)
        right, others = (missing >= limit).sum(), (wrong >= limit).sum()
        assert right / (right + others) == pytest.approx(share, abs=0.05)
    assert found.threshold(0.5) < found.threshold(0.7) < found.threshold(0.9)


def test_where_nothing_is_missing_nothing_is_filled() -> None:
    rng = np.random.default_rng(3)
    found = fill.Evidence(5_000, rng.beta(4, 2, 4_000), rng.beta(1, 6, 3_000))
    assert found.missing() < 250
    assert (found.others >= found.threshold(0.7)).sum() < 250
    nothing = fill.Evidence(0, np.array([]), np.array([0.9]))
    assert nothing.missing() == 0 and nothing.threshold(0.5) > 1


def test_what_becomes_of_what_was_found() -> None:
    doc = Document(
        "1", TEXT, spans=(Span(0, 3, "P"),), unsure=(Span(8, 10, ""),), rejected=(Span(14, 18, "P"),), complete=False
    )
    seen = (Span(0, 7, "P", 0.9), Span(8, 10, "P", 0.9), Span(14, 18, "P", 0.9), Span(23, 26, "P", 0.9))
    filled = fill.fill(doc, replace(doc, spans=(*seen, Span(30, 34, "L", 0.3))), 0.5, 0.2)
    assert filled.spans == (Span(0, 3, "P"), Span(23, 26, "P", 0.9, "fill"))
    assert filled.unsure == (Span(8, 10, ""), Span(30, 34, "L", 0.3, "fill"))
    assert fill.fill(replace(doc, complete=True), replace(doc, spans=seen), 0.5, 0.2).spans == doc.spans
    other = replace(doc, spans=(Span(14, 18, "L", 0.9), Span(23, 26, "P", 0.1)))
    filled = fill.fill(doc, other, 0.5, 0.2)
    assert filled.spans == (Span(0, 3, "P"), Span(14, 18, "L", 0.9, "fill")), "only P was ruled out there"


def test_nobody_is_judged_by_a_model_that_has_learned_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weak = list(corrupt(build().train[:60], Noise(drop=0.5)))
    weak += [replace(weak[0], id="copy")]
    learned: list[set[str]] = []
    judged: list[set[str]] = []
    make, predict = fill.span_set, fill.Tagger.predict

    def spied(model, docs, lost):  # type: ignore[no-untyped-def]
        learned.append({doc.text for doc in docs})
        return make(model, docs, lost)

    def watched(self, docs, **more):  # type: ignore[no-untyped-def]
        docs = list(docs)
        judged.append({doc.text for doc in docs})
        return predict(self, docs, **more)

    monkeypatch.setattr(fill, "span_set", spied)
    monkeypatch.setattr(fill.Tagger, "predict", watched)
    config = load_config(fill.Config, settings=["train.epochs=2", "train.budget=256", "parts=3"])
    tagger = fill.train(Splits(weak=weak), config, Run(tmp_path / "run", {"seed": 1}))
    assert tagger.labels
    assert len(learned) == len(judged) == 3
    assert not any(mine & yours for mine, yours in zip(learned, judged, strict=True))
    assert set().union(*judged) == {doc.text for doc in weak}
    rows = [json.loads(line) for line in (tmp_path / "run" / "filled.jsonl").read_text().splitlines()]
    assert [row["text"] for row in rows] == [doc.text for doc in weak]


def test_too_few_labels_to_cut() -> None:
    docs = [Document("1", "Ada", spans=(Span(0, 3, "P"),)), *[Document(str(i), f"no {i}") for i in range(9)]]
    with pytest.raises(TrainingError, match="too few documents with labels"):
        cut(docs, 2)
