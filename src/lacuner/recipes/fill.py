"""Let models that never saw a text say which of its gaps are entities, fill them, and learn again.

What it does: cuts the documents into parts; for each, a span model learns from the other parts, with few random
    negatives, and says what it finds. How sure it must be follows from the labels themselves: of those that were kept
    from it, it finds a share at each probability, and of the entities without a label it should find the same; whatever
    it finds beyond that is wrong. What is right often enough becomes a label, what is doubtful is no negative, and a
    last model learns from all, with more negatives than before, since fewer of them are gaps.
Assumes: that labels are right, and that what is missing is missing at random: where names are missing as a whole, less
    is filled than could be. Use it where much is missing and there is time.
Needs: weak; with dev it chooses thresholds and epochs.
Costs: as many trainings as there are parts, each on the others, and one more: with two parts twice as long as `trust`.
Departs from the authors: this is our own, from parts of others: cross-fitting and self-training as in the ensemble of
    RoSTER, negative sampling, and Elkan and Noto's argument about labels that are missing at random.
Reference: Li, Liu and Shi (2021), "Empirical analysis of unlabeled entity problem in named entity recognition"; Meng et
    al. (2021), "Distantly-supervised named entity recognition with noise-robust learning and language model augmented
    self-training"; Elkan and Noto (2008), "Learning classifiers from only positive and unlabeled data".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from math import inf

import numpy as np
from pydantic import Field

from lacuner.config import Config as BaseConfig
from lacuner.corpus.jsonl import as_line
from lacuner.files import atomic_write
from lacuner.models.tagger import Tagger
from lacuner.recipes.heldout import cut
from lacuner.recipes.negative_sampling import Config as SamplingConfig
from lacuner.recipes.negative_sampling import sampled
from lacuner.recipes.parts import EncoderConfig, Splits, learn_in_stage, new_model
from lacuner.recipes.spans import SpanHeadConfig, new_span_set, span_set
from lacuner.training.data import LOOSE
from lacuner.training.run import Run
from lacuner.training.settings import TrainConfig
from lacuner.types import Document, Lost, Span, by_position

NEEDS = ("weak",)
USES: tuple[str, ...] = ()
SOURCE = "fill"
"""The source of the spans that were added."""
FILLED = "filled.jsonl"
"""In the run folder: the documents with what was added."""
FEW = 0.2
"""How many are missing is judged where at least this share of the labels that are found at all is found."""


class Config(BaseConfig):
    """Settings of `fill`."""

    encoder: EncoderConfig = EncoderConfig()
    head: SpanHeadConfig = SpanHeadConfig()
    train: TrainConfig = TrainConfig()
    parts: int = Field(2, ge=2)
    """Into how many parts the documents are cut."""
    rate: float = Field(0.5, gt=0)
    """Negatives a word for the models that find the gaps."""
    believe: float = Field(0.7, gt=0, le=1)
    """What was found becomes a label as long as this share of it is right, as it seems."""
    doubt: float = Field(0.2, ge=0, le=1)
    """Below that, as long as this share is right, it is no negative."""
    last_rate: float = Field(1.0, gt=0)
    """Negatives a word for the last model."""


@dataclass(frozen=True)
class Evidence:
    """How sure models were of what they found: of labels that were kept from them, and of spans without a label."""

    labels: int
    """How many labels there are, found or not."""
    labelled: np.ndarray
    others: np.ndarray

    def missing(self) -> float:
        """How many entities have no label, as it seems.

        Of these the models should find as large a share as of the labels, at each probability. What they find besides
        is wrong, and there is least of it among what they are surest of.
        """
        if not len(self.labelled):
            return 0.0
        scores, shares = self._found_again()
        enough = shares >= FEW * shares[-1]
        return float((self._others_above(scores)[enough] / shares[enough]).min())

    def threshold(self, share: float) -> float:
        """The lowest probability at which this share of the other spans is right, as it seems; infinite: nowhere."""
        scores, shares = self._found_again()
        enough = shares * self.missing() >= share * np.maximum(self._others_above(scores), 1)
        return float(scores[enough].min()) if enough.any() else inf

    def _found_again(self) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities, and the share of the labels that is found with each of them or a higher one."""
        scores = np.sort(self.labelled)[::-1]
        return scores, np.arange(1, len(scores) + 1) / max(self.labels, 1)

    def _others_above(self, scores: np.ndarray) -> np.ndarray:
        return len(self.others) - np.searchsorted(np.sort(self.others), scores)


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Learn from `splits.weak`, with its gaps filled."""
    weak = splits.weak or ()
    found = found_by_others(splits, config, run)
    evidence = weigh(weak, found)
    believed, doubted = (evidence.threshold(share) for share in (config.believe, config.doubt))
    filled = [fill(doc, its, believed, doubted) for doc, its in zip(weak, found, strict=True)]
    added = sum(len(doc.spans) - len(before.spans) for doc, before in zip(filled, weak, strict=True))
    run.say(
        f"fill: beside {evidence.labels:,} labels about {evidence.missing():,.0f} seem to be missing; {added:,} spans "
        f"become labels (probability {believed:.3f} or more), those down to {doubted:.3f} are no negatives"
    )
    with atomic_write(run.folder / FILLED) as stream:
        stream.writelines(as_line(doc).encode("utf-8", "surrogatepass") for doc in filled)
    spans = new_span_set(config, filled, run, "filled")
    make_step = partial(sampled, spans, _sampling(config, config.last_rate), watch=run.watch)
    return learn_in_stage(spans.data, make_step, config, run, splits.dev, "train").tagger


def _sampling(config: Config, rate: float) -> SamplingConfig:
    return SamplingConfig(encoder=config.encoder, head=config.head, train=config.train, rate=rate)


def found_by_others(splits: Splits, config: Config, run: Run) -> list[Document]:
    """What models find in each document that have not learned from it, be it ever so improbable."""
    weak = splits.weak or ()
    part_of = cut(weak, config.parts)
    found = list(weak)
    for part in range(config.parts):
        name = f"part{part}"
        others = [doc for doc, its in zip(weak, part_of, strict=True) if its != part]
        spans = span_set(new_model(config.encoder, config.head, weak, run, name), others, Lost())
        make_step = partial(sampled, spans, _sampling(config, config.rate))
        tagger = learn_in_stage(spans.data, make_step, config, run, splits.dev, name).tagger
        tagger.model.head.threshold = LOOSE
        mine = np.flatnonzero(part_of == part).tolist()
        for number, doc in zip(mine, tagger.predict([weak[number] for number in mine]), strict=True):
            found[number] = doc
    return found


def weigh(weak: Iterable[Document], found: Iterable[Document]) -> Evidence:
    """Hold what was found against the labels. What meets a label without being it says nothing."""
    labels, labelled, others = 0, [], []
    for doc, its in zip(weak, found, strict=True):
        known = {span[:3] for span in doc.spans}
        labels += len(known)
        for span in its.spans:
            if span[:3] in known:
                labelled.append(span.score or 0.0)
            elif not doc.complete and _free(doc, span):
                others.append(span.score or 0.0)
    return Evidence(labels, np.array(labelled), np.array(others))


def fill(doc: Document, found: Document, believed: float, doubted: float) -> Document:
    """The document with what was found in its gaps; a document that says it is complete has none."""
    if doc.complete:
        return doc
    new = [span for span in found.spans if _free(doc, span)]
    sure = [Span(*span[:4], SOURCE) for span in new if (span.score or 0.0) >= believed]
    unsure = [Span(*span[:4], SOURCE) for span in new if doubted <= (span.score or 0.0) < believed]
    return replace(doc, spans=by_position([*doc.spans, *sure]), unsure=by_position([*doc.unsure, *unsure]))


def _free(doc: Document, span: Span) -> bool:
    """Whether nobody has said anything of this place."""
    touched = (*doc.spans, *doc.unsure, *(out for out in doc.rejected if out.label in ("", span.label)))
    return not any(span.start < other.end and other.start < span.end for other in touched)
