"""EER: where the ratio comes from, and that it keeps the model from labeling everything or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from lacuner.advice.entity_ratio import entity_ratio
from lacuner.config import load_config
from lacuner.data import Document, Span, Splits
from lacuner.recipes import eer
from lacuner.training.run_folder import Run

QUICK = ["encoder.name=tiny", "train.budget=256"]


@pytest.mark.integration
def test_the_ratio_keeps_the_model_from_labeling_everything(tmp_path: Path) -> None:
    words = ["ada", "met", "bo", "in", "cork", "and", "saw", "the", "old", "mill", "by", "the", "river"]
    docs = []
    for number in range(40):
        text = " ".join(words[number % 13 :] + words[: number % 13])
        start = text.find("cork")
        docs.append(Document(str(number), text, spans=(Span(start, start + 4, "LOC"),)))
    shares = {}
    for ratio, weight in ((0.08, 10.0), (0.08, 0.0)):
        settings = [*QUICK, f"entity_ratio={ratio}", f"weight={weight}", "train.epochs=8"]
        config = load_config(eer.Config, settings=settings)
        tagger = eer.train(Splits(weak=docs), config, Run(tmp_path / str(weight), {"seed": 1}))
        shares[weight] = entity_ratio(list(tagger.predict(docs)), ["LOC"])
    assert 0.04 < shares[10.0] < 0.16 < shares[0.0], "without the constraint, unlabeled words become entities"
