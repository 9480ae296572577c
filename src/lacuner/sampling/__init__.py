"""Samplers of negatives: spans of a batch (`span_negatives`), and non-entity spans of a corpus (`non_entity_spans`)."""
