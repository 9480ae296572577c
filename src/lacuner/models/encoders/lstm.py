"""The encoder of the papers' BiLSTM rows: word and character embeddings, a bidirectional LSTM.

It has a vocabulary, made of the training words (and of a file of vectors, if there is one) and kept in its config.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from lacuner.errors import ConfigError, CorpusError, ModelFileError
from lacuner.models.dropout import check_rate, drop_features
from lacuner.models.encoders.hashing import normal
from lacuner.models.ragged import index_words, offsets_of, pad_rows
from lacuner.models.types import Batch, Features

_LONGEST_WORD = 32
_PADDING = 1
_LARGEST = 4096


@dataclass(frozen=True)
class LSTMConfig:
    """The sizes, and the vocabulary: number 0 is any other word, or character."""

    width: int = 200
    layers: int = 1
    word: int = 100
    character: int = 30
    dropout: float = 0.5
    word_dropout: float = 0.05
    """Share of the words that are taken for unknown in training, so that the unknown word learns something."""
    words: tuple[str, ...] = ()
    characters: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, least in {"width": 2, "layers": 1, "word": 1, "character": 1}.items():
            if not least <= getattr(self, name) <= _LARGEST:
                raise ConfigError(f"{name} of the lstm encoder must lie between {least} and {_LARGEST:,}")
        check_rate(self.dropout)
        check_rate(self.word_dropout)


class LSTMEncoder(nn.Module):
    """Embedding of the word in lower case, a convolution over its characters, and a BiLSTM over the sentence."""

    is_transformer = False
    limit: int | None = None

    def __init__(self, settings: LSTMConfig) -> None:
        super().__init__()
        self.settings = settings
        self.words = nn.Embedding(1 + len(settings.words), settings.word)
        self.characters = nn.Embedding(2 + len(settings.characters), settings.character, padding_idx=_PADDING)
        self.spelling = nn.Conv1d(settings.character, settings.character, 3, padding=1)
        nn.init.normal_(self.words.weight, std=0.1)
        width = settings.word + settings.character
        self.lstm = nn.LSTM(width, settings.width // 2, settings.layers, batch_first=True, bidirectional=True)
        self._word = {word: i for i, word in enumerate(settings.words, 1)}
        self._character = {character: i for i, character in enumerate(settings.characters, 2)}

    @property
    def width(self) -> int:
        return self.settings.width // 2 * 2

    def count(self, words: Sequence[str]) -> np.ndarray:
        return np.ones(len(words), dtype=np.int64)

    def prepare(self, sentences: Sequence[Sequence[str]]) -> Features:
        words, row, lengths = index_words(sentences)
        spelled = [word if len(word) <= _LONGEST_WORD else word[:16] + word[-16:] for word in words]
        spellings = [[self._character.get(character, 0) for character in word] for word in spelled]
        arrays = {
            "row": row,
            "offsets": offsets_of(lengths),
            "number": np.array([self._word.get(normal(word), 0) for word in words], dtype=np.int64),
            "spelling": np.array([number for numbers in spellings for number in numbers], dtype=np.int64),
            "spelling_offsets": offsets_of(np.array([len(numbers) for numbers in spellings], dtype=np.int64)),
        }
        return Features(lengths, lengths, arrays, truncated=sum(len(word) > _LONGEST_WORD for word in words))

    def collate(self, features: Features, indices: Sequence[int] | np.ndarray) -> Batch:
        arrays = features.arrays
        positions, mask = pad_rows(arrays["offsets"], indices)
        if not len(arrays["row"]):
            empty = torch.zeros(positions.shape, dtype=torch.long)
            spelling = torch.ones((1, 1), dtype=torch.long)
            return Batch(torch.from_numpy(mask), {"words": empty, "distinct": empty, "spelling": spelling})
        distinct, place = np.unique(arrays["row"][positions], return_inverse=True)
        at, real = pad_rows(arrays["spelling_offsets"], distinct)
        tensors = {
            "words": arrays["number"][arrays["row"][positions]],
            "distinct": place.reshape(positions.shape),
            "spelling": np.where(real, arrays["spelling"][at], _PADDING),
        }
        return Batch(torch.from_numpy(mask), {name: torch.from_numpy(array) for name, array in tensors.items()})

    def forward(self, batch: Batch) -> Tensor:
        numbers, settings = batch.tensors["words"], self.settings
        if self.training and settings.word_dropout:
            numbers = numbers.masked_fill(torch.rand(numbers.shape, device=numbers.device) < settings.word_dropout, 0)
        vectors = torch.cat([self.words(numbers), self._spell(batch)[batch.tensors["distinct"]]], dim=-1)
        vectors = drop_features(vectors, settings.dropout, self.training)
        lengths = batch.mask.sum(dim=1).clamp(min=1).cpu()  # an empty sentence reads one word of padding
        packed = pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
        output, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=vectors.shape[1])
        return output

    def _spell(self, batch: Batch) -> Tensor:
        """A vector for the spelling of each distinct word: the strongest answers of a convolution."""
        spelling = batch.tensors["spelling"]
        answers = self.spelling(self.characters(spelling).transpose(1, 2)).relu()
        # zero is the weakest answer: padding, which depends on the batch, must not answer at all
        strongest: Tensor = answers.masked_fill((spelling == _PADDING).unsqueeze(1), 0.0).amax(dim=2)
        return strongest

    def config(self) -> dict[str, Any]:
        settings = asdict(self.settings)
        return {
            "kind": "lstm",
            **settings,
            "words": list(settings["words"]),
            "characters": list(settings["characters"]),
        }

    def files(self) -> dict[str, bytes]:
        return {}


def lstm_from_words(
    sentences: Iterable[Sequence[str]],
    settings: LSTMConfig = LSTMConfig(),  # noqa: B008 frozen
    vectors: str | Path | None = None,
    most: int = 50_000,
) -> LSTMEncoder:
    """A fresh encoder whose vocabulary is the training words and the first `most` words of a file of vectors.

    The file has a word and its numbers in each line, separated by spaces; a first line with two numbers is skipped.
    """
    words, _, _ = index_words(sentences)
    characters = tuple(sorted({character for word in words for character in word}))
    known = dict.fromkeys(sorted({normal(word) for word in words}))
    if vectors is None:
        return LSTMEncoder(replace(settings, words=tuple(known), characters=characters))
    table = _read_vectors(Path(vectors), set(known), most)
    known.update(dict.fromkeys(table))
    size = len(next(iter(table.values()))) if table else settings.word
    encoder = LSTMEncoder(replace(settings, words=tuple(known), characters=characters, word=size))
    with torch.no_grad():
        for i, word in enumerate(known, 1):
            if word in table:
                encoder.words.weight[i] = torch.from_numpy(table[word])
    return encoder


def _read_vectors(path: Path, wanted: set[str], most: int) -> dict[str, np.ndarray]:
    table: dict[str, np.ndarray] = {}
    size = 0
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, 1):
                word, *values = line.rstrip("\n").rstrip().split(" ")
                if number == 1 and len(values) == 1:
                    continue
                size = size or len(values)
                if len(values) != size or not size:
                    raise CorpusError(
                        f"this line has {len(values)} numbers, the first had {size}", file=path, line=number
                    )
                key = normal(word)
                if key in table or not (number <= most or key in wanted):
                    continue
                table[key] = np.array(values, dtype=np.float32)
    except OSError as error:
        raise CorpusError(f"cannot read this file of vectors: {error.strerror}", file=path) from error
    except ValueError as error:
        raise CorpusError(f"not a number: {error}", file=path, line=number) from error
    return table


def build_lstm(settings: Mapping[str, Any]) -> LSTMEncoder:
    """The encoder that `config` described, with fresh weights."""
    lists = {name: settings.get(name) for name in ("words", "characters")}
    if not all(isinstance(value, list) and all(isinstance(item, str) for item in value) for value in lists.values()):
        raise ModelFileError("the vocabulary of an lstm encoder must be two lists of strings")
    return LSTMEncoder(LSTMConfig(**{**settings, **{name: tuple(value or ()) for name, value in lists.items()}}))
