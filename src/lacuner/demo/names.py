"""Invented names, built from syllables and patterns.

Each type has habits that a model can learn (endings, patterns, capitals) and that types partly share. An unseen name
can therefore often be recognised by its form, and a *bare* one only by its context.
"""

import re
from collections.abc import Callable
from random import Random

from lacuner.demo.tables import SLOT, read_lists, read_rules, read_table

LABELS = ("ORGANISATION", "PERSON", "PLACE", "SUBSTANCE", "VESSEL")

_PATTERNS = read_rules(read_table("name_patterns.txt"))
_LISTS = read_lists(read_table("name_words.txt"))
_REAL = frozenset(_LISTS["REAL"])
_RUDE = re.compile(
    "anus|bast|bum|coc|cum|cunt|dic|dum|fag|fart|fuc|hitl|homo|jiz|kill|kok|naz|nig|peni|pis|porn|rap|sex|shi|slut"
    "|moron|retar|semen|stal|tit|turd|vagi|whor"
)
WORD_NAMES = {label: _LISTS[label] for label in LABELS}
"""Ordinary words that are also names, by label."""


def coin(rng: Random, endings: tuple[str, ...], longer: float = 0.2) -> str:
    """A new, pronounceable and inoffensive word: a syllable and an ending, sometimes with a syllable in between."""
    while True:
        ending = rng.choice(endings)
        if rng.random() < longer:
            ending = rng.choice("aeio") + rng.choice("lmnr") + ending
        codas = _LISTS["CODA" if ending[0] in "aeiou" else "SOFT_CODA"]
        word = rng.choice(_LISTS["ONSET"]) + rng.choice(_LISTS["VOWEL"]) + rng.choice(codas) + ending
        if word not in _REAL and not _RUDE.search(word):
            return word


def make_name(rng: Random, kind: str) -> str:
    """A name of a kind: one of `_PATTERNS` or `_MAKERS`, a list, or `~` and a kind of ending; others are literal."""
    if "/" in kind:
        return make_name(rng, rng.choice(kind.split("/")))
    if kind.startswith("~"):
        return coin(rng, _LISTS[kind]).capitalize()
    if kind in _LISTS:
        return rng.choice(_LISTS[kind])
    if kind in _MAKERS:
        return _MAKERS[kind](rng)
    if kind in _PATTERNS:
        return SLOT.sub(lambda slot: make_name(rng, slot[1]), _PATTERNS[kind].choose(rng))
    return kind


def _joint_institution(rng: Random) -> str:
    first, second = rng.sample(_LISTS["SUBJECT"], 2)
    rank = rng.choice((f"{make_name(rng, 'RANK')} ", "", ""))
    return f"{rank}{make_name(rng, 'BODY')} of {first} and {second}"


def _acronym(rng: Random) -> str:
    """Three or four consonants; with vowels they would soon spell a word."""
    while True:
        letters = "".join(rng.choices("BCDFGHKLMNPRSTVWX", k=rng.choice((3, 3, 4))))
        if letters.lower() not in _REAL:
            return letters


def _substance(rng: Random) -> str:
    """A substance: lower-case, except for brands."""
    draw = rng.random()
    word = make_name(rng, "~chemical").lower()
    if draw < 0.5:
        return word
    if draw < 0.6:
        return f"{make_name(rng, 'SALT')} {coin(rng, ('ate',), 0)}"
    if draw < 0.7:
        return f"{coin(rng, ('ic',), 0)} acid"
    if draw < 0.78:
        return f"{rng.choice(('alpha', 'beta', 'iso', 'nor'))}-{word}"
    if draw < 0.85:
        return f"{word}-{rng.randint(2, 40)}"
    return make_name(rng, "~coined") if draw < 0.92 else make_name(rng, "~bare").lower()


def _code(rng: Random) -> str:
    """Capitals that are not an acronym: a grade, a sample, a form."""
    letters = _acronym(rng)[-rng.choice((1, 2, 3, 3)) :]
    return f"{letters}-{rng.randint(2, 99)}" if len(letters) < 3 or rng.random() < 0.3 else letters


_MAKERS: dict[str, Callable[[Random], str]] = {
    "joint_institution": _joint_institution,
    "acronym": _acronym,
    "substance": _substance,
    "vague": lambda rng: make_name(rng, "~bare").lower(),  # a substance whose form tells nothing
    "demonym": lambda rng: coin(rng, ("ish", "ese", "ian", "ic"), 0).capitalize(),
    "code": _code,
    "jargon": lambda rng: make_name(rng, "~bare/~chemical").lower(),  # a dialect word that looks like a substance
}
_KINDS = {
    "PERSON": "person", "PERSON:last": "last", "PERSON:bare": "~bare",
    "PLACE": "place", "PLACE:the": "region", "PLACE:bare": "~bare",
    "ORGANISATION": "company", "ORGANISATION:the": "institution", "ORGANISATION:caps": "acronym",
    "ORGANISATION:bare": "~bare",
    "SUBSTANCE": "substance", "SUBSTANCE:bare": "vague",
    "VESSEL": "vessel", "VESSEL:bare": "~bare",
}  # fmt: skip
"""The kind of name for each slot of a frame; `the` marks names that take an article, which is not part of them."""
SLOTS = tuple(_KINDS)
DISTRACTORS = {
    "demonym": "demonym", "code": "code", "title_of_work": "title_of_work", "jargon": "jargon", "eponym": "last",
}  # fmt: skip
"""Slots for words that look like names but are not annotated; an eponym is the surname in the name of a method."""

_WELL_KNOWN = 16
_SHARED = 24
P_WELL_KNOWN = 0.17
P_BARE_SHARED = 0.17
P_BARE_WORD = 0.1
P_NESTED = 0.16


class Names:
    """Draws names: a few well-known ones repeatedly, most of them once.

    `shared` are bare names that persons, places, organisations and ships have in common.
    """

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.shared = [make_name(rng, "~bare") for _ in range(_SHARED)]
        self._known = {slot: [make_name(rng, kind) for _ in range(_WELL_KNOWN)] for slot, kind in _KINDS.items()}

    def mention(self, slot: str) -> str:
        """A name for a slot such as `PERSON` or `ORGANISATION:the`."""
        rng = self._rng
        label, _, form = slot.partition(":")
        if form == "bare":
            draw = rng.random()
            if draw < P_BARE_WORD:
                return rng.choice(WORD_NAMES[label])
            if draw < P_BARE_WORD + P_BARE_SHARED and label != "SUBSTANCE":
                return rng.choice(self.shared)
        elif rng.random() < P_WELL_KNOWN:
            return rng.choice(self._known[slot])
        elif slot == "ORGANISATION:the" and rng.random() < P_NESTED:
            # it contains a place that is annotated elsewhere: a trap for string matching
            inner = rng.choice(self._known["PLACE"])
            return rng.choice((f"University of {inner}", f"{inner} {make_name(rng, 'HOUSE')}"))
        return make_name(rng, _KINDS[slot])

    def distractor(self, slot: str) -> str:
        """A word that looks like a name but is not annotated."""
        if slot == "eponym" and self._rng.random() < 0.3:
            return self._rng.choice(self.shared)
        return make_name(self._rng, DISTRACTORS[slot])
