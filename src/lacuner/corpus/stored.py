"""Documents on disk, decoded where they are needed: a corpus that may be larger than memory.

A folder holds one document per line, in our own form, and where each line starts. Documents that are to be trained on
are sorted there as they would be in memory: runs of them are sorted in memory, and the sorted runs are merged.
"""

from __future__ import annotations

import hashlib
import heapq
import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import count, pairwise
from operator import itemgetter
from pathlib import Path
from typing import IO, Any

import numpy as np

from lacuner.atomic import atomic_write, temporary_folder
from lacuner.corpus.jsonl import as_line, document_from_line
from lacuner.data import Document
from lacuner.errors import CorpusError, explain_damage
from lacuner.mapped import INDEX, open_arrays, write_arrays
from lacuner.processes import lock_folder

RUN, RUN_BYTES = 50_000, 1 << 26
"""Documents, and bytes of their lines, that are sorted in memory at a time."""
SAMPLE = 100_000
"""Characters of the sample of documents in their original order."""
MERGED = 256
"""Sorted runs that are merged at a time: more files than a process may have open would be an error."""
_READ, _READ_BYTES = 2000, 1 << 23
"""Documents, and bytes of their lines, that are decoded at a time when all are read."""
_DOCUMENTS = "documents.jsonl"


@dataclass(frozen=True, eq=False)
class StoredDocuments(Sequence[Document]):
    """Documents in a folder, after some in memory (`front`); an index or a slice decodes those that it names."""

    folder: Path
    offsets: np.ndarray
    """Where each document starts in the file, then the size of the file."""
    sha256: str
    """Hash of the documents in the folder."""
    labels: list[str]
    """The entity types of all documents, sorted."""
    complete: np.ndarray
    """Which documents of the folder are marked as complete."""
    sample: list[Document]
    """The first documents in their original order, up to `SAMPLE` characters."""
    numbers: np.ndarray | None = None
    """Which documents of the folder these are; None for all."""
    as_complete: bool = False
    """Whether the documents are to be treated as complete."""
    front: tuple[Document, ...] = ()
    identity: Any = None
    """What the documents in the folder were made from: another process opens them with it."""

    @property
    def is_whole(self) -> bool:
        """Whether these are the documents of the folder, all of them and as they are."""
        return self.numbers is None and not self.as_complete and not self.front

    @property
    def key(self) -> str:
        """Hash of the documents as they are read here: what is made from them is kept under it."""
        digest = hashlib.sha256(f"{self.sha256} {self.as_complete}".encode())
        digest.update(b"" if self.numbers is None else self.numbers.astype("<i8").tobytes())
        for doc in self.front:
            digest.update(as_line(doc).encode())
        return digest.hexdigest()

    def __len__(self) -> int:
        return len(self.front) + (len(self.offsets) - 1 if self.numbers is None else len(self.numbers))

    def __getitem__(self, at: Any) -> Any:
        if not isinstance(at, slice):
            return self[at : at + 1 or None][0]
        places = range(*at.indices(len(self)))
        on_disk = [place - len(self.front) for place in places if place >= len(self.front)]
        docs = [self.front[place] for place in places if place < len(self.front)]
        numbers = on_disk if self.numbers is None else self.numbers[on_disk].tolist()
        read = [document_from_line(line) for line in self._lines(numbers)]
        docs = [*docs, *read] if places.step > 0 else [*read, *docs]
        return [replace(doc, complete=True) for doc in docs] if self.as_complete else docs

    def __iter__(self) -> Iterator[Document]:
        start = 0
        while start < len(self):
            stop = self._end_of_block(start)
            yield from self[start:stop]
            start = stop

    def _end_of_block(self, start: int) -> int:
        """The end of the documents from `start` on that are decoded together, at least one."""
        stop = min(start + _READ, len(self))
        numbers = np.arange(max(start - len(self.front), 0), max(stop - len(self.front), 0))
        numbers = numbers if self.numbers is None else self.numbers[numbers]
        sizes = np.cumsum(self.offsets[numbers + 1] - self.offsets[numbers])
        return max(stop - int((sizes > _READ_BYTES).sum()), start + 1)

    def _lines(self, numbers: Sequence[int]) -> Iterator[bytes]:
        """The lines of some documents; neighbours are read together."""
        try:
            with (self.folder / _DOCUMENTS).open("rb") as stream:
                first = 0
                for i in range(1, len(numbers) + 1):
                    if i < len(numbers) and numbers[i] == numbers[i - 1] + 1:
                        continue
                    bounds = self.offsets[numbers[first] : numbers[i - 1] + 2].tolist()
                    stream.seek(bounds[0])
                    block = stream.read(bounds[-1] - bounds[0])
                    yield from (block[a - bounds[0] : b - bounds[0]] for a, b in pairwise(bounds))
                    first = i
        except OSError as error:
            raise CorpusError(f"cannot read this prepared data: {error.strerror}", file=self.folder) from error

    def take(self, places: np.ndarray) -> StoredDocuments:
        """The documents at some places; `labels` stay those of all."""
        assert not self.front
        return replace(self, numbers=places if self.numbers is None else self.numbers[places])

    def select(self, chosen: np.ndarray) -> StoredDocuments:
        """The documents that a mask `[documents]` marks."""
        selected = self.take(np.flatnonzero(chosen))
        labels = {span.label for doc in selected for span in doc.spans}
        return replace(selected, labels=sorted(labels))


