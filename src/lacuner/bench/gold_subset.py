"""`python -m lacuner.bench.gold_subset`: a little gold, and the other sentences with weak labels.

The sentences stand in an order that the seed and their texts decide: gold is its beginning, the weak ones are its end.
So 2 % of gold are part of its 5 %, a thousand weak sentences part of two thousand, and nothing depends on the order of
the files.
"""

from __future__ import annotations

import argparse
import hashlib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from lacuner.corpus import read, write
from lacuner.data import Document


def little_gold(
    gold: Sequence[Document], weak: Sequence[Document], amount: float, seed: int, most: int | None = None
) -> tuple[list[Document], list[Document]]:
    """Some of the gold documents, and of the weak ones those with other texts, at most so many.

    Up to 1 the amount is a share of the gold documents, at least one; above it is their number.
    """
    ranked = sorted(gold, key=lambda doc: _rank(doc, seed))
    count = max(round(amount * len(ranked)), 1) if amount <= 1 else round(amount)
    chosen = ranked[:count]
    texts = {doc.text for doc in chosen}
    rest = sorted((doc for doc in weak if doc.text not in texts), key=lambda doc: _rank(doc, seed), reverse=True)
    return chosen, rest[:most]


def _rank(doc: Document, seed: int) -> tuple[bytes, str]:
    text = f"{seed}/{doc.text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).digest(), doc.id


def little_command(gold: str, weak: Sequence[str], amount: float, seed: int, most: int | None) -> str:
    """The shell's way to the same, into the folder `little`."""
    command = ["python", "-m", "lacuner.bench.gold_subset", gold]
    command += [part for file in weak for part in ("--weak", file)]
    command += ["--gold-amount", f"{amount:g}", "--seed", str(seed)]
    command += [] if most is None or not weak else ["--weak-sentences", str(most)]
    return shlex.join([*command, "--out", "little"])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lacuner.bench.gold_subset", description=__doc__)
    parser.add_argument("gold", type=Path, help="complete labels")
    parser.add_argument("--weak", type=Path, action="append", default=[], help="weak labels; may be repeated")
    parser.add_argument("--gold-amount", type=float, required=True, help="a share, or above 1 a number of sentences")
    parser.add_argument("--weak-sentences", type=int, help="at most so many; all by default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True, help="the folder of gold.jsonl and weak.jsonl")
    given = parser.parse_args(arguments)
    weak = [doc for path in given.weak for doc in read(path, complete=False)]
    if given.gold_amount <= 0 or (given.weak_sentences is not None and given.weak_sentences < 0):
        parser.error("--gold-amount must be above 0, and --weak-sentences at least 0")
    gold = list(read(given.gold, complete=True))
    chosen, rest = little_gold(gold, weak, given.gold_amount, given.seed, given.weak_sentences)
    write(chosen, given.out / "gold.jsonl")
    if weak:
        write(rest, given.out / "weak.jsonl")
    return 0


if __name__ == "__main__":
    sys.exit(main())
