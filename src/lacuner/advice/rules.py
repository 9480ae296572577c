"""From a data profile to a recipe: all rules, in the order in which they are applied.

They are based on the tables of docs/results.md: the encoder `tiny`, three corpora, entities dropped at rates of 0, 0.5
and 0.8, and labels made by gazetteers. `python -m benchmarks.advice` compares the advice with the best recipe wherever
a benchmark has been run.
"""

from collections.abc import Iterator
from math import sqrt

from lacuner.advice.profile import MIN_ENTITIES, DataProfile
from lacuner.config import Config
from lacuner.errors import TrainingError

MAX_MISSING = 0.1
"""Up to this missing rate labels are treated as complete. With nothing missing `trust` is one point behind `ensemble`
with its earlier, slower defaults; with half missing, and a tuned threshold, it is two to seven points behind."""
MIN_PRECISION = 0.75
"""Below this precision wrong labels are the main problem. On Wikigold's own labels, half of them wrong, `roster` is
best with MiniLM. With `tiny` it is level with `ensemble` there, two points above it on BC5CDR and seven below it on EC
with simulated wrong labels (`benchmarks/wrong.toml`)."""
MAX_CONFLICTS = 0.35
"""Where the precision is unknown: above this share of conflicting labels, wrong labels are the main problem. It is the
share that results if a fifth of the types are wrong at random."""
GOLD_COVERAGE = 0.9
"""If gold covers this share of the weak documents, their weak labels add nothing."""
MIN_GOLD_ENTITIES = 50
"""Gold entities that are enough to train on. BC5CDR, 2,000 weak sentences, one seed: `needle` has an F1 of 70.6 with 48
of them and 71.2 with 94; `nrces`, which uses the weak labels only, has 70.1."""
PRETRAINING_WORDS = 100_000
"""Words from which domain-adaptive pre-training pays off: two to five points with `tiny` on BC5CDR (112,000 words) and
Resume (124,000), none on Wikigold (25,000)."""
LONG_ENTITIES = 2.5
"""Mean number of words of an entity from which a token head is a poor choice where labels are missing. With half of the
labels masked, `trust` with a token head is 18.3 F1 points behind a span head without a tuned threshold on Resume (5.9
words per entity), and 2.9 and 3.2 on Wikigold (1.8) and BC5CDR (1.5). The limit between them is a rule of thumb."""
FEW_ENTITIES = 200
"""Number of labeled entities below which no recipe can learn much (a rule of thumb)."""

_TUNE_THRESHOLD = "head.threshold=dev"
_COST = "It takes about twice as long as `negative_sampling`, usually the best of the single models."


class Advice(Config):
    """A recommended recipe with its reasons.

    >>> Advice(recipe="trust", settings=("head.threshold=dev",), reasons=("Few labels are missing.",)).notes
    ()
    """

    recipe: str
    settings: tuple[str, ...] = ()
    """Settings as for `--set`."""
    reasons: tuple[str, ...]
    """Why this recipe, in sentences."""
    notes: tuple[str, ...] = ()
    """Other remarks on the data."""


def advise(data: DataProfile, pretrained: bool = False) -> Advice:
    """Recommend a recipe for profiled data and an encoder that is pre-trained or not.

    >>> from lacuner.advice import Size
    >>> weak = Size(documents=1000, words=20_000, entities=900, labels=("PER",), cjk=0.0)
    >>> advise(DataProfile(weak=weak, missing_rate=0.5, reference="dev")).recipe
    'ensemble'
    """
    weak = data.weak.entities if data.weak else 0
    gold = data.gold.entities if data.gold else 0
    if not weak and not gold:
        raise TrainingError(
            "there are no labeled spans to train on: create weak labels from a gazetteer with `lacuner annotate`"
        )
    settings: tuple[str, ...] = ()
    if not weak:
        recipe, reasons = "supervised", [f"There are {gold:,} gold entities and no weak labels."]
    elif data.in_gold >= GOLD_COVERAGE:
        recipe = "supervised"
        reasons = [f"Gold covers {_percent(data.in_gold)} of the weak documents, so their weak labels add nothing."]
    elif _can_train_on_gold(data):
        recipe = "needle"
        reasons = [f"There are {data.gold_entities:,} gold entities beside the weak labels; `needle` trains on both."]
    else:
        recipe, settings, reason = _advise_on_weak(data, pretrained)
        reasons = [_describe_labels(data), reason]
    return Advice(recipe=recipe, settings=settings, reasons=tuple(reasons), notes=tuple(_notes(data)))


