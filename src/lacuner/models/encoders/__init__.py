"""Encoders, one module each, and the one table of them.

To add an encoder: (1) its module in this folder, an `nn.Module` with the methods of `lacuner.models.types.Encoder`;
(2) its row in `ENCODERS`; (3) its entry in `tests/models/test_encoders.py`, which runs the conformance tests on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from lacuner.corpus.words import words_of
from lacuner.data import Document
from lacuner.errors import ConfigError, ModelFileError
from lacuner.models.config import EncoderConfig
from lacuner.models.encoders.lstm import build_lstm, lstm_from_words
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.types import Encoder

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class EncoderRow:
    """How one encoder is opened for training, rebuilt from a model folder and told from others of the same name."""

    form: str
    """What to write after `--encoder`: `tiny`, or `hf:NAME_OR_PATH` if the encoder is read from somewhere."""
    open: Callable[[EncoderConfig, str, Sequence[Document]], Encoder]
    """The encoder of a config, given the part of its name after the colon and the training documents."""
    kind: str | None = None
    """`kind` in the config of a saved model; None: no encoder is saved under this row."""
    build: Callable[[Settings, Mapping[str, bytes]], Encoder] | None = None
    """The encoder with fresh weights that `Encoder.config` and `Encoder.files` describe."""
    fingerprint: Callable[[str], str] | None = None
    """Hash of what is read from the part after the colon; None: the name says everything."""
    is_transformer: Callable[[str], bool] = lambda place: False
    """`Encoder.is_transformer`, answered without loading weights."""


def _open_tiny(config: EncoderConfig, place: str, docs: Sequence[Document]) -> Encoder:
    return TinyEncoder(TinyConfig())


def _open_lstm(config: EncoderConfig, place: str, docs: Sequence[Document]) -> Encoder:
    sentences = ([doc.text[start:end] for start, end in words_of(doc)] for doc in docs)
    return lstm_from_words(sentences, vectors=config.vectors)


def _open_huggingface(config: EncoderConfig, place: str, docs: Sequence[Document]) -> Encoder:
    library = _huggingface()
    options = config.model_dump(include={"pooling", "frozen", "checkpointing"})
    encoder: Encoder = library.open_huggingface(place, library.HuggingFaceConfig(**options))
    return encoder


def _huggingface() -> ModuleType:
    try:
        from lacuner.models.encoders import huggingface
    except ImportError as error:
        raise ConfigError("Hugging Face encoders need an extra: pip install 'lacuner[transformers]'") from error
    return huggingface


def _open_run(config: EncoderConfig, place: str, docs: Sequence[Document]) -> Encoder:
    from lacuner.models.lookup import LookupTagger
    from lacuner.models.storage import load_model  # which rebuilds encoders by this table

    model = load_model(place)
    if isinstance(model, LookupTagger):
        raise ConfigError(_NO_ENCODER.format(place))
    return model.encoder


_NO_ENCODER = "run {} has no encoder: it was trained with the `dictionary` recipe"


def _run_is_transformer(place: str) -> bool:
    from lacuner.models.storage import saved_encoder_kind

    kind = saved_encoder_kind(place)
    if kind is None:
        raise ConfigError(_NO_ENCODER.format(place))
    return any(row.kind == kind and row.is_transformer("") for row in ENCODERS.values())


def _run_fingerprint(place: str) -> str:
    from lacuner.models.storage import fingerprint

    return fingerprint(place)


ENCODERS: dict[str, EncoderRow] = {
    "tiny": EncoderRow("tiny", _open_tiny, "tiny", lambda settings, files: TinyEncoder(TinyConfig(**settings))),
    "lstm": EncoderRow("lstm", _open_lstm, "lstm", lambda settings, files: build_lstm(settings)),
    "hf": EncoderRow(
        "hf:NAME_OR_PATH",
        _open_huggingface,
        "pretrained",
        lambda settings, files: _huggingface().build_huggingface(settings, files),
        lambda place: _huggingface().fingerprint(place),
        lambda place: True,
    ),
    "run": EncoderRow("run:PATH", _open_run, fingerprint=_run_fingerprint, is_transformer=_run_is_transformer),
}
"""Encoders by the name that `--encoder` has, or, before a colon, begins with."""


def parse_encoder_name(name: str) -> tuple[str, str]:
    """Split an encoder's name into its row in `ENCODERS` and the part after the colon.

    >>> parse_encoder_name("hf:distilroberta-base"), parse_encoder_name("tiny")
    (('hf', 'distilroberta-base'), ('tiny', ''))
    """
    prefix, _, place = name.partition(":")
    if prefix not in ENCODERS or (":" in ENCODERS[prefix].form) != bool(place) or name.endswith(":"):
        forms = ", ".join(row.form for row in ENCODERS.values())
        raise ConfigError(f"there is no encoder {name!r}; choose one of {forms}")
    return prefix, place


def open_encoder(config: EncoderConfig, docs: Sequence[Document]) -> Encoder:
    """Open the encoder that a config names; `lstm` takes its vocabulary from the documents.

    >>> open_encoder(EncoderConfig(name="tiny"), []).width
    128
    """
    prefix, place = parse_encoder_name(config.name)
    return ENCODERS[prefix].open(config, place, docs)


def is_transformer(config: EncoderConfig) -> bool:
    """`Encoder.is_transformer` of the encoder that a config names, without loading any weights.

    Of `run:PATH` only the model's `config.json` is read.

    >>> is_transformer(EncoderConfig(name="lstm")), is_transformer(EncoderConfig(name="hf:distilroberta-base"))
    (False, True)
    """
    prefix, place = parse_encoder_name(config.name)
    return ENCODERS[prefix].is_transformer(place)


def encoder_fingerprint(name: str) -> str | None:
    """Hash of the files that an encoder is read from; None where the name says everything.

    >>> encoder_fingerprint("tiny") is None
    True
    """
    prefix, place = parse_encoder_name(name)
    fingerprint = ENCODERS[prefix].fingerprint
    return None if fingerprint is None else fingerprint(place)


def build_encoder(config: Settings, files: Mapping[str, bytes] | None = None) -> Encoder:
    """Rebuild an encoder, with fresh weights, from what its `config` and `files` returned.

    >>> build_encoder({"kind": "tiny", "width": 64}).width
    64
    """
    builders = {row.kind: row.build for row in ENCODERS.values() if row.build is not None}
    settings = dict(config)
    kind = settings.pop("kind", None)
    if kind not in builders:
        raise ModelFileError(f"unknown encoder kind {kind!r}; known kinds: {', '.join(map(str, builders))}")
    try:
        return builders[kind](settings, files or {})
    except ModelFileError:
        raise
    except (TypeError, ConfigError) as error:
        raise ModelFileError(f"the settings do not fit an encoder of kind {kind!r}: {error}") from error
