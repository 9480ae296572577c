"""What counts as a mistake: one small file a loss, a plain function of scores and targets, unreduced."""

from lacuner.losses.crf import crf_loss
from lacuner.losses.cross_entropy import cross_entropy

__all__ = ["crf_loss", "cross_entropy"]
