"""Weak corpora that are larger than memory: prepared on disk once, and read from there while a recipe trains.

In memory or from disk, a recipe sees the same documents in the same order, and training gives the same bytes.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice
from pathlib import Path

from lacuner import __version__
from lacuner.corpus.stored import StoredDocuments, open_documents, store_documents
from lacuner.corpus.words import share_ranges
from lacuner.data import Document
from lacuner.errors import ConfigError
from lacuner.recipes import RECIPES
from lacuner.training.distributed import first_then_others
from lacuner.training.identity import set_complete

LIMIT = 200_000
"""Documents up to which a corpus is kept in memory, unless the user decides."""


def can_stream(recipe: str) -> bool:
    """Whether a recipe reads weak documents from disk; one that is not chosen yet may.

    >>> can_stream("trust"), can_stream("dictionary")
    (True, False)
    """
    return recipe not in RECIPES or getattr(RECIPES[recipe], "STREAMS", False)


def check_stream(recipe: str) -> None:
    """Raise an error if the user asks for streaming, and the recipe needs its documents in memory."""
    if not can_stream(recipe):
        streaming = ", ".join(name for name in RECIPES if can_stream(name))
        raise ConfigError(
            f"recipe `{recipe}` needs its documents in memory: leave out --stream, or choose one of {streaming}"
        )


def keep_or_store(
    read: Callable[[], Iterable[Document]],
    folder: Path,
    sources: Sequence[str],
    stream: bool | None,
    log: Callable[[str], None],
    *,
    ordered: bool = False,
) -> Sequence[Document]:
    """The documents in memory, or stored in a folder that is prepared once.

    Args:
        read: reads the documents.
        folder: run folder or cache; the documents are stored in a folder in it that is named by the sources.
        sources: hashes of what is read and of how it is read.
        stream: whether to store the documents; None: if there are more than `LIMIT`.
        log: receives one line.
        ordered: store the documents as they are, in their order; otherwise as they are trained on.

    >>> keep_or_store(lambda: [Document("1", "Mara left")], Path("unused"), ["v1"], None, print)[0].id
    '1'
    """
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not existing.is_dir():
        raise ConfigError("this is a file; --out and --cache need a folder", file=existing)
    identity = [__version__, *sources, *(["in order"] if ordered else [])]  # another version may read a file otherwise
    place = folder / hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]

    def prepare() -> Sequence[Document]:
        if stream is not False and (stored := open_documents(place, identity)) is not None:
            log(f"{len(stored):,} documents, prepared earlier, are read from {place}")
            return stored
        if stream is False:
            return list(share_ranges(read()))
        docs = iter(read())
        first = [] if stream else list(share_ranges(islice(docs, LIMIT + 1)))
        if not stream and len(first) <= LIMIT:
            return first
        log(f"preparing the documents in {place}, to read them from there (--no-stream: in memory)")
        everything = chain(first, share_ranges(docs))
        stored = store_documents(everything if ordered else set_complete(everything, False), place, identity, ordered)
        log(f"{len(stored):,} documents are prepared")
        return stored

    return first_then_others(prepare)


def load_if_needed(recipe: str, docs: Sequence[Document], log: Callable[[str], None]) -> Sequence[Document]:
    """The documents, read into memory if the recipe needs them there."""
    if not isinstance(docs, StoredDocuments) or can_stream(recipe):
        return docs
    log(f"recipe `{recipe}` needs its documents in memory: reading all {len(docs):,} (about 3 KB each)")
    return list(share_ranges(docs))
