"""Names of nobody and nowhere, built from syllables and patterns.

Each type has habits that a model can learn (endings, patterns, capitals) and that types partly share, so that a name
never seen before can often be told by its shape, and a *bare* one only by what stands around it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from lacuner.demo.words import WORD_NAMES, listed

LABELS = ("ORGANISATION", "PERSON", "PLACE", "SUBSTANCE", "VESSEL")

_ONSET = listed("b br c cr d dr f fl g gr h j k l m n p pr r s sk st t tr th v w y z")
_VOWEL = listed("a e i o u a e o")
_CODA = listed("l ld lm lv ll m n nd nn r rd rn rr rv s sk st t th v x z")
# Before a consonant only these, or nobody could say it.
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
# Words and names of the real world that the syllables would hit upon sooner or later.
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

_SUBJECT = listed("""
Optics Tides Soils Forestry Hygiene Metals Weaving Pharmacy Statistics Harbours Glass Botany Acoustics Fisheries Maps
""")
_TRADE = listed("Shipping Instruments Textiles Pharmaceuticals Motors Glass Energy Foods Timber Optical Rail Print")
_BODY = listed("Institute Society Academy Bureau Office Council Federation Laboratory")
_HOUSE = listed("Hospital Museum Infirmary Polytechnic College Observatory Library Theatre Bank")
_RANK = listed("National Royal Northern Central Joint International Western Free")
_SHIP_ADJ = listed("""
Grey Morning Silver Northern Last Golden Restless Second Early Bright Lonely Gentle Winter Blue Hollow Distant Quiet
Summer Crooked Evening Western Patient Salt Amber Hidden Fair
""")
_SHIP_NOUN = listed("""
Heron Tide Star Thistle Petrel Lantern Venture Curlew Hope Harvest Wind Daughter Bell Plough Kestrel Mariner Promise
Sparrow Compass Island Rover Dawn Pearl Anchor Gannet Shepherd Comet Oak Fiddler Salmon Bride Sailor
""")
_SALT = listed("sodium copper zinc calcium ammonium iron")


def coin(rng: Random, endings: tuple[str, ...], longer: float = 0.2) -> str:
    """A syllable and an ending, now and then one more between them: sayable, new, and nothing to blush at."""
    while True:
        ending = rng.choice(endings)
        if rng.random() < longer:
            ending = rng.choice("aeio") + rng.choice("lmnr") + ending
        codas = _CODA if ending[0] in "aeiou" else _SOFT_CODA
        made = rng.choice(_ONSET) + rng.choice(_VOWEL) + rng.choice(codas) + ending
        if made not in _REAL and not _RUDE.search(made):
            return made


def _coin(rng: Random, kind: str) -> str:
    """A coined word with a capital and an ending of its kind."""
    return coin(rng, _ENDING[kind]).capitalize()


def bare(rng: Random) -> str:
    """A capitalised word that may be a person, a place, a firm or a ship."""
    return _coin(rng, "bare")


def last(rng: Random) -> str:
    """A surname: mostly one word, at times with O', a hyphen or a particle."""
    kind = rng.random()
    if kind < 0.06:
        return f"O'{_coin(rng, 'bare')}"
    if kind < 0.13:
        return f"{_coin(rng, 'last')}-{_coin(rng, 'last')}"
    if kind < 0.17:
        return f"{rng.choice(('van', 'de', 'ap', 'dal'))} {_coin(rng, 'last')}"
    return _coin(rng, "bare" if kind < 0.4 else "last")


def given(rng: Random) -> str:
    """A first name, sometimes a word of the language."""
    return rng.choice(WORD_NAMES["PERSON"]) if rng.random() < 0.08 else _coin(rng, "given")


def _initial(rng: Random) -> str:
    return rng.choice("ABCDEFGHIJKLMNOPRSTVW") + "."


def person(rng: Random) -> str:
    """A person as a report would write it: in full, with initials, or by one of the names."""
    kind = rng.random()
    if kind < 0.5:
        return f"{given(rng)} {last(rng)}"
    if kind < 0.6:
        return f"{given(rng)} {_initial(rng)} {last(rng)}"
    if kind < 0.68:
        return f"{_initial(rng)} {_initial(rng)} {last(rng)}"
    if kind < 0.76:
        return f"{_initial(rng)} {last(rng)}"
    return last(rng) if kind < 0.92 else given(rng)


