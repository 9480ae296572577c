"""Text to pre-train on: passages of words, prepared once and kept on disk, so that text may be larger than memory.

The prepared text is a row of word numbers, which is memory-mapped, and the list of distinct words. A passage is one or
a few sentences. Some documents are held out, to measure on. The words to train on are divided into shards, which draw
from each source in the same proportion and from each pass over a source in a random order.
"""

import math
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lacuner.corpus.words import word_texts
from lacuner.data import Document
from lacuner.errors import TrainingError
from lacuner.mapped import open_arrays, write_arrays
from lacuner.models.ragged import offsets_of, run_positions

SENTENCE_ENDS = frozenset(".!?。！？")
TARGET_LENGTHS = (24, 48, 96)
"""Passages are filled with sentences up to one of these numbers of words: the encoder sees short and long ones."""
LONGEST = 128
"""Words of the longest passage; a longer sentence is cut."""
HELD_OUT_WORDS = 20_000
"""Words of a source that are held out, at most."""
_BLOCK = 1 << 20


class TextSource(NamedTuple):
    """Documents that are read as a stream: a file, or a list in memory."""

    name: str
    docs: Callable[[], Iterable[Document]]
    sha256: str
    """Hash of the content: a run resumes only with the same text."""


@dataclass(frozen=True)
class PreparedText:
    """The passages of all sources."""

    words: list[str]
    """Distinct words, in order of appearance."""
    ids: np.ndarray
    """Number of each word in `words`: `[running words]`, memory-mapped."""
    offsets: np.ndarray
    """Start of each passage in `ids`, then the total number of words: `[passages + 1]`."""
    source: np.ndarray
    """Number of each passage's source: `[passages]`."""
    held_out: np.ndarray
    """Whether each passage is held out: `[passages]`."""

    def passages(self, numbers: np.ndarray) -> list[list[str]]:
        """Some passages as lists of words."""
        lengths = self.offsets[numbers + 1] - self.offsets[numbers]
        flat = self.ids[run_positions(self.offsets[numbers], lengths)].tolist()
        words, bounds = self.words, offsets_of(lengths).tolist()
        return [[words[i] for i in flat[a:b]] for a, b in pairwise(bounds)]

    def counts(self) -> np.ndarray:
        """Frequency of each distinct word: `[words]`."""
        counts = np.zeros(len(self.words), dtype=np.int64)
        for start in range(0, len(self.ids), 16 * _BLOCK):
            counts += np.bincount(self.ids[start : start + 16 * _BLOCK], minlength=len(counts))
        return counts


def cut_passages(words: Sequence[str], target: int) -> Iterator[tuple[int, int]]:
    """Cut a document after sentences into passages of about `target` words.

    >>> list(cut_passages("Mara left . She took 3 kg . It rained .".split(), target=5))
    [(0, 3), (3, 8), (8, 11)]
    """
    start = previous = 0
    for end, word in enumerate(words, 1):
        followed = words[end][:1] if end < len(words) else ""
        if end < len(words) and not (word in SENTENCE_ENDS and not followed.islower() and not followed.isdigit()):
            continue
        if end - start > target and previous > start:
            yield start, previous
            start = previous
        while end - start > LONGEST:
            yield start, start + LONGEST
            start += LONGEST
        previous = end
    if start < len(words):
        yield start, len(words)


@cache
def _compound_pattern() -> Any:
    import regex

    # words joined by a single mark stay together, as in most annotated corpora: U.S, non-small, AT&T, and/or
    return regex.compile(r"(?V1)[\p{L}\p{N}\p{M}_]+(?:[-.&/'’][\p{L}\p{N}\p{M}_]+)*|(?!\s)\X")


def _split(doc: Document, draw: float, compounds: float) -> list[str]:
    if doc.words is None and draw < compounds:
        words: list[str] = _compound_pattern().findall(doc.text)
        return words
    return word_texts(doc)


