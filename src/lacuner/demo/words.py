"""The filler words of the demo corpus: what the sentence frames say between the names.

Some lists are crossed from parts, so that dev and test hold ordinary words that training never showed: an unknown
word must not be a name just because it is unknown. Others hold words that end as substances do, or that names borrow.
"""

from __future__ import annotations


def listed(text: str) -> tuple[str, ...]:
    """The words of a table that is written as running text."""
    return tuple(text.split())


def _cross(first: str, second: str, joint: str = "") -> tuple[str, ...]:
    """Every word of `first` with every word of `second`, unless a letter would meet itself."""
    return tuple(a + joint + b for a in listed(first) for b in listed(second) if joint or (a[-1] != b[0] and a != b))


_ROLE = """
surveyor pharmacist curator archivist treasurer engineer midwife physician botanist chemist auditor magistrate foreman
carpenter beekeeper harbourmaster lecturer translator veterinarian geologist shepherd joiner clerk inspector nurse
librarian glazier cartographer welder journalist apprentice tenant ferryman metallurgist statistician organist
solicitor councillor secretary brewer teacher analyst supervisor technician gardener candidate magnate delegate
"""
_GROUP = """
committee council panel crew cooperative laboratory tribunal workshop syndicate foundry clinic board ministry academy
orchestra bakery brewery parish shipyard team consortium association charity guild family jury patrol estate
"""
_PEOPLE = """
patients volunteers villagers inspectors trainees growers pupils residents officials auditors sailors farmers
engineers students readers neighbours visitors tenants nurses miners traders twins pensioners recruits
"""
_KIN = "brother sister daughter son cousin niece nephew father mother wife husband colleague assistant neighbour tutor"
_THING = """
bridge turbine boiler lantern valve pump roof window gauge fence orchard cellar staircase telescope microscope filter
compass anchor engine machine membrane crane pipeline stadium podium gymnasium aquarium plane telephone slide canteen
trampoline gramophone kiln furnace cabinet harness ladder barrel crate drain culvert gallery cupboard reservoir
stairwell tunnel chimney greenhouse threshold plaque organ clock weir pavement scaffold sluice hinge beam lathe
guillotine carriage winch piano trellis shutter bench carpet stove bicycle tractor sundial fountain generator column
"""
_PAPER = """
proposal budget timetable contract survey report catalogue petition questionnaire complaint invoice licence protocol
guideline outline certificate template magazine manuscript map ledger letter leaflet pamphlet inventory verdict
"""
_ABSTRACT = """
delay shortage dispute routine decline debate discipline hygiene control neglect drought flooding interference fatigue
corrosion damp confusion vibration erosion frost leakage subsidence haste rumour silence overcrowding glare noise heat
pressure custom doubt medicine doctrine famine quarantine migration
"""
_MASS = """
water clay gravel timber grain resin wool chalk sand peat charcoal varnish grease flour mortar cement soap vinegar
sugar paper ink glue lime coal tar yeast leather canvas straw oil milk rust wax salt brine turpentine margarine
chocolate limestone sandstone alcohol gasoline
"""
_ADJ = """
old new narrow broken local northern southern damp cheap heavy early late routine modest unusual faulty careful
separate temporary remote private public genuine obsolete intermediate adequate elaborate delicate duplicate coastal
plain costly brittle rusty second third final draft annual recent former joint spare disputed grave stable shallow
steep muddy bright sturdy pristine marine
"""
_TRAIT = """
local retired elderly former young northern senior junior independent cautious ambitious tireless modest wealthy
stubborn popular rural private joint overworked anxious obstinate affluent disgraced
"""
_ADV = """
quietly slowly carefully twice again together soon already reluctantly overnight promptly briefly formally partly
later early once hastily abruptly discreetly
"""
_DID = """
repaired inspected measured rebuilt photographed sold bought redesigned replaced cleaned tested abandoned restored
borrowed dismantled painted examined insured moved delivered lost found returned sealed checked recorded ignored
"""
_AGAIN = "inspected measured photographed cleaned tested painted examined insured sealed assembled"
_BADLY = "measured labelled counted recorded placed handled"
_WROTE = "drafted signed published revised rejected approved mislaid copied quoted defended circulated amended"
_FAILED = "failed cracked leaked vanished collapsed rusted jammed buckled burned stalled burst"
_SAID = "said reported argued claimed noted explained insisted admitted suggested announced added warned wrote thought"
_TOLD = "told informed reminded assured warned persuaded convinced"
_MET = "met thanked interviewed succeeded praised accused sued visited trusted invited replaced consulted"
_AILMENT = "fever cough insomnia eczema migraine arthritis anaemia asthma gout vertigo nausea toothache sciatica"
_BODY = "urine plasma serum blood tissue saliva marrow liver skin spine bone"
_GOODS = "pumps clocks ropes tiles lenses boots ladders spectacles stoves pianos bricks harnesses engines bells kettles"
_BOAT = "ferry trawler barge steamer schooner tug dredger lifeboat freighter yacht cutter ketch tanker submarine"
_SITE = "road valley river coast parish market cemetery quarry chapel prison museum railway suburb peninsula cathedral"
_TITLE = "Dr Mr Mrs Ms Professor Captain Sister Councillor Inspector Sergeant Judge Lady Sir Nurse Bishop"
_OFFICE = "Committee Council Board Parliament Treasury Registry Commission Court Minister Chairman Secretary Assembly"
_PART = "Chapter Appendix Figure Table Section Annex Article Volume Question Exhibit Schedule Clause Room Platform Part"
_VERB = "close reopen sell rebuild inspect paint dismantle insure photograph lease repair move remove replace measure"
_GERUND = "closing selling painting moving renting mending inspecting insuring lending replacing"