def town(rng: Random) -> str:
    """A place of one word."""
    return _coin(rng, "bare" if rng.random() < 0.2 else "place")


def place(rng: Random) -> str:
    """A place: a town, or a pattern around one."""
    kind = rng.random()
    if kind < 0.55:
        return town(rng)
    if kind < 0.7:
        return f"{rng.choice(('Port', 'Upper', 'Lower', 'Lake', 'Mount', 'Cape', 'New', 'Great'))} {town(rng)}"
    if kind < 0.8:
        return f"{bare(rng)} {rng.choice(('Bay', 'Falls', 'Head', 'Sound', 'Cross', 'Hill', 'Moor'))}"
    if kind < 0.87:
        return f"{town(rng)}-{rng.choice(('on', 'under', 'by'))}-{bare(rng)}"
    return f"{_coin(rng, 'last')}'s {rng.choice(('Ness', 'Landing', 'Gate', 'Ferry', 'End'))}"


def region(rng: Random) -> str:
    """A place that English puts `the` before."""
    kind = rng.random()
    if kind < 0.5:
        return f"{rng.choice(('Isle', 'Vale', 'Forest', 'Gulf'))} of {town(rng)}"
    return f"{bare(rng)} {rng.choice(('Hills', 'Islands', 'Marshes', 'Valley', 'Canal'))}"


def institution(rng: Random) -> str:
    """An organisation that English puts `the` before; the article is no part of the name."""
    kind = rng.random()
    if kind < 0.2:
        return f"University of {town(rng)}"
    if kind < 0.4:
        return f"{town(rng)} {rng.choice(_BODY)} of {rng.choice(_SUBJECT)}"
    if kind < 0.52:
        first, second = rng.sample(_SUBJECT, 2)
        rank = rng.choice((f"{rng.choice(_RANK)} ", "", ""))
        return rank + f"{rng.choice(_BODY)} of {first} and {second}"
    if kind < 0.6:
        return f"{rng.choice(_BODY)} for the Study of {rng.choice(_SUBJECT)}"
    if kind < 0.7:
        return f"{rng.choice(_RANK)} {rng.choice(_SUBJECT)} {rng.choice(_BODY)}"
    if kind < 0.85:
        return f"{place(rng)} {rng.choice(_HOUSE)}"
    return f"{person(rng)} {rng.choice(('Trust', 'Foundation', 'Memorial Fund'))}"


def acronym(rng: Random) -> str:
    """Three or four capitals; without vowels, because those soon spell something."""
    while True:
        made = "".join(rng.choices("BCDFGHKLMNPRSTVWX", k=rng.choice((3, 3, 4))))
        if made.lower() not in _REAL:
            return made


def company(rng: Random) -> str:
    """An organisation without an article: a firm, or an acronym."""
    kind = rng.random()
    if kind < 0.2:
        return acronym(rng)
    if kind < 0.4:
        return _coin(rng, "coined")
    if kind < 0.55:
        return f"{last(rng)} {rng.choice(('& Sons', '& Daughters', 'Brothers', 'Holdings', 'Ltd', 'Group'))}"
    if kind < 0.65:
        return f"{_coin(rng, 'last')} and {_coin(rng, 'last')}"
    if kind < 0.85:
        return f"{rng.choice((town, bare, last))(rng)} {rng.choice(_TRADE)}"
    return f"{_coin(rng, 'coined')} {rng.choice(_TRADE)} {rng.choice(('Ltd', 'Company', 'Group'))}"


def substance(rng: Random) -> str:
    """A substance: lower-case as a rule, a capital where it is a brand."""
    kind = rng.random()
    made = _coin(rng, "chemical").lower()
    if kind < 0.5:
        return made
    if kind < 0.6:
        return f"{rng.choice(_SALT)} {coin(rng, ('ate',), 0)}"
    if kind < 0.7:
        return f"{coin(rng, ('ic',), 0)} acid"
    if kind < 0.78:
        return f"{rng.choice(('alpha', 'beta', 'iso', 'nor'))}-{made}"
    if kind < 0.85:
        return f"{made}-{rng.randint(2, 40)}"
    return _coin(rng, "coined") if kind < 0.92 else _coin(rng, "bare").lower()


