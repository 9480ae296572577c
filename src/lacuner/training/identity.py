"""TODO docstring."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lacuner.config import Config
from lacuner.corpus.jsonl import as_line
from lacuner.corpus.words import words_of
from lacuner.data import Document
from lacuner.errors import ConfigError
from lacuner.models.config import EncoderConfig
from lacuner.models.encoders import encoder_fingerprint
from lacuner.models.storage import fingerprint


def canonical(docs: Iterable[Document]) -> list[Document]:
    """Documents in an order of their own, so that the order of files and lines decides nothing."""
    return sorted(docs, key=lambda doc: (doc.text, doc.id, as_line(doc)))


def identity_of(recipe: str, seed: int, config: Config, data: Mapping[str, Sequence[Document]]) -> dict[str, Any]:
    """What makes a run this run: with the same it goes on, with anything else it is another."""
    settings = config.model_dump(mode="json")
    settings.get("train", {}).pop("checkpoint_seconds", None)  # how often a run is saved does not make it another run
    identity: dict[str, Any] = {
        "recipe": recipe,
        "seed": seed,
        "config": settings,
        "data": {name: _describe(docs) for name, docs in sorted(data.items())},
    }
    if contents := dict(_contents(config)):
        identity["contents"] = contents
    return identity


def in_role(docs: Iterable[Document], complete: bool) -> Iterator[Document]:
    """Documents that do not say whether they are complete are so by their role; words are split before all else."""
    for doc in docs:
        words_of(doc)
        yield replace(doc, complete=complete) if doc.complete is None else doc


def _contents(config: Config, where: str = "") -> Iterator[tuple[str, str]]:
    """Hashes of what the settings name: with other vectors or another encoder of the same name it is another run."""
    for name in type(config).model_fields:
        value, place = getattr(config, name), f"{where}{name}"
        if isinstance(value, Config):
            yield from _contents(value, f"{place}.")
        elif isinstance(value, Path) and value.is_dir():
            yield place, fingerprint(value)
        elif isinstance(value, Path):
            try:
                with value.open("rb") as stream:
                    yield place, hashlib.file_digest(stream, "sha256").hexdigest()
            except OSError as error:
                raise ConfigError(f"cannot read what {place} names: {error.strerror}", file=value) from error
        elif isinstance(config, EncoderConfig) and name == "name" and (found := encoder_fingerprint(value)):
            yield place, found


def _describe(docs: Iterable[Document]) -> Mapping[str, Any]:
    """What the data is, whatever its files are called."""
    digest, count = hashlib.sha256(), 0
    for doc in docs:
        digest.update(as_line(doc).encode())
        count += 1
    return {"documents": count, "sha256": digest.hexdigest()}
