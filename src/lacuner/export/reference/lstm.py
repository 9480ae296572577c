"""Words as an `lstm` encoder reads them: the number of the word, and the numbers of its characters."""

from pathlib import Path
from typing import Any

import numpy as np

from lacuner.export.reference.padding import pad
from lacuner.models.encoders.hashing import normalise_word


class WordFeatures:
    """Inputs of the graph for sentences of words; 0 is an unknown word or character, character 1 is padding."""

    def __init__(self, config: dict[str, Any], folder: Path) -> None:
        self.words = {word: number for number, word in enumerate(config["words"], 1)}
        self.characters = {character: number for number, character in enumerate(config["characters"], 2)}

    def count(self, words: list[str]) -> list[int]:
        """Cost of each word."""
        return [1] * len(words)

    def feed(self, sentences: list[list[str]]) -> dict[str, np.ndarray]:
        """A batch of sentences, padded to the longest."""
        found: dict[str, int] = {}
        rows = pad([[found.setdefault(word, len(found)) for word in words] for words in sentences], -1)
        numbers = np.array([self.words.get(normalise_word(word), 0) for word in found], dtype=np.int64)
        spelled = (word if len(word) <= 32 else word[:16] + word[-16:] for word in found)
        spelling = pad([[self.characters.get(character, 0) for character in word] for word in spelled], 1)
        distinct = rows.clip(0)
        return {"words": numbers[distinct], "distinct": distinct, "spelling": spelling, "mask": rows >= 0}
