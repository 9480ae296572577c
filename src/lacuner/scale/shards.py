"""Cut a corpus into shards of whole documents, each with a hash of its bytes.

JSON lines, lines of text and Parquet files are cut where they are: a shard is a range of bytes, and a worker reads only
its own. Everything else, such as compressed files, is converted to shards of JSON lines first, in one process.
Ray's own readers are not used: they drop empty lines, split lines at U+2028 and turn ids into numbers.
"""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import count, islice
from pathlib import Path
from typing import Any

from lacuner.atomic import STANDARD_STREAM
from lacuner.corpus import jsonl, parquet
from lacuner.corpus.formats import FORMATS, choose_format, folder_files, read_file
from lacuner.corpus.json_stream import is_lines
from lacuner.corpus.reader import MAX_LINE, CorpusFile, Part, ReadOptions, raise_error
from lacuner.corpus.streams import MAGIC
from lacuner.data import Document, Lost
from lacuner.errors import CorpusError
from lacuner.scale.locations import location, write_file

SHARD_SIZE = 16_384
"""Documents per shard, at most: a multiple of the documents that a tagger scores together."""
SHARD_BYTES = 64 << 20
"""Bytes per shard after which it ends, however few documents it has."""
_LINE_FORMATS = ("jsonl", "tokens", "txt")
_ONE_BYTE_LINE_ENDS = ("utf-8", "ascii", "iso8859", "cp125")
"""Encodings, by the beginning of their names, in which the byte of a line end is nothing else."""


@dataclass(frozen=True)
class Shard:
    """Some consecutive documents of a corpus, and where they are."""

    name: str
    file: str
    """Path or URL."""
    format: str
    part: Part
    documents: int
    """Number of rows, of which a reader may refuse some."""
    sha256: str
    """Hash of the bytes of the part."""
    id_prefix: str = ""
    converted: bool = False
    """Whether the file is a temporary one, written by us."""

    @property
    def key(self) -> tuple[str, str]:
        """Name and hash."""
        return self.name, self.sha256

    def as_json(self) -> dict[str, Any]:
        """The shard as it stands in the manifest."""
        return {**asdict(self), "part": self.part._asdict()}


@dataclass(frozen=True)
class Corpus:
    """What is cut into shards: a file or folder, the name of its format or None, and how it is read."""

    path: Path
    format: str | None = None
    options: ReadOptions = ReadOptions()


@dataclass(frozen=True)
class Cutting:
    """How a corpus is cut."""

    folder: Path
    """Where shards of converted documents are written."""
    size: int = SHARD_SIZE
    report: Callable[[CorpusError], None] = raise_error
    """Receives the error of a document that cannot be converted."""
    is_finished: Callable[[str, str], bool] = lambda name, sha256: False
    """Whether the shard of this name and hash is finished, so that its documents need not be written."""


def cut_corpus(corpus: Corpus, cutting: Cutting, lost: Lost | None = None) -> Iterator[Shard]:
    """Cut a corpus into shards. The same corpus is always cut in the same way.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "texts.txt").write_text("Mara left.\\n\\nTeel stayed.\\nBoth slept.\\n")
    >>> shards = list(cut_corpus(Corpus(folder / "texts.txt"), Cutting(folder, size=2)))
    >>> [(shard.name, shard.documents, shard.part[:3]) for shard in shards]
    [('00000', 2, (0, 25, 1)), ('00001', 1, (25, 37, 4))]
    >>> [doc.id for doc in read_shard(shards[1], ReadOptions())]
    ['4']
    """
    if corpus.path == STANDARD_STREAM:
        raise CorpusError("standard input cannot be cut into shards: save it to a file first")
    file = CorpusFile(corpus.path, corpus.options, lost if lost is not None else Lost())
    format = choose_format(file, corpus.format)
    names = (f"{number:05}" for number in count())
    if format in ("jsonl", "tokens") and file.path.is_dir():
        for part in folder_files(file, format):
            yield from _cut_lines(part, format, cutting, names)
    elif format in _LINE_FORMATS and not file.path.is_dir():
        yield from _cut_lines(file, format, cutting, names)
    elif FORMATS[format].read is parquet.read_parquet:
        yield from _cut_parquet(file, format, cutting, names)
    else:
        yield from _convert(file, format, cutting, names)


