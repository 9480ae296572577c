"""Simulated label noise: gold becomes weak, at known rates.

Every decision comes from a hash of the seed and of the entity, not from a generator that is consumed in order. What
happens to an entity depends neither on the order of the file nor on other documents.
"""

import hashlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from lacuner.config import Config
from lacuner.corpus.words import words_of, words_touching
from lacuner.data import Document, Span, Words, labels_of, sort_spans

Rate = Annotated[float, Field(ge=0, le=1)]


class Noise(Config):
    """Noise rates, between 0 and 1. A span is dropped, or else retyped, or else shifted, or kept.

    >>> Noise(drop=0.5, by_surface=True).drop
    0.5
    """

    drop: Rate = 0.0
    """Share of entities that lose their label."""
    drop_types: dict[str, Rate] = Field(default_factory=dict)
    """Drop rates of single types, instead of `drop`."""
    by_surface: bool = False
    """Drop names instead of mentions: all mentions of a name together, as if a gazetteer lacked the entry."""
    wrong_type: Rate = 0.0
    """Share of the remaining entities that get a wrong type."""
    shift: Rate = 0.0
    """Share of the remaining entities with one boundary moved by one word."""
    spurious: Rate = 0.0
    """Number of spurious labels per entity: each is in the entity's document, has its type and its number of words, and
    touches no entity."""
    seed: int = 1


def corrupt(
    docs: Iterable[Document], noise: Noise, labels: Sequence[str] | None = None, tally: Counter[str] | None = None
) -> Iterator[Document]:
    """Add noise to the spans of documents, which are incomplete afterwards; `tally` counts what was done.

    A wrong type is chosen among `labels`. By default these are the types of the documents, which are then held in
    memory.

    >>> gold = Document("1", "Mara Teel left Halden", spans=(Span(0, 9, "PERSON"), Span(15, 21, "PLACE")))
    >>> tally = Counter()
    >>> [doc] = corrupt([gold], Noise(drop_types={"PLACE": 1.0}), tally=tally)
    >>> doc.spans, doc.complete, tally["dropped"]
    ((Span(start=0, end=9, label='PERSON', score=None, source=None),), False, 1)
    """
    if noise.wrong_type and labels is None:
        docs = list(docs)
        labels = labels_of(docs)
    labels = sorted(labels or [])
    tally = tally if tally is not None else Counter()
    copies: Counter[float] = Counter()
    for doc in docs:
        # copies of a sentence are numbered, so that they do not all lose the same entities
        digest = _draw(doc.text, *map(repr, doc.spans))
        copies[digest] += 1
        yield _corrupt(doc, noise, labels, tally, str(copies[digest]))


def _corrupt(doc: Document, noise: Noise, labels: list[str], tally: Counter[str], copy: str) -> Document:
    seed = str(noise.seed)
    draw_for = _Draws(seed, copy, doc.text)
    kept: list[Span] = []
    spans = sort_spans(doc.spans)
    for number, span in enumerate(spans):
        surface = doc.text[span.start : span.end]
        mention = (str(span.start), str(span.end), span.label)
        tally["entities"] += 1
        tally[f"entities {span.label}"] += 1
        by_surface = noise.by_surface
        drawn = _draw("drop", seed, surface.casefold(), span.label) if by_surface else draw_for("drop", *mention)
        if drawn < noise.drop_types.get(span.label, noise.drop):
            tally["dropped"] += 1
            tally[f"dropped {span.label}"] += 1
        elif draw_for("type?", *mention) < noise.wrong_type:
            own = bisect_left(labels, span.label)
            others = len(labels) - (labels[own : own + 1] == [span.label])
            tally["retyped" if others else "could not be retyped"] += 1
            at = int(draw_for("type", *mention) * others)
            kept.append(span._replace(label=labels[at + (at >= own and others < len(labels))]) if others else span)
        elif draw_for("shift?", *mention) < noise.shift:
            # between the previous entity, after its own noise, and the next one
            room = (kept[-1].end if kept else 0, spans[number + 1].start if number + 1 < len(spans) else len(doc.text))
            choices = _shifts(words_of(doc), span, room)
            tally["shifted" if choices else "could not be shifted"] += 1
            kept.append(choices[int(draw_for("shift", *mention) * len(choices))] if choices else span)
        else:
            kept.append(span)
    if noise.spurious:
        kept += _spurious_labels(doc, spans, kept, noise.spurious, draw_for, tally)
    tally["documents"] += 1
    return replace(doc, spans=sort_spans(kept), complete=False)