def vessel(rng: Random) -> str:
    """A ship: two plain words, a woman's name, or somebody's star."""
    kind = rng.random()
    if kind < 0.3:
        return f"{rng.choice(_SHIP_ADJ)} {rng.choice(_SHIP_NOUN)}"
    if kind < 0.5:
        return _coin(rng, "given")
    if kind < 0.7:
        return f"{rng.choice(('Star', 'Pride', 'Maid', 'Spirit'))} of {town(rng)}"
    if kind < 0.9:
        return f"{rng.choice(('Lady', 'Saint', 'Queen'))} {given(rng)}"
    return f"{given(rng)} {last(rng)}"


def vague(rng: Random) -> str:
    """A substance whose own form says nothing."""
    return _coin(rng, "bare").lower()


def demonym(rng: Random) -> str:
    """An adjective of origin, which the gold does not count as a name."""
    return coin(rng, ("ish", "ese", "ian", "ic"), 0).capitalize()


def code(rng: Random) -> str:
    """Capitals that are no acronym of anybody: a grade, a sample, a form."""
    letters = acronym(rng)[-rng.choice((1, 2, 3, 3)) :]
    return f"{letters}-{rng.randint(2, 99)}" if len(letters) < 3 or rng.random() < 0.3 else letters


def jargon(rng: Random) -> str:
    """A dialect word for some tool or other: it has the form of a substance and is none."""
    return _coin(rng, rng.choice(("bare", "chemical"))).lower()


def title_of_work(rng: Random) -> str:
    """A title of a type that nobody annotated: novels, inns and racehorses are called like ships."""
    kind = rng.random()
    if kind < 0.6:
        return f"{rng.choice(_SHIP_ADJ)} {rng.choice(_SHIP_NOUN)}"
    return given(rng) if kind < 0.8 else f"{_coin(rng, 'last')}'s {rng.choice(_SHIP_NOUN)}"


Builder = Callable[[Random], str]
_BUILDERS: dict[str, Builder] = {
    "PERSON": person, "PERSON:last": last, "PERSON:bare": bare,
    "PLACE": place, "PLACE:the": region, "PLACE:bare": bare,
    "ORGANISATION": company, "ORGANISATION:the": institution, "ORGANISATION:caps": acronym,
    "ORGANISATION:bare": bare,
    "SUBSTANCE": substance, "SUBSTANCE:bare": vague,
    "VESSEL": vessel, "VESSEL:bare": bare,
}  # fmt: skip
UNNAMED: dict[str, Builder] = {
    "demonym": demonym, "code": code, "title_of_work": title_of_work, "jargon": jargon, "eponym": last,
}  # fmt: skip
SLOTS = tuple(_BUILDERS)
"""What a frame may ask for: a label alone, or a label and a form of name."""

_WELL_KNOWN = 16
_SHARED = 24
P_WELL_KNOWN = 0.17
P_BARE_SHARED = 0.17
P_BARE_WORD = 0.1
P_NESTED = 0.16


class Names:
    """Draws names: a few well-known ones again and again, most of them once.

    `shared` are the bare names that persons, places, organisations and ships have in common.
    """

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.shared = [bare(rng) for _ in range(_SHARED)]
        self._known = {slot: [build(rng) for _ in range(_WELL_KNOWN)] for slot, build in _BUILDERS.items()}

    def mention(self, slot: str) -> str:
        """A name for a slot such as `PERSON` or `ORGANISATION:the`."""
        rng = self._rng
        label, _, form = slot.partition(":")
        if form == "bare":
            kind = rng.random()
            if kind < P_BARE_WORD:
                return rng.choice(WORD_NAMES[label])
            if kind < P_BARE_WORD + P_BARE_SHARED and label != "SUBSTANCE":
                return rng.choice(self.shared)
        elif rng.random() < P_WELL_KNOWN:
            return rng.choice(self._known[slot])
        elif slot == "ORGANISATION:the" and rng.random() < P_NESTED:
            # Inside its name stands one that is annotated elsewhere: whoever matches strings falls into that trap.
            inner = rng.choice(self._known["PLACE"])
            return rng.choice((f"University of {inner}", f"{inner} {rng.choice(_HOUSE)}"))
        return _BUILDERS[slot](rng)

    def unnamed(self, kind: str) -> str:
        """Something that looks like a name and is none; an eponym is a surname lent to a method or a valve."""
        if kind == "eponym" and self._rng.random() < 0.3:
            return self._rng.choice(self.shared)
        return UNNAMED[kind](self._rng)
