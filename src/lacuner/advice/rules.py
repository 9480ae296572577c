"""From what was seen to a recipe: the rules, all of them, in the order in which they are asked.

They rest on the tables of docs/results.md: the encoder `tiny`, three corpora, entities masked at rates of 0, 0.5 and
0.8, and labels as dictionaries made them. `python -m benchmarks.advice` says how far they are from the best recipe
wherever a bench has been run.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

from lacuner.advice.profile import LEAST, Seen
from lacuner.config import Config
from lacuner.errors import TrainingError

FEW = 0.1
"""Up to this missing share labels are as good as complete. With nothing missing `trust` is a point behind `ensemble`,
at a fifth of its cost; with half missing, and a threshold, it is behind by two to seven."""
RIGHT = 0.75
"""With fewer right labels than this it is the wrong ones that hurt, and a pretrained encoder knows enough to doubt
them: Wikigold's own labels, half of them right, want `roster` with MiniLM. With `tiny` it is level with `ensemble`
there, two points above it on BC5CDR and seven below it on EC with labels made wrong (`benchmarks/wrong.toml`)."""
CONTRADICTING = 0.35
"""The same where nothing tells how many are right: with a fifth of the types wrong at random, so many contradict."""
COVERED = 0.9
"""If gold has the texts of so many weak documents, their weak labels have nothing to add."""
GOLD = 50
"""So many gold entities are enough to learn from. BC5CDR, 2,000 weak sentences, one seed: `needle` has 70.6 with 48 of
them and 71.2 with 94, where `nrces`, which learns from the weak labels alone, has 70.1."""
READABLE = 100_000
"""From so many words on it is worth letting an encoder read them first: two to five points with `tiny` on BC5CDR
(112,000 words) and Resume (124,000), nothing on Wikigold (25,000)."""
LITTLE = 200
"""With fewer labelled entities than this no recipe has much to learn from. A rule of thumb."""

_BY_DEV = "head.threshold=dev"
_COST = "It takes five trainings; `negative_sampling` takes one, and is mostly the best of those that do."
_LEVEL = "Where next to nothing is missing `trust` is a point behind `ensemble`, at a fifth of the cost."


class Advice(Config):
    """A recipe, and why."""

    recipe: str
    settings: tuple[str, ...] = ()
    """As after `--set`."""
    reasons: tuple[str, ...]
    """Why this recipe, in sentences."""
    notes: tuple[str, ...] = ()
    """What else one should know."""


def advise(seen: Seen, encoder: str = "tiny") -> Advice:
    """The recipe for such data, and an encoder of this name."""
    labelled = seen.weak.entities if seen.weak else 0
    gold = seen.gold.entities if seen.gold else 0
    notes = tuple(_notes(seen))
    if not labelled and not gold:
        raise TrainingError(
            "there is no labelled span in the data, so there is nothing to learn from: `lacuner annotate` makes labels "
            "from a dictionary"
        )
    if not labelled:
        return Advice(recipe="supervised", reasons=("There is gold, and no weak label besides.",), notes=notes)
    if seen.in_gold >= COVERED:
        return Advice(recipe="supervised", reasons=("Gold has the very texts of the weak labels.",), notes=notes)
    if _gold_teaches(seen):
        count = f"{seen.teaching:,} entities"
        why = f"There is gold to learn from ({count}) beside the weak labels, and `needle` learns from both."
        return Advice(recipe="needle", reasons=(why,), notes=notes)
    recipe, settings, reason = _for_weak(seen, pretrained=encoder.startswith("hf:"))
    return Advice(recipe=recipe, settings=settings, reasons=(_how_it_looks(seen), reason), notes=notes)


def _for_weak(seen: Seen, pretrained: bool) -> tuple[str, tuple[str, ...], str]:
    """Recipe, settings and reason where there is nothing to learn from but weak labels."""
    dev = seen.dev is not None and seen.dev.entities > 0
    settings = (_BY_DEV,) if dev else ()
    if _wrong(seen) and pretrained:
        return "roster", (), "`roster` is made for that: it leaves out the labels that several models cannot believe."
    if _wrong(seen):
        why = "`roster` is made for that, but for an encoder that starts from nothing `ensemble` is the safer choice."
        return "ensemble", (), f"{why} {_COST}"
    if seen.whole and (seen.missing or 0.0) > FEW:
        why = "Documents that are complete leave nothing to guess: if these are not, write `complete: false` into them."
        return "trust", settings, why
    if seen.whole or (seen.missing is not None and seen.missing <= FEW):
        return "trust", settings, _LEVEL
    if seen.missing is None:
        return (
            "ensemble",
            (),
            "Nobody knows, then, how much is missing, or what; on the whole `ensemble` is ahead if something is, and "
            f"loses a point or two if nothing is. {_COST}",
        )
    return (
        "ensemble",
        (),
        f"On the whole `ensemble` is ahead of all single models where entities have no label. {_COST}",
    )


def _gold_teaches(seen: Seen) -> bool:
    return seen.teaching >= GOLD and seen.in_gold < COVERED


def _wrong(seen: Seen) -> bool:
    """Whether wrong labels are the trouble, rather than missing ones."""
    if seen.right is not None:
        return seen.right < RIGHT
    share = seen.contradicting
    if share is None or share.of < LEAST:
        return False
    by_chance = 2 * sqrt(share.value * (1 - share.value) / share.of)  # names that mean two things contradict as well
    return share.value - by_chance >= CONTRADICTING


def _how_it_looks(seen: Seen) -> str:
    """What was seen of the weak labels, in a sentence."""
    if seen.right is not None and _wrong(seen):
        return f"By {seen.judge}, about {_percent(1 - seen.right)} of the labels are wrong."
    if _wrong(seen) and seen.contradicting is not None:
        other = _percent(seen.contradicting.value)
        return f"The labels contradict each other: {other} of the other labels of the same name are of another type."
    if seen.whole:
        missing = seen.missing or 0.0
        but = f", but by {seen.judge} about {_percent(missing)} is missing" if missing > FEW else ""
        return f"All weak documents say of themselves that they are complete{but}."
    if seen.missing is not None:
        kind = {"names": ", names as a whole rather than single mentions", "mentions": ", mentions of all names alike"}
        how = kind.get(seen.gaps or "", "")
        return f"By {seen.judge}, about {_percent(seen.missing)} of the entities have no label, or a wrong one{how}."
    share = seen.forgotten
    if share is None or share.of < LEAST:
        return "There is nothing to judge the labels by, and too few names come more than once to judge by themselves."
    if share.value <= FEW:
        return (
            "Labelled names are labelled nearly wherever they stand: either nothing is missing, or names are, as a "
            "whole; without dev nobody can tell."
        )
    return (
        f"Of the other mentions of labelled names {_percent(share.value)} have no label; names may be missing besides."
    )


def _notes(seen: Seen) -> Iterator[str]:
    labelled = seen.weak.entities if seen.weak else 0
    gold = seen.gold.entities if seen.gold else 0
    if 0 < max(labelled, gold) < LITTLE:
        yield f"{max(labelled, gold):,} labelled entities are few: more labels will help more than any recipe."
    if sum(size.words for size in (seen.weak, seen.gold) if size) >= READABLE:
        yield (
            "Here is much to read: if the encoder has not done so yet, `lacuner pretrain` before the training is worth "
            "points, whatever the recipe."
        )
    if not labelled:
        return
    yield from _about_judges(seen)
    if seen.gaps == "names":
        yield (
            "The papers take gaps to be at random, and here names seem to be missing as a whole: look at "
            "suspects.tsv after a training, and add to the dictionary what belongs there."
        )
    taught = seen.in_gold >= COVERED or _gold_teaches(seen)
    if seen.unlike and seen.comparable and not taught:
        yield f"Nothing is labelled {', '.join(seen.unlike)} in weak: no recipe can learn from it what that is."
    if gold and not taught:
        yield (
            f"Gold was only looked at, having fewer than {GOLD} entities of weak's labels: `--recipe needle` learns "
            "from it all the same, and as --dev it would choose epoch and threshold."
        )
    elif not seen.dev:
        also = "" if seen.judge or taught else ", and tell how much is missing or wrong"
        yield f"Even a hundred sentences of dev would choose epoch and threshold{also}."


def _about_judges(seen: Seen) -> Iterator[str]:
    """What is to be said of gold and dev as judges of weak labels."""
    sizes = [(name, size) for name, size in (("gold", seen.gold), ("dev", seen.dev)) if size]
    who = " and ".join(name for name, _ in sizes).capitalize()
    for name, size in sizes:
        if size.documents and not size.entities:
            yield f"There is no entity in {name}: a column file's name must end in .conll, or --format say what it is."
    if seen.gappy is not None:
        yield (
            f"{who} could not judge weak, having gaps: {_percent(seen.gappy)} of the other mentions of labelled names "
            "have no label there, and by such a judge every recipe looks worse that fills gaps."
        )
    elif who and seen.judge is None:
        why = f"{LEAST} entities of the same labels are needed in both" if seen.comparable else "no label is in both"
        yield f"{who} could not judge weak: {why}, in other documents, and not in ones that call themselves incomplete."
    if seen.unjudged:
        yield f"Nothing is labelled {', '.join(seen.unjudged)} in {who.lower()}: nobody judged these labels."
    if seen.in_dev > 0:
        yield (
            f"Weak has the texts of {_percent(seen.in_dev)} of the dev documents, which judge nothing here: keep them "
            "apart, for what was learned by heart proves nothing."
        )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
