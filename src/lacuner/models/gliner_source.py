"""GLiNER, a zero-shot model, as a labelling source: from a folder, offline, and to the end of every text.

GLiNER itself truncates: after `max_len` words, and after as many sub-words as its tokenizer allows, the descriptions of
the entity types included. So texts are cut into windows by the sub-words of GLiNER's own words.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError, safe_open

from lacuner.annotate.sources import Source, SourceOutput, batch_source, sort_output
from lacuner.data import Document, Span
from lacuner.errors import ConfigError, ModelFileError, first_line, need_library
from lacuner.models.encoders.huggingface_config import MODEL_TYPES, check_config_file
from lacuner.models.model_sources import quiet_libraries
from lacuner.models.windows import OVERLAP, cut_windows

BATCH = 8
MIN_ROOM = 16
"""A model that reads fewer sub-words of a text, beside the descriptions of entity types, is not run."""
MOST_SUBWORDS = 4096
"""Of a text at once, where neither tokenizer nor encoder sets a limit."""
ENCODERS = MODEL_TYPES | {"t5", "mt5", "umt5"}
SPLITTERS = ("whitespace", "spacy", "universal", "mecab", "jieba", "janome", "camel", "hindi")
"""Word splitters that run without a network. (`stanza` and `hanlp` fetch models.)"""
SAVE_HINT = "save the model with the present GLiNER: model.save_pretrained(FOLDER, safe_serialization=True)"


def gliner_source(
    folder: str | PathLike[str], labels: Mapping[str, str], *, name: str | None = None, threshold: float = 0.5
) -> Source:
    """Label with GLiNER: `labels` gives our label for each description of an entity type.

    Arguments:
        folder: what GLiNER's `save_pretrained(folder, safe_serialization=True)` writes.
        labels: descriptions, as they are given to the model, and the labels that their spans get.
        name: name of the source; by default that of the folder.
        threshold: lowest score of a span.

    >>> gliner_source("models/none", {"name of a person": "PERSON"})
    Traceback (most recent call last):
    lacuner.errors.ModelFileError: models/none: there is no such folder: download the model and name its folder
    """
    folder = Path(folder)
    name = folder.name if name is None else name
    if not labels or not all(text.strip() for text in labels):
        raise ConfigError("a GLiNER source needs the entity types to look for: --labels 'drug name=DRUG'", file=folder)
    if not 0 <= threshold <= 1:
        raise ConfigError(f"GLiNER's threshold is a score between 0 and 1, not {threshold}", file=folder)
    model = _load(folder)
    room = _room(model, list(labels), folder)

    def find_batch(docs: Sequence[Document]) -> list[SourceOutput]:
        pieces = [(number, *piece) for number, doc in enumerate(docs) for piece in _pieces(model, doc.text, room)]
        texts = [docs[number].text[start:end] for number, start, end, _, _ in pieces]
        entities = _find(model, texts, list(labels), threshold) if texts else []
        spans: list[list[Span]] = [[] for _ in docs]
        for (number, offset, _, own_start, own_end), entities_of_piece in zip(pieces, entities, strict=True):
            for entity in entities_of_piece:
                start, end = entity["start"] + offset, entity["end"] + offset
                if own_start <= start < own_end:
                    label = labels[entity["label"]]
                    spans[number].append(Span(start, end, label, round(float(entity["score"]), 6)))
        return [sort_output(name, doc, own) for doc, own in zip(docs, spans, strict=True)]

    return batch_source(name, find_batch)


def _find(model: Any, texts: list[str], labels: list[str], threshold: float) -> list[list[dict[str, Any]]]:
    """GLiNER's entities of each text; a model that also finds relations returns them beside the entities."""
    with quiet_libraries():
        entities = model.inference(texts, labels, threshold=threshold, batch_size=BATCH)
    return entities[0] if isinstance(entities, tuple) else entities  # type: ignore[no-any-return]


class _Room(NamedTuple):
    """How much of a text the model reads at once."""

    words: int
    subwords: int


def _room(model: Any, labels: list[str], folder: Path) -> _Room:
    """How much of a text the model reads, beside the descriptions of entity types."""
    config, tokenizer = model.config, model.data_processor.transformer_tokenizer
    in_text = [] if getattr(config, "labels_encoder", None) else labels  # a second encoder reads them on their own
    prompt = [word for label in in_text for word in (config.ent_token, label)] + [config.sep_token] * 2
    used = len(tokenizer(prompt, is_split_into_words=True, truncation=False, verbose=False)["input_ids"])
    limit = min(int(tokenizer.model_max_length), MOST_SUBWORDS)
    encoder = config.encoder_config
    if getattr(encoder, "position_biased_input", True) and getattr(encoder, "max_position_embeddings", None):
        offset = (encoder.pad_token_id or 0) + 1 if "roberta" in encoder.model_type else 0
        limit = min(limit, int(encoder.max_position_embeddings) - offset)
    if limit - used < MIN_ROOM:
        problem = f"the entity types of --labels take {used} sub-words, and the model reads {limit} with the text"
        raise ConfigError(f"{problem}: give fewer --labels, or shorter ones", file=folder)
    return _Room(max(int(config.max_len), 1), limit - used)


