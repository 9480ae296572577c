"""Reading a column file: lacuner compared with spaCy's converter, on the same generated file, in turns."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks.speed.row import Row


def column_file(path: Path, sentences: int) -> int:
    """Write a file of generated words with about one entity per ten words; return the number of words."""
    rng = random.Random(1)
    vocabulary = ["".join(rng.choices("abcdefghijklmnoprstuvw", k=rng.randint(2, 10))) for _ in range(20_000)]
    words = 0
    with path.open("w", encoding="utf-8") as stream:
        for _ in range(sentences):
            size = rng.randint(5, 35)
            words += size
            inside = ""
            for word in rng.choices(vocabulary, k=size):
                if inside and rng.random() < 0.4:
                    tag = f"I-{inside}"
                elif rng.random() < 0.08:
                    inside = rng.choice(("PER", "LOC", "ORG"))
                    tag = f"B-{inside}"
                else:
                    inside, tag = "", "O"
                stream.write(f"{word}\t{tag}\n")
            stream.write("\n")
    return words


def seconds(work: Callable[[], int]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(quick: bool = False) -> list[Row]:
    """Words per second; minimum: 3 times spaCy."""
    from spacy.training.converters import conll_ner_to_docs

    from lacuner.corpus import read

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.conll"
        words = column_file(path, 2_000 if quick else 10_000)

        def ours() -> int:
            return sum(len(doc.words or ()) for doc in read(path))

        def theirs() -> int:
            text = path.read_text(encoding="utf-8")
            return sum(len(doc) for doc in conll_ner_to_docs(text, n_sents=1, no_print=True))

        assert ours() == words == theirs(), "both sides must read every word"
        pairs = [(seconds(ours), seconds(theirs)) for _ in range(3 if quick else 5)]
    our_time, their_time = median(a for a, _ in pairs), median(b for _, b in pairs)
    ratio = median(b / a for a, b in pairs)
    return [Row("read CoNLL columns, words/s", words / our_time, words / their_time, "spaCy converter", ratio, 3.0)]
