"""Training dynamics: margins, and the issues that they lead to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lacuner.audit.cross_fitting import CrossFitOptions
from lacuner.audit.training_dynamics import MARGINS, follow_training, margins
from lacuner.config import load_config
from lacuner.data import Span, Splits
from lacuner.errors import ConfigError, ModelFileError
from lacuner.noise import Noise, corrupt
from lacuner.recipes import negative_sampling, trust
from tests.demo_corpus import demo_corpus

FIVE_EPOCHS = ["encoder.name=tiny", "train.budget=64", "train.epochs=5"]
QUICK = ["encoder.name=tiny", "train.budget=256", "train.epochs=2"]


def test_margins_equal_their_definition() -> None:
    logits = torch.randn(5, 3, 4)
    labels = torch.randint(0, 4, (5, 3))
    found = margins(logits, labels)
    for i in range(5):
        for j in range(3):
            row, label = logits[i, j].tolist(), int(labels[i, j])
            others = [value for number, value in enumerate(row) if number != label]
            assert found[i, j].item() == pytest.approx(row[label] - max(others))


@pytest.mark.integration
def test_margins_become_predictions_and_are_kept(tmp_path: Path) -> None:
    gold = demo_corpus().train[:60]
    weak = list(corrupt(gold, Noise(drop=0.3)))
    options = CrossFitOptions(config=load_config(negative_sampling.Config, settings=FIVE_EPOCHS), signal="aum")
    fit = follow_training(Splits(weak=weak), tmp_path, options)
    assert fit.calibrated_on == "nothing" and [doc.id for doc in fit.predictions] == [doc.id for doc in weak]
    for doc, predicted in zip(weak, fit.predictions, strict=True):
        assert doc.text == predicted.text
        assert all(span.score is not None and 0 < span.score < 1 for span in predicted.spans)
    labels = {(doc.id, span.key) for doc in weak for span in doc.spans}
    scores = {(doc.id, span.key): span.score for doc in fit.predictions for span in doc.spans}
    found = [scores[key] for key in labels & set(scores)]
    rest = [score for key, score in scores.items() if key not in labels]
    assert len(found) > 0.3 * len(labels), "labels that were learned are among the predictions"
    assert sum(found) / len(found) > sum(rest) / len(rest), "labels have higher scores than other spans"
    again = follow_training(Splits(weak=weak), tmp_path, options)
    assert [doc.spans for doc in again.predictions] == [doc.spans for doc in fit.predictions]
    (tmp_path / MARGINS).write_bytes(b"no tensors")
    with pytest.raises(ModelFileError, match="delete this file"):
        follow_training(Splits(weak=weak), tmp_path, options)


@pytest.mark.integration
def test_heads_without_spans_are_refused(tmp_path: Path) -> None:
    weak = [replace(doc, spans=(Span(*doc.spans[0][:3]),)) for doc in demo_corpus().train[:10] if doc.spans]
    config = load_config(trust.Config, settings=[*QUICK, "head.kind=token"])
    with pytest.raises(ConfigError, match=r"set head\.kind=span"):
        follow_training(Splits(weak=weak), tmp_path, CrossFitOptions("trust", config, signal="aum"))
