"""WebAnno TSV 3, which INCEpTION reads and writes: one line per token, layers in columns; each sentence is a document.

Offsets in the file are UTF-16 units. A label is followed by `[n]` if several tokens belong to one span, and `|`
separates stacked labels. `_` means no annotation, `*` an annotation without a value, which is read as unsure.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from lacuner.corpus.offsets import OffsetTable, to_unit
from lacuner.corpus.reader import CorpusFile
from lacuner.corpus.records import Record, read_documents
from lacuner.corpus.streams import open_output
from lacuner.corpus.unwritten import count_unwritten
from lacuner.corpus.words import to_words, words_of
from lacuner.data import Document, Lost, Span, sort_spans
from lacuner.errors import CorpusError

LAYER = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity"
MAX_LAYERS = 100
MAX_STACKED = 100
"""Spans on one word, at most: each of them is written on every word that it covers."""
_HEADER = "#FORMAT=WebAnno TSV 3"
_RESERVED = re.compile(r"([\\\[\]|_*;]|->)")
_ROW = re.compile(r"(\d{1,9}-\d{1,9}(?:\.\d{1,9})?)\t(\d{1,12})-(\d{1,12})\t([^\t]*)\t?(.*)", re.DOTALL)
_STACKED = re.compile(r"(?:\\.|[^\\|])+", re.DOTALL)
_VALUE = re.compile(r"((?:\\.|[^\\])*?)\[(\d{1,9})\]", re.DOTALL)


class _Column(NamedTuple):
    number: int
    layer: str
    others: tuple[str, ...]
    """The layer's features that are not the label."""


def is_webanno(file: CorpusFile) -> bool:
    """Whether the first line names the format."""
    return not file.path.is_dir() and file.head().removeprefix(b"\xef\xbb\xbf").startswith(_HEADER.encode())


def read_webanno(file: CorpusFile) -> Iterator[Document]:
    """Sentences as documents, with the spans of the layer of named entities, or of all custom layers."""
    return read_documents(file, _sentences(file), _document, offsets="characters")


def _sentences(file: CorpusFile) -> Iterator[Record]:
    """The text, the lines of tokens and the columns of each sentence."""
    columns: list[_Column] | None = None
    layers: list[str] = []
    number = 0
    for place, (line_number, lines) in enumerate(file.read_paragraphs()):
        if place == 0 and not (line_number == 1 and lines[0].startswith(_HEADER)):
            raise file.error(f"a file of WebAnno TSV begins with {_HEADER}", 1)
        if columns is None:
            layers += [line for line in lines if line.startswith(("#T_SP=", "#T_RL=", "#T_CH="))]
        text = [line.removeprefix("#Text=") for line in lines if line.startswith("#Text=")]
        rows = [line for line in lines if not line.startswith("#")]
        if rows:
            columns = _columns(layers, file) if columns is None else columns
            number += 1
            yield Record(number, line_number, (_unescape_text("\n".join(text)), rows, columns))
        else:
            file.lost.count("sentence without tokens not read", bool(text))


def _columns(layers: list[str], file: CorpusFile) -> list[_Column]:
    """The columns with labels, counted from 0 after the token."""
    columns: list[_Column] = []
    index = 0
    if len(layers) > MAX_LAYERS:
        raise file.error(f"there are more than {MAX_LAYERS} layers")
    for line in layers:
        name, *features = line[6:].split("|")
        if line.startswith("#T_SP="):
            value = features.index("value") if "value" in features else 0
            columns.append(_Column(index + value, name, tuple(features[:value] + features[value + 1 :])))
        index += max(len(features), 1)
    chosen = [column for column in columns if column.layer.endswith("NamedEntity")]
    chosen = chosen or [column for column in columns if column.layer.startswith("webanno.custom")]
    if not chosen and columns:
        names = ", ".join(column.layer for column in columns)[:100]
        raise file.error(f"none of the layers is NamedEntity or a custom layer: {names}")
    read = {column.layer for column in chosen}
    for line in layers:
        name = line[6:].partition("|")[0]
        if name not in read:
            file.lost.count(f"layer {name[:80]} not read")
    for column in chosen:
        for feature in column.others:
            file.lost.count(f"feature {feature[:80]} of the layer {column.layer[:80]} not read")
    return chosen


