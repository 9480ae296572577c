"""The entity ratio for recipes that correct for missing labels: set, from dev, or estimated by a short training.

1. `dev`: the share of entity words in dev.
2. `hidden`: a model is trained for a few epochs with a fifth of the names hidden from it. It gives the words of these
   names a lower entity probability than those that it saw labeled, as it does for names that the gazetteer lacks. The
   labeled words are a lower limit of the entity words, as long as labels are right. The entity probability of all
   unlabeled words, divided by the mean at hidden words, is an upper limit, because mistakes are in it. The estimate is
   the geometric mean of both.
3. `counts`: a model is trained for a few epochs on weak labels treated as complete. Its confidence at labeled words
   estimates the share of entity words with a label (Elkan and Noto, 2008). If it has memorised the labels, the ratio is
   too low.
4. `odds`: the same, applied to the unlabeled words one by one, as two-step learning does.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field

from lacuner.advice.entity_ratio import (
    EntityRatio,
    entity_ratio,
    entity_ratios,
    entity_width,
    ratio_from_complete,
    share_out,
)
from lacuner.corpus.words import words_of
from lacuner.data import Document, Splits, labels_of
from lacuner.errors import ConfigError
from lacuner.models.ragged import offsets_of
from lacuner.models.tag_sets import tag_set_of
from lacuner.techniques.early_learning import Exploration, explore, labeled_share
from lacuner.techniques.hidden_entries import FOLDS, MIN_HIDDEN, entry_fold, hide_entries
from lacuner.training.config import RecipeConfig
from lacuner.training.dataset import character_positions
from lacuner.training.run_folder import Run

Share = Annotated[float, Field(gt=0, lt=1)]
RatioSetting = Share | dict[str, Share] | Literal["auto", "dev", "hidden", "counts", "odds"]
"""The setting `entity_ratio` of a recipe."""
Explore = Callable[[Sequence[Document], str], Exploration]
"""Trains a model for a few epochs on weak documents, in the stage of this name, and records its O-scores."""
MAX_FACTOR = 5.0
"""Entity words per labeled word that `counts` may estimate: a model that has learned little would give more."""
COUNTS_INTERVAL = 4.0
"""The upper end of the interval of `counts` and `odds`, relative to the estimate."""
MAX_RATIO = 0.9
"""Largest estimate: something must be left for O."""


class EntityRatioConfig(RecipeConfig):
    """Settings of recipes that need the entity ratio."""

    entity_ratio: RatioSetting = "counts"
    """Share of all words that belong to entities: a number, one per label (`entity_ratio.PER=0.05`), or how to estimate
    it: from `dev`, `hidden` names, label `counts` or `odds`, or `auto` (dev if possible, else counts)."""
    explore: int = Field(3, ge=1)
    """Epochs of the model that the ratio is estimated with."""


def exploration_epochs(splits: Splits, config: EntityRatioConfig) -> dict[str, int]:
    """The stage of the estimate and its epochs, for `Run.plan`; empty if it needs none."""
    stage = exploration_stage(splits, config.entity_ratio)
    return {stage: config.explore} if stage else {}


def configured_entity_ratio(splits: Splits, config: EntityRatioConfig, run: Run) -> EntityRatio:
    """`find_entity_ratio` with the settings of a recipe."""
    return find_entity_ratio(splits, config.entity_ratio, explorer(config, config.explore, run))


def explorer(config: RecipeConfig, epochs: int, run: Run) -> Explore:
    """The function that `find_entity_ratio` needs, for a recipe's settings."""

    def explore_docs(docs: Sequence[Document], stage: str) -> Exploration:
        return explore(docs, config, epochs, run, name=stage)

    return explore_docs


