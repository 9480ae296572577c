"""Encoders with a head that guesses hidden words: new ones to pre-train, finished ones to use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

from lacuner.corpus.words import words_of
from lacuner.data import Document
from lacuner.errors import ConfigError, TrainingError
from lacuner.models.config import EncoderConfig
from lacuner.models.encoders import open_encoder, parse_encoder_name
from lacuner.models.encoders.lstm import lstm_from_words
from lacuner.models.heads.masked import MASK, MaskedWordHead
from lacuner.models.model import MaskedLanguageModel
from lacuner.models.storage import load_model
from lacuner.models.types import SubwordEncoder


def vocabulary_of(sentences: Iterable[Sequence[str]], least: int, most: int) -> list[str]:
    """The most frequent words, those that occur equally often by their spelling."""
    counts = Counter(chain.from_iterable(sentences))
    words = sorted((word for word, times in counts.items() if times >= least), key=lambda word: (-counts[word], word))
    if len(words) < 2:
        raise TrainingError(f"there are not two words in this text that occur {least} times: nothing can be guessed")
    return words[:most]


def new_masked_model(
    config: EncoderConfig, docs: Sequence[Document], least: int, most: int
) -> tuple[MaskedLanguageModel, str]:
    """An encoder with a masked-word head, and in words where the head is from."""
    kind, place = parse_encoder_name(config.name)
    if kind == "run":
        model = load_model(place)
        if isinstance(model, MaskedLanguageModel):
            return model, "the head of the run"
    if kind == "hf":
        encoder = open_encoder(config, docs)
        assert isinstance(encoder, SubwordEncoder)
        from lacuner.models.encoders.huggingface_mlm import open_masked_head

        head, own = open_masked_head(place, encoder)
        return MaskedLanguageModel(encoder, head), "its own head" if own else "a new head, tied to its embeddings"
    sentences = [[doc.text[start:end] for start, end in words_of(doc)] for doc in docs]
    vocabulary = vocabulary_of(sentences, least, most)
    if config.name == "lstm":
        encoder = lstm_from_words([*sentences, [MASK]], vectors=config.vectors)
    else:
        encoder = open_encoder(config, docs)
    if encoder.is_transformer:
        raise ConfigError(f"{config.name} has no masked-word head: pre-train the checkpoint that it came from")
    model = MaskedLanguageModel(encoder, MaskedWordHead(encoder.width, vocabulary))
    return model, f"a vocabulary of {len(vocabulary):,} words"


def open_masked_model(config: EncoderConfig) -> MaskedLanguageModel | None:
    """The encoder of a pre-training run, or a checkpoint with a head of its own, as it is; None for all others."""
    kind, place = parse_encoder_name(config.name)
    if kind == "run":
        model = load_model(place)
        return model if isinstance(model, MaskedLanguageModel) else None
    if kind == "hf":
        encoder = open_encoder(config, ())
        assert isinstance(encoder, SubwordEncoder)
        from lacuner.models.encoders.huggingface_mlm import open_masked_head

        try:
            head, own = open_masked_head(place, encoder)
        except ConfigError:
            return None  # its tokenizer knows no mask
        return MaskedLanguageModel(encoder, head) if own else None
    return None
