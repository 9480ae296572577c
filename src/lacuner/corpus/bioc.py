"""BioC in XML or JSON: passages with offsets in the document, annotations with locations and a type.

Offsets count from the beginning of the document, in characters or, by the letter of the specification, in bytes; the
text of an annotation tells which. XML is parsed by expat, and a file that declares entities is refused.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

from lacuner.corpus.json_rows import as_object, get, json_reader, new_id, new_score, show, to_json
from lacuner.corpus.offsets import OffsetTable
from lacuner.corpus.pubtator import identifiers_of
from lacuner.corpus.reader import MAX_TEXT, CorpusFile
from lacuner.corpus.records import Record, locate, read_documents
from lacuner.corpus.streams import open_output
from lacuner.corpus.unwritten import count_unwritten
from lacuner.corpus.xml_stream import MAX_DEPTH, feed_parser
from lacuner.data import Document, Lost, Span
from lacuner.errors import CorpusError

MAX_GAP = 1_000
"""Characters between two passages, at most; after a larger gap their offsets are not kept."""
MAX_ELEMENTS = 1_000_000
"""XML elements of a document, at most: an annotation has about six."""
_NOT_XML = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
"""Compiled when it is used: at import it would slow down `lacuner --help`."""
_SPAN_INFONS = {"type", "identifier", "score", "source"}
_CONTAINERS = {"document", "passage", "sentence", "annotation", "relation"}


def is_bioc_json(row: Any) -> bool:
    """Whether a row is a document with passages."""
    return isinstance(row, dict) and isinstance(row.get("passages"), list)


def is_bioc_xml(file: CorpusFile) -> bool:
    """Whether a file is XML with a collection."""
    return (
        not file.path.is_dir()
        and re.match(rb"(\xef\xbb\xbf)?\s*<", file.head()) is not None
        and (b"<collection" in file.head())
    )


def read_bioc_xml(file: CorpusFile) -> Iterator[Document]:
    """One document per `<document>`, while the file is parsed."""
    records = (Record(number, *document) for number, document in enumerate(_Parser(file).read(), 1))
    return read_documents(file, records, _document, offsets="characters")


class _Parser:
    """Collects each `<document>` in the form that BioC has in JSON."""

    def __init__(self, file: CorpusFile) -> None:
        self._file = file
        self._expat = expat.ParserCreate()
        self._expat.buffer_text = True
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.CharacterDataHandler = self._characters
        self._expat.EntityDeclHandler = self._refuse_entity
        self._open: list[tuple[str, dict[str, Any]]] = []  # containers around the current element
        self._text: list[str] = []
        self._key, self._size, self._line = "", 0, 1
        self._depth = self._elements = 0
        self._is_bioc = False
        self._documents: list[tuple[int, dict[str, Any]]] = []

    def read(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for _ in feed_parser(self._expat, self._file.read_chunks(), self._file.error):
            yield from self._documents
            self._documents = []

    def _refuse_entity(self, *_: Any) -> None:
        raise self._file.error("this file declares entities, which BioC does not need: remove the declarations")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._text = []
        if not self._is_bioc and tag not in ("collection", "document"):
            raise self._file.error(f"this XML is not BioC: it begins with <{tag[:40]}>, not with <collection>")
        self._is_bioc = True
        self._depth += 1
        self._elements += 1
        if len(self._open) > 10 or self._depth > MAX_DEPTH:
            raise self._file.error("elements are nested too deeply", self._expat.CurrentLineNumber)
        if self._open and self._elements > MAX_ELEMENTS:
            raise self._file.error(f"this document has more than {MAX_ELEMENTS:,} elements", self._line)
        if tag in _CONTAINERS and (self._open or tag == "document"):
            self._open.append((tag, {"infons": {}, "id": attributes.get("id")}))
            if tag == "document":
                self._size, self._elements, self._line = 0, 0, self._expat.CurrentLineNumber
        elif tag == "infon":
            self._key = attributes.get("key", "")
        elif tag == "location" and self._open:
            self._open[-1][1].setdefault("locations", []).append(attributes)

    def _characters(self, text: str) -> None:
        self._text.append(text)
        self._size += len(text)
        if self._size > MAX_TEXT:
            raise self._file.error(f"this document is longer than {MAX_TEXT:,} characters", self._line)

    def _end(self, tag: str) -> None:
        self._depth -= 1
        if not self._open:
            return
        values = self._open[-1][1]
        if tag == self._open[-1][0]:
            self._open.pop()
            if self._open:
                self._open[-1][1].setdefault(f"{tag}s", []).append(values)
            else:
                self._documents.append((self._line, values))
        elif tag == "infon":
            values["infons"][self._key] = "".join(self._text)
        elif tag in ("id", "offset", "text"):
            values[tag] = "".join(self._text)
        self._text = []


class _Part(NamedTuple):
    """A passage or a sentence with text, and where it begins in our text and in the file's."""

    values: dict[str, Any]
    start: int
    offset: int


