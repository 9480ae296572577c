"""Weak labels and gold for the same texts: which entities are missing."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from lacuner.corpus.words import to_words, words_of
from lacuner.data import Document, Lost, Span
from lacuner.errors import ConfigError
from lacuner.evaluate.align import align
from lacuner.models.types import Annotation
from lacuner.techniques.label_issues import Suspect, context
from lacuner.training.identity import canonical


def aligned(weak: Sequence[Document], gold: Sequence[Document]) -> list[tuple[Document, Document]]:
    """Weak documents as recipes see them, in that order, each with its truth: the same with the spans of gold."""
    spans: dict[int, tuple[Span, ...]] = {}
    seen: list[Document] = []
    for real, mine in align(gold, weak):
        words_of(mine)
        seen.append(replace(mine, complete=bool(mine.complete)))
        spans[id(seen[-1])] = real.spans
    return [
        (doc, replace(doc, spans=spans[id(doc)], rejected=(), unsure=(), complete=False)) for doc in canonical(seen)
    ]


def truth(weak: Sequence[Document], gold: Sequence[Document]) -> list[Document]:
    """What a watch has to know: gold's spans in the words of the weak documents, in the order of the recipes."""
    return [real for _, real in aligned(weak, gold)]


class Followed(NamedTuple):
    """An unlabelled entity to look at."""

    document: Document
    span: Span

    def as_json(self) -> dict[str, Any]:
        start, end, label = self.span[:3]
        text = self.document.text[start:end]
        return {"document": self.document.id, "start": start, "end": end, "label": label, "text": text}

    @property
    def context(self) -> str:
        return context(Suspect("missing", self.document, self.span))


def unlabelled(weak: Sequence[Document], gold: Sequence[Document]) -> list[Followed]:
    """The entities of gold that weak lacks, as far as they are of a type that weak has and fit the words."""
    labels = {span.label for doc in weak for span in doc.spans}
    found = []
    for mine, real in aligned(weak, gold):
        there = {span[:2] for span in mine.spans}
        gone = [span for span in real.spans if span[:2] not in there and span.label in labels]
        found += [Followed(real, span) for _, _, span in to_words(real, gone, Lost())]
    return found


def choose(found: Sequence[Followed], names: Sequence[str] = (), most: int = 200, seed: int = 1) -> list[Followed]:
    """Those with one of these names first, then others at random, `most` of them in all."""
    named = [each for name in names for each in found if each.document.text[each.span.start : each.span.end] == name]
    missing = [name for name in names if name not in {each.as_json()["text"] for each in named}]
    if missing:
        raise ConfigError(f"there is no unlabelled entity {missing[0]!r} to follow")
    chosen = set(map(id, named))
    rest = [each for each in found if id(each) not in chosen]
    more = min(max(most - len(named), 0), len(rest))
    return [*named, *random.Random(seed).sample(rest, more)]


def anonymous(annotations: Iterable[Annotation], label: str) -> list[Annotation]:
    """The entities alone, all of one type: that they are entities counts, not which; weak may even lack a type."""
    return [Annotation(each.length, [(first, last, label) for first, last, _ in each.spans]) for each in annotations]
