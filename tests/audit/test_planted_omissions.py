"""Omissions that we planted come first in the queue of label issues (T9)."""

from pathlib import Path

import pytest

from lacuner.audit.cross_fitting import CrossFitOptions, cross_fit
from lacuner.audit.issues import label_issues
from lacuner.config import load_config
from lacuner.data import Splits
from lacuner.noise.corrupt import Noise, corrupt
from lacuner.recipes import RECIPES
from tests.demo_corpus import demo_corpus


@pytest.mark.slow
@pytest.mark.integration
def test_most_planted_omissions_are_among_the_first_issues(tmp_path: Path) -> None:
    gold = demo_corpus().train
    weak = list(corrupt(gold, Noise(drop=0.1)))
    planted = {
        (full.id, span.start, span.end, span.label)
        for full, doc in zip(gold, weak, strict=True)
        for span in set(full.spans) - set(doc.spans)
    }
    assert len(planted) > 50
    settings = ["encoder.name=tiny", "train.epochs=15", "rate=0.3"]  # for an encoder from scratch
    config = load_config(RECIPES["negative_sampling"].Config, settings=settings)
    fitted = cross_fit(Splits(weak=weak), tmp_path, CrossFitOptions(config=config))
    issues = label_issues(weak, fitted.predictions, calibrate=fitted.calibration)
    first = {(issue.doc_id, issue.start, issue.end, issue.label) for issue in issues[: 2 * len(planted)]}
    assert len(first & planted) >= 0.8 * len(planted), f"{len(first & planted)} of {len(planted)}"
