"""lacuner from Python: plain functions on documents or file paths, for notebooks and programs.

Where documents are taken, a path (str or Path) is read, and plain texts may stand in a list instead of documents.

>>> docs = list(annotate(["Take aspirin daily.", "No aspirin."], {"aspirin": "DRUG"}))
>>> [doc.text[span.start : span.end] for doc in docs for span in doc.spans]
['aspirin', 'aspirin']
"""

from lacuner import load
from lacuner.api.corpora import annotate, augment, corrupt, measure, score
from lacuner.api.taggers import config_for, distil, export, predict, train
from lacuner.corpus import read, write
from lacuner.data import Document, Lost, Span
from lacuner.export.options import ExportOptions
from lacuner.noise import Noise

__all__ = [
    "Document",
    "ExportOptions",
    "Lost",
    "Noise",
    "Span",
    "annotate",
    "augment",
    "config_for",
    "corrupt",
    "distil",
    "export",
    "load",
    "measure",
    "predict",
    "read",
    "score",
    "train",
    "write",
]
