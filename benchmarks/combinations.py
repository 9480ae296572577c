"""`python -m benchmarks.combinations SPEC --data DIR`: combinations of methods from different papers, scored on dev.

For each masking rate of a bench spec, with its first seed: negative sampling alone; the mean of three such models, as
in RoSTER's ensemble; negative sampling that never samples tokens which two-step learning would remove; and combinations
of its spans with the predictions of two-step learning: intersection, union, and a higher probability for spans that
both predict. Each combination has its threshold tuned on dev, and F1 is measured on dev: this decides what becomes a
recipe, so test data is not used. (The result, `ensemble`, is measured by `ensemble.toml`.)
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
from lacuner.training.dataset import character_positions
from lacuner.training.run_folder import Run
from lacuner.training.stage import LOWEST_THRESHOLD

MODELS = 3
NAMES = ("sampling", f"mean of {MODELS}", "without removed tokens", "both", "either", "rescored by tokens")


def compare_combinations(spec_file: Path, data_folder: Path) -> Iterator[masked.Row]:
    """Yield F1 on dev of each combination, in the order of `NAMES`."""
    for data in masked.masked_data(spec_file, data_folder, first_seed=True):
        scores = [tune_threshold(data.dev, docs)[1].f1 for docs in predict_combinations(data)]
        yield f"{data.data} {data.rate:g}", scores


def predict_combinations(data: masked.Masked) -> Iterator[list[Document]]:
    """Yield the predictions of each combination on dev, with probabilities."""
    splits, dev = Splits(weak=data.weak, dev=data.dev), data.dev
    seeds = [data.seed + 100 * number for number in range(MODELS)]
    alone, *others = (_predict_loosely(_train(negative_sampling, splits, data, seed), dev) for seed in seeds)
    yield alone
    yield [average(docs) for docs in zip(alone, *others, strict=True)]
    fewer_negatives = Splits(weak=mark_removed_unsure(data), dev=dev)
    yield _predict_loosely(_train(negative_sampling, fewer_negatives, data, data.seed), dev)
    by_tokens = _train(two_step, splits, data, data.seed).predict(dev)
    pairs = list(zip(alone, by_tokens, strict=True))
    yield [rescore(doc, other, lambda score, shared: score if shared else 0.0) for doc, other in pairs]
    yield [unite(doc, other) for doc, other in pairs]
    yield [rescore(doc, other, lambda score, shared: sqrt(score) if shared else score) for doc, other in pairs]


def _train(recipe: Any, splits: Splits, data: masked.Masked, seed: int) -> Tagger:
    config = load_config(recipe.Config, settings=_common_settings(data))
    with tempfile.TemporaryDirectory() as folder:
        tagger: Tagger = recipe.train(splits, config, Run(folder, {"seed": seed}))
    return tagger


def _common_settings(data: masked.Masked) -> list[str]:
    """The settings that token and span classifiers have in common."""
    return [setting for setting in data.settings if setting.startswith(("train.", "encoder."))]


def mark_removed_unsure(data: masked.Masked) -> list[Document]:
    """Return the weak documents; the tokens that two-step learning would remove are unsure."""
    docs = list(data.weak)
    config = load_config(two_step.Config, settings=_common_settings(data))
    with tempfile.TemporaryDirectory() as folder:
        explored = explore(docs, config, config.explore, Run(folder, {"seed": data.seed}))
    removed = explored.likely_missing(config.explore, explored.missing_share(config.explore), config.rank)
    unsure: list[list[Span]] = [[] for _ in docs]
    positions = np.stack(character_positions(docs, explored.weak.as_complete), axis=1)
    for number, start, end in positions[removed].tolist():
        unsure[number].append(Span(start, end, ""))
    return [replace(doc, unsure=sort_spans([*doc.unsure, *spans])) for doc, spans in zip(docs, unsure, strict=True)]


def _predict_loosely(tagger: Tagger, docs: Sequence[Document]) -> list[Document]:
    """Predict with a low threshold, so that it can be tuned afterwards."""
    tagger.model.head.threshold = LOWEST_THRESHOLD
    return list(tagger.predict(docs))


def average(docs: Sequence[Document]) -> Document:
    """Average the probabilities of several predictions for a document; of overlapping spans the best is kept."""
    means: dict[tuple[int, int, str], float] = {}
    for doc in docs:
        for span in doc.spans:
            means[span.key] = means.get(span.key, 0.0) + (span.score or 0.0) / len(docs)
    kept: list[Span] = []
    for key, mean in sorted(means.items(), key=lambda item: (-item[1], item[0])):
        span = Span(*key, mean)
        if not any(span.overlaps(other) for other in kept):
            kept.append(span)
    return replace(docs[0], spans=sort_spans(kept))


def rescore(doc: Document, other: Document, score: Callable[[float, bool], float]) -> Document:
    """Change the probabilities of spans, depending on whether another model predicts them too."""
    shared = {span.key for span in other.spans}
    spans = (span._replace(score=score(span.score or 0.0, span.key in shared)) for span in doc.spans)
    return replace(doc, spans=tuple(spans))


def unite(doc: Document, other: Document) -> Document:
    """Return the spans of another model, and those of this one that do not overlap them."""
    certain = [span._replace(score=1.0) for span in other.spans]
    free = [span for span in doc.spans if not any(map(span.overlaps, certain))]
    return replace(doc, spans=sort_spans([*certain, *free]))


def main(arguments: Sequence[str] | None = None) -> int:
    header, spec = ("data, masked", *NAMES), "benchmarks/bars.toml"
    return masked.main("benchmarks.combinations", __doc__, spec, header, compare_combinations, arguments)


if __name__ == "__main__":
    sys.exit(main())