def treat_as_complete(docs: Sequence[Document]) -> Sequence[Document]:
    """The same documents, marked as complete.

    >>> treat_as_complete([Document("1", "Mara left")])[0].complete
    True
    """
    if isinstance(docs, StoredDocuments):
        return replace(docs, as_complete=True)
    return [replace(doc, complete=True) for doc in docs]


def take_documents(docs: Sequence[Document], places: np.ndarray) -> Sequence[Document]:
    """The documents at some places.

    >>> [doc.id for doc in take_documents([Document("1", "Mara left"), Document("2", "Teel came")], np.array([1]))]
    ['2']
    """
    return docs.take(places) if isinstance(docs, StoredDocuments) else [docs[place] for place in places.tolist()]


def join_documents(front: Sequence[Document], docs: Sequence[Document]) -> Sequence[Document]:
    """Documents in memory, followed by others, which may be stored.

    >>> [doc.id for doc in join_documents([Document("1", "Mara")], [Document("2", "Teel")])]
    ['1', '2']
    """
    if not isinstance(docs, StoredDocuments):
        return [*front, *docs]
    labels = {span.label for doc in front for span in doc.spans}
    return replace(docs, front=(*front, *docs.front), labels=sorted({*docs.labels, *labels}))


def open_documents(folder: Path, identity: Any) -> StoredDocuments | None:
    """The documents of a folder; None if it is not finished, or was made from something else."""
    stored = open_arrays(folder, identity)
    if stored is None:
        return None
    facts = stored.facts
    with explain_damage("this prepared data is damaged: delete the folder", folder, CorpusError):
        if (folder / _DOCUMENTS).stat().st_size != stored.arrays["offsets"][-1]:
            raise ValueError
        sample = [document_from_line(line.encode("utf-8", "surrogatepass")) for line in facts["sample"]]
        offsets, complete = stored.arrays["offsets"], stored.arrays["complete"]
        return StoredDocuments(folder, offsets, facts["sha256"], facts["labels"], complete, sample, identity=identity)


