"""`python -m benchmarks.combinations SPEC --data DIR`: parts of different papers put together, judged on dev.

Wherever a bench spec masks something, with its first seed: negative sampling alone; the mean of three such models, as
in RoSTER's ensemble; negative sampling that never draws what the O-values of two-step learning suspect; and its spans
beside the words of two-step learning: those that both find, those that either finds, and a higher probability for what
both find. Each has the threshold that is best on dev, and F1 is that of dev: this chooses what deserves a recipe, and
test data has no say in it. (`fill`, which came of it, is measured by `fill.toml`.)
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lacuner.bench.data import DataSet
from lacuner.bench.spec import gaps_of, load_spec
from lacuner.bench.table import markdown
from lacuner.config import load_config
from lacuner.errors import LacunerError
from lacuner.evaluate.threshold import best_threshold
from lacuner.models.tagger import Tagger
from lacuner.recipes import negative_sampling, two_step
from lacuner.recipes.o_values import explore
from lacuner.recipes.parts import Splits, canonical
from lacuner.recipes.removed import places
from lacuner.recipes.train import in_role
from lacuner.training.data import LOOSE
from lacuner.training.run import Run
from lacuner.types import Document, Span, by_position

MODELS = 3
NAMES = ("sampling", f"mean of {MODELS}", "without suspects", "both", "either", "words help")


class Place(NamedTuple):
    """Where something is masked."""

    name: str
    splits: Splits
    seed: int
    settings: tuple[str, ...]


def masked_places(spec_file: Path, data_folder: Path) -> Iterator[Place]:
    """Where the spec masks something, with its first seed."""
    spec = load_spec(spec_file, data_folder)
    settings = tuple(each for each in spec.settings if each.startswith("train."))
    for name, data in spec.data.items():
        dataset = DataSet(name, data, data_folder)
        for kind, rate, _ in gaps_of(spec, name, data):
            if kind == "masked" and rate > 0:
                found = dataset.splits(("weak",), kind, rate, spec.seeds[0])
                weak, dev = (
                    canonical(in_role(docs or (), whole)) for docs, whole in ((found.weak, False), (found.dev, True))
                )
                yield Place(f"{name} {rate:g}", Splits(weak=weak, dev=dev), spec.seeds[0], settings)


def compared(place: Place) -> list[float]:
    """F1 on dev of each combination, in the order of `NAMES`."""
    dev = place.splits.dev or ()
    learn = partial(_learned, place.settings)
    seeds = [place.seed + 100 * number for number in range(MODELS)]
    alone, *others = (_loosely(learn(negative_sampling, place.splits, seed), dev) for seed in seeds)
    fewer = learn(negative_sampling, Splits(weak=without_suspects(place), dev=dev), place.seed)
    words = list(learn(two_step, place.splits, place.seed).predict(dev))
    pairs = list(zip(alone, words, strict=True))
    found = (
        alone,
        [mean(docs) for docs in zip(alone, *others, strict=True)],
        _loosely(fewer, dev),
        [helped(doc, its, lambda score, known: score if known else 0.0) for doc, its in pairs],
        [either(doc, its) for doc, its in pairs],
        [helped(doc, its, lambda score, known: sqrt(score) if known else score) for doc, its in pairs],
    )
    return [best_threshold(dev, docs)[1].f1 for docs in found]


def _learned(settings: Sequence[str], recipe: Any, splits: Splits, seed: int) -> Tagger:
    with tempfile.TemporaryDirectory() as folder:
        tagger: Tagger = recipe.train(
            splits, load_config(recipe.Config, settings=settings), Run(folder, {"seed": seed})
        )
    return tagger


def without_suspects(place: Place) -> list[Document]:
    """The weak documents, and what two-step learning would remove from them as unsure."""
    docs = list(place.splits.weak or ())
    config = load_config(two_step.Config, settings=place.settings)
    with tempfile.TemporaryDirectory() as folder:
        found = explore(docs, config, config.explore, Run(folder, {"seed": place.seed}))
    gone = found.suspects(config.explore, found.missing_share(config.explore))
    unsure: list[list[Span]] = [[] for _ in docs]
    for number, start, end in np.stack(places(docs, found.weak.data), axis=1)[gone].tolist():
        unsure[number].append(Span(start, end, ""))
    return [replace(doc, unsure=by_position([*doc.unsure, *its])) for doc, its in zip(docs, unsure, strict=True)]


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
    return replace(docs[0], spans=by_position(taken))


def helped(doc: Document, words: Document, how: Callable[[float, bool], float]) -> Document:
    """The spans of a document with other probabilities, by whether a model of words found them too."""
    known = {span[:3] for span in words.spans}
    spans = (span._replace(score=how(span.score or 0.0, span[:3] in known)) for span in doc.spans)
    return replace(doc, spans=tuple(spans))


def either(doc: Document, words: Document) -> Document:
    """What a model of words found, and, where it found nothing, what the other did."""
    sure = [span._replace(score=1.0) for span in words.spans]
    free = [each for each in doc.spans if not any(each.start < one.end and one.start < each.end for one in sure)]
    return replace(doc, spans=by_position([*sure, *free]))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.combinations", description=__doc__)
    parser.add_argument("spec", type=Path, nargs="?", default=Path("benchmarks/bars.toml"))
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="where the data sets' folders are")
    given = parser.parse_args(arguments)
    rows, shown = [], []
    try:
        for place in masked_places(given.spec, given.data):
            rows.append(compared(place))
            shown.append([place.name, *_cells(rows[-1])])
            sys.stderr.write("  ".join(shown[-1]) + "\n")
    except (LacunerError, OSError) as error:
        sys.stderr.write(f"benchmarks.combinations: {error}\n")
        return 2
    if not rows:
        sys.stderr.write(f"benchmarks.combinations: nothing is masked in {given.spec}\n")
        return 2
    shown.append([f"mean of {len(rows)}", *_cells(np.mean(rows, axis=0))])
    sys.stdout.write(markdown(("data, masked", *NAMES), shown) + "\n")
    return 0


def _cells(shares: Sequence[float]) -> list[str]:
    return [f"{100 * each:.1f}" for each in shares]


if __name__ == "__main__":
    sys.exit(main())
