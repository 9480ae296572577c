"""EER: where the ratio comes from, and that it keeps the model from labeling everything or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from lacuner.config import load_config
from lacuner.data import Document, Span, Splits
from lacuner.noise import Noise, corrupt
from lacuner.recipes import eer
from lacuner.training.run_folder import Run
from tests.demo_corpus import demo_corpus

QUICK = ["encoder.name=tiny", "train.budget=256"]


def test_a_given_ratio_wins_over_dev_and_dev_over_the_estimate(tmp_path: Path) -> None:
    demo = demo_corpus()
    weak, run = list(corrupt(demo.train[:40], Noise(drop=0.5))), Run(tmp_path, {"seed": 1})
    given = load_config(eer.Config, settings=[*QUICK, "ratio=0.2"])
    assert eer.find_ratio(Splits(weak=weak, dev=demo.dev), given, run) == (0.2, "given")
    labels = {span.label for doc in weak for span in doc.spans}
    expected = eer.entity_ratio(demo.dev, labels)
    found = eer.find_ratio(Splits(weak=weak, dev=demo.dev), load_config(eer.Config, settings=QUICK), run)
    assert found == (expected, "as in dev")


@pytest.mark.integration
def test_the_estimate_is_above_the_share_of_labeled_words(tmp_path: Path) -> None:
    weak = list(corrupt(demo_corpus().train[:120], Noise(drop=0.5)))
    config = load_config(eer.Config, settings=[*QUICK, "explore=2"])
    ratio, source = eer.find_ratio(Splits(weak=weak), config, Run(tmp_path, {"seed": 1}))
    labels = {span.label for doc in weak for span in doc.spans}
    assert source == "estimated from the weak labels"
    labeled = eer.entity_ratio(weak, labels)
    assert labeled < ratio <= labeled / eer.MIN_LABELED + 1e-6


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
        settings = [*QUICK, f"ratio={ratio}", f"weight={weight}", "train.epochs=8"]
        config = load_config(eer.Config, settings=settings)
        tagger = eer.train(Splits(weak=docs), config, Run(tmp_path / str(weight), {"seed": 1}))
        shares[weight] = eer.entity_ratio(list(tagger.predict(docs)), ["LOC"])
    assert 0.04 < shares[10.0] < 0.16 < shares[0.0], "without the constraint, unlabeled words become entities"
