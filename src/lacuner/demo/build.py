"""Generate the demo corpus and its gazetteer from a seed."""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice
from os import PathLike
from pathlib import Path
from random import Random

from lacuner.atomic import atomic_write
from lacuner.corpus import write
from lacuner.data import Document
from lacuner.demo.grammar import Sentence, sentence
from lacuner.demo.names import LABELS, WORD_NAMES, Names

SIZES = {"train": 2000, "dev": 500, "test": 500}
COVERAGE = 0.4
"""Share of the training mentions of each type that the gazetteer covers."""

_AMBIGUOUS = 12
_WRONG_LABELS = 6
# common words that the frames use as plain English, entered as names by mistake
_WRONG_WORDS = (
    ("Committee", "ORGANISATION"), ("Easter", "PERSON"), ("Michaelmas", "PLACE"), ("Treasury", "ORGANISATION"),
    ("brine", "SUBSTANCE"), ("chocolate", "SUBSTANCE"), ("gasoline", "SUBSTANCE"), ("membrane", "SUBSTANCE"),
    ("stadium", "SUBSTANCE"),
)  # fmt: skip

Entry = tuple[str, str]
"""A surface and its label."""


@dataclass(frozen=True, slots=True)
class Demo:
    """Three splits with complete gold, and a gazetteer of (surface, label) pairs, sorted.

    >>> Demo([], [], [], [("Mara Teel", "PERSON")]).dictionary
    [('Mara Teel', 'PERSON')]
    """

    train: list[Document]
    dev: list[Document]
    test: list[Document]
    dictionary: list[Entry]


def build(seed: int = 1) -> Demo:
    """Generate the demo corpus; the same seed gives the same bytes everywhere.

    >>> demo = build()
    >>> len(demo.train), len(demo.dev), len(demo.test)
    (2000, 500, 500)
    """
    rng = Random(seed)
    names = Names(rng)
    by_text: dict[str, Sentence] = {}  # no text occurs twice
    while len(by_text) < sum(SIZES.values()):
        new = sentence(rng, names)
        by_text.setdefault(new.text, new)
    sentences = iter(by_text.values())
    splits = {split: list(islice(sentences, size)) for split, size in SIZES.items()}
    docs = {
        split: [
            Document(f"{split}-{number:04d}", new.text, words=new.words, spans=new.spans, complete=True)
            for number, new in enumerate(rows, 1)
        ]
        for split, rows in splits.items()
    }
    return Demo(**docs, dictionary=_dictionary(rng, splits))


def write_demo(folder: str | PathLike[str], seed: int = 1) -> dict[str, Path]:
    """Write the demo corpus into a folder and return the files by name.

    `train` has texts without labels; `train.gold` has their gold labels, to measure with.
    """
    demo = build(seed)
    folder = Path(folder)
    bare = [replace(doc, spans=(), complete=None) for doc in demo.train]
    splits = {"train": bare, "train.gold": demo.train, "dev": demo.dev, "test": demo.test}
    files = {name: folder / f"{name}.jsonl" for name in splits}
    for name, docs in splits.items():
        write(docs, files[name])
    files["dictionary"] = folder / "dictionary.tsv"
    with atomic_write(files["dictionary"]) as stream:
        stream.write("".join(f"{surface}\t{label}\n" for surface, label in demo.dictionary).encode())
    return files


def _dictionary(rng: Random, splits: dict[str, list[Sentence]]) -> list[Entry]:
    """Some names of all splits, a few of them with two labels, and a few wrong entries.

    Names of all splits are added in random order until they cover `COVERAGE` of the training mentions of their type,
    so that names of dev and test are covered about as well as those of train.
    """
    mentions = Counter(name for row in splits["train"] for name in row.names)
    labels: dict[str, list[str]] = {}
    for surface, label in sorted({name for rows in splits.values() for row in rows for name in row.names}):
        labels.setdefault(surface, []).append(label)
    ambiguous = [surface for surface, types in labels.items() if len(types) > 1]
    selected = set()
    for surface in rng.sample(ambiguous, _AMBIGUOUS):
        commonest = sorted(labels[surface], key=lambda label: -mentions[surface, label])
        selected |= {(surface, label) for label in commonest[:2]}
    used = {surface for surface, _ in selected}
    for label in LABELS:
        pool = [surface for surface, types in labels.items() if label in types and surface not in used]
        rng.shuffle(pool)
        target = COVERAGE * sum(times for name, times in mentions.items() if name[1] == label)
        covered = sum(mentions[name] for name in selected if name[1] == label)
        while covered < target:
            surface = pool.pop()
            # a gazetteer has a name under the type that it mostly has
            if 3 * mentions[surface, label] < 2 * sum(mentions[surface, other] for other in labels[surface]):
                continue
            covered += mentions[surface, label]
            selected.add((surface, label))
            used.add(surface)
    return sorted(selected | _wrong_entries(rng, labels, used))


def _wrong_entries(rng: Random, labels: dict[str, list[str]], used: set[str]) -> set[Entry]:
    """Entries that contradict gold: common words, and names under a label that they never have."""
    avoid = used | {word for words in WORD_NAMES.values() for word in words}
    pool = [surface for surface, types in labels.items() if surface not in avoid and len(types) < len(LABELS)]
    entries = set(_WRONG_WORDS)
    for surface in rng.sample(pool, _WRONG_LABELS):
        entries.add((surface, rng.choice([label for label in LABELS if label not in labels[surface]])))
    return entries
