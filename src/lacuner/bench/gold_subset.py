"""`python -m lacuner.bench.gold_subset`: a subset of gold, and the other sentences with weak labels.

Sentences are sorted by a hash of the seed and their text. Gold is taken from the start, weak sentences from the end. So
2 % of gold are part of its 5 %, a thousand weak sentences are part of two thousand, and file order does not matter.
"""

import argparse
import hashlib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from lacuner.corpus import read, write
from lacuner.data import Document


def select_gold_subset(
    gold: Sequence[Document], weak: Sequence[Document], amount: float, seed: int, max_weak: int | None = None
) -> tuple[list[Document], list[Document]]:
    """Return some gold documents, and up to `max_weak` weak documents whose texts are not among them.

    An amount up to 1 is a share of the gold documents, at least one document; above 1 it is their number.

    >>> docs = [Document(str(number), f"text {number}") for number in range(10)]
    >>> [len(part) for part in select_gold_subset(docs, docs, 0.3, seed=1)]
    [3, 7]
    """
    ranked = sorted(gold, key=lambda doc: _rank(doc, seed))
    subset = ranked[: max(round(amount * len(ranked)), 1) if amount <= 1 else round(amount)]
    texts = {doc.text for doc in subset}
    others = sorted((doc for doc in weak if doc.text not in texts), key=lambda doc: _rank(doc, seed), reverse=True)
    return subset, others[:max_weak]


def _rank(doc: Document, seed: int) -> tuple[bytes, str]:
    text = f"{seed}/{doc.text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).digest(), doc.id


def subset_command(gold: str, weak: Sequence[str], amount: float, seed: int, max_weak: int | None) -> str:
    """Return the shell command that writes the same documents to the folder `little`."""
    command = ["python", "-m", "lacuner.bench.gold_subset", gold]
    command += [part for file in weak for part in ("--weak", file)]
    command += ["--gold-amount", f"{amount:g}", "--seed", str(seed)]
    command += [] if max_weak is None or not weak else ["--weak-sentences", str(max_weak)]
    return shlex.join([*command, "--out", "little"])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lacuner.bench.gold_subset", description=__doc__)
    parser.add_argument("gold", type=Path, help="file with gold labels")
    parser.add_argument("--weak", type=Path, action="append", default=[], help="file with weak labels; repeatable")
    parser.add_argument("--gold-amount", type=float, required=True, help="share of gold, or above 1 its sentences")
    parser.add_argument("--weak-sentences", type=int, help="maximum number of weak sentences (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--out", type=Path, required=True, help="folder for gold.jsonl and weak.jsonl")
    args = parser.parse_args(arguments)
    if args.gold_amount <= 0 or (args.weak_sentences is not None and args.weak_sentences < 0):
        parser.error("--gold-amount must be above 0, and --weak-sentences at least 0")
    weak = [doc for path in args.weak for doc in read(path, complete=False)]
    gold = list(read(args.gold, complete=True))
    subset, others = select_gold_subset(gold, weak, args.gold_amount, args.seed, args.weak_sentences)
    write(subset, args.out / "gold.jsonl")
    if weak:
        write(others, args.out / "weak.jsonl")
    return 0


if __name__ == "__main__":
    sys.exit(main())