def _advise_on_weak(data: DataProfile, pretrained: bool) -> tuple[str, tuple[str, ...], str]:
    """Recipe, settings and reason where weak labels are all there is to train on."""
    tuned = (_TUNE_THRESHOLD,) if data.dev is not None and data.dev.entities else ()
    if _labels_are_wrong(data) and pretrained:
        reason = "`roster` is designed for that: it removes labels that a noise-robust model finds improbable."
        return "roster", (), reason
    if _labels_are_wrong(data):
        reason = (
            "`roster` is designed for that, but with an encoder trained from scratch it was between 2.5 F1 points "
            "better and 7 points worse than `ensemble`, which is the safer choice."
        )
        return "ensemble", (), f"{reason} {_COST}"
    if data.weak_complete and (data.missing_rate or 0.0) > MAX_MISSING:
        reason = (
            "A complete document has no unlabeled entities by definition. If these are incomplete, write "
            "`complete: false` into the file and ask again."
        )
        return "trust", tuned, reason
    if data.weak_complete or (data.missing_rate is not None and data.missing_rate <= MAX_MISSING):
        reason = "With few labels missing, `trust` was one F1 point behind `ensemble`; it takes about half the time."
        return "trust", tuned, reason
    reason = "In our benchmarks with missing labels, `ensemble` was at most 1.1 F1 points behind the best recipe"
    if data.missing_rate is None:
        reason += ", and at most 2.6 points where none were missing"
    return "ensemble", (), f"{reason}. {_COST}"


def _can_train_on_gold(data: DataProfile) -> bool:
    return data.gold_entities >= MIN_GOLD_ENTITIES and data.in_gold < GOLD_COVERAGE


def _labels_are_wrong(data: DataProfile) -> bool:
    """Whether wrong labels are the main problem, rather than missing ones."""
    if data.precision is not None:
        return data.precision < MIN_PRECISION
    share = data.type_conflicts
    if share is None or share.of < MIN_ENTITIES:
        return False
    standard_error = sqrt(share.value * (1 - share.value) / share.of)
    return share.value - 2 * standard_error >= MAX_CONFLICTS  # ambiguous names conflict without any mistake


def _labels_are_missing(data: DataProfile) -> bool:
    return not data.weak_complete and (data.missing_rate is None or data.missing_rate > MAX_MISSING)


def _describe_labels(data: DataProfile) -> str:
    """What the profile says about the weak labels, in one sentence."""
    if data.precision is not None and _labels_are_wrong(data):
        return f"According to {data.reference}, about {_percent(1 - data.precision)} of the labels are wrong."
    if _labels_are_wrong(data) and data.type_conflicts is not None:
        return (
            f"The labels contradict each other: in {_percent(data.type_conflicts.value)} of the cases, another label "
            "of the same name has another type."
        )
    if data.weak_complete:
        missing = data.missing_rate or 0.0
        lacking = f"about {_percent(missing)} of the entities lack a correct label"
        but = f", but according to {data.reference} {lacking}" if missing > MAX_MISSING else ""
        return f"All weak documents are marked as complete{but}."
    if data.missing_rate is not None:
        kind = {
            "names": ": whole names are missing rather than single mentions",
            "mentions": ": mentions of all names are missing alike",
        }.get(data.missing_kind or "", "")
        missing_share = f"about {_percent(data.missing_rate)} of the entities have no label or a wrong one"
        return f"According to {data.reference}, {missing_share}{kind}."
    share = data.unlabeled_mentions
    if share is None or share.of < MIN_ENTITIES:
        return "There is no dev or gold to estimate label quality from, and too few names occur more than once."
    if share.value <= MAX_MISSING:
        return (
            "Labeled names have a label at nearly every mention: either few labels are missing, or whole names are; "
            "only dev or gold can tell which."
        )
    unlabeled = f"{_percent(share.value)} of the other mentions of labeled names have no label"
    return f"{unlabeled}, and whole names may be missing too."


