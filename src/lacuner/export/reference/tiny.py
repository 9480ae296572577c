"""Words as a `tiny` encoder reads them: hashed features, one bag per distinct word and group of features."""

from pathlib import Path
from typing import Any

import numpy as np

from lacuner.export.reference.padding import pad
from lacuner.models.encoders.hashing import word_features


class WordFeatures:
    """Inputs of the graph for sentences of words."""

    def __init__(self, config: dict[str, Any], folder: Path) -> None:
        self.rows = np.uint64(config["rows"])

    def count(self, words: list[str]) -> list[int]:
        """Cost of each word."""
        return [1] * len(words)

    def feed(self, sentences: list[list[str]]) -> dict[str, np.ndarray]:
        """A batch of sentences, padded to the longest."""
        numbers: dict[str, int] = {}
        rows = pad([[numbers.setdefault(word, len(numbers)) for word in words] for words in sentences], -1)
        hashes, starts = word_features(list(numbers))
        sizes = np.diff(starts)
        bags = np.repeat(np.arange(len(sizes)), sizes)
        ids = (hashes % self.rows).astype(np.int64)
        return {"ids": ids, "bags": bags, "sizes": sizes, "words": rows.clip(0), "mask": rows >= 0}
