"""Weak labels: dictionaries and other sources that look at text, and one layer made from what they see.

`load_dictionary` reads what people have; `dictionary_source` and its kin are the sources; `annotate` runs them over
documents and keeps a `Tally`; `lint` says which entries do the damage.
"""

from lacuner.annotate.gazetteer.entries import Dictionary, DictionaryNote, Entry
from lacuner.annotate.gazetteer.load import FORMATS, load_dictionary
from lacuner.annotate.label_model import combine
from lacuner.annotate.lint import Judgement, LintRow, lint, stop_list
from lacuner.annotate.matching.matcher import Match, Matcher
from lacuner.annotate.pipeline import annotate
from lacuner.annotate.sources import (
    Found,
    Source,
    capitalised_source,
    dictionary_source,
    function_source,
    per_document_source,
    read_stop_list,
    regex_source,
    without,
)
from lacuner.annotate.statistics import Tally
from lacuner.processes import usable_cores

__all__ = [
    "FORMATS",
    "Dictionary",
    "DictionaryNote",
    "Entry",
    "Found",
    "Judgement",
    "LintRow",
    "Match",
    "Matcher",
    "Source",
    "Tally",
    "annotate",
    "capitalised_source",
    "combine",
    "dictionary_source",
    "function_source",
    "lint",
    "load_dictionary",
    "per_document_source",
    "read_stop_list",
    "regex_source",
    "stop_list",
    "usable_cores",
    "without",
]
