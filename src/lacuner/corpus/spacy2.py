"""Training data of spaCy 2 as JSON: `[text, {"entities": [[start, end, label], ...]}]`.

The lists were Python tuples. A Python file with them cannot be read, because reading it would run it: load it yourself
and write it with `json.dump`.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lacuner.corpus.json_rows import get, json_reader, new_span, show, write_array
from lacuner.corpus.reader import CorpusFile
from lacuner.corpus.unwritten import count_unwritten
from lacuner.corpus.words import flatten
from lacuner.data import Document, Lost, Span, sort_spans
from lacuner.errors import CorpusError

_PYTHON = re.compile(
    rb"""\A(?:[^\n]*\n){0,20}?(?:\w{1,40} *= *)?\[\s*\(\s*u?['"].*?, *\{ *['"]entities['"] *: *\[""", re.DOTALL
)


def is_spacy2(row: Any) -> bool:
    """Whether a row is a text and an object with annotation."""
    return isinstance(row, list) and len(row) == 2 and isinstance(row[0], str) and isinstance(row[1], dict)


def is_python(file: CorpusFile) -> bool:
    """Whether a file has such pairs as Python code, which is not read.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "train.txt"
    >>> _ = path.write_text("TRAIN_DATA = [('Mara left', {'entities': [(0, 4, 'PER')]})]")
    >>> is_python(CorpusFile(path))
    True
    """
    return not file.path.is_dir() and _PYTHON.search(file.head()) is not None


def _as_row(value: Any) -> dict[str, Any]:
    if not is_spacy2(value):
        raise CorpusError(f'an entry must be [text, {{"entities": [...]}}], not {show(value)}')
    return {**value[1], "text": value[0]}


def _document(row: dict[str, Any], number: int, file: CorpusFile) -> Document:
    spans = [_span(entry, "entities") for entry in get(row, "entities", list, [])]
    for name, group in get(row, "spans", dict, {}).items():
        spans += [_span(entry, f"spans.{name[:40]}") for entry in (group if isinstance(group, list) else [group])]
    for key in row.keys() - {"text", "entities", "spans"}:
        file.lost.count(f"`{key[:40]}` not read")
    return Document(file.number_id(number), row["text"], spans=sort_spans(dict.fromkeys(spans)))


read_spacy2 = json_reader(_document, _as_row)


def _span(entry: Any, key: str) -> Span:
    if not isinstance(entry, list) or len(entry) < 3:
        raise CorpusError(f"an entry of `{key}` must be [start, end, label]: {show(entry)}")
    return new_span(entry[0], entry[1], entry[2], key)


def write_spacy2(docs: Iterable[Document], path: Path, lost: Lost, scheme: str = "IOB2") -> None:
    """Write pairs without overlapping spans, which spaCy refuses."""
    write_array(path, (_pair(doc, number, lost) for number, doc in enumerate(docs, 1)))


def _pair(doc: Document, number: int, lost: Lost) -> list[Any]:
    count_unwritten(doc, lost)
    lost.count("id not written", doc.id != str(number))
    return [doc.text, {"entities": [span.key for span in flatten(doc, doc.spans, lost)]}]
