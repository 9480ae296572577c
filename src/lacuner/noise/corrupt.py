"""Simulated label noise: gold becomes weak, at known rates.

Every decision comes from a hash of the seed and of the entity, not from a generator that is consumed in order. What
happens to an entity depends neither on the order of the file nor on other documents.
"""

import hashlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Annotated

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
    kept: list[Span] = []
    spans = sort_spans(doc.spans)
    for number, span in enumerate(spans):
        surface = doc.text[span.start : span.end]
        mention = (seed, copy, doc.text, str(span.start), str(span.end), span.label)
        name = (seed, surface.casefold(), span.label)
        tally["entities"] += 1
        tally[f"entities {span.label}"] += 1
        if _draw("drop", *(name if noise.by_surface else mention)) < noise.drop_types.get(span.label, noise.drop):
            tally["dropped"] += 1
            tally[f"dropped {span.label}"] += 1
        elif _draw("type?", *mention) < noise.wrong_type:
            others = [label for label in labels if label != span.label]
            tally["retyped" if others else "could not be retyped"] += 1
            kept.append(span._replace(label=others[int(_draw("type", *mention) * len(others))]) if others else span)
        elif _draw("shift?", *mention) < noise.shift:
            # between the previous entity, after its own noise, and the next one
            room = (kept[-1].end if kept else 0, spans[number + 1].start if number + 1 < len(spans) else len(doc.text))
            choices = _shifts(words_of(doc), span, room)
            tally["shifted" if choices else "could not be shifted"] += 1
            kept.append(choices[int(_draw("shift", *mention) * len(choices))] if choices else span)
        else:
            kept.append(span)
    if noise.spurious:
        kept += _spurious_labels(doc, spans, kept, noise.spurious, (seed, copy, doc.text), tally)
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
    doc: Document, gold: Sequence[Span], weak: Sequence[Span], rate: float, key: tuple[str, ...], tally: Counter[str]
) -> list[Span]:
    """Labels of spans that are no entities, where no gold or weak span is; each begins and ends with a real word."""
    words = words_of(doc)
    free = [True] * len(words)
    real = [any(map(str.isalnum, doc.text[start:end])) for start, end in words]
    for span in (*gold, *weak):
        first, last = words_touching(words, span.start, span.end)
        free[first:last] = [False] * (last - first)
    added: list[Span] = []
    for span in gold:
        mention = (*key, str(span.start), str(span.end), span.label)
        if _draw("spurious?", *mention) >= rate:
            continue
        first, last = words_touching(words, span.start, span.end)
        size = max(last - first, 1)
        places = max(len(words) - size + 1, 0)
        offset = int(_draw("spurious", *mention) * places)
        for place in ((offset + step) % places for step in range(places)):
            if real[place] and real[place + size - 1] and all(free[place : place + size]):
                added.append(Span(words[place][0], words[place + size - 1][1], span.label))
                free[place : place + size] = [False] * size
                tally["spurious"] += 1
                break
        else:
            tally["could not be added"] += 1
    return added


def _draw(*parts: str) -> float:
    """A pseudo-random number in [0, 1) that depends only on the parts."""
    digest = hashlib.blake2b("\x1f".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
