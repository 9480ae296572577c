"""Training on a generated weak corpus, from disk or in memory: CPU time of each part, speed of the steps, peak memory.

`python -m benchmarks.streaming generate FILE --sentences 2000000` writes made-up sentences with weak labels.
`python -m benchmarks.streaming train FILE OUT --cache DIR --recipe trust --steps 500` trains that many steps in the new
folder OUT; `--no-stream` keeps the documents in memory.
`python -m benchmarks.streaming compare FILE --cache DIR --head span --steps 300` makes each step (without that of the
optimiser, which does not depend on where the data is) from disk and from memory, in turn in one process.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.scaling import resident_bytes
from lacuner.cli.console import hash_corpus
from lacuner.cli.options import InputOptions
from lacuner.config import load_config
from lacuner.corpus import read
from lacuner.data import Lost, Splits
from lacuner.mapped import release_pages
from lacuner.recipes import RECIPES
from lacuner.recipes.negative_sampling import sampling_step
from lacuner.trainer.streaming import keep_or_store
from lacuner.trainer.train import train
from lacuner.training import loop
from lacuner.training.batches import epoch_batches
from lacuner.training.dataset import training_set, weak_training_set
from lacuner.training.identity import set_complete, sort_documents
from lacuner.training.run_folder import Run
from lacuner.training.stage import new_model
from lacuner.training.steps import loss_step

WORDS, NAMES = 200_000, 50_000
"""Distinct words, by Zipf's law, and distinct names of one to three words."""
LENGTHS = 8, 33
LABELS = ("PER", "ORG", "LOC")


class FinishedError(Exception):
    """The steps to measure are done."""


def generate(path: Path, sentences: int) -> None:
    """Write sentences of 20 words on average, half of them with one or two labeled names."""
    rng = np.random.default_rng(1)
    words = _make_words(rng, WORDS)
    names = [" ".join(words[i].title() for i in rng.integers(0, WORDS, 1 + number % 3)) for number in range(NAMES)]
    with path.open("w", encoding="utf-8") as stream:
        for start in range(0, sentences, 10_000):
            count = min(10_000, sentences - start)
            lengths = rng.integers(*LENGTHS, count)
            ranks = np.minimum(rng.zipf(1.2, lengths.sum()) - 1, WORDS - 1)
            draws = rng.random((count, 3))
            at = 0
            for number, length in enumerate(lengths.tolist()):
                text = " ".join([words[i] for i in ranks[at : at + length].tolist()])
                at += length
                spans = []
                for draw in draws[number][: 2 if draws[number][2] < 0.5 else 0]:
                    name = int(draw * NAMES)
                    start_of_name = len(text) + 1
                    text = f"{text} {names[name]}"
                    spans.append({"start": start_of_name, "end": len(text), "label": LABELS[name % 3]})
                stream.write(json.dumps({"id": str(start + number), "text": text + " .", "spans": spans}) + "\n")


def _make_words(rng: np.random.Generator, count: int) -> list[str]:
    letters = rng.integers(97, 123, (count, 9), dtype=np.uint8)
    lengths = rng.integers(2, 10, count).tolist()
    return [bytes(row[:length]).decode() for row, length in zip(letters, lengths, strict=True)]


def measure(options: argparse.Namespace) -> None:
    """Print CPU time and peak memory of reading, preparing and training."""
    path, recipe, steps = options.file, options.recipe, options.steps
    torch.set_num_threads(1)
    start = last = time.process_time()
    update, done, words, seconds = loop._Trainer._update, 0, 0, 0.0

    def report(step: str) -> None:
        nonlocal last
        now, peak = time.process_time(), resident_bytes("VmHWM")
        sys.stdout.write(f"{step}: {now - last:,.1f} s of CPU time, peak memory so far {peak / 2**20:,.0f} MB\n")
        sys.stdout.flush()
        last = now

    def timed(self: Any, step: Any, indices: np.ndarray, epoch: int) -> Any:
        nonlocal done, words, seconds
        if not done:
            report("preparing")
        before = time.process_time()
        sums = update(self, step, indices, epoch)
        seconds += time.process_time() - before
        words += int(self.features.lengths[indices].sum())
        done += 1
        if done == steps:
            raise FinishedError
        return sums

    loop._Trainer._update = timed  # type: ignore[method-assign]
    config = load_config(RECIPES[recipe].Config, settings=["encoder.name=tiny", *options.set])
    inputs = InputOptions()
    docs = keep_or_store(partial(read, path), options.cache, [hash_corpus(path, inputs)], options.stream, _log)
    report(f"reading {len(docs):,} documents")
    try:
        train(recipe, Splits(weak=docs), options.out, config, log=_log)
    except FinishedError:
        report(f"{done} steps")
    rate = words / seconds
    sys.stdout.write(f"{words:,} words, {rate:,.0f} words per second of CPU time; {last - start:,.0f} s in total\n")


