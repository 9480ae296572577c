"""`python -m benchmarks.entity_ratio --data DIR`: how good are the estimates of the entity ratio?

For the demo corpus and each corpus of the data folder, with half of the mentions, half of the names and 80 % of the
names unlabeled: the true share of entity words in the training texts, and the estimate and interval of each source.
Then, for each source, how often the interval holds the truth, and the mean distance of the logarithms.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import log
from pathlib import Path
from typing import NamedTuple

import torch

from lacuner.advice.entity_ratio import EntityRatio, entity_ratio, ratio_from_capitals, ratio_from_complete
from lacuner.bench.report import markdown_table
from lacuner.config import load_config
from lacuner.corpus import read
from lacuner.data import Document, Splits, labels_of
from lacuner.demo import build
from lacuner.errors import ConfigError
from lacuner.noise import Noise, corrupt
from lacuner.recipes.pu import Config
from lacuner.techniques.early_learning import Exploration
from lacuner.techniques.entity_ratio import explorer, find_entity_ratio, ratio_from_counts, ratio_from_odds
from lacuner.training.identity import sort_documents
from lacuner.training.run_folder import Run

SENTENCES = 1000
EPOCHS = 3
NOISES = {"mentions 0.5": (0.5, False), "names 0.5": (0.5, True), "names 0.8": (0.8, True)}
SOURCES = ("dev", "hidden", "counts", "odds", "capitals")


class Corpus(NamedTuple):
    """Training texts with gold, and dev."""

    name: str
    gold: Sequence[Document]
    dev: Sequence[Document]


def corpora(folder: Path) -> Iterator[Corpus]:
    """The demo corpus, and what the data folder has."""
    demo = build()
    yield Corpus("demo", demo.train[:SENTENCES], demo.dev)
    for place in sorted(path for path in folder.glob("*") if (path / "dev.conll").exists()):
        train = next((place / name for name in ("train.gold.conll", "train.conll") if (place / name).exists()), None)
        if train is not None:
            gold = list(read(train, complete=True))[:SENTENCES]
            yield Corpus(place.name, gold, list(read(place / "dev.conll", complete=True)))


def estimate(
    weak: Sequence[Document], dev: Sequence[Document], encoder: str, seed: int
) -> dict[str, EntityRatio | None]:
    """The estimate of each source; None where it cannot tell."""
    config = load_config(Config, settings=[f"encoder.name={encoder}"])
    estimates: dict[str, EntityRatio | None] = {"dev": ratio_from_complete(weak, dev)}
    estimates["capitals"] = ratio_from_capitals(weak)
    with tempfile.TemporaryDirectory() as folder:
        explore_docs = explorer(config, EPOCHS, Run(folder, {"seed": seed}))
        try:
            estimates["hidden"] = find_entity_ratio(Splits(weak=weak), "hidden", explore_docs)
        except ConfigError:
            estimates["hidden"] = None
        explored: Exploration = explore_docs(weak, "explore")
        estimates["counts"], estimates["odds"] = ratio_from_counts(weak, explored), ratio_from_odds(weak, explored)
    return estimates


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.entity_ratio", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the data sets")
    parser.add_argument("--only", nargs="*", help="names of corpora; by default all")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--encoder", default="tiny")
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    rows: list[list[str]] = []
    scores: dict[str, list[tuple[bool, float]]] = {source: [] for source in SOURCES}
    for corpus in corpora(args.data):
        for (noise, (rate, by_name)), seed in ((item, seed) for item in NOISES.items() for seed in args.seeds):
            if args.only and corpus.name not in args.only:
                continue
            noisy = corrupt(corpus.gold, Noise(drop=rate, by_surface=by_name, seed=seed))
            weak = sort_documents([replace(doc, complete=False) for doc in noisy])
            true = entity_ratio(corpus.gold, labels_of(weak))
            estimates = estimate(weak, corpus.dev, args.encoder, seed)
            rows.append([corpus.name, noise, str(seed), f"{100 * true:.1f}"])
            for source in SOURCES:
                ratio = estimates[source]
                rows[-1].append("" if ratio is None else f"{100 * ratio.value:.1f} ({_interval(ratio)})")
                if ratio is not None:
                    scores[source].append((ratio.low <= true <= ratio.high, abs(log(max(ratio.value, 1e-4) / true))))
            sys.stderr.write("  ".join(rows[-1]) + "\n")
    sys.stdout.write(markdown_table(("data", "unlabeled", "seed", "true", *SOURCES), rows) + "\n\n")
    summary = [
        [source, str(len(pairs)), str(sum(held for held, _ in pairs)), f"{sum(d for _, d in pairs) / len(pairs):.2f}"]
        for source, pairs in scores.items()
        if pairs
    ]
    header = ("source", "estimates", "intervals that hold the truth", "mean distance of logarithms")
    sys.stdout.write(markdown_table(header, summary) + "\n")
    return 0


def _interval(ratio: EntityRatio) -> str:
    return f"{100 * ratio.low:.1f} to {100 * ratio.high:.1f}"


if __name__ == "__main__":
    sys.exit(main())
