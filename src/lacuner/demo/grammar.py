"""From frames to sentences: choose a frame, fill it, and keep account of where the names went."""

from __future__ import annotations

import re
from itertools import accumulate
from random import Random
from typing import NamedTuple

from lacuner.data import Span, Words
from lacuner.demo.frames import RULES
from lacuner.demo.names import SLOTS, Names
from lacuner.demo.words import LISTS, WORD_USES

SHORTEST, LONGEST = 4, 40
"""The number of words, punctuation counted, that a sentence may have."""

SLOT = re.compile(r"\{([^}]+)\}")
_WORD = re.compile(r"(?:[A-Z]|Ref)\.(?= )|'s\b|\d+(?:[.,]\d+)+|[^\W_]+(?:'(?!s\b)[^\W_]+|-[^\W_]+)*|\S")
# A phrase in commas may end where other punctuation stands already.
_SPARE_COMMA = re.compile(r",(?=[.,?:)])")
_OPENING = re.compile(r'^"?$|: "$')
_QUOTED = re.compile(r'(?<=: ")[a-z]')
_BEFORE_VOWEL = re.compile(r"[aeio]|u(?!ni|s)", re.IGNORECASE)


class Alternatives(NamedTuple):
    """What a symbol may become, with running totals of the weights, as `Random.choices` wants them."""

    bodies: tuple[str, ...]
    weights: tuple[int, ...]


class Sentence(NamedTuple):
    """A finished sentence; `names` are surface and label as drawn, before a sentence's start gave them a capital."""

    text: str
    words: Words
    spans: tuple[Span, ...]
    names: tuple[tuple[str, str], ...]


def read_rules(rules: str) -> dict[str, Alternatives]:
    """Read a grammar: symbols at the margin, their alternatives indented; `frames` describes the notation."""
    found: dict[str, list[tuple[int, str]]] = {}
    symbol = ""
    for line in filter(str.strip, rules.splitlines()):
        if line.startswith(" "):
            weight, _, rest = line.strip().partition(" ")
            number, bodies = (int(weight), rest) if weight.isdigit() else (1, line.strip())
            found[symbol] += [(number, body) for body in bodies.split(" | ")]
        else:
            symbol = line.strip()
            found[symbol] = []
    return {
        name: Alternatives(tuple(body for _, body in rows), tuple(accumulate(weight for weight, _ in rows)))
        for name, rows in found.items()
    }


GRAMMAR = read_rules(RULES) | {"word_use": Alternatives(WORD_USES, tuple(range(1, len(WORD_USES) + 1)))}


def frame(rng: Random, symbol: str = "sentence") -> str:
    """A sentence whose names and words are still open: symbols are expanded, word lists and name slots are not."""
    rows = GRAMMAR[symbol]
    body = rng.choices(rows.bodies, cum_weights=rows.weights)[0]
    made = SLOT.sub(lambda slot: frame(rng, slot[1]) if slot[1] in GRAMMAR else slot[0], body)
    return _SPARE_COMMA.sub("", made)


def fill(frame: str, rng: Random, names: Names) -> Sentence:
    """Put words and names into a frame; every piece is split into words by itself, so that no word crosses a name."""
    text = ""
    words: list[tuple[int, int]] = []
    spans: list[Span] = []
    drawn: list[tuple[str, str]] = []
    plain_from = 0
    for number, piece in enumerate(SLOT.split(_QUOTED.sub(lambda found: found[0].upper(), frame))):
        is_slot, label = number % 2 == 1, ""
        if is_slot and piece in LISTS:
            piece = rng.choice(LISTS[piece])
        elif is_slot and piece in SLOTS:
            label = piece.partition(":")[0]
            piece = names.mention(piece)
            drawn.append((piece, label))
        elif is_slot:
            piece = names.unnamed(piece)
        text, piece = _join(text, piece)
        if label:
            words += _split(text, plain_from, len(text))
            spans.append(Span(len(text), len(text) + len(piece), label))
            plain_from = len(text) + len(piece)
        text += piece
        if label:
            words += _split(text, spans[-1].start, plain_from)
    words += _split(text, plain_from, len(text))
    return Sentence(text, tuple(words), tuple(spans), tuple(drawn))


def _join(text: str, piece: str) -> tuple[str, str]:
    """Mend what meets: a becomes an, and the first letter of a sentence or a quotation is a capital."""
    if re.search(r"\b[Aa] $", text) and _BEFORE_VOWEL.match(piece):
        text = text[:-1] + "n "
    if _OPENING.search(text):
        lead = len(piece) - len(piece.lstrip('"'))
        piece = piece[:lead] + piece[lead : lead + 1].upper() + piece[lead + 1 :]
    return text, piece


def _split(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The words between two offsets."""
    return [match.span() for match in _WORD.finditer(text, start, end)]


def sentence(rng: Random, names: Names) -> Sentence:
    """A sentence of an ordinary length."""
    while True:
        made = fill(frame(rng), rng, names)
        if SHORTEST <= len(made.words) <= LONGEST:
            return made
