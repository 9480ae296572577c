"""Text in and out: formats, tags, words, windows, and a check of what is wrong."""

from lacuner.corpus.formats import FORMATS, read, write
from lacuner.corpus.reader import ReadOptions
from lacuner.corpus.words import words_of

__all__ = ["FORMATS", "ReadOptions", "read", "words_of", "write"]
