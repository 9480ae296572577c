"""Any encoder together with a lexicon: for each word it also reads which entries of a word list the word is part of.

Made for Chinese, where characters are the words of a sentence and a dictionary knows the real ones. Named
`lexicon:ENCODER`, with the word list in `encoder.lexicon` and, if there are any, vectors of its entries in
`encoder.vectors`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lacuner.errors import ConfigError, ModelFileError
from lacuner.models.dropout import check_rate, drop_features
from lacuner.models.encoders.hashing import normalise_word
from lacuner.models.encoders.lexicon import Lexicon, collate_matches, lexicon_of_corpus, parse_lexicon, read_entries
from lacuner.models.encoders.lexicon_fusion import FUSIONS, LexiconAdapter
from lacuner.models.encoders.word_vectors import read_vectors
from lacuner.models.types import Batch, Encoder, Features, HasInnerLayers

_FILE = "lexicon.tsv"
_BASE = "base-"
"""Beginning of the names of the inner encoder's files."""
_INNER, _MATCH = "inner.", "match."
"""Beginnings of the names of arrays and tensors."""
_MAX_SIZE = 4096


@dataclass(frozen=True)
class LexiconConfig:
    """How entries are read; number 0 is the vector of entries that have none of their own."""

    fusion: str = "soft"
    """Name of a fusion."""
    size: int = 50
    """Size of an entry's vector."""
    embedded: int = 0
    """Number of entries with a vector of their own."""
    dropout: float = 0.3
    """Dropout rate on entry vectors."""
    entry_dropout: float = 0.1
    """Share of matches that have vector 0 in training, so that it is trained."""

    def __post_init__(self) -> None:
        if self.fusion not in FUSIONS:
            raise ConfigError(f"fusion must be one of {', '.join(FUSIONS)}, not {self.fusion!r}")
        if not 1 <= self.size <= _MAX_SIZE:
            raise ConfigError(f"size of the lexicon's vectors must be between 1 and {_MAX_SIZE:,}")
        check_rate(self.dropout)
        check_rate(self.entry_dropout)


class LexiconEncoder(nn.Module):
    """An inner encoder and a fusion of its vectors with those of the matching entries (`lexicon_fusion.py`)."""

    def __init__(self, inner: Encoder, lexicon: Lexicon, settings: LexiconConfig) -> None:
        super().__init__()
        fusion = FUSIONS[settings.fusion]
        if fusion is LexiconAdapter and not isinstance(inner, HasInnerLayers):
            raise ConfigError(f"encoder.fusion={settings.fusion} needs tiny, tiny-en, tiny-zh or hf: after `lexicon:`")
        if inner.width % 2:
            raise ConfigError(f"a lexicon needs an encoder of even width, not {inner.width}")
        self.inner, self.lexicon, self.settings = inner, lexicon, settings
        self.is_transformer, self.is_pretrained = inner.is_transformer, inner.is_pretrained
        self.entries = nn.Embedding(1 + lexicon.embedded, settings.size)
        nn.init.normal_(self.entries.weight, std=0.1)
        self.fusion = fusion(inner.width, settings.size)

    @property
    def width(self) -> int:
        return self.inner.width

    @property
    def limit(self) -> int | None:
        return self.inner.limit

    def fresh_modules(self) -> Sequence[nn.Module]:
        """What starts from scratch, whatever the inner encoder."""
        return (self.entries, self.fusion)

    def count(self, words: Sequence[str]) -> np.ndarray:
        return self.inner.count(words)

    def prepare(self, sentences: Sequence[Sequence[str]]) -> Features:
        features, matches = self.inner.prepare(sentences), self.lexicon.match(sentences)
        arrays = {_INNER + name: array for name, array in features.arrays.items()}
        arrays |= {_MATCH + name: array for name, array in matches._asdict().items()}
        return Features(features.lengths, features.costs, arrays, features.truncated)

    def collate(self, features: Features, indices: Sequence[int] | np.ndarray) -> Batch:
        inner = Features(features.lengths, features.costs, _part(features.arrays, _INNER), features.truncated)
        batch = self.inner.collate(inner, indices)
        matches = collate_matches(_part(features.arrays, _MATCH), indices, batch.mask.shape[1])
        tensors = {_INNER + name: tensor for name, tensor in batch.tensors.items()}
        tensors |= {_MATCH + name: torch.from_numpy(array) for name, array in matches.items()}
        return Batch(batch.mask, tensors)

    def forward(self, batch: Batch) -> Tensor:
        inner, matches = Batch(batch.mask, _part(batch.tensors, _INNER)), _part(batch.tensors, _MATCH)
        number, settings = matches["number"], self.settings
        if self.training and settings.entry_dropout:
            number = number.masked_fill(torch.rand(number.shape, device=number.device) < settings.entry_dropout, 0)
        entries = drop_features(self.entries(number), settings.dropout, self.training)
        if isinstance(self.fusion, LexiconAdapter):
            assert isinstance(self.inner, HasInnerLayers)
            return self.inner.forward_adapted(inner, lambda vectors: self.fusion(vectors, entries, matches, batch.mask))
        fused: Tensor = self.fusion(self.inner(inner), entries, matches, batch.mask)
        return fused

    def config(self) -> dict[str, Any]:
        settings = {**asdict(self.settings), "embedded": self.lexicon.embedded}
        return {"kind": "lexicon", **settings, "inner": self.inner.config(), "pretrained": self.is_pretrained}

    def files(self) -> dict[str, bytes]:
        inner = {_BASE + name: data for name, data in self.inner.files().items()}
        return {_FILE: self.lexicon.to_bytes(), **inner}


