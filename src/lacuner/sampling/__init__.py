"""Sampling of negatives: spans of a batch (`span_negatives`), and non-entity spans of a corpus (`non_entity_spans`)."""

from lacuner.sampling.non_entity_spans import sample_non_entity_spans
from lacuner.sampling.span_negatives import (
    negatives_per_sentence,
    sample_by_rank,
    sample_negatives,
    sampling_weights,
    span_entropy,
)

__all__ = [
    "negatives_per_sentence",
    "sample_by_rank",
    "sample_negatives",
    "sample_non_entity_spans",
    "sampling_weights",
    "span_entropy",
]
