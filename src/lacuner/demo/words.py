"""The filler words of the demo corpus: what the sentence frames say between the names.

Some lists are built by crossing parts, so that dev and test contain ordinary words that never occur in train: an
unknown word must not be a name just because it is unknown. Others contain words that end like substances, or words
that are also names.
"""


def listed(text: str) -> tuple[str, ...]:
    """The words of a running text."""
    return tuple(text.split())


def read_lists(table: str) -> dict[str, tuple[str, ...]]:
    """Word lists from a running text in which `name:` begins a list.

    >>> read_lists("boat: ferry barge unit: mg")
    {'boat': ('ferry', 'barge'), 'unit': ('mg',)}
    """
    lists: dict[str, list[str]] = {}
    for word in table.split():
        if word.endswith(":"):
            current = lists.setdefault(word[:-1], [])
        else:
            current.append(word)
    return {name: tuple(words) for name, words in lists.items()}


def _cross(first: str, second: str, joint: str = "") -> tuple[str, ...]:
    """Every word of `first` joined with every word of `second`, except where a letter would be doubled."""
    return tuple(a + joint + b for a in listed(first) for b in listed(second) if joint or (a[-1] != b[0] and a != b))


_WORDS = read_lists("""
role: surveyor pharmacist curator archivist treasurer engineer midwife physician botanist chemist auditor magistrate
  foreman carpenter beekeeper harbourmaster lecturer translator veterinarian geologist shepherd joiner clerk inspector
  nurse librarian glazier cartographer welder journalist apprentice tenant ferryman metallurgist statistician organist
  solicitor councillor secretary brewer teacher analyst supervisor technician gardener candidate magnate delegate
group: committee council panel crew cooperative laboratory tribunal workshop syndicate foundry clinic board ministry
  academy orchestra bakery brewery parish shipyard team consortium association charity guild family jury patrol estate
people: patients volunteers villagers inspectors trainees growers pupils residents officials auditors sailors farmers
  engineers students readers neighbours visitors tenants nurses miners traders twins pensioners recruits
kin: brother sister daughter son cousin niece nephew father mother wife husband colleague assistant neighbour tutor
thing: bridge turbine boiler lantern valve pump roof window gauge fence orchard cellar staircase telescope microscope
  filter compass anchor engine machine membrane crane pipeline stadium podium gymnasium aquarium plane telephone slide
  canteen trampoline gramophone kiln furnace cabinet harness ladder barrel crate drain culvert gallery cupboard
  reservoir stairwell tunnel chimney greenhouse threshold plaque organ clock weir pavement scaffold sluice hinge beam
  lathe guillotine carriage winch piano trellis shutter bench carpet stove bicycle tractor sundial fountain generator
  column
paper: proposal budget timetable contract survey report catalogue petition questionnaire complaint invoice licence
  protocol guideline outline certificate template magazine manuscript map ledger letter leaflet pamphlet inventory
  verdict
abstract: delay shortage dispute routine decline debate discipline hygiene control neglect drought flooding
  interference fatigue corrosion damp confusion vibration erosion frost leakage subsidence haste rumour silence
  overcrowding glare noise heat pressure custom doubt medicine doctrine famine quarantine migration
mass: water clay gravel timber grain resin wool chalk sand peat charcoal varnish grease flour mortar cement soap
  vinegar sugar paper ink glue lime coal tar yeast leather canvas straw oil milk rust wax salt brine turpentine
  margarine chocolate limestone sandstone alcohol gasoline
adj: old new narrow broken local northern southern damp cheap heavy early late routine modest unusual faulty careful
  separate temporary remote private public genuine obsolete intermediate adequate elaborate delicate duplicate coastal
  plain costly brittle rusty second third final draft annual recent former joint spare disputed grave stable shallow
  steep muddy bright sturdy pristine marine
trait: local retired elderly former young northern senior junior independent cautious ambitious tireless modest
  wealthy stubborn popular rural private joint overworked anxious obstinate affluent disgraced
adv: quietly slowly carefully twice again together soon already reluctantly overnight promptly briefly formally partly
  later early once hastily abruptly discreetly
did: repaired inspected measured rebuilt photographed sold bought redesigned replaced cleaned tested abandoned
  restored borrowed dismantled painted examined insured moved delivered lost found returned sealed checked recorded
  ignored
wrote: drafted signed published revised rejected approved mislaid copied quoted defended circulated amended
failed: failed cracked leaked vanished collapsed rusted jammed buckled burned stalled burst
said: said reported argued claimed noted explained insisted admitted suggested announced added warned wrote thought
told: told informed reminded assured warned persuaded convinced
met: met thanked interviewed succeeded praised accused sued visited trusted invited replaced consulted
promised: promised hoped declined refused agreed offered tried planned forgot
joined: joined left founded rejoined sued criticised represented
bought: bought sold inherited held wanted
ordered: ordered bought stored spilled confiscated weighed imported
detected: detected found measured reported suspected
animals: rats mice calves trout patients volunteers lambs hens ponies cattle swine
ailment: fever cough insomnia eczema migraine arthritis anaemia asthma gout vertigo nausea toothache sciatica
body: urine plasma serum blood tissue saliva marrow liver skin spine bone
goods: pumps clocks ropes tiles lenses boots ladders spectacles stoves pianos bricks harnesses engines bells kettles
boat: ferry trawler barge steamer schooner tug dredger lifeboat freighter yacht cutter ketch tanker submarine
site: road valley river coast parish market cemetery quarry chapel prison museum railway suburb peninsula cathedral
title: Dr Mr Mrs Ms Professor Captain Sister Councillor Inspector Sergeant Judge Lady Sir Nurse Bishop
month: January February March April May June July August September October November December
weekday: Monday Tuesday Wednesday Thursday Friday Saturday Sunday
office: Committee Council Board Parliament Treasury Registry Commission Court Minister Chairman Secretary Assembly
feast: Easter Christmas Midsummer Lent Michaelmas Advent Whitsun
acronym: PDF VAT GPS DNA TV CEO HQ USB FAQ ISBN LED MRI AGM SOS
part: Chapter Appendix Figure Table Section Annex Article Volume Question Exhibit Schedule Clause Room Platform Part
verb: close reopen sell rebuild inspect paint dismantle insure photograph lease repair move remove replace measure
gerund: closing selling painting moving renting mending inspecting insuring lending replacing
small: two three four five six seven nine eleven twelve
dose: 0.4 2.5 5 10 15 20 35 60 120 250
unit: mg g ml grams kg drops litres
join: and but while although so whereas
pronoun: she he they
""")

