"""Which document of one corpus is which of another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lacuner.data import Document
from lacuner.errors import CorpusError


def pair(gold: Iterable[Document], other: Iterable[Document]) -> Iterator[tuple[Document, Document]]:
    """Each gold document with the other corpus's view of the same text.

    Documents are taken in order as long as the texts agree, which needs no memory; from the first that differs on,
    the rest is matched by id. A document that only one side has, or whose text differs, is an error: a score over
    half of the documents would look like a score.
    """
    gold, other = iter(gold), iter(other)
    for mine in gold:
        yours = next(other, None)
        if yours is None:
            raise _error(mine, "has no counterpart in the other corpus, which has fewer documents")
        if mine.text != yours.text:
            yield from _by_id([mine, *gold], [yours, *other])
            return
        yield mine, yours
    extra = next(other, None)
    if extra is not None:
        raise _error(extra, "has no counterpart in gold, which has fewer documents")


def _by_id(gold: list[Document], other: list[Document]) -> Iterator[tuple[Document, Document]]:
    yours = {doc.id: doc for doc in other}
    for mine in gold:
        doc = yours.pop(mine.id, None)
        if doc is None:
            raise _error(mine, "is not in the other corpus, neither at the same place nor under the same id")
        if doc.text != mine.text:
            at = next((i for i, (a, b) in enumerate(zip(mine.text, doc.text, strict=False)) if a != b), len(doc.text))
            if "".join(mine.text.split()) == "".join(doc.text.split()):
                why = f"has other white space in the other corpus, from character {at} on"
                raise _error(mine, f"{why}; column files keep none: evaluate the run itself, not what it has written")
            raise _error(mine, f"has another text in the other corpus, from character {at} on")
        yield mine, doc
    if yours:
        raise _error(next(iter(yours.values())), "is not in gold, neither at the same place nor under the same id")


def _error(doc: Document, problem: str) -> CorpusError:
    file, line = (doc.where.file, doc.where.line) if doc.where else (None, None)
    return CorpusError(f"document {doc.id!r} {problem}", file=file, line=line)