def exploration_stage(splits: Splits, setting: RatioSetting) -> str | None:
    """The stage in which a model is trained for the estimate; None if it needs none."""
    if isinstance(setting, float) or (isinstance(setting, dict) and set(setting) >= set(labels_of(splits.weak or ()))):
        return None
    source = "auto" if isinstance(setting, dict) else setting
    if source == "dev" or (source == "auto" and _from_dev(splits) is not None):
        return None
    return "hidden" if source == "hidden" else "explore"


def find_entity_ratio(splits: Splits, setting: RatioSetting, explore_docs: Explore) -> EntityRatio:
    """The share of the weak documents' words that belong to entities, and where it comes from.

    `auto` is `dev` if there are enough entities in dev, or else `counts`. It is also used for labels that a table of
    ratios leaves out.
    """
    docs = splits.weak or ()
    labels = labels_of(docs)
    if isinstance(setting, float):
        return EntityRatio(setting, setting, setting, "given", share_out(docs, labels, setting))
    if not isinstance(setting, dict):
        return _estimate(splits, setting, explore_docs)
    if unknown := sorted(set(setting) - set(labels)):
        raise ConfigError(f"entity_ratio has the label {unknown[0]!r}, which is not in the data: {', '.join(labels)}")
    if set(setting) == set(labels):
        value = sum(setting.values())
        return EntityRatio(value, value, value, "given", setting)
    ratio = _estimate(splits, "auto", explore_docs)
    by_label = {**ratio.by_label, **setting}
    value = sum(by_label.values())
    factor = value / max(ratio.value, 1e-9)
    return EntityRatio(value, ratio.low * factor, min(ratio.high * factor, 1.0), f"given and {ratio.source}", by_label)


def _estimate(splits: Splits, source: str, explore_docs: Explore) -> EntityRatio:
    docs = splits.weak or ()
    if source in ("auto", "dev"):
        if (ratio := _from_dev(splits)) is not None:
            return ratio
        if source == "dev":
            raise ConfigError("entity_ratio=dev needs --dev with at least 20 entities whose labels weak has")
    if source == "hidden":
        if (fold := _fold_to_hide(docs)) is not None:
            return ratio_from_hidden(docs, explore_docs(list(hide_entries(docs, fold)), "hidden"))
        raise ConfigError(
            f"entity_ratio=hidden needs {MIN_HIDDEN} labels that can be hidden while others are left: "
            "use entity_ratio=counts"
        )
    exploration = explore_docs(docs, "explore")
    return ratio_from_odds(docs, exploration) if source == "odds" else ratio_from_counts(docs, exploration)


def _from_dev(splits: Splits) -> EntityRatio | None:
    return ratio_from_complete(splits.weak or (), splits.dev) if splits.dev else None


def _fold_to_hide(docs: Sequence[Document]) -> int | None:
    """The fold of the names whose labels are closest to a fifth of all; None if it has too few, or nearly all."""
    spans = [(doc.text[span.start : span.end]) for doc in docs if not doc.complete for span in doc.spans]
    counts = np.bincount([entry_fold(name) for name in spans], minlength=FOLDS)
    fold = int(np.argmin(np.abs(counts - len(spans) / FOLDS)))
    return fold if MIN_HIDDEN <= counts[fold] <= len(spans) / 2 else None


def ratio_from_hidden(docs: Sequence[Document], exploration: Exploration) -> EntityRatio:
    """The ratio from a model that was trained on the same documents without the labels of some names."""
    labels, data = labels_of(docs), exploration.weak.as_complete
    (o_scores,) = exploration.o_scores.values()
    entity, unlabeled = 1 - o_scores["prob"].numpy(), exploration.weak.unlabeled.numpy()
    if unlabeled.ndim > 1:
        raise ConfigError("entity_ratio=hidden needs a head that tags words: head.kind=token or crf")
    shift = offsets_of(np.array([len(doc.text) for doc in docs], dtype=np.int64))
    characters = np.zeros(int(shift[-1]) + 1, dtype=bool)
    for doc, start in zip(docs, shift, strict=False):
        for span in doc.spans:
            characters[start + span.start : start + span.end] = True
    document, first, _ = character_positions(docs, data)
    labeled = characters[shift[document] + first]
    at_hidden = float(entity[labeled & unlabeled].mean()) if (labeled & unlabeled).any() else 0.0
    lowest = entity_ratio(docs, labels)
    elsewhere = float(entity[~labeled & unlabeled].sum()) / max(int(exploration.weak.own_lengths.sum()), 1)
    highest = min(lowest + elsewhere / max(at_hidden, 1e-3), MAX_RATIO)
    value = max(lowest * highest, 0.0) ** 0.5
    return EntityRatio(value, lowest, max(highest, lowest), "hidden names", share_out(docs, labels, value))


