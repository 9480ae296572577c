"""What identifies a run: recipe, seed, settings, and the content of its data, whatever files they came from."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from lacuner.config import Config
from lacuner.corpus.jsonl import as_line
from lacuner.corpus.stored import StoredDocuments
from lacuner.corpus.words import words_of
from lacuner.data import Document
from lacuner.errors import ConfigError
from lacuner.models.config import EncoderConfig
from lacuner.models.encoders import encoder_fingerprint
from lacuner.models.storage import fingerprint


def sort_documents(docs: Iterable[Document]) -> list[Document]:
    """Documents in an order that depends on their content only, so that file order never matters."""
    in_order: list[Document] = []
    for _, alike in groupby(sorted(docs, key=_text_and_id), _text_and_id):
        group = list(alike)
        in_order += sorted(group, key=as_line) if len(group) > 1 else group  # all lines at once would need much memory
    return in_order


def _text_and_id(doc: Document) -> tuple[str, str]:
    return doc.text, doc.id


def set_complete(docs: Iterable[Document], complete: bool) -> Iterator[Document]:
    """Documents with their words split; those that do not state whether they are complete get the given value."""
    for doc in docs:
        words_of(doc)
        yield replace(doc, complete=complete) if doc.complete is None else doc


def run_identity(recipe: str, seed: int, config: Config, data: Mapping[str, Sequence[Document]]) -> dict[str, Any]:
    """What makes two runs the same run: with equal identities an interrupted run resumes."""
    settings = config.model_dump(mode="json")
    settings.get("train", {}).pop("checkpoint_seconds", None)  # how often it is saved does not change the result
    identity: dict[str, Any] = {
        "recipe": recipe,
        "seed": seed,
        "config": settings,
        "data": {role: _describe(docs) for role, docs in sorted(data.items())},
    }
    if contents := dict(_content_hashes(config)):
        identity["contents"] = contents
    return identity


def _content_hashes(config: Config, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Hashes of the files that settings name: the same name may stand for other vectors or another encoder."""
    for name in type(config).model_fields:
        value, setting = getattr(config, name), f"{prefix}{name}"
        if isinstance(value, Config):
            yield from _content_hashes(value, f"{setting}.")
        elif isinstance(value, Path) and value.is_dir():
            yield setting, fingerprint(value)
        elif isinstance(value, Path):
            try:
                with value.open("rb") as stream:
                    yield setting, hashlib.file_digest(stream, "sha256").hexdigest()
            except OSError as error:
                raise ConfigError(f"cannot read the file of setting {setting}: {error.strerror}", file=value) from error
        elif isinstance(config, EncoderConfig) and name == "name" and (digest := encoder_fingerprint(value)):
            yield setting, digest


def _describe(docs: Sequence[Document]) -> Mapping[str, Any]:
    if isinstance(docs, StoredDocuments) and docs.is_whole:
        return {"documents": len(docs), "sha256": docs.sha256}
    digest = hashlib.sha256()
    for doc in docs:
        digest.update(as_line(doc).encode())
    return {"documents": len(docs), "sha256": digest.hexdigest()}
