"""Gold made weak, by rates that are known: what recipes are measured on.

Every decision is drawn from a hash of the seed and of what is decided on, not from a generator that is used up in
order. So the same entity meets the same fate wherever its sentence stands in the file, and whatever else is there.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pydantic import Field

from lacuner.config import Config
from lacuner.corpus.words import words_of
from lacuner.data import Document, Span, Words, sort_spans
from lacuner.errors import ConfigError


class Noise(Config):
    """How to corrupt. Rates are between 0 and 1; a span is dropped, or else retyped, or else shifted, or kept."""

    drop: float = Field(0.0, ge=0, le=1)
    """The share of entities that lose their label."""
    drop_types: dict[str, float] = Field(default_factory=dict)
    """Another rate for some types."""
    by_surface: bool = False
    """Drop names, not mentions: all mentions of a dropped name vanish together, as with a dictionary that lacks it."""
    wrong_type: float = Field(0.0, ge=0, le=1)
    """The share of the kept entities that get another type."""
    shift: float = Field(0.0, ge=0, le=1)
    """The share of the kept entities of which one edge moves by one word."""
    seed: int = 1


def corrupt(
    docs: Iterable[Document], noise: Noise, labels: Sequence[str] | None = None, tally: Counter[str] | None = None
) -> Iterator[Document]:
    """The documents with noise in their spans, and no longer complete. What was done is counted in `tally`.

    `labels` are the types to choose from when a type is made wrong; if they are not given, the documents are read
    twice, and so held in memory.
    """
    _check_rates(noise)
    if noise.wrong_type and labels is None:
        docs = list(docs)
        labels = sorted({span.label for doc in docs for span in doc.spans})
    labels = sorted(labels or [])
    tally = tally if tally is not None else Counter()
    copies: Counter[float] = Counter()
    for doc in docs:
        # copies of one sentence are told apart by number, so that they do not all lose the same entities
        digest = _draw(doc.text, *map(repr, doc.spans))
        copies[digest] += 1
        yield _corrupt(doc, noise, labels, tally, str(copies[digest]))


def _check_rates(noise: Noise) -> None:
    bad = [label for label, rate in noise.drop_types.items() if not 0 <= rate <= 1]
    if bad:
        raise ConfigError(f"drop_types.{bad[0]}: a rate is between 0 and 1, not {noise.drop_types[bad[0]]}")


def _corrupt(doc: Document, noise: Noise, labels: list[str], tally: Counter[str], copy: str) -> Document:
    seed = str(noise.seed)
    kept: list[Span] = []
    spans = sort_spans(doc.spans)
    for number, span in enumerate(spans):
        surface = doc.text[span.start : span.end]
        here = (seed, copy, doc.text, str(span.start), str(span.end), span.label)
        name = (seed, surface.casefold(), span.label)
        tally["entities"] += 1
        tally[f"entities {span.label}"] += 1
        if _draw("drop", *(name if noise.by_surface else here)) < noise.drop_types.get(span.label, noise.drop):
            tally["dropped"] += 1
            tally[f"dropped {span.label}"] += 1
        elif _draw("type?", *here) < noise.wrong_type:
            others = [label for label in labels if label != span.label]
            tally["retyped" if others else "could not be retyped"] += 1
            kept.append(span._replace(label=others[int(_draw("type", *here) * len(others))]) if others else span)
        elif _draw("shift?", *here) < noise.shift:
            # into the room that is left between the entity before, as it now is, and the next one
            room = (kept[-1].end if kept else 0, spans[number + 1].start if number + 1 < len(spans) else len(doc.text))
            choices = _shifts(words_of(doc), span, room)
            tally["shifted" if choices else "could not be shifted"] += 1
            kept.append(choices[int(_draw("shift", *here) * len(choices))] if choices else span)
        else:
            kept.append(span)
    tally["documents"] += 1
    return replace(doc, spans=sort_spans(kept), complete=False)


def _shifts(words: Words, span: Span, room: tuple[int, int]) -> list[Span]:
    """The span with one edge one word further in or out, where that leaves a word and stays in the room."""
    first = bisect_left(words, span.start, key=lambda word: word[0])
    last = bisect_right(words, span.end, key=lambda word: word[1]) - 1
    if first > last:
        return []
    edges = [(first - 1, last), (first, last + 1), (first + 1, last), (first, last - 1)]
    moved = [span._replace(start=words[i][0], end=words[j][1]) for i, j in edges if 0 <= i <= j < len(words)]
    return [new for new in moved if new.start >= room[0] and new.end <= room[1]]


def _draw(*parts: str) -> float:
    """A number in [0, 1) that depends on nothing but the parts."""
    digest = hashlib.blake2b("\x1f".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
