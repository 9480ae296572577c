"""Corpora in and out: one module per file format, tags, words, windows, and a check for mistakes."""

from lacuner.corpus.formats import FORMATS, read, write
from lacuner.corpus.reader import ReadOptions
from lacuner.corpus.words import words_of

__all__ = ["FORMATS", "ReadOptions", "read", "words_of", "write"]
