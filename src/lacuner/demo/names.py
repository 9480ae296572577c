"""Invented names, built from syllables and patterns.

Each type has habits that a model can learn (endings, patterns, capitals) and that types partly share. An unseen name
can therefore often be recognised by its form, and a *bare* one only by its context.
"""

import re
from collections.abc import Callable
from random import Random

from lacuner.demo.words import WORD_NAMES, listed, read_lists

LABELS = ("ORGANISATION", "PERSON", "PLACE", "SUBSTANCE", "VESSEL")

_ONSET = listed("b br c cr d dr f fl g gr h j k l m n p pr r s sk st t tr th v w y z")
_VOWEL = listed("a e i o u a e o")
_CODA = listed("l ld lm lv ll m n nd nn r rd rn rr rv s sk st t th v x z")
# before a consonant only these, to keep words pronounceable
_SOFT_CODA = listed("l m n r s l n r t")
_ENDING = {
    "bare": listed("en er ow ard an el on a ane old is in or"),
    "given": listed("a ia is en ric wyn o ine mar el us ora ina an"),
    "last": listed("ow ek son ley quist man ari by well ard er ane off in"),
    "place": listed("wick holm ford dale mere stead mouth haven by ley ness ton well ow en"),
    "coined": listed("ex ia on tech ora us ane is a ine"),
    "chemical": listed("ine ol ate ide ium ene ane one in"),
}
_RUDE = re.compile(
    "anus|bast|bum|coc|cum|cunt|dic|dum|fag|fart|fuc|hitl|homo|jiz|kill|kok|naz|nig|peni|pis|porn|rap|sex|shi|slut"
    "|moron|retar|semen|stal|tit|turd|vagi|whor"
)
# real words and names that the syllables would produce sooner or later
_REAL = frozenset(
    listed("""
barium baron barren barrow barton basel basis benson billow bolton borrow boston bristol bromide bromine brutus burden
burton butane camus canon carson cerium cilium cresol crisis custard davis denton derby dover driven durex farrow
fellow ferrari follow gallium garden german given golden gravel hanford hanson harden harris harrow hazard helium
hendon hilton holden hollow human kennel larson lenin level lithium lizard london luton manson marina marrow marvel
mason mellow methane milan milton morris morrow mustard narrow navel nelson nixon norman norton novel panel paris
parson peron person pillow preston prison putin raven risen rolex roman samson serene seven skelton sorrow stalin
standard stanford stella stetson sutton tallow tardis telford tennis terra thomson thorium timex tito truman tunnel
turin valium venus visa vista volvo walton warden watson weston willow wilson wizard woman yellow zara zola valley
bbc bmw bnp cbs cnn dhl dns gps gsm hbo hmv hsbc kfc kgb kkk lcd llb lsd mtv nbc nhl nhs ntt pbs pdf rbs sncf tnt wwf
""")
)

_LISTS = read_lists("""
SUBJECT: Optics Tides Soils Forestry Hygiene Metals Weaving Pharmacy Statistics Harbours Glass Botany Acoustics
  Fisheries Maps
TRADE: Shipping Instruments Textiles Pharmaceuticals Motors Glass Energy Foods Timber Optical Rail Print
BODY: Institute Society Academy Bureau Office Council Federation Laboratory
HOUSE: Hospital Museum Infirmary Polytechnic College Observatory Library Theatre Bank
RANK: National Royal Northern Central Joint International Western Free
SHIP_ADJ: Grey Morning Silver Northern Last Golden Restless Second Early Bright Lonely Gentle Winter Blue Hollow Distant
  Quiet Summer Crooked Evening Western Patient Salt Amber Hidden Fair
SHIP_NOUN: Heron Tide Star Thistle Petrel Lantern Venture Curlew Hope Harvest Wind Daughter Bell Plough Kestrel Mariner
  Promise Sparrow Compass Island Rover Dawn Pearl Anchor Gannet Shepherd Comet Oak Fiddler Salmon Bride Sailor
SALT: sodium copper zinc calcium ammonium iron
INITIAL: A. B. C. D. E. F. G. H. I. J. K. L. M. N. O. P. R. S. T. V. W.
""") | {"PERSON_WORD": WORD_NAMES["PERSON"]}

