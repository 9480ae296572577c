"""How good are these spans? One scorer, on spans, for everything."""

from lacuner.evaluate.align import align
from lacuner.evaluate.scores import Count, Evaluation, Scoring, score

__all__ = ["Count", "Evaluation", "Scoring", "align", "score"]