_STEM = "tide lamp mill rope salt stone cart kiln dock barn snow iron cliff reed thatch loom hay moss flint quay fen"
_YARD = "yard shed gate path post wall line side stone lane house works way bank end"
_DUST = "dust ash meal pulp oil wool paste chaff grit lime"
_WORN = "worn bound lined backed clad fed stained driven facing"

LISTS: dict[str, tuple[str, ...]] = {
    "role": listed(_ROLE),
    "group": listed(_GROUP),
    "people": listed(_PEOPLE),
    "kin": listed(_KIN),
    "thing": listed(_THING) + _cross(_STEM, _YARD)[::2],
    "paper": listed(_PAPER),
    "abstract": listed(_ABSTRACT),
    "mass": listed(_MASS) * 3 + _cross(_STEM, _DUST),
    "adj": listed(_ADJ) * 2 + _cross(_STEM, _WORN, "-"),
    "trait": listed(_TRAIT) + _cross("well- ill- half-", "trained informed known paid rested"),
    "adv": listed(_ADV),
    "did": listed(_DID) * 2 + _cross("re-", _AGAIN) + _cross("mis", _BADLY),
    "wrote": listed(_WROTE),
    "failed": listed(_FAILED),
    "said": listed(_SAID),
    "told": listed(_TOLD),
    "met": listed(_MET),
    "promised": listed("promised hoped declined refused agreed offered tried planned forgot"),
    "joined": listed("joined left founded rejoined sued criticised represented"),
    "bought": listed("bought sold inherited held wanted"),
    "ordered": listed("ordered bought stored spilled confiscated weighed imported"),
    "detected": listed("detected found measured reported suspected"),
    "animals": listed("rats mice calves trout patients volunteers lambs hens ponies cattle swine"),
    "ailment": listed(_AILMENT),
    "body": listed(_BODY),
    "goods": listed(_GOODS),
    "boat": listed(_BOAT),
    "site": listed(_SITE) + _cross(_STEM, _YARD)[1::2],
    "title": listed(_TITLE),
    "month": listed("January February March April May June July August September October November December"),
    "weekday": listed("Monday Tuesday Wednesday Thursday Friday Saturday Sunday"),
    "office": listed(_OFFICE),
    "feast": listed("Easter Christmas Midsummer Lent Michaelmas Advent Whitsun"),
    "acronym": listed("PDF VAT GPS DNA TV CEO HQ USB FAQ ISBN LED MRI AGM SOS"),
    "part": listed(_PART),
    "verb": listed(_VERB),
    "gerund": listed(_GERUND),
    "small": listed("two three four five six seven nine eleven twelve"),
    "digit": tuple(map(str, range(1, 31))),
    "count": (*map(str, range(32, 99, 3)), "112", "140", "260", "375", "1,200"),
    "age": tuple(map(str, range(19, 95))),
    "dose": listed("0.4 2.5 5 10 15 20 35 60 120 250"),
    "unit": listed("mg g ml grams kg drops litres"),
    "year": tuple(map(str, range(1894, 2024))),
    "letter": tuple("ABCDEFGH"),
    "join": listed("and but while although so whereas"),
    "pronoun": listed("she he they"),
    "quality": ("too expensive", "badly made", "safe", "overdue", "out of date", "worth keeping", "past mending"),
}
"""Word lists by the name that frames call them by; a word repeated is a word drawn more often."""

