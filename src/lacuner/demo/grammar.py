"""From frames to sentences: choose a frame, fill it, and record where the names are."""

import re
from random import Random
from typing import NamedTuple

from lacuner.data import Span, Words
from lacuner.demo.names import SLOTS, Names
from lacuner.demo.tables import SLOT, read_lists, read_rules, read_table

SHORTEST, LONGEST = 4, 40
"""Number of words in a sentence, punctuation included."""

_WORD = re.compile(r"(?:[A-Z]|Ref)\.(?= )|'s\b|\d+(?:[.,]\d+)+|[^\W_]+(?:'(?!s\b)[^\W_]+|-[^\W_]+)*|\S")
# a phrase in commas may end before other punctuation
_SPARE_COMMA = re.compile(r",(?=[.,?:)])")
_OPENING = re.compile(r'^"?$|: "$')
_QUOTED = re.compile(r'(?<=: ")[a-z]')
_BEFORE_VOWEL = re.compile(r"[aeio]|u(?!ni|s)", re.IGNORECASE)


class Sentence(NamedTuple):
    """A finished sentence; `names` are surface and label before capitalisation at the start of the sentence."""

    text: str
    words: Words
    spans: tuple[Span, ...]
    names: tuple[tuple[str, str], ...]


def _cross(first: str, second: str, joint: str = "") -> tuple[str, ...]:
    """Every word of `first` joined with every word of `second`, except where a letter would be doubled."""
    return tuple(a + joint + b for a in first.split() for b in second.split() if joint or (a[-1] != b[0] and a != b))


_WORDS = read_lists(read_table("words.txt"))
# crossed, so that dev and test contain ordinary words that never occur in train: an unknown word is not always a name
_STEM = "tide lamp mill rope salt stone cart kiln dock barn snow iron cliff reed thatch loom hay moss flint quay fen"
_PLACES = _cross(_STEM, "yard shed gate path post wall line side stone lane house works way bank end")
_AGAIN = _cross("re-", "inspected measured photographed cleaned tested painted examined insured sealed assembled")
_BADLY = _cross("mis", "measured labelled counted recorded placed handled")

LISTS: dict[str, tuple[str, ...]] = {
    **_WORDS,
    "thing": _WORDS["thing"] + _PLACES[::2],
    "mass": _WORDS["mass"] * 3 + _cross(_STEM, "dust ash meal pulp oil wool paste chaff grit lime"),
    "adj": _WORDS["adj"] * 2 + _cross(_STEM, "worn bound lined backed clad fed stained driven facing", "-"),
    "trait": _WORDS["trait"] + _cross("well- ill- half-", "trained informed known paid rested"),
    "did": _WORDS["did"] * 2 + _AGAIN + _BADLY,
    "site": _WORDS["site"] + _PLACES[1::2],
    "digit": tuple(map(str, range(1, 31))),
    "count": (*map(str, range(32, 99, 3)), "112", "140", "260", "375", "1,200"),
    "age": tuple(map(str, range(19, 95))),
    "year": tuple(map(str, range(1894, 2024))),
    "letter": tuple("ABCDEFGH"),
    "quality": ("too expensive", "badly made", "safe", "overdue", "out of date", "worth keeping", "past mending"),
}
"""Word lists by the name that frames use; a repeated word is drawn more often."""

GRAMMAR = read_rules(read_table("frames.txt"))


def frame(rng: Random, symbol: str = "sentence") -> str:
    """A random sentence with its symbols expanded, but word lists and name slots not yet filled."""
    body = GRAMMAR[symbol].choose(rng)
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