_AGAIN = "inspected measured photographed cleaned tested painted examined insured sealed assembled"
_BADLY = "measured labelled counted recorded placed handled"
_STEM = "tide lamp mill rope salt stone cart kiln dock barn snow iron cliff reed thatch loom hay moss flint quay fen"
_YARD = "yard shed gate path post wall line side stone lane house works way bank end"
_DUST = "dust ash meal pulp oil wool paste chaff grit lime"
_WORN = "worn bound lined backed clad fed stained driven facing"

LISTS: dict[str, tuple[str, ...]] = {
    **_WORDS,
    "thing": _WORDS["thing"] + _cross(_STEM, _YARD)[::2],
    "mass": _WORDS["mass"] * 3 + _cross(_STEM, _DUST),
    "adj": _WORDS["adj"] * 2 + _cross(_STEM, _WORN, "-"),
    "trait": _WORDS["trait"] + _cross("well- ill- half-", "trained informed known paid rested"),
    "did": _WORDS["did"] * 2 + _cross("re-", _AGAIN) + _cross("mis", _BADLY),
    "site": _WORDS["site"] + _cross(_STEM, _YARD)[1::2],
    "digit": tuple(map(str, range(1, 31))),
    "count": (*map(str, range(32, 99, 3)), "112", "140", "260", "375", "1,200"),
    "age": tuple(map(str, range(19, 95))),
    "year": tuple(map(str, range(1894, 2024))),
    "letter": tuple("ABCDEFGH"),
    "quality": ("too expensive", "badly made", "safe", "overdue", "out of date", "worth keeping", "past mending"),
}
"""Word lists by the name that frames use; a repeated word is drawn more often."""

WORD_NAMES: dict[str, tuple[str, ...]] = {
    "PERSON": listed("Hope Will Mark Grace Rose Grant Dawn Patience Frank Sandy"),
    "PLACE": listed("Settling Landing Mending Bearing Sounding Tending Plenty Early Comfort"),
    "ORGANISATION": listed("Compass Lantern Ledger Beacon Anchor Threshold Plenty Dawn Landing"),
    "SUBSTANCE": listed("lull thaw ember husk murmur hinge quill drift tallow bramble"),
    "VESSEL": listed("Hope Patience Dawn Lantern Plenty Grace Resolve Comfort Early Compass"),
}
"""Ordinary words that are also names, by label."""
