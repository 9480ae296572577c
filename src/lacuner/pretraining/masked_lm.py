"""Masked language models: new ones to pre-train, and finished ones to augment with."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

from lacuner.corpus.words import word_texts
from lacuner.data import Document
from lacuner.errors import ConfigError, TrainingError
from lacuner.models.config import EncoderConfig
from lacuner.models.encoders import open_encoder, parse_encoder_name
from lacuner.models.heads.masked import MASK, MaskedWordHead
from lacuner.models.model import MaskedLanguageModel
from lacuner.models.storage import load_model
from lacuner.models.types import SubwordEncoder


def build_vocabulary(sentences: Iterable[Sequence[str]], min_count: int, max_size: int) -> list[str]:
    """The most frequent words; ties are ordered alphabetically.

    >>> build_vocabulary([["b", "a"], ["a", "b", "c"]], min_count=2, max_size=10)
    ['a', 'b']
    """
    counts = Counter(chain.from_iterable(sentences))
    words = [word for word, count in counts.items() if count >= min_count]
    if len(words) < 2:
        raise TrainingError(f"fewer than two words occur {min_count} times in this text: there is nothing to predict")
    return sorted(words, key=lambda word: (-counts[word], word))[:max_size]


def new_masked_model(
    config: EncoderConfig, docs: Sequence[Document], min_count: int, max_size: int
) -> tuple[MaskedLanguageModel, str]:
    """An encoder with a masked-LM head to pre-train, and a phrase for the log about its head."""
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
    vocabulary = build_vocabulary(map(word_texts, docs), min_count, max_size)
    encoder = open_encoder(config, [*docs, Document("mask", MASK, ((0, 1),))])  # `lstm` has an embedding of the mask
    if encoder.is_transformer:
        raise ConfigError(f"{config.name} has no masked-LM head: pre-train the checkpoint that it was made from")
    model = MaskedLanguageModel(encoder, MaskedWordHead(encoder.width, vocabulary))
    return model, f"a vocabulary of {len(vocabulary):,} words"


def open_masked_model(config: EncoderConfig) -> MaskedLanguageModel | None:
    """The masked language model of a pre-training run, or of a checkpoint with its own head; None for all others."""
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
            return None  # the tokenizer has no mask token
        return MaskedLanguageModel(encoder, head) if own else None
    return None
