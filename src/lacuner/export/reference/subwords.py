"""Words as a Hugging Face encoder reads them: each word split into sub-words by itself."""

from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from lacuner.models.encoders.huggingface import word_shape


class WordFeatures:
    """Inputs of the graph for sentences of words."""

    def __init__(self, config: dict[str, Any], folder: Path) -> None:
        self.config = config
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.pieces: dict[str, list[int]] = {}

    def _encode(self, words: list[str]) -> None:
        """Split words that were not seen before."""
        new = list(dict.fromkeys(word for word in words if word not in self.pieces))
        readable = [word.encode("utf-8", "replace").decode("utf-8") for word in new]
        for word, encoding in zip(new, self.tokenizer.encode_batch(readable, add_special_tokens=False), strict=True):
            self.pieces[word] = encoding.ids[: self.config["max_pieces"]] or [self.config["unknown"]]

    def count(self, words: list[str]) -> list[int]:
        """Cost of each word: its number of sub-words."""
        self._encode(words)
        return [len(self.pieces[word]) for word in words]

    def feed(self, sentences: list[list[str]]) -> dict[str, np.ndarray]:
        """A batch of sentences, padded to the longest."""
        config, words = self.config, max(map(len, sentences))
        before, after = config["before"], config["after"]
        rows = [[*before, *(i for word in s for i in self.pieces[word]), *after] for s in sentences]
        shape = len(rows), max(map(len, rows))
        ids, owner = np.full(shape, config["pad"], dtype=np.int64), np.full(shape, words, dtype=np.int64)
        attention, shapes = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        first, mask = np.zeros((len(rows), words), dtype=np.int64), np.zeros((len(rows), words), dtype=bool)
        for i, (row, sentence) in enumerate(zip(rows, sentences, strict=True)):
            sizes = [len(self.pieces[word]) for word in sentence]
            inner = slice(len(before), len(row) - len(after))
            ids[i, : len(row)], attention[i, : len(row)], mask[i, : len(sentence)] = row, 1, True
            owner[i, inner] = np.repeat(np.arange(len(sentence)), sizes)
            first[i, : len(sentence)] = len(before) + np.cumsum(sizes) - sizes
            if "shape" in config["inputs"]:
                shapes[i, inner] = np.repeat([word_shape(word) for word in sentence], sizes)
        arrays = {"ids": ids, "attention": attention, "first": first, "owner": owner, "shape": shapes, "mask": mask}
        return {name: arrays[name] for name in config["inputs"]}