def _document(row: dict[str, Any], number: int, file: CorpusFile) -> Document:
    doc = Document(new_id(row.get("id"), file.number_id(number)), "", meta=dict(get(row, "infons", dict, {})))
    passages = _objects(row, "passages")
    sentences = [sentence for passage in passages for sentence in _objects(passage, "sentences")]
    for values in (row, *passages, *sentences):
        file.lost.count("relation not read", len(get(values, "relations", list, [])))
    texts: list[str] = []
    parts: list[_Part] = []
    length = 0
    for values in _text_parts(passages):
        offset, text = _number(values.get("offset", 0)), get(values, "text", str, "")
        gap = offset - length
        between = " " * (gap - 1) + "\n" if 0 < gap <= MAX_GAP else "\n" if gap and length else ""
        parts.append(_Part(values, length + len(between), offset))
        texts += (between, text)
        length += len(between) + len(text)
        if length > MAX_TEXT:
            raise CorpusError(f"this document is longer than {MAX_TEXT:,} characters")
    doc.text = "".join(texts)
    spans: list[Span] = []
    unsure: list[Span] = []
    tables = [OffsetTable(get(part.values, "text", str, "")) for part in parts]
    for part, table in zip(parts, tables, strict=True):
        # a passage with text may have sentences as well, which repeat the text and have annotations of their own
        for values in (part.values, *_objects(part.values, "sentences")):
            for annotation in _objects(values, "annotations"):
                spans += _spans(annotation, doc, part, table, unsure, file)
    if all(part.start == part.offset for part in parts):
        parts, tables = [_Part(row, 0, 0)], [OffsetTable(doc.text)]
    by_offset = sorted(zip(parts, tables, strict=True), key=lambda pair: pair[0].offset)
    for values in (row, *[passage for passage in passages if not _has_text(passage)]):
        for annotation in _objects(values, "annotations"):
            first = min((place[0] for place in _places(annotation)), default=0)
            at = bisect_right(by_offset, first, key=lambda pair: pair[0].offset)
            spans += _spans(annotation, doc, *by_offset[max(at - 1, 0)], unsure, file)
    doc.spans, doc.unsure = tuple(spans), tuple(unsure)
    return doc


read_bioc_json = json_reader(_document, offsets="characters")


def _objects(values: dict[str, Any], key: str) -> list[dict[str, Any]]:
    return [as_object(value) for value in get(values, key, list, [])]


def _has_text(passage: dict[str, Any]) -> bool:
    return passage.get("text") is not None or not passage.get("sentences")


