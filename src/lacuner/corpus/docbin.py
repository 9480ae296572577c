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

from lacuner.atomic import atomic_write
from lacuner.corpus.reader import CorpusFile
from lacuner.corpus.words import flatten, to_words, words_of
from lacuner.data import Document, Lost, Span, Where, Words, sort_spans
from lacuner.errors import CorpusError

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.tokens import Span as SpacySpan

MAX_BYTES = 2 << 30
_KEY = "lacuner"


def _import_spacy(path: Path) -> ModuleType:
    try:
        import spacy
    except ImportError as error:
        raise CorpusError(".spacy files need spaCy: pip install 'lacuner[spacy]'", file=path) from error
    return spacy


def read_docbin(file: CorpusFile) -> Iterator[Document]:
    """All documents of a DocBin, at once: spaCy cannot stream them."""
    spacy = _import_spacy(file.path)
    try:
        data = file.path.read_bytes()
    except OSError as error:
        raise file.error(f"cannot read this file: {error.strerror}") from error
    vocab = spacy.blank("xx").vocab
    try:
        unpacker = zlib.decompressobj()
        unpacker.decompress(data, MAX_BYTES)
        if unpacker.unconsumed_tail:
            raise file.error(f"this file unpacks to more than {MAX_BYTES >> 30} GiB: split it")
        docs = list(spacy.tokens.DocBin().from_bytes(data).get_docs(vocab))
    except CorpusError:
        raise
    except Exception as error:  # spaCy raises errors of many types for a damaged file
        raise file.error(f"this is not a DocBin that spaCy can read ({type(error).__name__})") from error
    for number, doc in enumerate(docs, 1):
        yield _from_spacy(doc, number, file)


def _from_spacy(doc: Doc, number: int, file: CorpusFile) -> Document:
    extra = _extra(doc.user_data.get(_KEY))
    groups = {name: [_span(span) for span in group] for name, group in doc.spans.items()}
    rejected, unsure = groups.pop("rejected", []), groups.pop("unsure", [])
    spans = dict.fromkeys(_span(span) for span in doc.ents)
    spans |= {span: None for group in groups.values() for span in group if span.label}
    without_label = sum(not span.label for group in groups.values() for span in group)
    file.lost.count("span without a label in a span group", without_label)
    # O tags do not make a document complete: setting `doc.ents`, even from a gazetteer, tags all other words with O
    missing = {token.ent_iob == 0 for token in doc}
    complete = extra.get("complete", False if missing == {True, False} else None)
    meta = extra.get("meta", {})
    return Document(
        id=str(extra.get("id", number)),
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


def _span(span: SpacySpan) -> Span:
    return Span(span.start_char, span.end_char, span.label_)


def write_docbin(docs: Iterable[Document], path: Path, lost: Lost, scheme: str = "IOB2") -> None:
    """Write spans of all states; a DocBin cannot hold scores and sources."""
    spacy = _import_spacy(path)
    vocab = spacy.blank("xx").vocab
    box = spacy.tokens.DocBin(store_user_data=True)
    for doc in docs:
        box.add(_to_spacy(doc, vocab, lost))
    with atomic_write(path) as stream:
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
