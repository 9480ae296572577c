"""Encoders with a head that guesses hidden words: new ones to pre-train, finished ones to use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

from lacuner.corpus.words import words_of
from lacuner.data import Document
from lacuner.errors import ConfigError, TrainingError
from lacuner.models.config import EncoderConfig
from lacuner.models.encoders.lstm import lstm_from_words
from lacuner.models.heads.masked import MASK, MaskedHead, MaskedWordHead
from lacuner.models.model import Model
from lacuner.models.open import open_encoder
from lacuner.models.storage import load_model


def vocabulary_of(sentences: Iterable[Sequence[str]], least: int, most: int) -> list[str]:
    """The most frequent words, those that occur equally often by their spelling."""
    counts = Counter(chain.from_iterable(sentences))
    words = sorted((word for word, times in counts.items() if times >= least), key=lambda word: (-counts[word], word))
    if len(words) < 2:
        raise TrainingError(f"there are not two words in this text that occur {least} times: nothing can be guessed")
    return words[:most]


def new_masked_model(config: EncoderConfig, docs: Sequence[Document], least: int, most: int) -> tuple[Model, str]:
    """An encoder with a masked-word head, and in words where the head is from."""
    kind, _, place = config.name.partition(":")
    if kind == "run" and place:
        model = load_model(place)
        if isinstance(model, Model) and isinstance(model.head, MaskedHead):
            return model, "the head of the run"
    if kind == "hf" and place:
        encoder = open_encoder(config, docs)
        from lacuner.models.encoders.huggingface_mlm import open_masked_head

        head, own = open_masked_head(place, encoder)
        return Model(encoder, head), "its own head" if own else "a new head, tied to its embeddings"
    sentences = [[doc.text[start:end] for start, end in words_of(doc)] for doc in docs]
    vocabulary = vocabulary_of(sentences, least, most)
    if config.name == "lstm":
        encoder = lstm_from_words([*sentences, [MASK]], vectors=config.vectors)
    else:
        encoder = open_encoder(config, docs)
    if encoder.config()["kind"] == "pretrained":
        raise ConfigError(f"{config.name} has no masked-word head: pre-train the checkpoint that it came from")
    return Model(encoder, MaskedWordHead(encoder.width, vocabulary)), f"a vocabulary of {len(vocabulary):,} words"


def open_masked_model(config: EncoderConfig) -> Model | None:
    """The encoder of a pre-training run, or a checkpoint with a head of its own, as it is; None for all others."""
    kind, _, place = config.name.partition(":")
    if kind == "run" and place:
        model = load_model(place)
        return model if isinstance(model, Model) and isinstance(model.head, MaskedHead) else None
    if kind == "hf" and place:
        encoder = open_encoder(config, ())
        from lacuner.models.encoders.huggingface_mlm import open_masked_head

        try:
            head, own = open_masked_head(place, encoder)
        except ConfigError:
            return None  # its tokenizer knows no mask
        return Model(encoder, head) if own else None
    return None
