"""Scores of predicted spans, alignment with gold, significance, calibration, decision thresholds."""

from lacuner.evaluate.align import align
from lacuner.evaluate.scores import Count, Evaluation, Scorer, score

__all__ = ["Count", "Evaluation", "Scorer", "align", "score"]
