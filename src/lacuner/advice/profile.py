"""A profile of training data: sizes, and estimates of how many labels are missing or wrong, without any training.

Weak labels alone show how often a labeled name occurs elsewhere without a label. Complete documents, even of other
texts, show much more: how dense entities should be, and what type a name should have.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from lacuner.advice.entity_ratio import EntityRatio, entity_width, estimate_entity_ratio, ratio_from_capitals
from lacuner.advice.mentions import (
    Share,
    agreement,
    boundary_precision,
    conflicting_share,
    count_labels,
    count_mentions,
    self_agreement,
    unlabeled_share,
)
from lacuner.corpus.words import words_of
from lacuner.data import Document, labels_of
from lacuner.evaluate.align import gold_by_text
from lacuner.evaluate.scores import Count, count_exact

MIN_ENTITIES = 50
"""Entities that an estimate needs at least. A true share of 0.5 is then estimated between 0.36 and 0.64 (95 %)."""
MENTION_SHARE = 0.6
"""Whether mentions or whole names are missing: if mentions are, at least this part of the unlabeled rate shows in the
weak labels themselves. (Six corpora at drop rates of 0.5 and 0.8: at least 0.89 with dropped mentions, at most 0.46
with dropped names.)"""
MIN_MISSING = 0.1
"""A smaller unlabeled rate may be chance, and is not analysed further."""
MAX_REFERENCE_GAPS = 0.3
"""Gold or dev with more unlabeled mentions of labeled names than this cannot be complete. (Five corpora: 0.01 to 0.14
in gold, 0.5 to 0.64 after half of the labels are dropped.)"""

_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_JSON_NAMES = {
    "weak_complete": "whole",
    "unlabeled_mentions": "forgotten",
    "type_conflicts": "contradicting",
    "reference": "judge",
    "missing_rate": "missing",
    "unlabeled_rate": "bare",
    "precision": "right",
    "labels_not_in_weak": "unlike",
    "labels_not_in_reference": "unjudged",
    "gold_entities": "teaching",
    "reference_gaps": "gappy",
}


@dataclass(frozen=True)
class Size:
    """The size of a corpus.

    >>> size_of([Document("1", "Mara left")]).words
    2
    """

    documents: int
    words: int
    entities: int
    labels: tuple[str, ...]
    cjk: float
    """Share of Chinese and Japanese characters."""
    characters: int = 0
    """Characters other than white space; the base of all shares."""

    @property
    def density(self) -> float:
        """Entities per character, which does not depend on word splitting."""
        return self.entities / self.characters if self.characters else 0.0


@dataclass(frozen=True)
class DataProfile:
    """What is known about training data; None: not given, or not enough data to tell.

    >>> DataProfile(unlabeled_rate=0.5, unlabeled_mentions=Share(0.45, of=200)).missing_kind
    'mentions'
    """

    weak: Size | None = None
    gold: Size | None = None
    dev: Size | None = None
    weak_complete: bool = False
    """Whether all weak documents are marked as complete."""
    in_gold: float = 0.0
    """Share of weak documents whose text also has complete gold."""
    unlabeled_mentions: Share | None = None
    """Share of the other mentions of labeled names without a label."""
    type_conflicts: Share | None = None
    """Share of the other labels of a name with another type."""
    reference: Literal["gold of the same texts", "gold", "dev", "gold and dev"] | None = None
    """The data behind the following three estimates."""
    missing_rate: float | None = None
    """Share of entities without a correct label."""
    unlabeled_rate: float | None = None
    """Share of entities without any label, from the number of labels."""
    precision: float | None = None
    """Share of labels that are correct."""
    labels_not_in_weak: tuple[str, ...] = ()
    """Labels of gold and dev that the weak documents lack."""
    labels_not_in_reference: tuple[str, ...] = ()
    """Labels of the weak documents that gold and dev lack."""
    gold_entities: int = 0
    """Entities in complete gold documents with labels that weak has."""
    in_dev: float = 0.0
    """Share of dev documents whose text is also in weak; they are not used."""
    reference_gaps: float | None = None
    """Unlabeled mentions of labeled names in gold and dev, if there are too many for complete data."""
    entity_ratio: EntityRatio | None = None
    """Share of the weak documents' words that belong to entities, from gold and dev, or from capital letters."""
    entity_width: float | None = None
    """Mean number of words of a labeled entity, in weak or else in gold."""

    @property
    def comparable(self) -> bool:
        """Whether weak has a label in common with gold or dev."""
        reference = {label for size in (self.gold, self.dev) if size for label in size.labels}
        return self.weak is not None and bool(reference & set(self.weak.labels))

    @property
    def missing_kind(self) -> Literal["mentions", "names"] | None:
        """Whether single mentions or whole names are missing; None if few are, or if there is not enough data."""
        share, rate = self.unlabeled_mentions, self.unlabeled_rate
        if rate is None or rate < MIN_MISSING or share is None or share.of < MIN_ENTITIES:
            return None
        return "mentions" if share.value >= MENTION_SHARE * rate else "names"

    def as_json(self) -> dict[str, Any]:
        values = {_JSON_NAMES.get(name, name): value for name, value in asdict(self).items()}
        for name, share in (("forgotten", self.unlabeled_mentions), ("contradicting", self.type_conflicts)):
            values[name] = None if share is None else share._asdict()
        return {**values, "gaps": self.missing_kind}


