"""`python -m benchmarks.augmentation GOLD`: how good must a masked language model be for labels to stay right?

Encoders read the texts for more and more epochs, and say the sentences otherwise. Gold tells what a word mostly is,
part of an entity of some type or of none: of the words that were replaced, how many are, after that, still mostly what
their label says? Not all were before: `as they were` is what could be reached at best.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lacuner.bench.table import markdown_table
from lacuner.config import load_config
from lacuner.corpus import read
from lacuner.corpus.words import words_of
from lacuner.data import Document
from lacuner.errors import LacunerError
from lacuner.models.model import MaskedLanguageModel
from lacuner.models.storage import load_model
from lacuner.pretraining.augmenting import augment
from lacuner.pretraining.pretrain import PretrainConfig, pretrain
from lacuner.training.identity import in_role


class Kept(NamedTuple):
    """Replaced words of entities, or of none: how many, and how many are mostly what their label says."""

    words: int
    before: int
    after: int


def labelled(docs: Iterable[Document]) -> Iterator[tuple[str, str]]:
    """Every word with the label of the entity it belongs to; an empty one if there is none."""
    for doc in docs:
        for start, end in words_of(doc):
            yield doc.text[start:end], next((s.label for s in doc.spans if s.start < end and start < s.end), "")


def mostly(docs: Iterable[Document]) -> dict[str, str]:
    """What each word is most often."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for word, label in labelled(docs):
        counts[word][label] += 1
    return {word: found.most_common(1)[0][0] for word, found in counts.items()}


def kept(docs: Sequence[Document], made: Sequence[Document], usual: Mapping[str, str]) -> tuple[Kept, Kept]:
    """Of words in entities, and of the others."""
    counts = {True: [0, 0, 0], False: [0, 0, 0]}
    for (old, label), (new, _) in zip(labelled(docs), labelled(made), strict=True):
        if old != new:
            mine = counts[bool(label)]
            mine[0] += 1
            mine[1] += usual[old] == label
            mine[2] += usual.get(new) == label
    return Kept(*counts[True]), Kept(*counts[False])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.augmentation", description=__doc__)
    parser.add_argument("gold", type=Path, help="complete labels")
    parser.add_argument("--epochs", type=int, nargs="+", default=[1, 3, 10, 30], help="of pre-training")
    given = parser.parse_args(arguments)
    try:
        rows = measured(list(in_role(read(given.gold), True)), given.epochs)
    except (LacunerError, OSError) as error:
        sys.stderr.write(f"benchmarks.augmentation: {error}\n")
        return 2
    sides = (f"{where}, {when}" for where in ("entities", "others") for when in ("as they were", "replaced"))
    sys.stdout.write(markdown_table(("epochs of reading", "top 1", "top 5", *sides), rows) + "\n")
    return 0


def measured(docs: Sequence[Document], epochs: Sequence[int]) -> list[list[str]]:
    """A row for each length of pre-training."""
    rows, usual = [], mostly(docs)
    texts = [Document(doc.id, doc.text, doc.words) for doc in docs]
    with tempfile.TemporaryDirectory() as folder:
        for count in epochs:
            place = Path(folder) / str(count)
            done = pretrain(texts, place, load_config(PretrainConfig, settings=[f"train.epochs={count}"]))
            model = load_model(place)
            assert isinstance(model, MaskedLanguageModel)
            shares = [done.held_out["top1"], done.held_out["top5"]]
            for side in kept(docs, augment(docs, model), usual):
                shares += [side.before / max(side.words, 1), side.after / max(side.words, 1)]
            rows.append([str(count), *[f"{100 * share:.1f}" for share in shares]])
            sys.stderr.write("  ".join(rows[-1]) + "\n")
    return rows


if __name__ == "__main__":
    sys.exit(main())
