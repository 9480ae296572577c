"""spaCy's DocBin: `doc.ents` holds the spans; the span groups `rejected` and `unsure` hold the other two states.

spaCy's entities cannot overlap: the longest of overlapping spans become entities, the others go to the group
`overlapping`. All other span groups are read as spans. In incomplete documents, words outside entities are written
with the tag *missing*, spaCy's term for not annotated.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lacuner.corpus.reader import CorpusFile
from lacuner.corpus.streams import open_output
from lacuner.corpus.words import flatten, to_words, words_of
from lacuner.data import Document, Lost, Span, Where, Words, sort_spans
from lacuner.errors import CorpusError, need_library

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.tokens import Span as SpacySpan

MAX_BYTES = 1 << 30
"""Bytes of an unpacked DocBin, at most."""
MAX_RATIO = 100
"""How many times larger than the file an unpacked DocBin may be, beyond 32 MiB; texts compress to a tenth."""
MAX_TOKENS = 1_000_000
"""Tokens of one document, at most: spaCy needs a quarter of a kilobyte for each."""
_KEY = "lacuner"


def _import_spacy(path: Path) -> ModuleType:
    with need_library(".spacy files need spaCy", "lacuner[spacy]", CorpusError, path):
        import spacy
    return spacy


def is_docbin(file: CorpusFile) -> bool:
    """Whether a file is packed by zlib and begins like a DocBin."""
    if file.path.is_dir() or not file.head().startswith(b"\x78"):
        return False
    try:
        return b"version" in zlib.decompressobj().decompress(file.head(), 64)[:16]
    except zlib.error:
        return False


def read_docbin(file: CorpusFile) -> Iterator[Document]:
    """The documents of a DocBin, which is unpacked at once, within limits; then they are built one by one."""
    spacy = _import_spacy(file.path)
    packed = file.read_bytes(MAX_BYTES)
    number = 0
    try:
        box = _unpack(packed, file)
        for number, doc in enumerate(box.get_docs(spacy.blank("xx").vocab), 1):
            yield _from_spacy(doc, number, file)
    except CorpusError as error:
        error.file = str(file.path)
        raise
    except Exception as error:  # spaCy raises errors of many types for a damaged file
        after = f" after document {number}" if number else ""
        raise file.error(f"this is not a DocBin that spaCy can read ({type(error).__name__}{after})") from error


def _unpack(packed: bytes, file: CorpusFile) -> Any:
    """A DocBin from its bytes. Its own `from_bytes` unpacks without limit and builds whatever the file asks for."""
    import numpy as np  # late: the command line starts faster without it
    import srsly  # part of spaCy
    from spacy.tokens import DocBin

    limit = min(MAX_BYTES, max(32 << 20, MAX_RATIO * len(packed)))
    unpacker = zlib.decompressobj()
    data = unpacker.decompress(packed, limit)
    if unpacker.unconsumed_tail:
        raise file.error(f"this DocBin unpacks to more than {limit >> 20:,} MiB: split it")
    budget = max(1_000_000, 2 * len(packed))
    budget -= count_objects(data, budget)
    content = srsly.msgpack.unpackb(data, raw=False, object_pairs_hook=dict)
    lengths = np.frombuffer(content["lengths"], dtype="int32")
    if len(content["cats"]) != len(lengths) or not all(isinstance(cats, dict) for cats in content["cats"]):
        raise ValueError("lengths and cats differ")
    if len(lengths) and lengths.min() < 0:
        raise ValueError("a length is negative")
    if len(lengths) and lengths.max() > MAX_TOKENS:
        raise file.error(f"a document of this file has more than {MAX_TOKENS:,} tokens: split it")
    box = DocBin()
    box.attrs, box.strings, box.cats = content["attrs"], set(content["strings"]), content["cats"]
    tokens = np.frombuffer(content["tokens"], dtype="uint64").reshape((-1, len(box.attrs)))
    spaces = np.frombuffer(content["spaces"], dtype=bool).reshape((-1, 1))
    if int(lengths.sum()) != len(tokens) or len(tokens) != len(spaces):
        raise ValueError("lengths, tokens and spaces differ")
    ends = np.cumsum(lengths)[:-1]
    box.tokens, box.spaces = (np.split(flat, ends) if len(lengths) else [] for flat in (tokens, spaces))
    box.span_groups = content.get("span_groups", [b""] * len(lengths))
    box.flags = content.get("flags", [{}] * len(lengths))
    box.user_data = list(content.get("user_data", [None] * len(lengths)))
    for part in (*box.span_groups, *box.user_data):  # packed once more
        if part:
            budget -= count_objects(part, budget)
    return box


def count_objects(data: bytes, limit: int) -> int:
    """The number of objects in msgpack data, without building them; an error if there are more than `limit`.

    A byte of msgpack can become an object of 64 bytes, so a limit on bytes does not limit memory.

    >>> count_objects(bytes([0x92, 0x80, 0x01]), limit=10)  # [{}, 1]
    3
    """
    position, count, open_objects = 0, 0, 1
    while open_objects:
        code = data[position]
        position += 1
        count += 1
        open_objects -= 1
        if count > limit:
            raise CorpusError(f"this DocBin has more than {limit:,} objects, more than a file of its size can hold")
        if 0x80 <= code <= 0x8F:
            open_objects += 2 * (code & 15)
        elif 0x90 <= code <= 0x9F:
            open_objects += code & 15
        elif 0xA0 <= code <= 0xBF:
            position += code & 31
        elif code in _FIXED:
            position += _FIXED[code]
        elif code in _SIZED:
            size_bytes, per_item, extra = _SIZED[code]
            size = int.from_bytes(data[position : position + size_bytes], "big")
            position += size_bytes + extra
            if per_item:
                open_objects += per_item * size
            else:
                position += size
    return count


_FIXED = {0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
_FIXED |= {0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17}
"""Types of a fixed size, in bytes after the type."""
_SIZED = {0xC4: (1, 0, 0), 0xC5: (2, 0, 0), 0xC6: (4, 0, 0), 0xD9: (1, 0, 0), 0xDA: (2, 0, 0), 0xDB: (4, 0, 0)}
_SIZED |= {0xC7: (1, 0, 1), 0xC8: (2, 0, 1), 0xC9: (4, 0, 1)}
_SIZED |= {0xDC: (2, 1, 0), 0xDD: (4, 1, 0), 0xDE: (2, 2, 0), 0xDF: (4, 2, 0)}
"""Types with a size: its bytes, objects per item (0 for bytes and strings), and further bytes."""


def _from_spacy(doc: Doc, number: int, file: CorpusFile) -> Document:
    extra = _extra(doc.user_data.get(_KEY))
    groups = {name: [_span(span, doc) for span in group] for name, group in doc.spans.items()}
    rejected, unsure = groups.pop("rejected", []), groups.pop("unsure", [])
    spans = dict.fromkeys(_span(span, doc) for span in doc.ents)
    spans |= {span: None for group in groups.values() for span in group if span.label}
    without_label = sum(not span.label for group in groups.values() for span in group)
    file.lost.count("span without a label in a span group", without_label)
    # O tags do not make a document complete: setting `doc.ents`, even from a gazetteer, tags all other words with O
    missing = {token.ent_iob == 0 for token in doc}
    complete = extra.get("complete", False if missing == {True, False} else None)
    meta = extra.get("meta", {})
    return Document(
        id=str(extra.get("id", file.number_id(number))),
        text=doc.text,
        words=tuple([(token.idx, token.idx + len(token)) for token in doc if not token.is_space]),
        spans=sort_spans(spans),
        rejected=sort_spans(rejected),
        unsure=sort_spans(unsure),
        complete=complete if isinstance(complete, bool) else None,
        meta=dict(meta) if isinstance(meta, dict) else {},
        where=Where(str(file.path)),
    )


def _extra(value: object) -> dict[str, Any]:
    """Id, completeness and metadata that `write_docbin` put into the user data."""
    try:
        extra = json.loads(value) if isinstance(value, str) else {}
    except (ValueError, RecursionError):
        extra = {}
    return extra if isinstance(extra, dict) else {}


def _span(span: SpacySpan, doc: Doc) -> Span:
    """A span by its tokens; the character offsets in the file could say anything, and spaCy does not check either."""
    if not 0 <= span.start < span.end <= len(doc):
        raise ValueError("a span is empty or outside its document")
    last = doc[span.end - 1]
    return Span(doc[span.start].idx, last.idx + len(last), span.label_)


def write_docbin(docs: Iterable[Document], path: Path, lost: Lost, scheme: str = "IOB2") -> None:
    """Write spans of all states; a DocBin cannot hold scores and sources."""
    spacy = _import_spacy(path)
    vocab = spacy.blank("xx").vocab
    box = spacy.tokens.DocBin(store_user_data=True)
    for doc in docs:
        box.add(_to_spacy(doc, vocab, lost))
    with open_output(path) as stream:
        stream.write(box.to_bytes())


def _to_spacy(doc: Document, vocab: Any, lost: Lost) -> Doc:
    from spacy.tokens import Doc

    tokens, spaces = _tokens(doc.text, words_of(doc))
    added = sum(bool(token.strip()) for token in tokens) - len(words_of(doc))
    lost.count("text between words became a word", added)
    spacy_doc = Doc(vocab, words=tokens, spaces=spaces)
    fitting = [span for _, _, span in to_words(doc, doc.spans, lost)]
    flat = flatten(doc, fitting, Lost())
    spacy_doc.set_ents(_spans(spacy_doc, flat), default="outside" if doc.complete else "missing")
    entities = set(flat)
    groups = {
        "overlapping": [span for span in fitting if span not in entities],
        "rejected": [span for _, _, span in to_words(doc, doc.rejected, lost)],
        "unsure": [span for _, _, span in to_words(doc, doc.unsure, lost)],
    }
    for name, group in groups.items():
        if group:
            spacy_doc.spans[name] = _spans(spacy_doc, group)
    written = [*fitting, *groups["rejected"], *groups["unsure"]]
    lost.count("score not written", sum(span.score is not None for span in written))
    lost.count("source not written", sum(span.source is not None for span in written))
    # as JSON, because msgpack has no numbers beyond 64 bits
    spacy_doc.user_data[_KEY] = json.dumps({"id": doc.id, "complete": doc.complete, "meta": doc.meta})
    return spacy_doc


def _spans(spacy_doc: Doc, spans: Iterable[Span]) -> list[SpacySpan]:
    spacy_spans = [spacy_doc.char_span(span.start, span.end, label=span.label) for span in spans]
    return [span for span in spacy_spans if span is not None]


def _tokens(text: str, words: Words) -> tuple[list[str], list[bool]]:
    """Tokens and trailing spaces for spaCy: text between two words, except one space, becomes a token of its own."""
    tokens: list[str] = []
    spaces: list[bool] = []
    position = 0
    for start, end in (*words, (len(text), len(text))):
        gap = text[position:start]
        if gap.startswith(" ") and spaces and not spaces[-1]:
            spaces[-1] = True
            gap = gap[1:]
        if gap:
            tokens.append(gap)
            spaces.append(False)
        if end > start:
            tokens.append(text[start:end])
            spaces.append(False)
        position = end
    return tokens, spaces