def read_shard(
    shard: Shard,
    options: ReadOptions,
    lost: Lost | None = None,
    on_error: Callable[[CorpusError], None] = raise_error,
) -> Iterator[Document]:
    """The documents of a shard. Fails if its bytes are no longer those that were cut."""
    # converted documents are in our own form, and no longer need the options
    options = ReadOptions() if shard.converted else options
    part, path = shard.part, location(shard.file)
    lost = lost if lost is not None else Lost()
    file = CorpusFile(path, options, lost, on_error, part=part, id_prefix=shard.id_prefix)
    if _hash_part(file) != shard.sha256:
        raise file.error("this file has changed since it was cut into shards: start the command again")
    return read_file(file, shard.format)


def _cut_lines(file: CorpusFile, format: str, cutting: Cutting, names: Iterator[str]) -> Iterator[Shard]:
    """Shards of whole lines, or of converted documents if the file cannot be cut."""
    if not _has_plain_lines(file) or (format != "txt" and not is_lines(file)):
        yield from _convert(file, format, cutting, names)
        return
    start = position = rows = 0
    first_line = line_number = first_row = 1
    digest = hashlib.sha256()
    limit = 4 * MAX_LINE  # bytes

    def shard() -> Shard:
        part = Part(start, position, first_line, first_row)
        return Shard(next(names), str(file.path), format, part, rows, digest.hexdigest(), file.id_prefix)

    with file.path.open("rb") as stream:
        while line := stream.readline(limit):
            if len(line) == limit and not line.endswith(b"\n"):
                raise file.error(f"this line is longer than {MAX_LINE:,} characters", line_number)
            if rows == cutting.size or (rows and position - start >= SHARD_BYTES):
                yield shard()
                first_row += rows
                start, first_line, rows, digest = position, line_number, 0, hashlib.sha256()
            digest.update(line)
            rows += not _is_blank(line, file.options.encoding, position == 0)
            position += len(line)
            line_number += 1
    if rows:
        yield shard()


def _has_plain_lines(file: CorpusFile) -> bool:
    try:
        encoding = codecs.lookup(file.options.encoding).name
    except LookupError:
        return False  # the reader says so
    if file.input.is_pipe or not encoding.startswith(_ONE_BYTE_LINE_ENDS):
        return False
    with file.path.open("rb") as stream:
        return not stream.read(max(map(len, MAGIC))).startswith(tuple(MAGIC))


def _is_blank(line: bytes, encoding: str, first: bool) -> bool:
    """Whether a reader skips this line."""
    if line[:1] in (b"{", b"["):  # nearly always, in JSON lines
        return False
    text = line.decode(encoding, "replace")
    text = text.removeprefix("\ufeff") if first else text
    return not text or text.isspace()


def _cut_parquet(file: CorpusFile, format: str, cutting: Cutting, names: Iterator[str]) -> Iterator[Shard]:
    """Shards of whole row groups, or of converted documents if a file cannot be cut."""
    data_files = parquet.data_files(file) if file.path.is_dir() else [file]
    groups_of = [parquet.row_groups(data_file) for data_file in data_files]
    if None in groups_of:  # an Arrow file, or a compressed one; rows are numbered through all files
        yield from _convert(file, format, cutting, names)
        return
    first_row = 1
    for data_file, groups in zip(data_files, groups_of, strict=True):
        assert groups is not None
        first = 0
        while first < len(groups):
            stop, rows = first, 0
            while stop < len(groups) and (stop == first or rows + groups[stop].rows <= cutting.size):
                rows += groups[stop].rows
                stop += 1
            part = Part(groups[first].start, groups[stop - 1].stop, 1, first_row, (first, stop))
            yield Shard(
                next(names), str(data_file.path), "parquet", part, rows, _hash_part(replace(data_file, part=part))
            )
            first, first_row = stop, first_row + rows


def _hash_part(file: CorpusFile) -> str:
    digest = hashlib.sha256()
    for data in file.read_chunks():
        digest.update(data)
    return digest.hexdigest()


def _convert(file: CorpusFile, format: str, cutting: Cutting, names: Iterator[str]) -> Iterator[Shard]:
    """Shards of documents that are written as JSON lines."""
    docs = read_file(replace(file, report=cutting.report), format)
    while group := list(islice(docs, cutting.size)):
        data = "".join(map(jsonl.as_line, group)).encode()
        name, sha256 = next(names), hashlib.sha256(data).hexdigest()
        path = cutting.folder / f"{name}.jsonl"
        if not cutting.is_finished(name, sha256):
            write_file(path, data, private=True)
        yield Shard(name, str(path), "jsonl", Part(0, len(data)), len(group), sha256, converted=True)


def ending_of(format: str) -> str:
    """The ending of output files in a format."""
    return FORMATS[format].endings[0] if FORMATS[format].endings else f".{format}.json"