WORD_NAMES: dict[str, tuple[str, ...]] = {
    "PERSON": listed("Hope Will Mark Grace Rose Grant Dawn Patience Frank Sandy"),
    "PLACE": listed("Settling Landing Mending Bearing Sounding Tending Plenty Early Comfort"),
    "ORGANISATION": listed("Compass Lantern Ledger Beacon Anchor Threshold Plenty Dawn Landing"),
    "SUBSTANCE": listed("lull thaw ember husk murmur hinge quill drift tallow bramble"),
    "VESSEL": listed("Hope Patience Dawn Lantern Plenty Grace Resolve Comfort Early Compass"),
}
"""Ordinary words that names borrow, by label."""

# The same words as plain English, mostly at the start, where the capital letter tells nothing.
WORD_USES = tuple(
    """
Hope was fading when the {people} reached the {site}
Hope alone will not {verb} the {thing}
Will power counted for little once the {thing} {failed}
Mark the {thing} with chalk and count it {adv}
Mark every {thing} that {failed} in {month}
Grace is a quality that few {people} expect of a {role}
Grace periods of {small} weeks are {adj} in this trade
Rose bushes were planted beside the {adj} {thing}
Grant money paid for the {adj} {thing}
Grant holders must inform the {group} of any {abstract}
Dawn came before the {people} had {did} the {thing}
Dawn patrols along the {site} ended in {month}
Patience, the {role} {said}, is all that {abstract} requires
Patience paid off for the {people}
Frank talks with the {group} followed in {month}
Sandy soil lay under the {adj} {thing}
Settling the {adj} claim took {small} weeks
Settling tanks at the {site} {failed} {adv}
Landing fees rose {adv} after the {abstract}
Landing on the {adj} {site} is not allowed
Mending the {thing} cost the {group} {count} crowns
Mending nets is {adj} work
Bearing the {abstract} in mind, the {people} {did} the {thing}
Bearing failures were put down to {abstract}
Sounding the {adj} channel kept the {people} busy until {weekday}
Sounding boards were {did} in {year}
Tending the {thing} is left to a {role}
Plenty of {people} had {did} a {adj} {thing}
Plenty remains to be {did} before {month}
Early drafts of the {paper} mention {abstract}
Early frost spoiled the {mass}
Comfort matters more to {people} than a {adj} {thing}
Compass readings were taken beside every {thing}
Lantern light showed the {people} a {adj} {thing}
Ledger entries for {month} name a {adj} {thing}
Beacon fires burned above the {site} until {weekday}
Anchor chains must be {did} every {small} years
Threshold values are listed in {part} {digit}
Resolve weakened after the {abstract}
a lull in the {abstract} let the {people} reach the {site}
the lull ended {adv}, and the {thing} {failed}
before the thaw the {site} is closed to {people}
an early thaw left the {site} under water
an ember from the {thing} burned the {adj} {thing}
every husk is weighed with the {mass}
the {role} heard a murmur behind the {thing}
a murmur of {abstract} ran through the {group}
the hinge of the {adj} {thing} {failed}
the {role} wrote with a quill until {year}
the {people} noticed a drift in the {thing} readings
the snow lay in a drift against the {thing}
candles of tallow stood beside the {thing}
a bramble had grown over the {adj} {thing}
""".strip().splitlines()
)
