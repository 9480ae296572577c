"""Estimate from agreement how accurate each source is, without gold: the generative label model behind `--by model`.

What is modelled is a *name*: a surface with a label, at all places where some source claims it. For each label there
are `N` names, of which most may be unknown. A source claims a name with a probability of its own, its *propensity*,
independently of the other sources; and it claims false names at a rate of its own. So two sources seldom claim the same
false name, and how often sources agree tells how many of their claims are right (capture-recapture). Names that the
sources claim once, a few times and often are modelled apart: frequent names are known to more sources, and a model in
which all names are equally well known would take what only one source knows for an error.

The parameters are estimated by expectation maximisation. This is written by hand because the libraries for it (skweak,
Snorkel) are no longer maintained, and model words or sentences instead of names.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

MIN_SOURCES = 3
"""Sources with claims of a label that are needed to estimate their accuracy: two cannot outvote each other."""
SILENCE = 0.5
"""Weight of silence. Sources have blind spots in common (rare names, unusual spellings), so that a second source is
silent is less evidence than if they were independent. Chosen on the training part of bc5cdr."""
STRATA = (2, 6)
"""Names claimed at fewer than 2 places, at 2 to 5 places, and at 6 or more are modelled apart."""
PRIOR_ACCURACY = 0.7
"""Accuracy of a source that cannot be estimated for any label."""
DISTRACTORS = 10
"""For each name that a source claims, the number of phrases that could be claimed by mistake."""
SHRINKAGE = 10.0
"""Names' worth of evidence that a stratum takes from all strata of its label together."""
ITERATIONS = 500
TOLERANCE = 1e-7

Mask = tuple[bool, ...]
"""For each source, whether it claims a name."""


class AccuracyRow(NamedTuple):
    """Estimates for one source and label."""

    source: str
    label: str
    claims: int
    """Places where the source claims a name of this label."""
    accuracy: float
    """Share of these claims that are right."""
    propensity: float | None
    """Share of the names of this label, known or not, that the source claims anywhere; None if it is not estimated."""


@dataclass(slots=True)
class ClaimCounts:
    """The claims of all sources, counted by name.

    >>> counts = ClaimCounts(sources=2)
    >>> counts.add("aspirin", "Chemical", (True, False))
    >>> counts.add("aspirin", "Chemical", (True, True))
    >>> counts.names["aspirin", "Chemical"]
    [2, 1]
    """

    sources: int
    names: dict[tuple[Hashable, str], list[int]] = field(default_factory=dict)
    """By surface and label: the number of claims of each source."""
    places: dict[tuple[Hashable, str], int] = field(default_factory=lambda: defaultdict(int))
    """By surface and label: the number of places that at least one source claims."""

    def add(self, surface: Hashable, label: str, mask: Mask) -> None:
        """Count the claims at one place."""
        row = self.names.setdefault((surface, label), [0] * self.sources)
        for source, claimed in enumerate(mask):
            row[source] += claimed
        self.places[surface, label] += 1


class Parameters(NamedTuple):
    """Parameters of one label and stratum."""

    names: float
    """Expected number of names, with those that no source claims."""
    phrases: float
    """Number of phrases that could be claimed by mistake."""
    propensity: np.ndarray
    """Probability that a source claims a name `[sources]`."""
    false_rate: np.ndarray
    """Probability that a source claims a phrase that is not a name `[sources]`."""

    def probability(self, masks: np.ndarray, silence: float = 1.0) -> np.ndarray:
        """Probability that what these sources `[patterns, sources]` claim is a name.

        `silence` is the weight of the evidence that the other sources do not claim it.
        """
        claimed = masks.astype(float)
        odds = np.log(self.names / self.phrases) + claimed @ np.log(self.propensity / self.false_rate)
        # the silence of a source about phrases that are not names is certain in all but a few cases
        odds = odds + silence * ((1 - claimed) @ np.log((1 - self.propensity) / (1 - self.false_rate)))
        probability: np.ndarray = 1 / (1 + np.exp(-np.clip(odds, -700, 700)))
        return probability