def profile(
    weak: Sequence[Document] | None = None,
    gold: Sequence[Document] | None = None,
    dev: Sequence[Document] | None = None,
) -> DataProfile:
    """Profile the data of a training run; the order of the documents does not matter.

    >>> from lacuner.demo import build
    >>> from lacuner.noise import Noise, corrupt
    >>> demo = build()
    >>> estimate = profile(list(corrupt(demo.train[:500], Noise(drop=0.5))), dev=demo.dev)
    >>> round(estimate.missing_rate, 1), estimate.missing_kind
    (0.5, 'mentions')
    """
    weak_size, gold_size, dev_size = (None if docs is None else size_of(docs) for docs in (weak, gold, dev))
    data = DataProfile(weak_size, gold_size, dev_size)
    if weak is None or weak_size is None or not weak_size.entities:
        return data
    # gold and dev are complete unless they say otherwise
    complete_gold, complete_dev = ([doc for doc in docs or () if doc.complete is not False] for docs in (gold, dev))
    weak_texts, gold_texts = {doc.text for doc in weak}, {doc.text for doc in complete_gold}
    labels = count_labels(weak)
    data = replace(
        data,
        in_gold=sum(doc.text in gold_texts for doc in weak) / len(weak),
        in_dev=sum(doc.text in weak_texts for doc in dev) / len(dev) if dev else 0.0,
        weak_complete=all(doc.complete for doc in weak),
        unlabeled_mentions=unlabeled_share(count_mentions(labels, weak)),
        type_conflicts=conflicting_share(labels),
        entity_width=entity_width(weak),
    )
    data = _compare(data, weak, complete_gold, [doc for doc in complete_dev if doc.text not in weak_texts])
    if data.reference_gaps is not None:
        return replace(data, entity_ratio=ratio_from_capitals(weak))
    return replace(data, entity_ratio=estimate_entity_ratio(weak, complete_gold, complete_dev))


def size_of(docs: Iterable[Document]) -> Size:
    """The size of a corpus."""
    docs = list(docs)
    characters = sum(len("".join(doc.text.split())) for doc in docs)
    cjk = sum(len(_CJK.findall(doc.text)) for doc in docs if not doc.text.isascii())
    return Size(
        documents=len(docs),
        words=sum(len(words_of(doc)) for doc in docs),
        entities=sum(len(doc.spans) for doc in docs),
        labels=tuple(labels_of(docs)),
        cjk=cjk / characters if characters else 0.0,
        characters=characters,
    )


