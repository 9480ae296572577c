"""`python -m benchmarks.augmentation GOLD [--encoders NAME ...]`: how good must a masked language model be?

Encoders are pre-trained for more and more epochs, and then augment the sentences; with `--encoders`, pre-trained ones
do. Gold shows the most frequent label of each word: of the words that were replaced, for how many is the label still
the most frequent one of the new word? That is not true of all original words: `as they were` is the upper bound.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lacuner.bench.report import markdown_table
from lacuner.config import load_config
from lacuner.corpus import read
from lacuner.corpus.words import words_of
from lacuner.data import Document, Span
from lacuner.errors import ConfigError, LacunerError
from lacuner.models.config import EncoderConfig
from lacuner.models.model import MaskedLanguageModel
from lacuner.models.storage import load_model
from lacuner.pretraining.augmentation import augment
from lacuner.pretraining.masked_lm import open_masked_model
from lacuner.pretraining.pretrain import PretrainConfig, pretrain
from lacuner.training.identity import set_complete


class ReplacedWords(NamedTuple):
    """Number of replaced words, and for how many the label is the most frequent one of the old and of the new word."""

    words: int
    before: int
    after: int


def labeled_words(docs: Iterable[Document]) -> Iterator[tuple[str, str]]:
    """Yield each word with the label of the entity it belongs to, or an empty label."""
    for doc in docs:
        for start, end in words_of(doc):
            word = Span(start, end, "")
            yield doc.text[start:end], next((span.label for span in doc.spans if span.overlaps(word)), "")


def most_frequent_labels(docs: Iterable[Document]) -> dict[str, str]:
    """Return the most frequent label of each word."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for word, label in labeled_words(docs):
        counts[word][label] += 1
    return {word: labels.most_common(1)[0][0] for word, labels in counts.items()}


def count_replaced(
    docs: Sequence[Document], augmented: Sequence[Document], usual: Mapping[str, str]
) -> tuple[ReplacedWords, ReplacedWords]:
    """Count replaced words in entities, and other replaced words."""
    counts = {True: [0, 0, 0], False: [0, 0, 0]}
    for (old, label), (new, _) in zip(labeled_words(docs), labeled_words(augmented), strict=True):
        if old != new:
            for column, value in enumerate((True, usual[old] == label, usual.get(new) == label)):
                counts[bool(label)][column] += value
    return ReplacedWords(*counts[True]), ReplacedWords(*counts[False])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.augmentation", description=__doc__)
    parser.add_argument("gold", type=Path, help="file with gold labels")
    parser.add_argument("--epochs", type=int, nargs="+", default=[1, 3, 10, 30], help="epochs of pre-training")
    parser.add_argument("--encoders", nargs="+", help="pre-trained encoders (tiny-en, run:PATH, ...) instead")
    args = parser.parse_args(arguments)
    try:
        docs = list(set_complete(read(args.gold), True))
        rows = measure(docs, args.epochs) if not args.encoders else measure_pretrained(docs, args.encoders)
    except (LacunerError, OSError) as error:
        sys.stderr.write(f"benchmarks.augmentation: {error}\n")
        return 2
    sides = (f"{where}, {when}" for where in ("entities", "others") for when in ("as they were", "replaced"))
    columns = ("encoder", "top 5") if args.encoders else ("epochs of pre-training", "top 1", "top 5")
    sys.stdout.write(markdown_table((*columns, *sides), rows) + "\n")
    return 0


def measure(docs: Sequence[Document], epochs: Sequence[int]) -> list[list[str]]:
    """Return one row for each number of pre-training epochs."""
    rows, usual = [], most_frequent_labels(docs)
    texts = [Document(doc.id, doc.text, doc.words) for doc in docs]
    with tempfile.TemporaryDirectory() as folder:
        for count in epochs:
            out = Path(folder) / str(count)
            result = pretrain(texts, out, load_config(PretrainConfig, settings=[f"train.epochs={count}"]))
            model = load_model(out)
            assert isinstance(model, MaskedLanguageModel)
            shares = [result.held_out["top1"], result.held_out["top5"], *fitting_shares(docs, model, usual)]
            rows.append([str(count), *[f"{100 * share:.1f}" for share in shares]])
            sys.stderr.write("  ".join(rows[-1]) + "\n")
    return rows


def measure_pretrained(docs: Sequence[Document], encoders: Sequence[str]) -> list[list[str]]:
    """Return one row for each pre-trained encoder."""
    rows, usual = [], most_frequent_labels(docs)
    for name in encoders:
        model = open_masked_model(EncoderConfig(name=name))
        if model is None:
            raise ConfigError(f"{name} has no masked-LM head: choose tiny-en, tiny-zh or a run of `lacuner pretrain`")
        shares = [model.head.top5 or 0.0, *fitting_shares(docs, model, usual)]
        rows.append([name, *[f"{100 * share:.1f}" for share in shares]])
    return rows


def fitting_shares(docs: Sequence[Document], model: MaskedLanguageModel, usual: Mapping[str, str]) -> list[float]:
    """Shares of the words that fit their label, before and after they are replaced, in entities and elsewhere."""
    sides = count_replaced(docs, augment(docs, model), usual)
    return [count / max(side.words, 1) for side in sides for count in (side.before, side.after)]


if __name__ == "__main__":
    sys.exit(main())