def estimate(masks: np.ndarray, counts: np.ndarray, prior: np.ndarray | None = None) -> Parameters:
    """Expectation maximisation for the names of one label and stratum.

    Args:
        masks: distinct patterns of claims `[patterns, sources]`, each with at least one claim.
        counts: number of names with each pattern `[patterns]`.
        prior: propensities to shrink towards `[sources]`.

    >>> masks = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1]], dtype=bool)
    >>> counts = np.array([125.0, 125, 925, 125, 125, 125, 125])  # 1,000 names, and 800 errors of the third source
    >>> estimate(masks, counts).probability(masks).round(1).tolist()
    [0.9, 0.9, 0.1, 1.0, 1.0, 1.0, 1.0]
    """
    claimed = masks.astype(float)
    phrases = DISTRACTORS * float(counts.sum())
    weight = 0.0 if prior is None else SHRINKAGE
    pulled = np.zeros(masks.shape[1]) if prior is None else weight * prior
    probs = np.where(masks.sum(1) > 1, 0.95, 0.5)
    propensity, names = np.full(masks.shape[1], 0.3), float((probs * counts).sum())
    for _ in range(ITERATIONS):
        known = float((probs * counts).sum())
        names = known + names * float(np.prod(1 - propensity))  # the names that no source claims
        propensity = ((probs * counts) @ claimed + 0.5 + pulled) / (names + 1 + weight)
        propensity = np.clip(propensity, 1e-6, 1 - 1e-6)
        false_rate = (((1 - probs) * counts) @ claimed + 0.5) / (phrases + 1)
        parameters = Parameters(names, phrases, propensity, np.clip(false_rate, 1e-9, 1 - 1e-6))
        new = parameters.probability(masks)
        change, probs = float(np.abs(new - probs).max()), new
        if change < TOLERANCE:
            break
    return parameters


@dataclass(slots=True)
class SourceAccuracy:
    """A fitted label model: how accurate each source is, and how probable a claim is. Made by `fit_accuracy`."""

    rows: list[AccuracyRow]
    """Estimates by source and label."""
    places: dict[tuple[Hashable, str], int]
    masks: dict[tuple[Hashable, str], Mask]
    """For each name, the sources that claim it somewhere."""
    tables: dict[tuple[str, int], dict[Mask, float]]
    """By label and stratum: the probability of a name that these sources claim."""
    parameters: dict[tuple[str, int], Parameters]
    sources: dict[str, list[int]]
    """By label: the sources with claims, if there are enough to estimate their accuracy."""
    fallback: dict[str, list[float]]
    """For the other labels: the accuracy that is assumed for each source."""

    def probability(self, surface: Hashable, label: str, mask: Mask) -> float:
        """The probability that a place is an entity of this label that some sources claim."""
        if label in self.fallback or label not in self.sources:
            wrong = [1 - accuracy for accuracy, claims in zip(self._assumed(label, mask), mask, strict=True) if claims]
            return float(1 - np.prod(wrong))
        everywhere = self.masks.get((surface, label), mask)
        stratum = find_stratum(self.places.get((surface, label), 1))
        own = tuple(here or there for here, there in zip(mask, everywhere, strict=True))
        table = self.tables.setdefault((label, stratum), {})
        if own not in table:
            masks = np.array([[own[source] for source in self.sources[label]]])
            parameters = self.parameters.get((label, stratum)) or self.parameters[label, ALL]
            table[own] = float(parameters.probability(masks, SILENCE)[0])
        return table[own]

    def _assumed(self, label: str, mask: Mask) -> list[float]:
        return self.fallback.get(label) or [PRIOR_ACCURACY] * len(mask)


ALL = -1
"""All strata together."""


def find_stratum(places: int) -> int:
    """The stratum of a name that is claimed at this many places.

    >>> [find_stratum(places) for places in (1, 2, 5, 6)]
    [0, 1, 1, 2]
    """
    return sum(places >= limit for limit in STRATA)


