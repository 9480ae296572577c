"""Losses: one file each, plain functions of scores and targets, unreduced (one number per word, span or sentence)."""

from lacuner.losses.crf import crf_loss
from lacuner.losses.cross_entropy import cross_entropy
from lacuner.losses.gce import entity_type_gce_loss, gce
from lacuner.losses.mse import squared_error
from lacuner.losses.noise_aware import noise_aware_loss, unlikelihood
from lacuner.losses.nrces import nrces_loss
from lacuner.losses.pu import pu_risk
from lacuner.losses.soft_labels import entity_type_soft_loss
from lacuner.losses.weighted_crf import weighted_crf_loss

__all__ = [
    "crf_loss",
    "cross_entropy",
    "entity_type_gce_loss",
    "entity_type_soft_loss",
    "gce",
    "noise_aware_loss",
    "nrces_loss",
    "pu_risk",
    "squared_error",
    "unlikelihood",
    "weighted_crf_loss",
]
