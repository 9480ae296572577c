"""Masked language models: new ones to pre-train, and finished ones to augment with."""

from collections.abc import Sequence

import numpy as np

from lacuner.corpus.words import join_words
from lacuner.data import Document
from lacuner.errors import ConfigError, TrainingError
from lacuner.models.config import EncoderConfig
from lacuner.models.encoders import open_encoder, parse_encoder_name
from lacuner.models.encoders.shipped import SHIPPED, shipped_folder
from lacuner.models.heads.masked import MASK, MaskedWordHead
from lacuner.models.model import MaskedLanguageModel
from lacuner.models.storage import load_model
from lacuner.models.types import SubwordEncoder
from lacuner.pretraining.text import PreparedText


def build_vocabulary(words: Sequence[str], counts: np.ndarray, min_count: int, max_size: int) -> list[str]:
    """The most frequent of some distinct words; ties are ordered alphabetically.

    >>> build_vocabulary(["b", "a", "c"], np.array([2, 2, 1]), min_count=2, max_size=10)
    ['a', 'b']
    """
    frequent = np.flatnonzero(counts >= min_count).tolist()
    if len(frequent) < 2:
        raise TrainingError(f"fewer than two words occur {min_count} times in this text: there is nothing to predict")
    return [words[i] for i in sorted(frequent, key=lambda i: (-counts[i], words[i]))[:max_size]]


def new_masked_model(
    config: EncoderConfig, text: PreparedText, min_count: int, max_size: int
) -> tuple[MaskedLanguageModel, str]:
    """An encoder with a masked-LM head to pre-train, and a phrase for the log about its head."""
    kind, place = parse_encoder_name(config.name)
    if (model := open_pretrained(kind, place)) is not None:
        return model, "its own head"
    if kind == "hf":
        encoder = open_encoder(config, ())
        assert isinstance(encoder, SubwordEncoder)
        from lacuner.models.encoders.huggingface_mlm import open_masked_head

        head, own = open_masked_head(place, encoder)
        return MaskedLanguageModel(encoder, head), "its own head" if own else "a new head, tied to its embeddings"
    if kind == "lexicon":
        raise ConfigError(f"a lexicon is not pre-trained: pre-train {place}, then train with --encoder lexicon:run:RUN")
    vocabulary = build_vocabulary(text.words, text.counts(), min_count, max_size)
    # `lstm` takes its embeddings from a document: that of all words, and of the mask
    encoder = open_encoder(config, [Document("words", *join_words([*text.words, MASK]))])
    if encoder.is_transformer:
        raise ConfigError(f"{config.name} has no masked-LM head: pre-train the checkpoint that it was made from")
    model = MaskedLanguageModel(encoder, MaskedWordHead(encoder.width, vocabulary))
    return model, f"a vocabulary of {len(vocabulary):,} words"


def open_pretrained(kind: str, place: str) -> MaskedLanguageModel | None:
    """The masked language model of a shipped encoder, or of a pre-training run; None if there is none."""
    if kind == "run" or kind in SHIPPED:
        model = load_model(place if kind == "run" else shipped_folder(kind))
        return model if isinstance(model, MaskedLanguageModel) else None
    return None


def open_masked_model(config: EncoderConfig) -> MaskedLanguageModel | None:
    """The masked language model of a pre-training run, or of a checkpoint with its own head; None for all others."""
    kind, place = parse_encoder_name(config.name)
    if kind == "hf":
        encoder = open_encoder(config, ())
        assert isinstance(encoder, SubwordEncoder)
        from lacuner.models.encoders.huggingface_mlm import open_masked_head

        try:
            head, own = open_masked_head(place, encoder)
        except ConfigError:
            return None  # the tokenizer has no mask token
        return MaskedLanguageModel(encoder, head) if own else None
    return open_pretrained(kind, place)