def _compare(data: DataProfile, weak: Sequence[Document], gold: list[Document], dev: list[Document]) -> DataProfile:
    """Add estimates from complete documents: gold of the same texts if there is enough, otherwise any gold and dev."""
    weak_labels, reference_labels = set(labels_of(weak)), set(labels_of([*gold, *dev]))
    weak, gold, dev = (_keep_labels(weak_labels & reference_labels, docs) for docs in (weak, gold, dev))
    complete = [*gold, *dev]
    data = replace(
        data,
        labels_not_in_weak=tuple(sorted(reference_labels - weak_labels)),
        labels_not_in_reference=tuple(sorted(weak_labels - reference_labels)) if reference_labels else (),
        gold_entities=sum(len(doc.spans) for doc in gold),
        reference_gaps=_reference_gaps(complete),
    )
    if data.reference_gaps is not None:
        return data
    exact = _score_against_own_gold(weak, gold)
    if min(exact.gold, exact.predicted) >= MIN_ENTITIES:
        return replace(
            data,
            reference="gold of the same texts",
            missing_rate=1 - exact.recall,
            unlabeled_rate=max(1 - exact.predicted / exact.gold, 0.0),
            precision=exact.precision,
        )
    weak_size, reference_size = size_of(weak), size_of(complete)
    if min(weak_size.entities, reference_size.entities) < MIN_ENTITIES:
        return data
    precision = _estimate_precision(weak, complete)
    labeled_rate = min(weak_size.density / reference_size.density, 1.0)
    reference: Any = " and ".join(name for name, docs in (("gold", gold), ("dev", dev)) if docs)
    return replace(
        data,
        reference=reference,
        missing_rate=1 - labeled_rate * (1.0 if precision is None else precision),
        unlabeled_rate=1 - labeled_rate,
        precision=precision,
    )


def _reference_gaps(docs: Sequence[Document]) -> float | None:
    """The share of unlabeled mentions in documents that should be complete, if it is too high for that."""
    share = unlabeled_share(count_mentions(count_labels(docs), docs))
    if share is None or share.of < MIN_ENTITIES or share.value <= MAX_REFERENCE_GAPS:
        return None
    return share.value


def _score_against_own_gold(weak: Sequence[Document], gold: Sequence[Document]) -> Count:
    """Exact matches in the weak documents whose text gold has too."""
    gold_docs = gold_by_text(gold)
    common = [doc for doc in weak if doc.text in gold_docs]
    return count_exact([gold_docs[doc.text] for doc in common], common)


def _estimate_precision(weak: Sequence[Document], complete: Sequence[Document]) -> float | None:
    """The share of correct labels: correct types, times correct boundaries.

    Types: how often a labeled name has the same label in the complete documents, relative to how often these agree
    with themselves, because an ambiguous name disagrees without any mistake. Labels with wrong boundaries rarely occur
    as names elsewhere, so they hardly affect that figure; `boundary_precision` estimates them.
    """
    labels = count_labels(weak)
    agreeing = agreement(labels, count_mentions(labels, complete))
    attainable = self_agreement(count_mentions(count_labels(complete), complete))
    if agreeing is None or attainable is None or not attainable.value:
        return None
    if min(agreeing.of, attainable.of) < MIN_ENTITIES:
        return None
    boundaries = boundary_precision(weak, complete)
    correct_boundaries = boundaries.value if boundaries and boundaries.of >= MIN_ENTITIES else 1.0
    return min(agreeing.value / attainable.value, 1.0) * correct_boundaries


def _keep_labels(labels: Collection[str], docs: Sequence[Document]) -> list[Document]:
    """The documents with only the entities of these labels."""
    return [replace(doc, spans=tuple(span for span in doc.spans if span.label in labels)) for doc in docs]