def _notes(data: DataProfile) -> Iterator[str]:
    weak = data.weak.entities if data.weak else 0
    gold = data.gold.entities if data.gold else 0
    if 0 < max(weak, gold) < FEW_ENTITIES:
        yield f"With only {max(weak, gold):,} labeled entities, more labels will help more than any choice of recipe."
    words = sum(size.words for size in (data.weak, data.gold) if size)
    if words >= PRETRAINING_WORDS:
        yield (
            f"There is enough text for domain-adaptive pre-training ({words:,} words). If you have not done it, "
            "`lacuner pretrain` improved F1 by two to five points in our benchmarks."
        )
    if not weak:
        return
    if data.entity_width is not None and data.entity_width >= LONG_ENTITIES and _labels_are_missing(data):
        yield (
            f"Labeled entities have {data.entity_width:.1f} words on average. Where labels are missing, a head that "
            "tags single words finds such entities in pieces: choose head.kind=span for recipes that have both."
        )
    yield from _notes_on_reference(data)
    if data.missing_kind == "names":
        yield (
            "Most recipes assume that labels are missing at random, but here whole names seem to be missing: look at "
            "label_issues.tsv after training, and add what belongs there to the gazetteer."
        )
    uses_gold = data.in_gold >= GOLD_COVERAGE or _can_train_on_gold(data)
    if data.labels_not_in_weak and data.comparable and not uses_gold:
        yield f"Weak has no entity labeled {', '.join(data.labels_not_in_weak)}, so no recipe can learn that type."
    if gold and not uses_gold:
        use = "was only used to estimate label quality" if "gold" in (data.reference or "") else "is not used"
        yield (
            f"Gold has fewer than {MIN_GOLD_ENTITIES} entities of the types in weak, so it {use}: `--recipe needle` "
            "can train on it all the same, and as --dev it would select the epoch and the threshold."
        )
    elif not data.dev:
        also = "" if data.reference or uses_gold else ", and show how many labels are missing or wrong"
        yield f"100 completely labeled sentences as --dev would select the epoch and the threshold{also}."


def _notes_on_reference(data: DataProfile) -> Iterator[str]:
    """Remarks on gold and dev as a reference for label quality."""
    sizes = [(name, size) for name, size in (("gold", data.gold), ("dev", data.dev)) if size]
    reference = " and ".join(name for name, _ in sizes).capitalize()
    have = "have" if len(sizes) > 1 else "has"
    for name, size in sizes:
        if size.documents and not size.entities:
            yield f"There is no entity in {name}: a column file must end in .conll, or needs --format conll."
    if data.reference_gaps is not None:
        yield (
            f"{reference} could not be used to estimate label quality, because {_percent(data.reference_gaps)} of the "
            "other mentions of labeled names have no label there: such incomplete data also underrates every recipe "
            "that finds missing entities."
        )
    elif reference and data.reference is None:
        why = (
            f"both need {MIN_ENTITIES} entities with common labels, in different documents that are complete"
            if data.comparable
            else "it has no label in common with weak"
        )
        yield f"{reference} could not be used to estimate label quality: {why}."
    if data.labels_not_in_reference:
        labels = ", ".join(data.labels_not_in_reference)
        yield f"{reference} {have} no entity labeled {labels}, so the quality of these labels is unknown."
    if data.in_dev > 0:
        yield (
            f"{_percent(data.in_dev)} of the dev documents are also in weak and were ignored here: keep dev separate, "
            "because a model may have memorised them."
        )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
