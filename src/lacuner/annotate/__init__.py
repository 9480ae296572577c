"""Weak labels: dictionaries and other sources that look at text, and one layer made from what they see.

`load_gazetteer` reads what people have; `gazetteer_source` and its kin are the sources; `annotate` runs them over
documents and keeps a `LabellingStatistics`; `lint` says which entries do the damage.
"""

from lacuner.annotate.gazetteer.entries import Entry, Gazetteer, GazetteerWarning
from lacuner.annotate.gazetteer.load import GAZETTEER_FORMATS, load_gazetteer
from lacuner.annotate.label_model import LabelModel
from lacuner.annotate.lint import EntryPrecision, LintRow, format_stop_list, lint
from lacuner.annotate.matching.matcher import Match, Matcher
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
    "Match",
    "Matcher",
    "Source",
    "SourceOutput",
    "annotate",
    "apply_stop_list",
    "capitalised_source",
    "format_stop_list",
    "function_source",
    "gazetteer_source",
    "lint",
    "load_gazetteer",
    "per_document_source",
    "read_stop_list",
    "regex_source",
]
