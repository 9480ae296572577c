"""spaCy's DocBin. Entities are spans; the span groups `rejected` and `unsure` are what they say.

Spans that overlap cannot all be entities in spaCy: the longest are, the others go to the group `overlapping`; any
other group that somebody made is read as spans too. In a document that is not complete, words outside entities are
written as *missing*, which is spaCy's own word for not annotated.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lacuner.atomic import atomic_write
from lacuner.corpus.reader import Reading
from lacuner.corpus.words import flatten, to_words, words_of
from lacuner.data import Document, Lost, Span, Where, Words, sort_spans
from lacuner.errors import CorpusError

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.tokens import Span as SpacySpan

MAX_BYTES = 2 << 30
_KEY = "lacuner"


def _spacy(path: Path) -> tuple[Any, Any]:
    try:
        import spacy
        from spacy.tokens import DocBin
    except ImportError as error:
        raise CorpusError(
            "reading and writing .spacy files needs spaCy: pip install 'lacuner[spacy]'", file=path
        ) from error
    return spacy, DocBin


def read_docbin(reading: Reading) -> Iterator[Document]:
    """All documents of a DocBin. spaCy has no way to read one piece by piece."""
    spacy, docbin = _spacy(reading.path)
    try:
        data = reading.path.read_bytes()
    except OSError as error:
        raise reading.error(f"cannot read this file: {error.strerror}") from error
    vocab = spacy.blank("xx").vocab
    try:
        unpacker = zlib.decompressobj()
        unpacker.decompress(data, MAX_BYTES)
        if unpacker.unconsumed_tail:
            raise reading.error(f"this file unpacks to more than {MAX_BYTES >> 30} GiB")
        docs = list(docbin().from_bytes(data).get_docs(vocab))
    except CorpusError:
        raise
    except Exception as error:  # whatever spaCy makes of a damaged file
        raise reading.error(f"this is not a DocBin that spaCy can read ({type(error).__name__})") from error
    for number, doc in enumerate(docs, 1):
        yield _from_spacy(doc, number, reading)


def _from_spacy(doc: Doc, number: int, reading: Reading) -> Document:
    ours = _ours(doc.user_data.get(_KEY))
    groups = {name: [_span(span) for span in group] for name, group in doc.spans.items()}
    rejected, unsure = groups.pop("rejected", []), groups.pop("unsure", [])
    spans = dict.fromkeys(_span(span) for span in doc.ents)
    spans |= {span: None for group in groups.values() for span in group if span.label}
    unlabelled = sum(not span.label for group in groups.values() for span in group)
    reading.lost.count("span without a label in a span group", unlabelled)
    complete = ours.get("complete", _complete(doc))
    meta = ours.get("meta", {})
    return Document(
        id=str(ours.get("id", number)),
        text=doc.text,
        words=tuple([(token.idx, token.idx + len(token)) for token in doc if not token.is_space]),
        spans=sort_spans(spans),
        rejected=sort_spans(rejected),
        unsure=sort_spans(unsure),
        complete=complete if isinstance(complete, bool) else None,
        meta=dict(meta) if isinstance(meta, dict) else {},
        where=Where(str(reading.path)),
    )


def _ours(value: object) -> dict[str, Any]:
    try:
        found = json.loads(value) if isinstance(value, str) else {}
    except (ValueError, RecursionError):
        found = {}
    return found if isinstance(found, dict) else {}


def _complete(doc: Doc) -> bool | None:
    """What the file says: missing beside annotated words means gaps, and nothing else is said on purpose.

    spaCy takes every other word for O when somebody sets `doc.ents`, be it from a dictionary; so O is no claim.
    """
    missing = [token.ent_iob == 0 for token in doc]
    return False if any(missing) and not all(missing) else None


def _span(span: SpacySpan) -> Span:
    return Span(span.start_char, span.end_char, span.label_)


def write_docbin(docs: Iterable[Document], path: Path, lost: Lost, scheme: str = "IOB2") -> None:
    """All states; scores and sources have no place in a DocBin."""
    spacy, docbin = _spacy(path)
    vocab = spacy.blank("xx").vocab
    box = docbin(store_user_data=True)
    for doc in docs:
        box.add(_to_spacy(doc, vocab, lost))
    with atomic_write(path) as stream:
        stream.write(box.to_bytes())


def _to_spacy(doc: Document, vocab: Any, lost: Lost) -> Doc:
    from spacy.tokens import Doc

    tokens, spaces = _tokens(doc.text, words_of(doc))
    lost.count(
        "text between words became a word", len([token for token in tokens if token.strip()]) - len(words_of(doc))
    )
    made = Doc(vocab, words=tokens, spaces=spaces)
    fitting = [span for _, _, span in to_words(doc, doc.spans, lost)]
    flat = flatten(doc, fitting, Lost())
    made.set_ents(_spans(made, flat), default="outside" if doc.complete else "missing")
    chosen = set(flat)
    groups = {
        "overlapping": [span for span in fitting if span not in chosen],
        "rejected": [span for _, _, span in to_words(doc, doc.rejected, lost)],
        "unsure": [span for _, _, span in to_words(doc, doc.unsure, lost)],
    }
    for name, group in groups.items():
        if group:
            made.spans[name] = _spans(made, group)
    written = [*fitting, *groups["rejected"], *groups["unsure"]]
    lost.count("score not written", sum(span.score is not None for span in written))
    lost.count("source not written", sum(span.source is not None for span in written))
    # as a string: msgpack has no numbers beyond 64 bits, and JSON has
    made.user_data[_KEY] = json.dumps({"id": doc.id, "complete": doc.complete, "meta": doc.meta})
    return made


def _spans(made: Doc, spans: Iterable[Span]) -> list[SpacySpan]:
    found = [made.char_span(span.start, span.end, label=span.label) for span in spans]
    return [span for span in found if span is not None]


def _tokens(text: str, words: Words) -> tuple[list[str], list[bool]]:
    """Words as spaCy wants them: what stands between two is a single space, or a token of its own."""
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
