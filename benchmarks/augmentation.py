"""`python -m benchmarks.augmentation GOLD`: how good must a masked language model be for labels to stay right?

Encoders read the texts for more and more epochs, and say half of the sentences otherwise. A model that has learned from
the other half, and from gold, judges: of the entities that it finds in the sentences as they were, and of which a word
has been replaced, how many does it still find, with the same label in the same place? Of those whose own words have
stayed it does not find all either, because their neighbours are others.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lacuner.bench.table import markdown
from lacuner.config import load_config
from lacuner.corpus import read
from lacuner.corpus.words import words_of
from lacuner.errors import LacunerError
from lacuner.models.files import AnyTagger, load_model
from lacuner.models.model import Model
from lacuner.recipes.augmenting import augment
from lacuner.recipes.parts import Splits
from lacuner.recipes.pretraining import PretrainConfig, pretrain
from lacuner.recipes.supervised import Config
from lacuner.recipes.train import in_role, train
from lacuner.types import Document


class Kept(NamedTuple):
    """Entities that the judge finds in the sentences as they were, and again in those said otherwise."""

    touched: int
    touched_again: int
    others: int
    others_again: int


def kept(judge: AnyTagger, docs: Sequence[Document], made: Sequence[Document]) -> Kept:
    """What the judge makes of documents before and after; spans of both stand in the same order."""
    counts = [0, 0, 0, 0]
    before, after = judge.predict(docs), judge.predict(made)
    for old, new, found, again in zip(docs, made, before, after, strict=True):
        there, still = _places(found), _places(again)
        pairs = zip(words_of(old), words_of(new), strict=True)
        changed = [(a, b) for (a, b), (c, d) in pairs if old.text[a:b] != new.text[c:d]]
        for span, moved in zip(old.spans, new.spans, strict=True):
            if span[:3] in there:
                first = 0 if any(span.start < b and a < span.end for a, b in changed) else 2
                counts[first] += 1
                counts[first + 1] += moved[:3] in still
    return Kept(*counts)


def _places(doc: Document) -> set[tuple[int, int, str]]:
    return {(span.start, span.end, span.label) for span in doc.spans}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.augmentation", description=__doc__)
    parser.add_argument("gold", type=Path, help="complete labels")
    parser.add_argument("--epochs", type=int, nargs="+", default=[1, 3, 10, 30], help="of pre-training")
    parser.add_argument("--judge-epochs", type=int, default=15)
    parser.add_argument("--sentences", type=int, help="the first so many; all by default")
    given = parser.parse_args(arguments)
    try:
        docs = list(in_role(read(given.gold), True))[: given.sentences]
        rows = measured(docs, given.epochs, given.judge_epochs)
    except (LacunerError, OSError) as error:
        sys.stderr.write(f"benchmarks.augmentation: {error}\n")
        return 2
    header = ("epochs of reading", "top 1", "top 5", "found again, a word replaced", "found again, others")
    sys.stdout.write(markdown(header, rows) + "\n")
    return 0


def measured(docs: Sequence[Document], epochs: Sequence[int], judge_epochs: int) -> list[list[str]]:
    """A row for each length of pre-training."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        config = load_config(Config, settings=["head.kind=span", f"train.epochs={judge_epochs}"])
        judge = train("supervised", Splits(gold=docs[1::2]), Path(folder) / "judge", config).tagger
        texts = [Document(doc.id, doc.text, doc.words) for doc in docs]
        for count in epochs:
            place = Path(folder) / str(count)
            done = pretrain(texts, place, load_config(PretrainConfig, settings=[f"train.epochs={count}"]))
            model = load_model(place)
            assert isinstance(model, Model)
            found = kept(judge, docs[::2], augment(docs[::2], model))
            shares = (found.touched_again / max(found.touched, 1), found.others_again / max(found.others, 1))
            top = (done.held_out["top1"], done.held_out["top5"])
            numbers = [f"{100 * share:.1f}" for share in (*top, *shares)]
            rows.append([str(count), *numbers[:2], f"{numbers[2]} of {found.touched:,}", numbers[3]])
            sys.stderr.write("  ".join(rows[-1]) + "\n")
    return rows


if __name__ == "__main__":
    sys.exit(main())