def _shifts(words: Words, span: Span, room: tuple[int, int]) -> list[Span]:
    """The span with one boundary moved one word in or out, as long as it keeps a word and stays within the room."""
    first = bisect_left(words, span.start, key=lambda word: word[0])
    last = bisect_right(words, span.end, key=lambda word: word[1]) - 1
    if first > last:
        return []
    boundaries = [(first - 1, last), (first, last + 1), (first + 1, last), (first, last - 1)]
    moved = [span._replace(start=words[i][0], end=words[j][1]) for i, j in boundaries if 0 <= i <= j < len(words)]
    return [new for new in moved if new.start >= room[0] and new.end <= room[1]]


def _spurious_labels(
    doc: Document, gold: Sequence[Span], weak: Sequence[Span], rate: float, draw_for: "_Draws", tally: Counter[str]
) -> list[Span]:
    """Labels of spans that are no entities, where no gold or weak span is; each begins and ends with a real word."""
    words = words_of(doc)
    free = [True] * len(words)
    real = [any(map(str.isalnum, doc.text[start:end])) for start, end in words]
    for span in (*gold, *weak):
        first, last = words_touching(words, span.start, span.end)
        free[first:last] = [False] * (last - first)
    added: list[Span] = []
    no_place_for: set[int] = set()  # sizes; places are only taken, so that one search in vain is enough
    for span in gold:
        mention = (str(span.start), str(span.end), span.label)
        if draw_for("spurious?", *mention) >= rate:
            continue
        first, last = words_touching(words, span.start, span.end)
        size = max(last - first, 1)
        places = max(len(words) - size + 1, 0) if size not in no_place_for else 0
        offset = int(draw_for("spurious", *mention) * places)
        for place in ((offset + step) % places for step in range(places)):
            if real[place] and real[place + size - 1] and all(free[place : place + size]):
                added.append(Span(words[place][0], words[place + size - 1][1], span.label))
                free[place : place + size] = [False] * size
                tally["spurious"] += 1
                break
        else:
            no_place_for.add(size)
            tally["could not be added"] += 1
    return added


def _draw(*parts: str) -> float:
    """A pseudo-random number in [0, 1) that depends only on the parts."""
    return _as_number(_hash_of(*parts))


class _Draws:
    """`_draw(purpose, *shared, *parts)` for many parts: what they share, the text of a document, is hashed once.

    >>> _Draws("1", "Mara left")("drop", "0", "4") == _draw("drop", "1", "Mara left", "0", "4")
    True
    """

    def __init__(self, *shared: str) -> None:
        self._shared = shared
        self._hashes: dict[str, Any] = {}

    def __call__(self, purpose: str, *parts: str) -> float:
        if purpose not in self._hashes:
            self._hashes[purpose] = _hash_of(purpose, *self._shared)
        digest = self._hashes[purpose].copy()
        digest.update(("\x1f" + "\x1f".join(parts)).encode("utf-8", "surrogatepass"))
        return _as_number(digest)


def _hash_of(*parts: str) -> Any:
    return hashlib.blake2b("\x1f".join(parts).encode("utf-8", "surrogatepass"), digest_size=8)


def _as_number(digest: Any) -> float:
    return int.from_bytes(digest.digest(), "big") / 2**64
