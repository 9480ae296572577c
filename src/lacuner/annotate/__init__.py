"""Weak labels from gazetteers, patterns and other labelling functions.

`load_gazetteer` reads a file, `gazetteer_source` and the other sources find spans in a document, `annotate` runs them
over a corpus and combines their spans with a `LabelModel`, and `lint` finds the entries that cost precision.
"""

from lacuner.annotate.boundaries import NeighbourSample
from lacuner.annotate.gazetteer.entries import Entry, Gazetteer, GazetteerWarning
from lacuner.annotate.gazetteer.load import GAZETTEER_FORMATS, load_gazetteer
from lacuner.annotate.label_model import LabelModel
from lacuner.annotate.lint import EntryPrecision, LintRow, format_longer_phrases, format_stop_list, lint
from lacuner.annotate.matching.matcher import Matcher
from lacuner.annotate.pipeline import annotate
from lacuner.annotate.sources import (
    Source,
    SourceOutput,
    apply_stop_list,
    capitalised_source,
    function_source,
    gazetteer_source,
    per_document_source,
    read_stop_list,
    regex_source,
)
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
    "lint",
    "load_gazetteer",
    "per_document_source",
    "read_stop_list",
    "regex_source",
]
