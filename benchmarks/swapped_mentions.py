"""`python -m benchmarks.swapped_mentions SPEC --data DIR`: could augmentation help RoSTER's self-training at all?

An upper bound for figure 3c of Meng et al. (2021). For each data set and seed of a bench spec, one ensemble is
self-trained without augmented sentences, with those of the encoder's masked language model, however good it is, and
with sentences in which half of the gold mentions are replaced by others of the same type and number of words: no
language model keeps labels better. Only these sentences use gold. F1 of the last epoch on dev.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from benchmarks import masked
from lacuner.audit.probes import gold_in_training_order
from lacuner.bench.datasets import DataSet
from lacuner.bench.spec import NoiseLevel, load_spec
from lacuner.config import load_config
from lacuner.data import Document, Lost, Splits
from lacuner.errors import ConfigError
from lacuner.evaluate import score
from lacuner.models.tagger import Tagger
from lacuner.models.windows import annotation_of, restrict_to_window
from lacuner.recipes import roster
from lacuner.training.dataset import TrainingSentences
from lacuner.training.identity import set_complete, sort_documents
from lacuner.training.run_folder import Run

SWAPPED = 0.5
"""Share of the gold mentions that are replaced."""
HEADER = ("data, seed", "ensemble", "no augmentation", "masked language model", "gold mentions")


class SwappedMentions:
    """In place of an `Augmenter`: sentences in which gold mentions are replaced."""

    def __init__(self, sentences: TrainingSentences, gold: Sequence[Document]) -> None:
        annotations = [annotation_of(doc, Lost()) for doc in gold]
        self.sentences = sentences.words()
        self.mentions = [
            restrict_to_window(annotations[number], window).spans
            for number, window in zip(sentences.document.tolist(), sentences.windows, strict=True)
        ]
        self.names: dict[tuple[str, int], list[list[str]]] = defaultdict(list)
        for words, mentions in zip(self.sentences, self.mentions, strict=True):
            for first, last, label in mentions:
                self.names[label, last - first].append(words[first:last])

    def draw(self, rate: float) -> list[list[str]]:
        """The sentences with some mentions replaced, drawn from torch's generator; `rate` has no effect."""
        choose = random.Random(int(torch.randint(2**31, ()).item()))
        drawn = [list(words) for words in self.sentences]
        for words, mentions in zip(drawn, self.mentions, strict=True):
            for first, last, label in mentions:
                if choose.random() < SWAPPED:
                    words[first:last] = choose.choice(self.names[label, last - first])
        return drawn


def compare_augmentations(spec_file: Path, data_folder: Path) -> Iterator[masked.Row]:
    """Yield the dev F1 of the ensemble, and after self-training with each kind of augmented sentences."""
    spec = load_spec(spec_file, data_folder)
    for seed in spec.seeds:
        for name, data in spec.data.items():
            dataset = DataSet(name, data, data_folder)
            weak = dataset.splits(("weak",), NoiseLevel("given", 0.0), seed).weak or ()
            docs = sort_documents(set_complete(weak, False))
            gold = gold_in_training_order(docs, list(set_complete(dataset.read("gold"), True)))
            settings = (*spec.settings, f'encoder.name="{spec.encoders[0]}"')
            dev = dataset.read("dev")
            if not dev:
                raise ConfigError(f"data.{name}: dev is missing", file=spec_file)
            with tempfile.TemporaryDirectory() as folder:
                taggers = self_train(docs, gold, settings, seed, Path(folder))
                yield f"{name} {seed}", [score(dev, tagger.predict(dev)).exact.f1 for tagger in taggers]


def self_train(
    docs: Sequence[Document], gold: Sequence[Document], settings: Sequence[str], seed: int, folder: Path
) -> Iterator[Tagger]:
    """Yield the ensemble, and the model self-trained from it without and with two kinds of augmented sentences."""
    torch.set_num_threads(1)  # members are trained in this process

    def train(name: str, *own: str) -> Tagger:
        config = load_config(roster.Config, settings=[*settings, *own])
        return roster.train(Splits(weak=docs), config, Run(folder / name, {"seed": seed}))

    def swap(encoder: Any, sentences: TrainingSentences, *_: Any) -> SwappedMentions:
        return SwappedMentions(sentences, gold)

    yield train("ensemble", "ablation.self_training=false")
    for name in ("none", "masked", "gold"):  # the stages before self-training are finished there
        shutil.copytree(folder / "ensemble", folder / name)
    yield train("none", "ablation.augmentation=false")
    yield train("masked", "ablation.least_top5=0.0")
    with mock.patch.object(roster, "augment_sentences", swap):
        yield train("gold")


def main(arguments: Sequence[str] | None = None) -> int:
    default = "benchmarks/swapped_mentions.toml"
    return masked.main("benchmarks.swapped_mentions", __doc__, default, HEADER, compare_augmentations, arguments)


if __name__ == "__main__":
    sys.exit(main())
