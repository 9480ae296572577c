"""Words as a Hugging Face encoder reads them: each word split into sub-words by itself."""

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from lacuner.export.reference.padding import pad
from lacuner.models.encoders.word_shapes import word_shape


class WordFeatures:
    """Inputs of the graph for sentences of words."""

    def __init__(self, config: dict[str, Any], folder: Path) -> None:
        self.config, self.tokenizer = config, Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.pieces: dict[str, list[int]] = {}

    def count(self, words: list[str]) -> list[int]:
        """Number of sub-words of each word."""
        new = list(set(words) - self.pieces.keys())
        texts = [word.encode("utf-8", "replace").decode() for word in new]  # lone surrogates become question marks
        for word, row in zip(new, self.tokenizer.encode_batch(texts, add_special_tokens=False), strict=True):
            self.pieces[word] = row.ids[: self.config["max_pieces"]] or [self.config["unknown"]]
        return [len(self.pieces[word]) for word in words]

    def feed(self, sentences: list[list[str]]) -> dict[str, np.ndarray]:
        """A batch of sentences, whose words were counted before."""
        pieces = [[self.pieces[word] for word in words] for words in sentences]
        ids = [[*self.config["before"], *chain.from_iterable(row), *self.config["after"]] for row in pieces]
        inputs = {"ids": pad(ids, self.config["pad"]), "sizes": pad([list(map(len, row)) for row in pieces], 0)}
        if "shapes" in self.config["inputs"]:
            inputs["shapes"] = pad([list(map(word_shape, words)) for words in sentences], 0)
        return inputs