def _part(values: Mapping[str, Any], beginning: str) -> dict[str, Any]:
    """The values whose names have this beginning, under the rest of their names."""
    return {name.removeprefix(beginning): value for name, value in values.items() if name.startswith(beginning)}


def lexicon_encoder(
    inner: Encoder,
    sentences: Sequence[Sequence[str]],
    word_list: Path | None,
    vectors: Path | None = None,
    fusion: str = "soft",
) -> LexiconEncoder:
    """An encoder with the entries of a word list; those in the sentences, or with a vector, have vectors of their own.

    All other entries share one vector: of these, only where they occur is known.
    """
    if word_list is None:
        raise ConfigError("`lexicon:` needs a word list, one entry per line: --set encoder.lexicon=FILE")
    entries = read_entries(word_list)
    table = {} if vectors is None else read_vectors(vectors, keep={normalise_word(entry) for entry in entries})
    lexicon = lexicon_of_corpus(entries, sentences, table)
    sizes = {"size": len(next(iter(table.values())))} if table else {}
    encoder = LexiconEncoder(inner, lexicon, LexiconConfig(fusion=fusion, embedded=lexicon.embedded, **sizes))
    with torch.no_grad():
        for number, entry in enumerate(lexicon.entries[: lexicon.embedded], 1):
            if (vector := table.get(normalise_word(entry))) is not None:
                encoder.entries.weight[number] = torch.from_numpy(vector)
    return encoder


def build_lexicon_encoder(settings: Mapping[str, Any], files: Mapping[str, bytes]) -> LexiconEncoder:
    """The encoder that `LexiconEncoder.config` and `files` describe, with fresh weights."""
    from lacuner.models.encoders import build_encoder  # imported late: its table names this function

    inner = settings.get("inner")
    if not isinstance(inner, dict) or inner.get("kind") == "lexicon" or _FILE not in files:
        raise ModelFileError("a lexicon encoder needs the config of its inner encoder, and its lexicon")
    options = {name: value for name, value in settings.items() if name not in ("inner", "pretrained")}
    config = LexiconConfig(**options)
    base = build_encoder(inner, _part(files, _BASE))
    return LexiconEncoder(base, parse_lexicon(files[_FILE], config.embedded), config)