def store_documents(docs: Iterable[Document], folder: Path, identity: Any, ordered: bool = False) -> StoredDocuments:
    """Write documents to a folder, sorted by content unless they are to stay in order, and open them.

    Args:
        docs: documents, read once.
        folder: a folder for these documents alone.
        identity: what they were made from, as JSON; `open_documents` compares it.
        ordered: whether they stay in the given order.

    >>> import tempfile
    >>> docs = (Document(str(i), text) for i, text in enumerate(["Teel came", "Mara left"]))
    >>> stored = store_documents(docs, Path(tempfile.mkdtemp()), "v1")
    >>> len(stored), stored[0].text, [doc.id for doc in stored]
    (2, 'Mara left', ['1', '0'])
    """
    sample: list[str] = []
    characters = 0
    labels: set[str] = set()
    starts, complete = array("q", [0]), array("b")
    digest = hashlib.sha256()

    def collect_facts() -> Iterator[Document]:
        nonlocal characters
        for doc in docs:
            if characters <= SAMPLE:
                sample.append(as_line(doc))
                characters += len(doc.text)
            labels.update([span.label for span in doc.spans])
            yield doc

    with lock_folder(folder), temporary_folder(folder) as runs:
        (folder / INDEX).unlink(missing_ok=True)  # that of other documents: without it, the folder is not finished
        with atomic_write(folder / _DOCUMENTS, private=True) as stream:
            for line in map(_encode, collect_facts()) if ordered else _sorted_lines(collect_facts(), runs):
                stream.write(line)
                digest.update(line)
                starts.append(starts[-1] + len(line))
                complete.append(_is_complete(line))
        facts = {"sha256": digest.hexdigest(), "labels": sorted(labels), "sample": sample}
        arrays = {"offsets": np.array(starts, dtype=np.int64), "complete": np.array(complete, dtype=bool)}
        write_arrays(folder, identity, [arrays], lambda: facts)
    stored = open_documents(folder, identity)
    assert stored is not None
    return stored


def store_like(
    source: Sequence[Document], docs: Iterable[Document], folder: Path, ordered: bool = False
) -> Sequence[Document]:
    """Documents that are made from others: in a folder if those are stored (see `store_documents`), else in memory.

    >>> weak = [Document("1", "Mara left")]
    >>> store_like(weak, iter(weak), Path("unused")) == weak
    True
    """
    return store_documents(docs, folder, source.key, ordered) if isinstance(source, StoredDocuments) else list(docs)


def _is_complete(line: bytes) -> bool:
    return b'"complete": true' in line and json.loads(line).get("complete") is True  # few lines must be parsed


def _encode(doc: Document) -> bytes:
    return as_line(doc).encode()


def _sorted_lines(docs: Iterable[Document], folder: Path) -> Iterator[bytes]:
    """The lines of documents by text, then id, then all of it: the order of `training.identity.sort_documents`."""
    names = (folder / f"{number}.jsonl" for number in count())
    files: list[Path] = []
    for is_last, run in _runs(docs):
        run.sort()
        if is_last and not files:  # they fit into memory
            yield from map(itemgetter(2), run)
            return
        files.append(_write_run(map(itemgetter(2), run), next(names)))
    while len(files) > MERGED:
        files.append(_write_run(_merge(files[:MERGED]), next(names)))
        for file in files[:MERGED]:
            file.unlink()
        del files[:MERGED]
    yield from _merge(files)


def _runs(docs: Iterable[Document]) -> Iterator[tuple[bool, list[tuple[str, str, bytes]]]]:
    """As many documents as are sorted at a time: text, id and line of each, and whether these are the last."""
    run: list[tuple[str, str, bytes]] = []
    size = 0
    for doc in docs:
        if len(run) >= RUN or size >= RUN_BYTES:
            yield False, run
            run, size = [], 0
        line = _encode(doc)
        run.append((doc.text, doc.id, line))
        size += len(line)
    yield True, run


def _write_run(lines: Iterable[bytes], file: Path) -> Path:
    with atomic_write(file, private=True) as out:
        out.writelines(lines)
    return file


def _merge(files: Sequence[Path]) -> Iterator[bytes]:
    """The lines of sorted files, sorted."""
    with ExitStack() as stack:
        rows = heapq.merge(*(_keyed_lines(stack.enter_context(file.open("rb"))) for file in files))
        yield from map(itemgetter(2), rows)


def _keyed_lines(stream: IO[bytes]) -> Iterator[tuple[str, str, bytes]]:
    for line in stream:
        row = json.loads(line)
        yield row["text"], row["id"], line