def _pieces(model: Any, text: str, room: _Room) -> list[tuple[int, int, int, int]]:
    """Windows of a text in characters: start and end, and where the spans that count may begin."""
    words = list(model.data_processor.words_splitter(text))
    if not words:
        return []
    subwords = _count_subwords(model.data_processor.transformer_tokenizer, [word for word, _, _ in words])
    if len(words) <= room.words and sum(subwords) <= room.subwords:
        return [(words[0][1], words[-1][2], 0, len(text))]
    # a window of this size fits both limits: the cost of a word is its larger share of the two
    size = room.words * room.subwords
    costs = [max(room.subwords, room.words * count) for count in subwords]
    windows, _ = cut_windows(costs, size, min(OVERLAP * room.subwords, size // 4))
    starts, ends = [start for _, start, _ in words], [end for _, _, end in words]
    return [
        (
            starts[window.start],
            ends[window.end - 1],
            starts[window.own_start],
            starts[window.own_end] if window.own_end < len(words) else len(text),
        )
        for window in windows
    ]


def _count_subwords(tokenizer: Any, words: list[str]) -> list[int]:
    encoded = tokenizer(words, is_split_into_words=True, add_special_tokens=False, truncation=False, verbose=False)
    counts = Counter(encoded.word_ids())
    return [max(counts[number], 1) for number in range(len(words))]


def _load(folder: Path) -> Any:
    _check_folder(folder)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when huggingface_hub is imported: nothing is fetched
    with need_library("a GLiNER source needs GLiNER", "gliner", file=folder), quiet_libraries():
        from gliner import GLiNER
    try:
        with quiet_libraries():
            model = GLiNER.from_pretrained(str(folder), local_files_only=True, map_location="cpu")
    except Exception as error:  # GLiNER raises whatever its libraries raise
        raise ModelFileError(f"cannot load this GLiNER model: {first_line(error)}", file=folder) from error
    _check_weights(model, folder)
    return model


def _check_weights(model: Any, folder: Path) -> None:
    """Refuse weights that lack a part of the model: GLiNER would leave that part random, without a word."""
    try:
        with safe_open(folder / "model.safetensors", framework="pt") as opened:
            stored = {*opened.keys(), *(opened.metadata() or {})}
    except (SafetensorError, OSError) as error:
        raise ModelFileError(f"cannot read the weights: {error}", file=folder) from error
    missing = [key for key, _ in model.model.named_parameters() if key not in stored]
    if missing:
        parts = f"{len(missing)} of the model's parameters, the first is {missing[0]}"
        raise ModelFileError(f"model.safetensors lacks {parts}: they would be random", file=folder)


def _check_folder(folder: Path) -> None:
    """Refuse a folder that is not complete, or that could run code: GLiNER trusts the code of encoders."""
    if not folder.is_dir():
        raise ModelFileError("there is no such folder: download the model and name its folder", file=folder)
    if not (folder / "model.safetensors").is_file():
        problem = "there is no model.safetensors in this folder; other weights may run code, so they are not read"
        raise ModelFileError(f"{problem}: {SAVE_HINT}", file=folder)
    for file in sorted((*folder.glob("*config.json"), *folder.glob("*/*config.json"))):
        check_config_file(file)
    file = folder / "gliner_config.json"
    config = check_config_file(file)
    if not config:
        raise ModelFileError("there is no gliner_config.json in this folder: is this a GLiNER model?", file=folder)
    streams = config.get("model_type") == "gliner_streaming_span"
    if config.get("labels_decoder") or streams:
        raise ModelFileError(
            "this GLiNER model generates text, or reads it as a stream: lacuner cannot run it", file=file
        )
    splitter = config.get("words_splitter_type", "whitespace")
    if splitter not in SPLITTERS:
        raise ModelFileError(f"the word splitter {splitter!r} fetches models, which lacuner refuses", file=file)
    parts = [("model_name", "encoder_config", folder)]
    if config.get("labels_encoder"):
        parts.append(("labels_encoder", "labels_encoder_config", folder / "labels_tokenizer"))
    for name, settings, tokenizer in parts:
        _check_encoder(config, name, settings, file)
        if not (tokenizer / "tokenizer_config.json").is_file():
            raise ModelFileError(f"there is no tokenizer_config.json in this folder: {SAVE_HINT}", file=tokenizer)


def _check_encoder(config: Mapping[str, Any], name: str, settings: str, file: Path) -> None:
    """Refuse an encoder that is not described in the config of the model, or that is code."""
    encoder = config.get(name)
    if isinstance(encoder, str) and (os.path.isabs(encoder) or Path(encoder).exists()):
        raise ModelFileError(f"the config names an encoder in another folder ({name}), which may run code", file=file)
    described = config.get(settings)
    if not isinstance(described, dict):
        raise ModelFileError(f"the config has no {settings}, so GLiNER would fetch {encoder!r}: {SAVE_HINT}", file=file)
    kind = described.get("model_type", "deberta-v2")
    if not isinstance(kind, str) or kind not in ENCODERS:
        raise ModelFileError(f"the encoder's type {str(kind)[:60]!r} is none that lacuner loads", file=file)
