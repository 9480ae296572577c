"""Open the encoder that a config names."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from lacuner.corpus.words import words_of
from lacuner.data import Document
from lacuner.errors import ConfigError
from lacuner.models.config import EncoderConfig
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.model import Model
from lacuner.models.storage import fingerprint, load_model


def open_encoder(config: EncoderConfig, docs: Sequence[Document]) -> Any:
    """The encoder that a config names. `lstm` takes its vocabulary from the documents."""
    kind, _, place = config.name.partition(":")
    if config.name == "tiny":
        return TinyEncoder(TinyConfig())
    if config.name == "lstm":
        from lacuner.models.encoders.lstm import lstm_from_words

        return lstm_from_words((_words(doc) for doc in docs), vectors=config.vectors)
    if kind == "run" and place:
        model = load_model(place)
        if not isinstance(model, Model):
            raise ConfigError(f"the run {place} has no encoder: it learned names by heart")
        return model.encoder
    if kind == "hf" and place:
        library, own = _pretrained(), ("pooling", "frozen", "checkpointing")
        return library.open_pretrained(place, library.PretrainedConfig(**config.model_dump(include=set(own))))
    raise ConfigError(f"there is no encoder {config.name!r}: there are tiny, lstm, hf:NAME_OR_PATH and run:PATH")


def encoder_fingerprint(name: str) -> str | None:
    """A hash of what an encoder is made of; None where the name says everything."""
    kind, _, place = name.partition(":")
    if kind == "run" and place:
        return fingerprint(place)
    return _pretrained().fingerprint(place) if kind == "hf" and place else None


def _pretrained() -> ModuleType:
    try:
        from lacuner.models.encoders import huggingface as pretrained
    except ImportError as error:
        raise ConfigError("Hugging Face encoders need an extra: pip install 'lacuner[transformers]'") from error
    return pretrained


def _words(doc: Document) -> list[str]:
    return [doc.text[start:end] for start, end in words_of(doc)]
