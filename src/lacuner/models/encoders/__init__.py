"""Encoders, one module each, and the one table of them.

To add an encoder: (1) its module in this folder, an `nn.Module` with the methods of `lacuner.models.types.Encoder`;
(2) its row in `ENCODERS`; (3) its entry in `MAKERS` of `tests/models/test_encoders.py`, the conformance tests; (4) its
name in the help texts (`CONTRIBUTING.md`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from lacuner.corpus.words import word_texts
from lacuner.data import Document
from lacuner.errors import ConfigError, LacunerError, ModelFileError, need_library
from lacuner.models.config import EncoderConfig
from lacuner.models.encoders.auto import choose_encoder
from lacuner.models.encoders.lexicon_encoder import build_lexicon_encoder, lexicon_encoder
from lacuner.models.encoders.lstm import build_lstm, lstm_from_words
from lacuner.models.encoders.shipped import SHIPPED, shipped_folder
from lacuner.models.encoders.tiny import BASE, TinyConfig, TinyEncoder
from lacuner.models.types import Encoder

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class EncoderRow:
    """How an encoder is opened for training, and how it is rebuilt from a model folder."""

    form: str
    """How `--encoder` names it: `tiny`, or `hf:NAME_OR_PATH` if it is read from somewhere."""
    open: Callable[[EncoderConfig, str, Sequence[Document]], Encoder]
    """Encoder of a config, given the part of its name after the colon and the training documents."""
    kind: str | None = None
    """Its `kind` in the config of a saved model; None: it is saved under the kind of another row."""
    build: Callable[[Settings, Mapping[str, bytes]], Encoder] | None = None
    """Encoder with fresh weights, given what its `config` and `files` returned."""
    fingerprint: Callable[[str], str | None] = lambda place: None
    """Hash of what is read from the place after the colon; None: the name identifies the encoder."""
    is_transformer: Callable[[str], bool] = lambda place: False
    """`Encoder.is_transformer`, without loading weights."""
    is_pretrained: Callable[[str], bool] = lambda place: False
    """`Encoder.is_pretrained`, without loading weights."""


def _open_huggingface(config: EncoderConfig, place: str, docs: Sequence[Document]) -> Encoder:
    library = _huggingface()
    options = config.model_dump(include={"pooling", "shapes", "frozen", "checkpointing"})
    encoder: Encoder = library.open_huggingface(place, library.HuggingFaceConfig(**options))
    return encoder


def _huggingface() -> ModuleType:
    with need_library("Hugging Face encoders need an extra", "lacuner[transformers]"):
        from lacuner.models.encoders import huggingface
    return huggingface


def _storage() -> ModuleType:
    from lacuner.models import storage  # imported late: it rebuilds encoders by this table

    return storage


def _open_run(config: EncoderConfig, place: str, docs: Sequence[Document]) -> Encoder:
    _saved_config(place)
    encoder: Encoder = _storage().load_model(place).encoder
    return encoder


def _saved_config(place: str) -> Settings:
    config: Settings | None = _storage().saved_encoder_config(place)
    if config is None:
        raise ConfigError(f"run {place} has no encoder: it was trained with the `dictionary` recipe")
    return config


def _run_is_transformer(place: str) -> bool:
    kind = _saved_config(place).get("kind")
    return any(row.kind == kind and row.is_transformer("") for row in ENCODERS.values())


def _run_is_pretrained(place: str) -> bool:
    return _run_is_transformer(place) or _saved_config(place).get("pretrained") is True


def _open_lexicon(config: EncoderConfig, place: str, docs: Sequence[Document]) -> Encoder:
    inner = open_encoder(_inner_of_lexicon(place), docs)
    sentences = [word_texts(doc) for doc in docs]
    return lexicon_encoder(inner, sentences, config.lexicon, config.vectors, config.fusion)


def _inner_of_lexicon(place: str) -> EncoderConfig:
    if place.partition(":")[0] in ("auto", "lexicon"):
        raise ConfigError(f"name the encoder after `lexicon:`, for example lexicon:tiny-zh, not {place!r}")
    return EncoderConfig(name=place)


def _shipped_row(name: str) -> EncoderRow:
    return EncoderRow(
        name,
        lambda config, place, docs: _storage().load_model(shipped_folder(name)).encoder,
        fingerprint=lambda place: _storage().fingerprint(shipped_folder(name)),
        is_pretrained=lambda place: True,
    )


def _open_auto(config: EncoderConfig, place: str, docs: Sequence[Document]) -> Encoder:
    return open_encoder(config.model_copy(update={"name": choose_encoder(docs).name}), docs)


ENCODERS: dict[str, EncoderRow] = {
    "auto": EncoderRow("auto", _open_auto),
    **{name: _shipped_row(name) for name in SHIPPED},
    "tiny": EncoderRow(
        "tiny",
        lambda config, place, docs: TinyEncoder(BASE if config.size == "base" else TinyConfig()),
        kind="tiny",
        build=lambda settings, files: TinyEncoder(TinyConfig(**settings)),
    ),
    "lstm": EncoderRow(
        "lstm",
        lambda config, place, docs: lstm_from_words(map(word_texts, docs), vectors=config.vectors),
        kind="lstm",
        build=lambda settings, files: build_lstm(settings),
    ),
    "lexicon": EncoderRow(
        "lexicon:ENCODER",
        _open_lexicon,
        kind="lexicon",
        build=build_lexicon_encoder,
        fingerprint=lambda place: encoder_fingerprint(_inner_of_lexicon(place).name),
        is_transformer=lambda place: bool(place) and is_transformer(_inner_of_lexicon(place)),
        is_pretrained=lambda place: is_pretrained(_inner_of_lexicon(place)),
    ),
    "hf": EncoderRow(
        "hf:NAME_OR_PATH",
        _open_huggingface,
        kind="pretrained",
        build=lambda settings, files: _huggingface().build_huggingface(settings, files),
        fingerprint=lambda place: _huggingface().fingerprint(place),
        is_transformer=lambda place: True,
        is_pretrained=lambda place: True,
    ),
    "run": EncoderRow(
        "run:PATH",
        _open_run,
        fingerprint=lambda place: _storage().fingerprint(place),
        is_transformer=_run_is_transformer,
        is_pretrained=_run_is_pretrained,
    ),
}
"""Encoders by their name after `--encoder`, up to the colon."""


def parse_encoder_name(name: str) -> tuple[str, str]:
    """Split an encoder's name into its key in `ENCODERS` and the part after the colon.

    >>> parse_encoder_name("hf:distilroberta-base"), parse_encoder_name("tiny")
    (('hf', 'distilroberta-base'), ('tiny', ''))
    """
    key, colon, place = name.partition(":")
    if key not in ENCODERS or bool(colon) != (":" in ENCODERS[key].form) or bool(place) != bool(colon):
        forms = ", ".join(row.form for row in ENCODERS.values())
        raise ConfigError(f"there is no encoder {name!r}; choose one of {forms}")
    return key, place


def open_encoder(config: EncoderConfig, docs: Sequence[Document]) -> Encoder:
    """Open the encoder that a config names; `lstm` takes its vocabulary from the documents.

    >>> open_encoder(EncoderConfig(name="tiny"), []).width
    128
    """
    key, place = parse_encoder_name(config.name)
    return ENCODERS[key].open(config, place, docs)


def is_transformer(config: EncoderConfig) -> bool:
    """`Encoder.is_transformer` of the encoder that a config names, without loading weights.

    Of `run:PATH` only the model's `config.json` is read.

    >>> is_transformer(EncoderConfig(name="lstm")), is_transformer(EncoderConfig(name="hf:distilroberta-base"))
    (False, True)
    """
    key, place = parse_encoder_name(config.name)
    return ENCODERS[key].is_transformer(place)


def is_pretrained(config: EncoderConfig) -> bool:
    """`Encoder.is_pretrained` of the encoder that a config names, without loading weights.

    >>> is_pretrained(EncoderConfig(name="tiny")), is_pretrained(EncoderConfig(name="hf:distilroberta-base"))
    (False, True)
    """
    key, place = parse_encoder_name(config.name)
    return ENCODERS[key].is_pretrained(place)


def names_transformer(name: str) -> bool:
    """Whether an encoder name is that of a transformer; False if there is no such encoder here.

    Settings can then be read on a machine without the encoder: opening it is where its absence is an error.

    >>> names_transformer("hf:distilroberta-base"), names_transformer("run:absent")
    (True, False)
    """
    try:
        return is_transformer(EncoderConfig(name=name))
    except LacunerError:
        return False


def encoder_fingerprint(name: str) -> str | None:
    """Hash of the files that an encoder is read from; None if the name identifies the encoder.

    >>> encoder_fingerprint("tiny") is None
    True
    """
    key, place = parse_encoder_name(name)
    return ENCODERS[key].fingerprint(place)


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
    except (TypeError, ConfigError) as error:
        raise ModelFileError(f"the settings do not fit an encoder of kind {kind!r}: {error}") from error
