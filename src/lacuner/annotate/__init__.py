"""Weak labels from gazetteers, patterns, models and other labelling functions.

`load_gazetteer` reads a file, `gazetteer_source` and the other sources find spans in a document, `annotate` runs them
over a corpus and combines their spans with a `LabelModel`, and `lint` finds the entries that cost precision.
"""

from lacuner.annotate.boundaries import NeighbourSample
from lacuner.annotate.gazetteer.entries import Entry, Gazetteer, GazetteerWarning
from lacuner.annotate.gazetteer.load import GAZETTEER_FORMATS, load_gazetteer
from lacuner.annotate.label_model import LabelModel
from lacuner.annotate.lint import EntryPrecision, LintRow, format_longer_phrases, format_stop_list, lint
from lacuner.annotate.matching.matcher import Matcher
from lacuner.annotate.patterns import patterns_source, read_patterns, regex_source
from lacuner.annotate.pipeline import annotate, label_documents
from lacuner.annotate.sources import (
    Source,
    SourceOutput,
    apply_stop_list,
    capitalised_source,
    function_source,
    gazetteer_source,
    per_document_source,
    read_stop_list,
    rename_labels,
    tagger_source,
)
from lacuner.annotate.spacy_source import spacy_source
from lacuner.annotate.statistics import LabellingStatistics

__all__ = [
    "GAZETTEER_FORMATS",
    "Entry",
    "EntryPrecision",
    "Gazetteer",
    "GazetteerWarning",
    "LabelModel",
    "LabellingStatistics",
    "LintRow",
    "Matcher",
    "NeighbourSample",
    "Source",
    "SourceOutput",
    "annotate",
    "apply_stop_list",
    "capitalised_source",
    "format_longer_phrases",
    "format_stop_list",
    "function_source",
    "gazetteer_source",
    "label_documents",
    "lint",
    "load_gazetteer",
    "patterns_source",
    "per_document_source",
    "read_patterns",
    "read_stop_list",
    "regex_source",
    "rename_labels",
    "spacy_source",
    "tagger_source",
]