_PATTERNS: dict[str, tuple[tuple[float, str], ...]] = {
    "last": (
        (0.06, "O'{~bare}"), (0.13, "{~last}-{~last}"), (0.17, "{van|de|ap|dal} {~last}"),
        (0.4, "{~bare}"), (1, "{~last}"),
    ),
    "given": ((0.08, "{PERSON_WORD}"), (1, "{~given}")),
    "person": (
        (0.5, "{given} {last}"), (0.6, "{given} {INITIAL} {last}"), (0.68, "{INITIAL} {INITIAL} {last}"),
        (0.76, "{INITIAL} {last}"), (0.92, "{last}"), (1, "{given}"),
    ),
    "town": ((0.2, "{~bare}"), (1, "{~place}")),
    "place": (
        (0.55, "{town}"), (0.7, "{Port|Upper|Lower|Lake|Mount|Cape|New|Great} {town}"),
        (0.8, "{~bare} {Bay|Falls|Head|Sound|Cross|Hill|Moor}"), (0.87, "{town}-{on|under|by}-{~bare}"),
        (1, "{~last}'s {Ness|Landing|Gate|Ferry|End}"),
    ),
    "region": ((0.5, "{Isle|Vale|Forest|Gulf} of {town}"), (1, "{~bare} {Hills|Islands|Marshes|Valley|Canal}")),
    "institution": (
        (0.2, "University of {town}"), (0.4, "{town} {BODY} of {SUBJECT}"), (0.52, "{joint_institution}"),
        (0.6, "{BODY} for the Study of {SUBJECT}"), (0.7, "{RANK} {SUBJECT} {BODY}"), (0.85, "{place} {HOUSE}"),
        (1, "{person} {Trust|Foundation|Memorial Fund}"),
    ),
    "company": (
        (0.2, "{acronym}"), (0.4, "{~coined}"), (0.55, "{last} {& Sons|& Daughters|Brothers|Holdings|Ltd|Group}"),
        (0.65, "{~last} and {~last}"), (0.85, "{town|~bare|last} {TRADE}"),
        (1, "{~coined} {TRADE} {Ltd|Company|Group}"),
    ),
    "vessel": (
        (0.3, "{SHIP_ADJ} {SHIP_NOUN}"), (0.5, "{~given}"), (0.7, "{Star|Pride|Maid|Spirit} of {town}"),
        (0.9, "{Lady|Saint|Queen} {given}"), (1, "{given} {last}"),
    ),
    "title_of_work": ((0.6, "{SHIP_ADJ} {SHIP_NOUN}"), (0.8, "{given}"), (1, "{~last}'s {SHIP_NOUN}")),
}  # fmt: skip
"""Patterns of each kind of name, with cumulative probabilities. `{~bare}` is a coined word with an ending of that kind,
`{LIST}` a word of a list, `{a|b}` one of the alternatives, `{town}` a name of another kind."""
_SLOT = re.compile(r"\{([^}]+)\}")


def coin(rng: Random, endings: tuple[str, ...], longer: float = 0.2) -> str:
    """A new, pronounceable and inoffensive word: a syllable and an ending, sometimes with a syllable in between."""
    while True:
        ending = rng.choice(endings)
        if rng.random() < longer:
            ending = rng.choice("aeio") + rng.choice("lmnr") + ending
        codas = _CODA if ending[0] in "aeiou" else _SOFT_CODA
        word = rng.choice(_ONSET) + rng.choice(_VOWEL) + rng.choice(codas) + ending
        if word not in _REAL and not _RUDE.search(word):
            return word


def make_name(rng: Random, kind: str) -> str:
    """A name of a kind: one of `_PATTERNS` or `_MAKERS`, a list, or `~` and a kind of ending."""
    if "|" in kind:
        return make_name(rng, rng.choice(kind.split("|")))
    if kind.startswith("~"):
        return coin(rng, _ENDING[kind[1:]]).capitalize()
    if kind in _LISTS:
        return rng.choice(_LISTS[kind])
    if kind in _MAKERS:
        return _MAKERS[kind](rng)
    if kind not in _PATTERNS:
        return kind  # a literal alternative
    draw = rng.random()
    pattern = next(pattern for limit, pattern in _PATTERNS[kind] if draw < limit)
    return _SLOT.sub(lambda slot: make_name(rng, slot[1]), pattern)


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
    "jargon": lambda rng: make_name(rng, "~bare|~chemical").lower(),  # a dialect word that looks like a substance
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