def _document(sentence: tuple[str, list[str], list[_Column]], number: int, file: CorpusFile) -> Document:
    text, rows, columns = sentence
    table = OffsetTable(text)
    base: int | None = None
    words: list[tuple[int, int]] = []
    grouped: dict[tuple[str, int, str], Span] = {}
    spans: list[Span] = []
    for row in rows:
        match = _ROW.fullmatch(row)
        if match is None:
            raise CorpusError(f"this is not a token of WebAnno TSV (1-1<TAB>0-4<TAB>token): {row[:60]!r}")
        token = _unescape_text(match[4])
        if base is None:
            at = text.find(token)
            base = int(match[2]) - (to_unit(text, "utf-16")[at] if at > 0 else 0)
        start = table.to_characters(int(match[2]) - base, "utf-16")
        end = table.to_characters(int(match[3]) - base, "utf-16")
        if start is None or end is None or not start < end:
            raise CorpusError(f"the token {match[2]}-{match[3]} is outside its sentence")
        if "." not in match[1]:
            if words and start < words[-1][1]:
                raise CorpusError(f"the token {match[2]}-{match[3]} is out of order")
            words.append((start, end))
        if text[start:end] != token:
            there = text[start:end][:40]
            raise CorpusError(f"the token {match[2]}-{match[3]} is {token[:40]!r}, but the text there is {there!r}")
        cells = match[5].split("\t")
        for column in columns:
            cell = cells[column.number] if column.number < len(cells) else "_"
            for label, group in _labels(cell):
                if group is None:
                    spans.append(Span(start, end, label))
                    continue
                key = (column.layer, group, label)
                known = grouped.get(key)
                grouped[key] = (
                    Span(start, end, label) if known is None else Span(known.start, max(end, known.end), label)
                )
    spans = list(sort_spans(dict.fromkeys([*spans, *grouped.values()])))
    entities, unsure = [span for span in spans if span.label], [span for span in spans if not span.label]
    return Document(file.number_id(number), text, tuple(words), tuple(entities), unsure=tuple(unsure))


def _labels(cell: str) -> Iterator[tuple[str, int | None]]:
    """The labels of a cell, each with the number of its span; an annotation without a value has an empty one."""
    if cell in ("_", ""):
        return
    for entry in _STACKED.findall(cell):
        match = _VALUE.fullmatch(entry)
        value, group = (match[1], int(match[2])) if match else (entry, None)
        yield "" if value == "*" else re.sub(r"\\(->|.)", r"\1", value, flags=re.DOTALL), group


def _unescape_text(text: str) -> str:
    marks = {"n": "\n", "r": "\r", "t": "\t"}
    return re.sub(r"\\(.)", lambda match: marks.get(match[1], match[1]), text, flags=re.DOTALL)


def _escape_text(text: str) -> str:
    for mark, written in (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = text.replace(mark, written)
    return text


def write_webanno(docs: Iterable[Document], path: Path, lost: Lost, scheme: str = "IOB2") -> None:
    """Write each document as a sentence, with its spans in the layer of named entities."""
    with open_output(path) as stream:
        stream.write(f"{_HEADER}.3\n#T_SP={LAYER}|value\n\n".encode())
        base = number = 0
        for doc in docs:
            if not words_of(doc):
                lost.count("document without text")
                continue
            number += 1
            lost.count("id not written", doc.id != str(number))
            count_unwritten(doc, lost, "words")
            stream.write(("\n" + _rows(doc, number, base, lost)).encode())
            base += to_unit(doc.text, "utf-16")[-1] + 1


def _rows(doc: Document, number: int, base: int, lost: Lost) -> str:
    cells: list[list[str]] = [[] for _ in words_of(doc)]
    group = 0
    for first, last, span in to_words(doc, doc.spans, lost):
        if any(mark in span.label for mark in "\t\n\r") or span.label in ("_", "*"):
            lost.span(doc, span, "label would break its line")
            continue
        if any(len(cells[i]) >= MAX_STACKED for i in (first, (first + last) // 2, last - 1, *range(first, last))):
            lost.span(doc, span, f"more than {MAX_STACKED} spans on one word")
            continue
        group += 1
        escaped = _RESERVED.sub(r"\\\1", span.label)
        for i in range(first, last):
            cells[i].append(f"{escaped}[{group}]")
    units = to_unit(doc.text, "utf-16")
    lines = [f"#Text={_escape_text(doc.text)}"]
    for i, (start, end) in enumerate(words_of(doc)):
        surface = _escape_text(doc.text[start:end])
        lines.append(
            f"{number}-{i + 1}\t{base + units[start]}-{base + units[end]}\t{surface}\t{'|'.join(cells[i]) or '_'}\t"
        )
    return "\n".join(lines) + "\n"
