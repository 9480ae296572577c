"""Words as a `tiny` encoder reads them: hashed features, one bag per distinct word and group of features."""

from pathlib import Path
from typing import Any

import numpy as np

from lacuner.models.encoders.hashing import word_features
from lacuner.models.ragged import index_words, offsets_of, pad_rows


class WordFeatures:
    """Inputs of the graph for sentences of words."""

    def __init__(self, config: dict[str, Any], folder: Path) -> None:
        self.rows = np.uint64(config["rows"])

    def count(self, words: list[str]) -> list[int]:
        """Cost of each word."""
        return [1] * len(words)

    def feed(self, sentences: list[list[str]]) -> dict[str, np.ndarray]:
        """A batch of sentences, padded to the longest."""
        words, row, lengths = index_words(sentences)
        hashes, starts = word_features(words)
        sizes = np.diff(starts)
        _, mask = pad_rows(offsets_of(lengths), range(len(sentences)))
        numbers = np.zeros(mask.shape, dtype=np.int64)
        numbers[mask] = row
        bags = np.repeat(np.arange(len(sizes)), sizes)
        ids = (hashes % self.rows).astype(np.int64)
        return {"ids": ids, "bags": bags, "sizes": sizes, "words": numbers, "mask": mask}
