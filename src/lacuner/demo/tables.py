"""Read the tables of the demo corpus: word lists, and rules for sentences and names."""

import re
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import NamedTuple

SLOT = re.compile(r"\{([^}]+)\}")
_WEIGHT = re.compile(r"(\d+)\* ")


class Rule(NamedTuple):
    """The alternatives of a symbol, with cumulative weights."""

    bodies: tuple[str, ...]
    weights: tuple[int, ...]

    def choose(self, rng: Random) -> str:
        return rng.choices(self.bodies, cum_weights=self.weights)[0]


def read_table(name: str) -> str:
    """The text of a file beside this module, without its comments."""
    lines = Path(__file__).with_name(name).read_text("ascii").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("#"))


def read_lists(table: str) -> dict[str, tuple[str, ...]]:
    """Word lists from a running text in which `name:` begins a list.

    >>> read_lists("boat: ferry barge unit: mg")
    {'boat': ('ferry', 'barge'), 'unit': ('mg',)}
    """
    lists: dict[str, list[str]] = {}
    for word in table.split():
        if word.endswith(":"):
            current = lists.setdefault(word[:-1], [])
        else:
            current.append(word)
    return {name: tuple(words) for name, words in lists.items()}


def read_rules(table: str) -> dict[str, Rule]:
    """Rules in the notation that `frames.txt` describes.

    >>> read_rules("greeting: 3* hello | good morning")
    {'greeting': Rule(bodies=('hello', 'good morning'), weights=(3, 4))}
    """
    rules = {}
    for rule in re.split(r"\n(?=\w)", table.strip()):
        symbol, _, text = rule.partition(":")
        alternatives = [alternative.strip() for alternative in text.split("|")]
        weights = [int(match[1]) if (match := _WEIGHT.match(body)) else 1 for body in alternatives]
        rules[symbol] = Rule(tuple(_WEIGHT.sub("", body) for body in alternatives), tuple(accumulate(weights)))
    return rules
