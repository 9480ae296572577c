"""Parquet with our own schema, and Hugging Face data sets: Parquet and Arrow files, or a folder of them.

Our schema holds everything, with `meta` as JSON. A data set has `tokens` and `ner_tags`; the names of its integer tags
(`ClassLabel`) are in the metadata of its files. Files are read and written in batches.
"""

import io
import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

from lacuner.corpus import argilla, jsonl
from lacuner.corpus.conll import differs_from_words, to_tags
from lacuner.corpus.folders import choose_split, split_name
from lacuner.corpus.json_stream import parse_json
from lacuner.corpus.reader import CorpusFile
from lacuner.corpus.records import Record, read_documents
from lacuner.corpus.streams import COMPRESSED, open_output
from lacuner.data import Document, Lost
from lacuner.errors import CorpusError, need_library

BATCH = 256
MAX_GROUP = 1 << 30
"""Bytes of an unpacked row group, at most, and of a file that must be held in memory because it is compressed."""
MAX_BATCH = 1 << 28
"""Bytes of rows that are unpacked at once, about: all rows of a group may refer to one text that is stored once."""
_ENDINGS = (".parquet", ".arrow")


def _import_pyarrow(path: Path) -> Any:
    with need_library("Parquet and Arrow files need pyarrow", "lacuner[arrow]", CorpusError, path):
        import pyarrow
        import pyarrow.ipc
        import pyarrow.parquet
    return pyarrow


def is_parquet(file: CorpusFile) -> bool:
    """Whether a file is in Parquet."""
    return not file.path.is_dir() and file.head().startswith(b"PAR1")


def is_data_set(file: CorpusFile) -> bool:
    """Whether a file is in Arrow's format, or a folder has Parquet or Arrow files and no texts."""
    if file.path.is_dir():
        return bool(data_files(file)) and not any(file.path.rglob("*.txt"))
    return file.head().startswith((b"ARROW1", b"\xff\xff\xff\xff"))


def read_parquet(file: CorpusFile) -> Iterator[Document]:
    """Documents of a Parquet file, an Arrow file or a folder of them, in our schema or with tokens and tags."""
    numbers = count(file.part.row if file.part else 1)
    for part in data_files(file) if file.path.is_dir() else [file]:
        records = (Record(next(numbers), None, row) for row in _rows(part))
        yield from read_documents(part, records, _document)


def _document(named_row: tuple[tuple[str, ...], dict[str, Any]], number: int, file: CorpusFile) -> Document:
    names, row = named_row
    file = replace(file, options=replace(file.options, label_names=names or file.options.label_names))
    row = {key: _plain(value) for key, value in row.items() if value is not None}
    if isinstance(row.get("meta"), str):
        row["meta"] = parse_json(row["meta"])
    for state in ("spans", "rejected", "unsure"):
        if isinstance(row.get(state), list):
            row[state] = [
                {key: value for key, value in span.items() if value is not None} if isinstance(span, dict) else span
                for span in row[state]
            ]
    if argilla.is_argilla(row):
        doc = argilla.document_from_row(row, number, file)
    else:
        doc = jsonl.document_from_row(row, number, file)
    if "\0" in doc.text:
        raise CorpusError("there is a NUL in this text")
    return doc


