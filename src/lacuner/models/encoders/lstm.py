"""BiLSTM encoder: word embeddings, a character convolution, and a bidirectional LSTM, as in many of the papers.

Its vocabulary comes from the training words (and a file of word vectors, if given) and is saved in its config.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from lacuner.errors import ConfigError, ModelFileError
from lacuner.models.dropout import check_rate, drop_features
from lacuner.models.encoders.hashing import normalise_word
from lacuner.models.encoders.word_vectors import read_vectors
from lacuner.models.ragged import index_words, offsets_of, pad_rows
from lacuner.models.types import Batch, Features

_MAX_CHARACTERS = 32
_PADDING = 1
_MAX_SIZE = 4096
_MAX_VECTORS = 50_000
"""Number of words that are taken from the beginning of a file of word vectors; of the rest, those of the corpus."""


@dataclass(frozen=True)
class LSTMConfig:
    """Sizes, dropout rates, and the vocabulary; number 0 is an unknown word or character."""

    width: int = 200
    layers: int = 1
    word: int = 100
    character: int = 30
    dropout: float = 0.5
    word_dropout: float = 0.05
    """Share of words replaced by the unknown word in training, so that its embedding is trained."""
    words: tuple[str, ...] = ()
    characters: tuple[str, ...] = ()
    pretrained: bool = False
    """Whether the weights come from pre-training."""

    def __post_init__(self) -> None:
        for name, least in {"width": 2, "layers": 1, "word": 1, "character": 1}.items():
            if not least <= getattr(self, name) <= _MAX_SIZE:
                raise ConfigError(f"{name} of the lstm encoder must be between {least} and {_MAX_SIZE:,}")
        check_rate(self.dropout)
        check_rate(self.word_dropout)


class LSTMEncoder(nn.Module):
    """Embedding of the lower-cased word, a convolution over its characters, and a BiLSTM over the sentence."""

    is_transformer = False
    limit: int | None = None

    def __init__(self, settings: LSTMConfig) -> None:
        super().__init__()
        self.settings = settings
        self.is_pretrained = settings.pretrained
        self.words = nn.Embedding(1 + len(settings.words), settings.word)
        self.characters = nn.Embedding(2 + len(settings.characters), settings.character, padding_idx=_PADDING)
        self.spelling = nn.Conv1d(settings.character, settings.character, 3, padding=1)
        nn.init.normal_(self.words.weight, std=0.1)
        width = settings.word + settings.character
        self.lstm = nn.LSTM(width, settings.width // 2, settings.layers, batch_first=True, bidirectional=True)
        self.input_layer = nn.Identity()
        """Passes on the vectors of words before any context, so that a hook can perturb them."""
        self.word_numbers = {word: i for i, word in enumerate(settings.words, 1)}
        self._character = {character: i for i, character in enumerate(settings.characters, 2)}

    @property
    def width(self) -> int:
        return self.settings.width // 2 * 2

    def count(self, words: Sequence[str]) -> np.ndarray:
        return np.ones(len(words), dtype=np.int64)

    def prepare(self, sentences: Sequence[Sequence[str]]) -> Features:
        words, row, lengths = index_words(sentences)
        spelled = [word if len(word) <= _MAX_CHARACTERS else word[:16] + word[-16:] for word in words]
        spellings = [[self._character.get(character, 0) for character in word] for word in spelled]
        arrays = {
            "row": row,
            "offsets": offsets_of(lengths),
            "number": np.array([self.word_numbers.get(normalise_word(word), 0) for word in words], dtype=np.int64),
            "spelling": np.array([number for numbers in spellings for number in numbers], dtype=np.int64),
            "spelling_offsets": offsets_of(np.array([len(numbers) for numbers in spellings], dtype=np.int64)),
        }
        return Features(lengths, lengths, arrays, truncated=sum(len(word) > _MAX_CHARACTERS for word in words))

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
        vectors = self.embed_words(numbers, batch.tensors["distinct"], batch.tensors["spelling"])
        vectors = drop_features(self.input_layer(vectors), settings.dropout, self.training)
        return run_lstm(self.lstm, vectors, batch.mask)

    def embed_words(self, numbers: Tensor, distinct: Tensor, spelling: Tensor) -> Tensor:
        """Vectors of words by themselves: embedding, and a convolution over the characters of each distinct word."""
        return torch.cat([self.words(numbers), self._spell(spelling)[distinct]], dim=-1)

    def _spell(self, spelling: Tensor) -> Tensor:
        """One vector per distinct word: a convolution over its characters, max-pooled."""
        activations = self.spelling(self.characters(spelling).transpose(1, 2)).relu()
        # the amount of padding depends on the batch; after ReLU a zero never wins the maximum
        pooled: Tensor = activations.masked_fill((spelling == _PADDING).unsqueeze(1), 0.0).amax(dim=2)
        return pooled

    def config(self) -> dict[str, Any]:
        vocabulary = {"words": list(self.settings.words), "characters": list(self.settings.characters)}
        return {"kind": "lstm", **asdict(self.settings), **vocabulary, "pretrained": self.is_pretrained}

    def files(self) -> dict[str, bytes]:
        return {}


def run_lstm(lstm: nn.LSTM, vectors: Tensor, mask: Tensor) -> Tensor:
    """The output of an LSTM over padded sentences, `[batch, words, width]`."""
    lengths = mask.sum(dim=1).clamp(min=1).cpu()  # an empty sentence has one word of padding
    packed = pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
    output, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=vectors.shape[1])
    return output


def lstm_from_words(
    sentences: Iterable[Sequence[str]],
    settings: LSTMConfig = LSTMConfig(),  # noqa: B008 frozen
    vectors: str | Path | None = None,
) -> LSTMEncoder:
    """An encoder with fresh weights whose vocabulary is the training words and the first words of `vectors`.

    `vectors` is a text file with one word and its numbers per line, separated by spaces; a first line with two
    numbers is skipped.

    >>> lstm_from_words([["Mara", "left"], ["she", "left"]]).settings.words
    ('left', 'mara', 'she')
    """
    words, _, _ = index_words(sentences)
    characters = tuple(sorted({character for word in words for character in word}))
    known = dict.fromkeys(sorted({normalise_word(word) for word in words}))
    table = {} if vectors is None else read_vectors(Path(vectors), keep=set(known), first=_MAX_VECTORS)
    known.update(dict.fromkeys(table))
    size = len(next(iter(table.values()))) if table else settings.word
    encoder = LSTMEncoder(replace(settings, words=tuple(known), characters=characters, word=size))
    with torch.no_grad():
        for word, vector in table.items():
            encoder.words.weight[encoder.word_numbers[word]] = torch.from_numpy(vector)
    return encoder


def build_lstm(settings: Mapping[str, Any]) -> LSTMEncoder:
    """The encoder that `LSTMEncoder.config` describes, with fresh weights."""
    lists = {name: settings.get(name) for name in ("words", "characters")}
    if not all(isinstance(value, list) and all(isinstance(item, str) for item in value) for value in lists.values()):
        raise ModelFileError("the vocabulary of an lstm encoder must be two lists of strings")
    return LSTMEncoder(LSTMConfig(**{**settings, **{name: tuple(value or ()) for name, value in lists.items()}}))
