"""`python -m benchmarks.combinations SPEC --data DIR`: parts of different papers put together, judged on dev.

Wherever a bench spec masks something, with its first seed: negative sampling alone; the mean of three such models, as
in RoSTER's ensemble; negative sampling that never draws what the O-values of two-step learning suspect; and its spans
beside the words of two-step learning: those that both find, those that either finds, and a higher probability for what
both find. Each has the threshold that is best on dev, and F1 is that of dev: this chooses what deserves a recipe, and
test data has no say in it. (`ensemble`, which came of it, is measured by `ensemble.toml`.)
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import masked
from lacuner.config import load_config
from lacuner.data import Document, Span, Splits, sort_spans
from lacuner.evaluate.threshold import tune_threshold
from lacuner.models.tagger import Tagger
from lacuner.recipes import negative_sampling, two_step
from lacuner.techniques.early_learning import explore
from lacuner.techniques.label_removal import places
from lacuner.training.dataset import LOOSE
from lacuner.training.run_folder import Run

MODELS = 3
NAMES = ("sampling", f"mean of {MODELS}", "without suspects", "both", "either", "words help")


def compared(spec_file: Path, data_folder: Path) -> Iterator[masked.Row]:
    """F1 on dev of each combination, in the order of `NAMES`."""
    for place in masked.places(spec_file, data_folder, first_seed=True):
        shares = [tune_threshold(place.dev, docs)[1].f1 for docs in found(place)]
        yield f"{place.data} {place.rate:g}", shares


def found(place: masked.Place) -> Iterator[list[Document]]:
    """What each combination finds in dev, with its probabilities."""
    splits, dev = Splits(weak=place.weak, dev=place.dev), place.dev
    seeds = [place.seed + 100 * number for number in range(MODELS)]
    alone, *others = (_loosely(_learned(negative_sampling, splits, place, seed), dev) for seed in seeds)
    yield alone
    yield [mean(docs) for docs in zip(alone, *others, strict=True)]
    fewer = Splits(weak=without_suspects(place), dev=dev)
    yield _loosely(_learned(negative_sampling, fewer, place, place.seed), dev)
    words = _learned(two_step, splits, place, place.seed).predict(dev)
    pairs = list(zip(alone, words, strict=True))
    yield [helped(doc, its, lambda score, known: score if known else 0.0) for doc, its in pairs]
    yield [either(doc, its) for doc, its in pairs]
    yield [helped(doc, its, lambda score, known: sqrt(score) if known else score) for doc, its in pairs]


def _learned(recipe: Any, splits: Splits, place: masked.Place, seed: int) -> Tagger:
    config = load_config(recipe.Config, settings=_training(place))
    with tempfile.TemporaryDirectory() as folder:
        tagger: Tagger = recipe.train(splits, config, Run(folder, {"seed": seed}))
    return tagger


def _training(place: masked.Place) -> list[str]:
    """The settings that models of words and of spans have in common."""
    return [each for each in place.settings if each.startswith(("train.", "encoder."))]


def without_suspects(place: masked.Place) -> list[Document]:
    """The weak documents, and what two-step learning would remove from them as unsure."""
    docs = list(place.weak)
    config = load_config(two_step.Config, settings=_training(place))
    with tempfile.TemporaryDirectory() as folder:
        explored = explore(docs, config, config.explore, Run(folder, {"seed": place.seed}))
    gone = explored.suspects(config.explore, explored.missing_share(config.explore))
    unsure: list[list[Span]] = [[] for _ in docs]
    for number, start, end in np.stack(places(docs, explored.weak.data), axis=1)[gone].tolist():
        unsure[number].append(Span(start, end, ""))
    return [replace(doc, unsure=sort_spans([*doc.unsure, *its])) for doc, its in zip(docs, unsure, strict=True)]


def _loosely(tagger: Tagger, docs: Sequence[Document]) -> list[Document]:
    """All spans that are worth a look, with their probabilities."""
    tagger.model.head.threshold = LOOSE
    return list(tagger.predict(docs))


def mean(docs: Sequence[Document]) -> Document:
    """What several models found in a document, with the mean of their probabilities; the most probable first."""
    total: dict[tuple[int, int, str], float] = {}
    for doc in docs:
        for span in doc.spans:
            total[span[:3]] = total.get(span[:3], 0.0) + (span.score or 0.0) / len(docs)
    taken: list[Span] = []
    for place, score in sorted(total.items(), key=lambda entry: (-entry[1], entry[0])):
        if not any(place[0] < other.end and other.start < place[1] for other in taken):
            taken.append(Span(*place, score))
    return replace(docs[0], spans=sort_spans(taken))


def helped(doc: Document, words: Document, how: Callable[[float, bool], float]) -> Document:
    """The spans of a document with other probabilities, by whether a model of words found them too."""
    known = {span[:3] for span in words.spans}
    spans = (span._replace(score=how(span.score or 0.0, span[:3] in known)) for span in doc.spans)
    return replace(doc, spans=tuple(spans))


def either(doc: Document, words: Document) -> Document:
    """What a model of words found, and, where it found nothing, what the other did."""
    sure = [span._replace(score=1.0) for span in words.spans]
    free = [each for each in doc.spans if not any(each.start < one.end and one.start < each.end for one in sure)]
    return replace(doc, spans=sort_spans([*sure, *free]))


def main(arguments: Sequence[str] | None = None) -> int:
    header = ("data, masked", *NAMES)
    return masked.main("benchmarks.combinations", __doc__, "benchmarks/bars.toml", header, compared, arguments)


if __name__ == "__main__":
    sys.exit(main())