def compare(path: Path, cache: Path, kind: str, steps: int) -> None:
    """Print the CPU time of the same steps with data on disk and in memory."""
    torch.set_num_threads(1)
    in_memory = sort_documents(set_complete(read(path), False))
    on_disk = keep_or_store(lambda: in_memory, cache, [hash_corpus(path, InputOptions())], True, _log)
    recipe = "negative_sampling" if kind == "span" else "trust"
    config = load_config(RECIPES[recipe].Config, settings=["encoder.name=tiny", f"head.kind={kind}"])
    model = new_model(config, in_memory, Run(cache, {"seed": 1}))
    by_place: dict[str, Any] = {}
    for place, docs in (("memory", in_memory), ("disk", on_disk)):
        if kind == "span":
            weak = weak_training_set(model, docs, Lost())
            by_place[place] = sampling_step(weak, config, 0), weak.as_annotated.features
        else:
            data = training_set(model, docs, Lost())
            by_place[place] = loss_step(data), data.features
    features = by_place["memory"][1]
    batches = epoch_batches(features.costs, config.train.resolve(model, features).budget or 0, 1)[:steps]
    words = sum(int(features.lengths[indices].sum()) for indices in batches)
    seconds = {place: np.zeros(len(batches)) for place in by_place}
    for number, indices in enumerate(batches):
        order = list(by_place) if number % 2 else list(by_place)[::-1]
        for place in order:
            start = time.process_time()
            by_place[place][0](indices).total.backward()
            seconds[place][number] = time.process_time() - start
        if number % loop.RELEASE_EVERY == loop.RELEASE_EVERY // 2:
            release_pages()
    rates = {place: words / times.sum() for place, times in seconds.items()}
    ratio = np.median(seconds["disk"] / seconds["memory"])
    sys.stdout.write(
        f"{kind}, {len(in_memory):,} sentences, {len(batches)} steps: words per second of CPU time "
        f"{rates['memory']:,.0f} in memory, {rates['disk']:,.0f} from disk; median ratio of a step's time {ratio:.3f}\n"
    )


def _log(line: str) -> None:
    sys.stderr.write(line + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    generator = commands.add_parser("generate")
    generator.add_argument("file", type=Path)
    generator.add_argument("--sentences", type=int, default=2_000_000)
    trainer = commands.add_parser("train")
    trainer.add_argument("file", type=Path)
    trainer.add_argument("out", type=Path)
    trainer.add_argument("--cache", type=Path, required=True)
    trainer.add_argument("--recipe", default="trust")
    trainer.add_argument("--set", action="append", default=[])
    trainer.add_argument("--steps", type=int, default=500)
    trainer.add_argument("--stream", action=argparse.BooleanOptionalAction, default=True)
    comparison = commands.add_parser("compare")
    comparison.add_argument("file", type=Path)
    comparison.add_argument("--cache", type=Path, required=True)
    comparison.add_argument("--head", choices=("token", "span"), default="token")
    comparison.add_argument("--steps", type=int, default=300)
    options = parser.parse_args()
    if options.command == "generate":
        generate(options.file, options.sentences)
    elif options.command == "train":
        measure(options)
    else:
        compare(options.file, options.cache, options.head, options.steps)


if __name__ == "__main__":
    main()