def prepare_text(sources: Sequence[TextSource], folder: Path, held_out: float, compounds: float = 0.0) -> PreparedText:
    """Read all sources once and write them to a folder as word numbers; a finished folder is opened instead.

    Args:
        sources: the texts.
        folder: where the prepared text is kept.
        held_out: share of the documents of each source that is held out; equal texts are on the same side.
        compounds: share of the documents in which words joined by a hyphen or another mark stay one word.
    """
    identity = {"sources": [source.sha256 for source in sources], "held_out": held_out, "compounds": compounds}
    prepared = open_arrays(folder, identity)
    if prepared is None:
        words: dict[str, int] = {}
        parts = _number_words(sources, held_out, compounds, words)
        write_arrays(folder, identity, parts, lambda: {"words": list(words)})
        prepared = open_arrays(folder, identity)
        assert prepared is not None
    arrays = prepared.arrays
    offsets = offsets_of(arrays["lengths"].astype(np.int64))
    return PreparedText(prepared.facts["words"], arrays["ids"], offsets, arrays["source"], arrays["held_out"])


def _number_words(
    sources: Sequence[TextSource], held_out: float, compounds: float, number_of: dict[str, int]
) -> Iterator[dict[str, np.ndarray]]:
    """Word numbers, block by block; after each source also its passages. `number_of` collects the distinct words."""
    every = max(round(1 / held_out), 2)
    for number, source in enumerate(sources):
        spare = HELD_OUT_WORDS
        lengths, held = array("I"), array("b")
        documents: set[str] = set()
        block = array("I")
        for doc in source.docs():
            digest = zlib.crc32(doc.text.encode("utf-8", "surrogatepass"))
            words = _split(doc, (digest >> 8) % 1000 / 1000, compounds)
            if not words:
                continue
            is_held = digest % every == 0 and spare > 0
            spare -= len(words) if is_held else 0
            if len(documents) < 2:
                documents.add(doc.text)
            block.extend([number_of.setdefault(word, len(number_of)) for word in words])
            target = TARGET_LENGTHS[(digest >> 20) % len(TARGET_LENGTHS)]
            for start, end in cut_passages(words, target):
                lengths.append(end - start)
                held.append(is_held)
            if len(block) > _BLOCK:
                yield {"ids": np.array(block, dtype=np.uint32)}
                block = array("I")
        if len(documents) < 2:
            raise TrainingError(
                "pre-training needs at least two different texts in each corpus, one to train on and one to hold "
                f"out: {source.name} has fewer"
            )
        _hold_out_some(held)
        yield {
            "ids": np.array(block, dtype=np.uint32),
            "lengths": np.array(lengths, dtype=np.uint32),
            "source": np.full(len(lengths), number, dtype=np.uint16),
            "held_out": np.array(held, dtype=bool),
        }


def _hold_out_some(held: "array[int]") -> None:
    """If chance held out nothing, hold out the first passage; if everything, train on the first."""
    if len(set(held)) == 1:
        held[0] = 1 - held[0]


@dataclass(frozen=True)
class Shards:
    """Which passages are trained on in each shard: shard `k` can be computed independently."""

    passages: list[np.ndarray]
    """The passages of each source that are not held out."""
    totals: list[int]
    """How many passages of each source are read in the whole training."""
    count: int
    seed: Callable[..., int]

    def __getitem__(self, shard: int) -> np.ndarray:
        """The passages of a shard, source by source."""
        parts = []
        for source, (passages, total) in enumerate(zip(self.passages, self.totals, strict=True)):
            at, end = shard * total // self.count, (shard + 1) * total // self.count
            while at < end:
                this_pass, place = divmod(at, len(passages))
                order = np.random.default_rng(self.seed("order", source, this_pass)).permutation(len(passages))
                parts.append(passages[order[place : place + end - at]])
                at += len(parts[-1])
        return np.concatenate(parts)


def plan_shards(
    text: PreparedText, words: float, mix: Sequence[float], shard_words: int, seed: Callable[..., int]
) -> Shards:
    """Divide training on `words` words into shards of at most about `shard_words` words.

    `mix` has the share of each source among the words; without it each passage is read equally often.
    """
    sources = int(text.source.max()) + 1
    passages = [np.flatnonzero((text.source == source) & ~text.held_out) for source in range(sources)]
    lengths = np.diff(text.offsets)
    sizes = np.array([lengths[numbers].sum() for numbers in passages], dtype=float)
    shares = np.array(mix) / sum(mix) if mix else sizes / sizes.sum()
    totals = [max(round(words * s * len(p) / n), 1) for s, p, n in zip(shares, passages, sizes, strict=True)]
    passes = max(math.ceil(words / sizes.sum() - 1e-9), 1)
    # a shard never holds more than one pass over the text: then a small text has one shard per epoch
    count = passes * max(math.ceil(words / passes / shard_words), 1)
    return Shards(passages, totals, count, seed)
