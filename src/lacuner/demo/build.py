"""The demo corpus and its dictionary, from a seed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random

from lacuner.data import Document
from lacuner.demo.grammar import Sentence, sentence
from lacuner.demo.names import LABELS, Names
from lacuner.demo.words import WORD_NAMES

SIZES = {"train": 2000, "dev": 500, "test": 500}
COVERAGE = 0.4
"""The share of the training mentions of each type that the dictionary knows."""

_AMBIGUOUS = 12
_WRONG_LABELS = 6
# Words that a careless compiler would take for names, and that the frames use as plain English.
_WRONG_WORDS = (
    ("Committee", "ORGANISATION"),
    ("Easter", "PERSON"),
    ("Michaelmas", "PLACE"),
    ("Treasury", "ORGANISATION"),
    ("brine", "SUBSTANCE"),
    ("chocolate", "SUBSTANCE"),
    ("gasoline", "SUBSTANCE"),
    ("membrane", "SUBSTANCE"),
    ("stadium", "SUBSTANCE"),
)

Entry = tuple[str, str]
"""A surface and its label."""


@dataclass(frozen=True, slots=True)
class Demo:
    """Three splits with complete gold, and a dictionary of (surface, label) pairs, sorted."""

    train: list[Document]
    dev: list[Document]
    test: list[Document]
    dictionary: list[Entry]


def build(seed: int = 1) -> Demo:
    """Build the demo corpus: the same seed gives the same bytes everywhere.

    >>> demo = build()
    >>> len(demo.train), len(demo.dev), len(demo.test)
    (2000, 500, 500)
    """
    rng = Random(seed)
    names = Names(rng)
    made = _distinct(rng, names, sum(SIZES.values()))
    splits: dict[str, list[Sentence]] = {}
    for split, size in SIZES.items():
        splits[split], made = made[:size], made[size:]
    dictionary = _dictionary(rng, splits)
    docs = {split: _documents(split, rows) for split, rows in splits.items()}
    return Demo(docs["train"], docs["dev"], docs["test"], dictionary)


def dictionary_tsv(demo: Demo) -> str:
    """The dictionary as `surface<TAB>label` lines."""
    return "".join(f"{surface}\t{label}\n" for surface, label in demo.dictionary)


def _distinct(rng: Random, names: Names, size: int) -> list[Sentence]:
    """Sentences no two of which have the same text."""
    made: dict[str, Sentence] = {}
    while len(made) < size:
        new = sentence(rng, names)
        made.setdefault(new.text, new)
    return list(made.values())


def _documents(split: str, sentences: list[Sentence]) -> list[Document]:
    return [
        Document(f"{split}-{number:04d}", made.text, words=made.words, spans=made.spans, complete=True)
        for number, made in enumerate(sentences, 1)
    ]


def _dictionary(rng: Random, splits: dict[str, list[Sentence]]) -> list[Entry]:
    """Some of the names of all splits, a few of them under two labels, and a few entries that are wrong.

    Names are taken in random order, train's or not, until `COVERAGE` of the training mentions of their type is
    reached: so dev and test names are known about as often as those of train.
    """
    mentions = Counter(name for made in splits["train"] for name in made.names)
    labels: dict[str, list[str]] = {}
    for surface, label in sorted({name for rows in splits.values() for made in rows for name in made.names}):
        labels.setdefault(surface, []).append(label)
    several = [surface for surface, its in labels.items() if len(its) > 1]
    chosen = set()
    for surface in rng.sample(several, _AMBIGUOUS):
        commonest = sorted(labels[surface], key=lambda label: -mentions[surface, label])
        chosen |= {(surface, label) for label in commonest[:2]}
    taken = {surface for surface, _ in chosen}
    for label in LABELS:
        pool = [surface for surface, its in labels.items() if label in its and surface not in taken]
        rng.shuffle(pool)
        wanted = COVERAGE * sum(times for name, times in mentions.items() if name[1] == label)
        have = sum(mentions[name] for name in chosen if name[1] == label)
        while have < wanted:
            surface = pool.pop()
            # Whoever compiles a dictionary enters a name as what it mostly is.
            if 3 * mentions[surface, label] < 2 * sum(mentions[surface, other] for other in labels[surface]):
                continue
            have += mentions[surface, label]
            chosen.add((surface, label))
            taken.add(surface)
    return sorted(chosen | _wrong(rng, labels, taken))


def _wrong(rng: Random, labels: dict[str, list[str]], taken: set[str]) -> set[Entry]:
    """Entries that no gold agrees with: common words, and names under a label they never have."""
    avoid = taken | {word for words in WORD_NAMES.values() for word in words}
    pool = [surface for surface, its in labels.items() if surface not in avoid and len(its) < len(LABELS)]
    entries = set(_WRONG_WORDS)
    for surface in rng.sample(pool, _WRONG_LABELS):
        entries.add((surface, rng.choice([label for label in LABELS if label not in labels[surface]])))
    return entries