def ratio_from_counts(docs: Sequence[Document], exploration: Exploration) -> EntityRatio:
    """The labeled words of each label, divided by a model's mean entity probability there."""
    (*_, o_scores) = exploration.o_scores.values()
    data, by_label = exploration.weak.as_complete, {}
    labels = data.targets.labels.long()
    head = data.model.head
    labeled = entity_ratios(docs, head.labels)
    types = labels - 1 if labels.dim() > 1 else torch.from_numpy(tag_set_of(head).types)[labels]
    for number, label in enumerate(head.labels):
        share = labeled_share(o_scores["prob"], exploration.weak.labeled & (types == number))
        by_label[label] = labeled[label] * min(1 / share, MAX_FACTOR)
    return _from_estimates(docs, by_label)


def ratio_from_odds(docs: Sequence[Document], exploration: Exploration) -> EntityRatio:
    """The labeled words, and those unlabeled ones that a model's odds add up to."""
    labels, weak = labels_of(docs), exploration.weak
    missing = exploration.missing_share(max(exploration.o_scores)) * int(weak.unlabeled.sum())
    lowest, words = entity_ratio(docs, labels), int(weak.own_lengths.sum())
    if weak.unlabeled.dim() > 1:  # the odds of so many spans may sum to far more entities than there can be
        missing = min(missing * (entity_width(docs) or 1.0), (MAX_FACTOR - 1) * lowest * words)
    return _from_estimates(docs, share_out(docs, labels, lowest + missing / max(words, 1)))


def _from_estimates(docs: Sequence[Document], by_label: dict[str, float]) -> EntityRatio:
    value = sum(by_label.values())
    lowest = min(entity_ratio(docs, list(by_label)), value)
    return EntityRatio(value, lowest, min(COUNTS_INTERVAL * value, 1.0), "label counts", by_label)


def count_missing_words(ratio: float, docs: Sequence[Document]) -> float:
    """The number of words in unlabeled entities, by the share of all words that belong to entities.

    >>> from lacuner.data import Span
    >>> count_missing_words(0.5, [Document("1", "Mara Teel left Halden on a mild day", spans=(Span(0, 9, "PER"),))])
    2.0
    """
    return max(ratio - entity_ratio(docs, labels_of(docs)), 0.0) * sum(len(words_of(doc)) for doc in docs)


def count_missing_entities(ratio: float, docs: Sequence[Document]) -> float:
    """The number of unlabeled entities, if they are as wide as the labeled ones.

    >>> from lacuner.data import Span
    >>> count_missing_entities(0.5, [Document("1", "Mara Teel left Halden on a mild day", spans=(Span(0, 9, "PER"),))])
    1.0
    """
    return count_missing_words(ratio, docs) / (entity_width(docs) or 1.0)


def ratios_to_labeled(ratio: EntityRatio, docs: Sequence[Document], labels: Collection[str]) -> dict[str, float]:
    """Entity words per labeled word, at least 1, for each of the labels in their order."""
    labeled = entity_ratios(docs, labels)
    return {label: max(ratio.by_label.get(label, 0.0) / max(labeled[label], 1e-9), 1.0) for label in labels}