def _text_parts(passages: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The parts of a document that have text: passages, or their sentences."""
    for passage in passages:
        if _has_text(passage):
            yield passage
        else:
            yield from _objects(passage, "sentences")


def _number(value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.strip().isdigit() and len(value) < 12:
        return int(value)
    if type(value) is int and 0 <= value < 10**12:
        return value
    raise CorpusError(f"an offset or length must be a whole number, not {show(value)}")


def _places(annotation: dict[str, Any]) -> list[tuple[int, int]]:
    """Offset and length of each location of an annotation."""
    locations = _objects(annotation, "locations")
    return [(_number(location.get("offset")), _number(location.get("length"))) for location in locations]


def _spans(
    annotation: dict[str, Any], doc: Document, part: _Part, table: OffsetTable, unsure: list[Span], file: CorpusFile
) -> list[Span]:
    """The span of an annotation in a part of a document; `table` is of the text of this part."""
    lost = file.lost
    infons = get(annotation, "infons", dict, {})
    label = infons.get("type")
    if not isinstance(label, str) or not label:
        raise CorpusError(f"an annotation has no infon `type`, which is its label: {show(infons)}")
    places = _places(annotation)
    if len(places) != 1:
        lost.count("annotation without a location not read", not places)
        if places:
            low, high = min(place[0] for place in places), max(sum(place) for place in places)
            low, high, _ = locate(table, low - part.offset, high - part.offset, None, file)
            span = Span(low + part.start, high + part.start, label)
            lost.span(doc, span, "discontinuous span not read; the text around it became unsure")
            unsure.append(span)
        return []
    first = places[0][0] - part.offset
    last = first + places[0][1]
    try:
        first, last, unit = locate(table, first, last, get(annotation, "text", str, None), file)
        lost.count("offset corrected by the annotation's text", unit is not None)
    except CorpusError:  # PubTator normalises some mentions, e.g. Greek letters
        lost.count("annotation's text differs from the text at its offsets")
    score = infons.get("score")
    try:
        number = new_score(float(score) if isinstance(score, str) else score, "an annotation")
    except ValueError:
        number = None
        lost.count("score not read: it is not a number")
    source = infons.get("source")
    start, end = first + part.start, last + part.start
    identifiers = doc.meta.setdefault("identifiers", []) if infons.get("identifier") else None
    if isinstance(identifiers, list):
        identifiers.append([start, end, str(infons["identifier"])])
    lost.count("other infons of an annotation not read", not infons.keys() <= _SPAN_INFONS)
    return [Span(start, end, label, number, source if isinstance(source, str) else None)]


def _infons(doc: Document, lost: Lost) -> dict[str, str]:
    infons = {key: value for key, value in doc.meta.items() if isinstance(value, str) and key}
    lost.count("meta not written: only strings are", len(doc.meta) - len(infons) - bool(identifiers_of(doc)))
    return infons


def _annotations(doc: Document) -> Iterator[dict[str, Any]]:
    identifiers = identifiers_of(doc)
    for number, span in enumerate(doc.spans):
        infons = {"type": span.label, "identifier": identifiers.get(span[:2])}
        infons |= {"score": None if span.score is None else repr(span.score), "source": span.source}
        yield {
            "id": str(number),
            "infons": {key: value for key, value in infons.items() if value is not None},
            "text": doc.text[span.start : span.end],
            "locations": [{"offset": span.start, "length": span.end - span.start}],
        }


def write_bioc_json(docs: Iterable[Document], path: Path, lost: Lost, scheme: str = "IOB2") -> None:
    """Write a collection with one passage per document."""
    with open_output(path) as stream:
        stream.write(b'{"source": "lacuner", "date": "", "key": "", "infons": {}, "documents": [')
        for number, doc in enumerate(docs):
            count_unwritten(doc, lost, "score source meta")
            passage = {
                "offset": 0,
                "infons": {},
                "text": doc.text,
                "sentences": [],
                "annotations": [*_annotations(doc)],
            }
            row = {"id": doc.id, "infons": _infons(doc, lost), "passages": [{**passage, "relations": []}]}
            row |= {"annotations": [], "relations": []}
            stream.write(((",\n" if number else "\n") + to_json(row)).encode())
        stream.write(b"\n]}\n")


def write_bioc_xml(docs: Iterable[Document], path: Path, lost: Lost, scheme: str = "IOB2") -> None:
    """Write a collection with one passage per document; characters that XML cannot hold become spaces."""
    with open_output(path) as stream:
        stream.write(b'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE collection SYSTEM "BioC.dtd">\n')
        stream.write(b"<collection><source>lacuner</source><date></date><key></key>\n")
        for doc in docs:
            count_unwritten(doc, lost, "score source meta")
            stream.write(_xml(doc, lost).encode())
        stream.write(b"</collection>\n")


def _xml(doc: Document, lost: Lost) -> str:
    lost.count("text: character that XML cannot hold", re.search(_NOT_XML, doc.text) is not None)
    lost.count("id not written as it is: XML cannot hold it", re.search(_NOT_XML, doc.id) is not None)
    infons = _infons(doc, lost)
    in_meta = any(re.search(_NOT_XML, text) for text in (*infons, *infons.values()))
    lost.count("meta changed: character that XML cannot hold", in_meta)
    labels = [span.label for span in doc.spans]
    lost.count(
        "label changed: character that XML cannot hold", sum(re.search(_NOT_XML, label) is not None for label in labels)
    )
    parts = [f"<document><id>{_escape(doc.id)}</id>", *_infon_elements(infons)]
    parts += ["<passage><offset>0</offset><text>", _escape(doc.text), "</text>"]
    for annotation in _annotations(doc):
        place = annotation["locations"][0]
        parts += [f'<annotation id="{annotation["id"]}">', *_infon_elements(annotation["infons"])]
        parts += [f'<location offset="{place["offset"]}" length="{place["length"]}"/>']
        parts += ["<text>", _escape(annotation["text"]), "</text></annotation>"]
    return "".join(parts) + "</passage></document>\n"


def _infon_elements(infons: dict[str, str]) -> Iterator[str]:
    from xml.sax import saxutils  # late: it loads an HTTP client

    for key, value in infons.items():
        name = saxutils.quoteattr(re.sub(_NOT_XML, " ", key), {"\r": "&#13;", "\n": "&#10;", "\t": "&#9;"})
        yield f"<infon key={name}>{_escape(value)}</infon>"


def _escape(text: str) -> str:
    from xml.sax import saxutils

    return saxutils.escape(re.sub(_NOT_XML, " ", text), {"\r": "&#13;"})