def fit_accuracy(names: Sequence[str], claims: ClaimCounts) -> SourceAccuracy:
    """Fit the label model to the claims of some sources.

    >>> claims = ClaimCounts(sources=3)
    >>> for number in range(160):  # the third source also claims 160 names that no other source claims
    ...     if number % 8 < 7:
    ...         claims.add(number, "PER", (number % 2 == 0, number % 4 < 2, number % 8 < 4))
    ...     claims.add(f"x{number}", "PER", (False, False, True))
    >>> model = fit_accuracy(["first", "second", "third"], claims)
    >>> [round(row.accuracy, 1) for row in model.rows]
    [0.9, 0.9, 0.3]
    """
    model = SourceAccuracy([], dict(claims.places), {}, {}, {}, {}, {})
    by_label: dict[str, list[tuple[Hashable, str]]] = defaultdict(list)
    for name, counts in claims.names.items():
        model.masks[name] = tuple(count > 0 for count in counts)
        by_label[name[1]].append(name)
    for label, own in sorted(by_label.items()):
        active = [source for source in range(claims.sources) if any(model.masks[name][source] for name in own)]
        if len(active) >= MIN_SOURCES:
            model.sources[label] = active
            _fit_label(model, label, own, active)
            model.rows += _measure(model, label, own, names, claims)
    for label, own in sorted(by_label.items()):
        if label not in model.sources:
            model.fallback[label] = [_mean_accuracy(model.rows, name) for name in names]
            total = np.sum([claims.names[name] for name in own], axis=0)
            model.rows += [
                AccuracyRow(source, label, int(number), accuracy, None)
                for source, number, accuracy in zip(names, total, model.fallback[label], strict=True)
                if number
            ]
    order = {name: number for number, name in enumerate(names)}
    model.rows.sort(key=lambda row: (order[row.source], row.label))
    return model


def _fit_label(model: SourceAccuracy, label: str, own: Sequence[tuple[Hashable, str]], active: Sequence[int]) -> None:
    """Estimate the parameters of a label: of all strata together, then of each."""
    strata: dict[int, list[Mask]] = defaultdict(list)
    for name in own:
        mask = tuple(model.masks[name][source] for source in active)
        strata[ALL].append(mask)
        strata[find_stratum(model.places[name])].append(mask)
    prior = None
    for stratum, masks in sorted(strata.items()):
        patterns, counts = np.unique(np.array(masks), axis=0, return_counts=True)
        model.parameters[label, stratum] = estimate(patterns, counts.astype(float), prior)
        if stratum == ALL:
            prior = model.parameters[label, ALL].propensity


def _measure(
    model: SourceAccuracy, label: str, own: Sequence[tuple[Hashable, str]], names: Sequence[str], claims: ClaimCounts
) -> Iterable[AccuracyRow]:
    """Accuracy and propensity of each source for a label, as the fitted model expects them."""
    active = model.sources[label]
    right, total = np.zeros(len(active)), np.zeros(len(active))
    known = {stratum: p for (other, stratum), p in model.parameters.items() if other == label and stratum != ALL}
    for stratum, parameters in known.items():
        members = [name for name in own if find_stratum(model.places[name]) == stratum]
        masks = np.array([[model.masks[name][source] for source in active] for name in members])
        counts = np.array([[claims.names[name][source] for source in active] for name in members])
        probs = parameters.probability(masks)
        right += probs @ counts
        total += counts.sum(0)
    everything = sum(parameters.names for parameters in known.values())
    claimed = np.sum([parameters.names * parameters.propensity for parameters in known.values()], axis=0)
    for at, source in enumerate(active):
        accuracy, propensity = float(right[at] / total[at]), float(claimed[at] / everything)
        yield AccuracyRow(names[source], label, int(total[at]), accuracy, propensity)


def _mean_accuracy(rows: Sequence[AccuracyRow], source: str) -> float:
    own = [row for row in rows if row.source == source and row.propensity is not None]
    claims = sum(row.claims for row in own)
    return sum(row.accuracy * row.claims for row in own) / claims if claims else PRIOR_ACCURACY
