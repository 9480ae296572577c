"""Gazetteer matching, from raw text to labeled documents: lacuner compared with spaCy, flashtext, and a bare loop.

The bare loop is the obvious code around ahocorasick-rs: lower case, overlapping matches, `isalnum` at the boundaries,
longest-leftmost, one tuple per match. It maps no offsets, resolves no labels and builds no documents. All sides fold
case; gazetteers and texts are generated.
"""

from __future__ import annotations

import gc
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from statistics import median

from benchmarks.speed.row import Row

LABELS = ("PER", "LOC", "ORG", "MISC")
Matches = list[tuple[int, int, str]]
Labeller = Callable[[list[str]], int]
"""Labels all texts and returns the number of matches."""


class Language:
    """Generate terms and texts. Terms contain words, or pairs of characters, that other text does not have."""

    def __init__(self, name: str, seed: int = 1) -> None:
        self.name = name
        self.rng = random.Random(seed)
        if name == "English":
            onsets = ["", *"bcdfghjklmnprstvw", "st", "tr", "ch", "pl"]
            syllables = [onset + vowel for onset in onsets for vowel in ("a", "e", "i", "o", "u", "ea", "an", "er")]
            drawn = {
                "".join(self.rng.choices(syllables, k=self.rng.choice((1, 2, 2, 3, 3, 4)))) for _ in range(160_000)
            }
            words, self.glue = sorted(drawn), " "
        else:
            words, self.glue = [chr(code) for code in range(0x4E00, 0x4E00 + 4_000)], ""
        self.rng.shuffle(words)
        self.common = words[: len(words) // 2] if self.glue else words
        self.names = words[len(words) // 2 :] if self.glue else words
        self.weights = list(accumulate(1 / (rank + 10) for rank in range(len(self.common))))

    def term(self) -> str:
        if not self.glue:
            return "".join(self.rng.choices(self.names, k=self.rng.choice((2, 3, 3, 4, 5, 6))))
        size = self.rng.choice((1, 2, 2, 3))
        words = [*self.rng.choices(self.common, k=size - 1), self.rng.choice(self.names)]
        return " ".join(word.capitalize() for word in words)

    def terms(self, number: int) -> list[str]:
        terms: dict[str, None] = {}
        while len(terms) < number:
            term = self.term()
            if len(term) > 3 or not self.glue:
                terms[term] = None
        return list(terms)

    def text(self, terms: list[str], size: int) -> str:
        """Return a text in which about one word in ten, or one character in fifteen, is part of a term."""
        words = self.rng.choices(self.common, cum_weights=self.weights, k=size)
        for position in self.rng.sample(range(size), size // (20 if self.glue else 50)):
            words[position] = self.rng.choice(terms)
        for position in range(11, size, 12):
            words[position] += "." if self.glue else "\u3002"
        return self.glue.join(words)


def our_labeller(path: Path) -> Labeller:
    from lacuner.annotate import annotate, gazetteer_source, load_gazetteer
    from lacuner.data import Document

    source = gazetteer_source(load_gazetteer(path).entries, case="fold")

    def label(texts: list[str]) -> int:
        docs = (Document(str(number), text) for number, text in enumerate(texts))
        return sum(len(doc.spans) for doc in annotate(docs, [source]))

    return label


def bare_loop(terms: list[tuple[str, str]]) -> Labeller:
    from ahocorasick_rs import AhoCorasick, Implementation

    labels = [label for _, label in terms]
    automaton = AhoCorasick([term.lower() for term, _ in terms], implementation=Implementation.ContiguousNFA)

    def find(text: str) -> Matches:
        best: dict[int, tuple[int, int]] = {}
        last = len(text)
        for term, start, end in automaton.find_matches_as_indexes(text.lower(), overlapping=True):
            if start and text[start - 1].isalnum() and text[start].isalnum() and text[start] < "\u2e80":
                continue
            if end < last and text[end].isalnum() and text[end - 1].isalnum() and text[end] < "\u2e80":
                continue
            best[start] = end, term
        matches, free = [], 0
        for start in sorted(best):
            if start >= free:
                free, term = best[start]
                matches.append((start, free, labels[term]))
        return matches

    return lambda texts: sum(len(find(text)) for text in texts)


def spacy_labeller(terms: list[tuple[str, str]], language: Language) -> Labeller:
    import spacy
    from spacy.matcher import PhraseMatcher
    from spacy.util import filter_spans

    nlp = spacy.blank("en" if language.glue else "zh")
    matcher = PhraseMatcher(nlp.vocab, attr="LOWER")
    for term, label in terms:
        matcher.add(label, [nlp.make_doc(term)])

    def label_all(texts: list[str]) -> int:
        number = 0
        for text in texts:
            doc = nlp.make_doc(text)
            doc.set_ents(filter_spans(matcher(doc, as_spans=True)))
            number += len(doc.ents)
        return number

    return label_all


def flashtext_labeller(terms: list[tuple[str, str]]) -> Labeller:
    from flashtext import KeywordProcessor

    processor = KeywordProcessor()
    for term, label in terms:
        processor.add_keyword(term, label)
    return lambda texts: sum(len(processor.extract_keywords(text, span_info=True)) for text in texts)


def seconds(label: Labeller, texts: list[str]) -> float:
    """CPU time, which other processes on the machine hardly affect; no side uses a second thread."""
    start = time.process_time()
    label(texts)
    return time.process_time() - start


def ratio_row(
    name: str, peer: str, minimum: float, sides: tuple[Labeller, Labeller], texts: list[str], rounds: int
) -> Row:
    """Time both sides in turns after a warm-up round; speeds are characters per second."""
    ours, theirs = sides
    few = texts[: len(texts) // 10]
    ours(few), theirs(few)
    gc.collect()
    gc.freeze()  # otherwise each side would pay for scanning the other's millions of objects
    pairs = [(seconds(ours, texts), seconds(theirs, texts)) for _ in range(rounds)]
    gc.unfreeze()
    size = sum(map(len, texts))
    our_time, their_time = median(a for a, _ in pairs), median(b for _, b in pairs)
    return Row(name, size / our_time, size / their_time, peer, median(b / a for a, b in pairs), minimum)


LOADING = """
import sys, time
from lacuner.annotate import Matcher, load_gazetteer
start = time.process_time()
matcher = Matcher(load_gazetteer(sys.argv[1]).entries)
took = time.process_time() - start
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(took, int(peak.split()[1]) / 1024)
"""


def loading_rows(path: Path, name: str, size: int) -> Iterator[Row]:
    """Load a gazetteer and build the matcher in a new process; compare with fixed limits."""
    result = subprocess.run([sys.executable, "-c", LOADING, str(path)], capture_output=True, text=True, check=True)
    took, megabytes = map(float, result.stdout.split())
    limit = 3.0 if size <= 100_000 else 60.0
    yield Row(f"load and build, {name}, s", took, limit, "limit", limit / took, 1.0)
    yield Row(f"load and build, {name}, MB", megabytes, 1_000, "limit", 1_000 / megabytes, 1.0)


def measure(quick: bool = False) -> list[Row]:
    """Compare on generated gazetteers. Minimum: 6 times spaCy, twice flashtext, at most 30 % below the bare loop."""
    rows: list[Row] = []
    for language in (Language("English"), Language("Chinese")):
        for size in (100_000,) if quick else (100_000, 1_000_000):
            rows += rows_for(language, size, quick)
    return rows


def rows_for(language: Language, size: int, quick: bool) -> Iterable[Row]:
    rounds = 3 if quick else 5
    terms = language.terms(size)
    texts = [language.text(terms, 150 if language.glue else 300) for _ in range(1_000 if quick else 3_000)]
    labeled = [(term, language.rng.choice(LABELS)) for term in terms]
    name = f"{language.name}, {size:,} entries"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "terms.tsv"
        path.write_text("".join(f"{term}\t{label}\n" for term, label in labeled), encoding="utf-8")
        yield from loading_rows(path, name, size)
        ours = our_labeller(path)
    name = f"label, {name}, characters/s"
    bare = bare_loop(labeled)
    assert ours(texts) == bare(texts), "both sides must find the same matches"
    yield ratio_row(name, "bare ahocorasick-rs", 1 / 1.3, (ours, bare), texts, rounds)
    del bare
    yield ratio_row(name, "spaCy PhraseMatcher", 6.0, (ours, spacy_labeller(labeled, language)), texts, rounds)
    yield ratio_row(name, "flashtext", 2.0, (ours, flashtext_labeller(labeled)), texts, rounds)