def _plain(value: Any) -> Any:
    """A value as JSON has it: dates and other objects become strings, and numbers that are not finite None."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def _rows(file: CorpusFile) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Each row of a file, with the names of its tags."""
    pyarrow = _import_pyarrow(file.path)
    packed = file.input.is_pipe or file.path.suffix.lower() in COMPRESSED
    source: Any = io.BytesIO(file.read_bytes(MAX_GROUP)) if packed else str(file.path)
    if not packed and not isinstance(file.path, Path):  # a URL
        source = file.path.open("rb")
    try:
        if file.head().startswith(b"PAR1"):
            parquet = pyarrow.parquet.ParquetFile(source)
            sizes = [parquet.metadata.row_group(i).total_byte_size for i in range(parquet.metadata.num_row_groups)]
            if max(sizes, default=0) > MAX_GROUP:
                raise file.error(f"a row group of this file has more than {MAX_GROUP >> 30} GiB: write smaller ones")
            names = _label_names(parquet.schema_arrow, file.options.tag_field)
            groups = range(*file.part.groups) if file.part and file.part.groups else range(len(sizes))
            rows = max(1, min(BATCH, MAX_BATCH // max([*sizes, 1])))
            batches = parquet.iter_batches(batch_size=rows, row_groups=groups)
        else:
            is_file = file.head().startswith(b"ARROW1")
            reader = pyarrow.ipc.open_file(source) if is_file else pyarrow.ipc.open_stream(_opened(source))
            names = _label_names(reader.schema, file.options.tag_field)
            batches = (reader.get_batch(i) for i in range(reader.num_record_batches)) if is_file else reader
        for batch in batches:
            for start in range(0, batch.num_rows, BATCH):
                for row in batch.slice(start, BATCH).to_pylist():
                    yield names, row
    except CorpusError:
        raise
    except Exception as error:  # pyarrow raises errors of many types for a damaged file
        raise file.error(f"this is not a file that pyarrow can read ({type(error).__name__})") from error


class RowGroup(NamedTuple):
    """A row group of a Parquet file: its bytes and its number of rows."""

    start: int
    stop: int
    rows: int


def row_groups(file: CorpusFile) -> list[RowGroup] | None:
    """The row groups of a file; None if it is not in Parquet, or compressed."""
    if file.path.suffix.lower() in COMPRESSED or not file.head().startswith(b"PAR1"):
        return None
    pyarrow = _import_pyarrow(file.path)
    try:
        with file.path.open("rb") as stream:
            metadata = pyarrow.parquet.ParquetFile(stream).metadata
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        starts = [min(_first_byte(group.column(i)) for i in range(group.num_columns)) for group in groups]
    except Exception as error:  # pyarrow raises errors of many types for a damaged file
        raise file.error(f"this is not a file that pyarrow can read ({type(error).__name__})") from error
    stops = [*starts[1:], file.path.stat().st_size]  # one too many if there are no row groups
    return [RowGroup(start, stop, group.num_rows) for start, stop, group in zip(starts, stops, groups, strict=False)]


def _first_byte(column: Any) -> int:
    dictionary, data = column.dictionary_page_offset, column.data_page_offset
    return int(data if not dictionary else min(dictionary, data))


def _opened(source: Any) -> Any:
    import pyarrow

    return pyarrow.OSFile(source) if isinstance(source, str) else source


def _label_names(schema: Any, tag_field: str | None) -> tuple[str, ...]:
    """The names of the tags in the metadata that Hugging Face's datasets writes."""
    metadata = (schema.metadata or {}).get(b"huggingface")
    try:
        features = json.loads(metadata)["info"]["features"] if metadata else {}
        for key in [tag_field] if tag_field else jsonl.TAG_KEYS:
            feature = features.get(key, {})
            feature = feature.get("feature", feature)
            if feature.get("_type") == "ClassLabel" and all(isinstance(name, str) for name in feature["names"]):
                return tuple(feature["names"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    return ()


def data_files(folder: CorpusFile) -> list[CorpusFile]:
    """The files of a data set's folder, which must be of one split."""
    paths = sorted(path for path in folder.path.rglob("*") if path.suffix.lower() in _ENDINGS and path.is_file())
    paths = [path for path in paths if not path.name.startswith("cache-")]  # left behind by `datasets.map`
    splits = {}
    for path in paths:
        inside = path.relative_to(folder.path)
        in_name = re.match(r"(.+?)-\d{5}-of-\d{5}", path.stem)
        name = in_name[1] if in_name and in_name[1] != "data" else split_name(path)
        splits[path] = name or (inside.parts[0] if len(inside.parts) > 1 else "")
    return list(map(folder.at, choose_split(folder, splits))) if paths else []


def write_parquet(docs: Iterable[Document], path: Path, lost: Lost, scheme: str = "IOB2") -> None:
    """Write our own schema, which loses nothing."""
    pyarrow = _import_pyarrow(path)
    number, text = pyarrow.int64(), pyarrow.string()
    span = [("start", number), ("end", number), ("label", text), ("score", pyarrow.float64()), ("source", text)]
    spans = pyarrow.list_(pyarrow.struct(span))
    schema = pyarrow.schema(
        [("id", text), ("text", text), ("words", pyarrow.list_(pyarrow.list_(number)))]
        + [(state, spans) for state in ("spans", "rejected", "unsure")]
        + [("complete", pyarrow.bool_()), ("meta", text)]
    )
    rows = (
        {
            "id": doc.id,
            "text": doc.text,
            "words": doc.words,
            **{state: [s._asdict() for s in getattr(doc, state)] for state in ("spans", "rejected", "unsure")},
            "complete": doc.complete,
            "meta": json.dumps(doc.meta, ensure_ascii=False) if doc.meta else None,
        }
        for doc in docs
    )
    with open_output(path) as stream, pyarrow.parquet.ParquetWriter(stream, schema, compression="zstd") as writer:
        for batch in _batches(rows):
            writer.write_batch(pyarrow.RecordBatch.from_pylist(batch, schema))


def _batches(rows: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    iterator = iter(rows)
    while batch := list(islice(iterator, 16 * BATCH)):
        yield batch


def write_data_set(docs: Iterable[Document], path: Path, lost: Lost, scheme: str = "IOB2") -> None:
    """Write Parquet with tokens and integer tags, whose names `datasets.load_dataset("parquet")` finds in the file."""
    pyarrow = _import_pyarrow(path)
    text, tags = pyarrow.string(), pyarrow.list_(pyarrow.int64())
    schema = pyarrow.schema([("id", text), ("tokens", pyarrow.list_(text)), ("ner_tags", tags)])
    numbers = {"O": 0}

    def row(doc: Document) -> dict[str, Any]:
        tokens, names = to_tags(doc, lost, scheme)
        lost.count("meta not written", bool(doc.meta))
        lost.count("text: other white space than the words' own", differs_from_words(doc.text, tokens))
        return {"id": doc.id, "tokens": tokens, "ner_tags": [numbers.setdefault(name, len(numbers)) for name in names]}

    # with Arrow's copy of the schema, readers would ignore metadata that is added after the last document
    options = {"compression": "zstd", "store_schema": False}
    with open_output(path) as stream, pyarrow.parquet.ParquetWriter(stream, schema, **options) as writer:
        for batch in _batches(map(row, docs)):
            writer.write_batch(pyarrow.RecordBatch.from_pylist(batch, schema))
        label: dict[str, Any] = {"names": list(numbers), "_type": "ClassLabel"}
        string = {"dtype": "string", "_type": "Value"}
        features = {"id": string, "tokens": {"feature": string, "_type": "Sequence"}}
        features["ner_tags"] = {"feature": label, "_type": "Sequence"}
        writer.add_key_value_metadata({"huggingface": json.dumps({"info": {"features": features}})})
