"""From frames to sentences: choose a frame, fill it, and record where the names are."""

import re
from itertools import accumulate
from random import Random
from typing import NamedTuple

from lacuner.data import Span, Words
from lacuner.demo.frames import RULES
from lacuner.demo.names import SLOTS, Names
from lacuner.demo.words import LISTS

SHORTEST, LONGEST = 4, 40
"""Number of words in a sentence, punctuation included."""

SLOT = re.compile(r"\{([^}]+)\}")
_WEIGHT = re.compile(r"(\d+)\* ")
_WORD = re.compile(r"(?:[A-Z]|Ref)\.(?= )|'s\b|\d+(?:[.,]\d+)+|[^\W_]+(?:'(?!s\b)[^\W_]+|-[^\W_]+)*|\S")
# a phrase in commas may end before other punctuation
_SPARE_COMMA = re.compile(r",(?=[.,?:)])")
_OPENING = re.compile(r'^"?$|: "$')
_QUOTED = re.compile(r'(?<=: ")[a-z]')
_BEFORE_VOWEL = re.compile(r"[aeio]|u(?!ni|s)", re.IGNORECASE)


class Alternatives(NamedTuple):
    """The alternatives of a symbol, with cumulative weights for `Random.choices`."""

    bodies: tuple[str, ...]
    weights: tuple[int, ...]


class Sentence(NamedTuple):
    """A finished sentence; `names` are surface and label before capitalisation at the start of the sentence."""

    text: str
    words: Words
    spans: tuple[Span, ...]
    names: tuple[tuple[str, str], ...]


def read_rules(rules: str) -> dict[str, Alternatives]:
    """Read a grammar in the notation that `frames` describes.

    >>> read_rules("greeting: 3* hello | good morning")
    {'greeting': Alternatives(bodies=('hello', 'good morning'), weights=(3, 4))}
    """
    grammar = {}
    for rule in re.split(r"\n(?=\w)", rules.strip()):
        symbol, _, text = rule.partition(":")
        alternatives = [alternative.strip() for alternative in text.split("|")]
        weights = [int(match[1]) if (match := _WEIGHT.match(body)) else 1 for body in alternatives]
        bodies = tuple(_WEIGHT.sub("", body) for body in alternatives)
        grammar[symbol] = Alternatives(bodies, tuple(accumulate(weights)))
    return grammar


GRAMMAR = read_rules(RULES)


def frame(rng: Random, symbol: str = "sentence") -> str:
    """A random sentence with its symbols expanded, but word lists and name slots not yet filled."""
    rows = GRAMMAR[symbol]
    body = rng.choices(rows.bodies, cum_weights=rows.weights)[0]
    expanded = SLOT.sub(lambda slot: frame(rng, slot[1]) if slot[1] in GRAMMAR else slot[0], body)
    return _SPARE_COMMA.sub("", expanded)


def fill(frame: str, rng: Random, names: Names) -> Sentence:
    """Put words and names into a frame; each piece is split into words separately, so that no word crosses a name."""
    text = ""
    words: list[tuple[int, int]] = []
    spans: list[Span] = []
    drawn: list[tuple[str, str]] = []
    plain_from = 0
    for number, piece in enumerate(SLOT.split(_QUOTED.sub(lambda letter: letter[0].upper(), frame))):
        is_slot, label = number % 2 == 1, ""
        if is_slot and piece in LISTS:
            piece = rng.choice(LISTS[piece])
        elif is_slot and piece in SLOTS:
            label = piece.partition(":")[0]
            piece = names.mention(piece)
            drawn.append((piece, label))
        elif is_slot:
            piece = names.distractor(piece)
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
    """Adapt two adjoining pieces: a becomes an, and a sentence or quotation begins with a capital letter."""
    if re.search(r"\b[Aa] $", text) and _BEFORE_VOWEL.match(piece):
        text = text[:-1] + "n "
    if _OPENING.search(text):
        lead = len(piece) - len(piece.lstrip('"'))
        piece = piece[:lead] + piece[lead : lead + 1].upper() + piece[lead + 1 :]
    return text, piece


def _split(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The words between two offsets, as character ranges."""
    return [match.span() for match in _WORD.finditer(text, start, end)]


def sentence(rng: Random, names: Names) -> Sentence:
    """A random sentence of an ordinary length."""
    while True:
        filled = fill(frame(rng), rng, names)
        if SHORTEST <= len(filled.words) <= LONGEST:
            return filled
