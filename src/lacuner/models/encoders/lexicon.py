"""A word list, and where its words occur in sentences: what a lexicon encoder reads beside the words themselves.

Chinese words are not separated, and each character is a word of a sentence here. Which words of a dictionary a
character belongs to tells much about where names begin and end.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lacuner.annotate.gazetteer.files import read_file
from lacuner.annotate.matching.automaton import Hit, build_automaton
from lacuner.corpus.words import join_words
from lacuner.errors import ConfigError, ModelFileError
from lacuner.models.encoders.hashing import normalise_word
from lacuner.models.ragged import offsets_of, pad_rows, run_positions

MAX_BYTES = 256 << 20
MAX_ENTRIES = 2_000_000
MAX_LENGTH = 100
"""Characters of the longest entry."""
_FREQUENCY = re.compile(r"\s+\d+(\s+\w+)?$")
"""Frequency and part of speech after an entry, as in the dictionary of jieba."""
BEGIN, MIDDLE, END, SINGLE = range(4)
"""Position of a word in an entry."""

MatchArrays = dict[str, np.ndarray]
"""The matches of a batch.

`[matches]`: `number`, `frequency`, `first` and `last` as in `Matches`. `[sentences, matches]`: `slots`, the matches of
each sentence, and `real`, False at padding. `[pairs]`, one per match and word in it: `pair_word`, the place of the word
in the flattened batch, `pair_match`, and `pair_position`, the position of the word in the entry.
"""


class Matches(NamedTuple):
    """Entries that occur in a corpus, sentence by sentence: arrays of equal length, and where each sentence begins."""

    offsets: np.ndarray
    first: np.ndarray
    """First word."""
    last: np.ndarray
    """Last word, inclusive."""
    number: np.ndarray
    """Number of the entry's vector; 0 for entries without a vector of their own."""
    frequency: np.ndarray
    """Occurrences of the entry in the training sentences, where it is not part of a longer entry."""


class Lexicon:
    """Entries, of which the first `embedded` have a vector of their own, and how often each occurred in training.

    >>> lexicon = Lexicon(["长江", "长江大桥", "大桥"], [2, 0, 1], embedded=3)
    >>> lexicon.match([list("长江大桥")]).number.tolist()
    [1, 2, 3]
    """

    def __init__(self, entries: Sequence[str], counts: Sequence[int], embedded: int) -> None:
        self.entries, self.embedded = tuple(entries), embedded
        self.counts = np.array(counts, dtype=np.int64)

    @cached_property
    def _find(self) -> Callable[[str], list[Hit]]:
        return build_automaton(list(self.entries), folded=False)

    def match(self, sentences: Sequence[Sequence[str]]) -> Matches:
        """All occurrences of entries that begin and end with a word, by first word, shorter ones first."""
        hits: list[tuple[int, int, int]] = []
        sizes = np.zeros(len(sentences), dtype=np.int64)
        for i in range(len(sentences)):
            in_sentence = self._hits(sentences[i])
            sizes[i] = len(in_sentence)
            hits += in_sentence
        columns = np.array(hits, dtype=np.int64).reshape(-1, 3)
        entry = columns[:, 2]
        number = np.where(entry < self.embedded, entry + 1, 0)
        return Matches(offsets_of(sizes), columns[:, 0], columns[:, 1], number, self.counts[entry])

    def _hits(self, words: Sequence[str]) -> list[tuple[int, int, int]]:
        """First word, last word and entry of each occurrence in a sentence."""
        text, ranges = join_words(words)
        starts = {start: i for i, (start, end) in enumerate(ranges) if start < end}
        ends = {end: i for i, (start, end) in enumerate(ranges) if start < end}
        readable = text.encode("utf-8", "replace").decode("utf-8")  # lone surrogates; the length stays the same
        hits = [(starts.get(start), ends.get(end), entry) for entry, start, end in self._find(readable)]
        return sorted((i, j, entry) for i, j, entry in hits if i is not None and j is not None)

    def to_bytes(self) -> bytes:
        """The entries with their counts, one per line."""
        rows = zip(self.entries, self.counts.tolist(), strict=True)
        return "".join(f"{entry}\t{count}\n" for entry, count in rows).encode()


def parse_lexicon(data: bytes, embedded: int) -> Lexicon:
    """The lexicon of a model folder, from what `to_bytes` returned."""
    try:
        rows = [line.split("\t") for line in data.decode().split("\n")[:-1]]
        entries, counts = [entry for entry, _ in rows], [int(count) for _, count in rows]
    except ValueError as error:  # also of decoding
        raise ModelFileError("the lexicon of this model is damaged") from error
    if not entries or not all(entries) or not 0 <= embedded <= len(entries) <= MAX_ENTRIES:
        raise ModelFileError("the lexicon of this model is damaged")
    return Lexicon(entries, counts, embedded)


def read_entries(file: Path) -> list[str]:
    """The entries of a word list: one per line, with or without a frequency and a part of speech after it.

    Of a line with tabs, the first column counts. Empty lines are skipped, and of equal entries one is kept.
    """
    try:
        text = read_file(file, MAX_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"encoder.lexicon={file}: this word list is not UTF-8 text") from error
    lines = text.replace("\r\n", "\n").split("\n")
    entries = dict.fromkeys(_FREQUENCY.sub("", line.partition("\t")[0].strip()) for line in lines)
    kept = [entry for entry in entries if 0 < len(entry) <= MAX_LENGTH]
    if not kept or len(kept) > MAX_ENTRIES:
        raise ConfigError(f"encoder.lexicon={file}: a word list has 1 to {MAX_ENTRIES:,} entries, not {len(kept):,}")
    return kept


def lexicon_of_corpus(
    entries: Sequence[str], sentences: Iterable[Sequence[str]], vectors: Mapping[str, np.ndarray]
) -> Lexicon:
    """A lexicon whose entries have a vector of their own if they occur in the sentences or in a table of word vectors.

    Keys of `vectors` are normalised words.

    >>> lexicon = lexicon_of_corpus(["大桥", "长江"], [list("长江水")], {})
    >>> lexicon.entries, lexicon.embedded
    (('长江', '大桥'), 1)
    """
    plain = Lexicon(entries, [0] * len(entries), 0)
    counts: Counter[int] = Counter()
    for words in sentences:
        counts.update(_longest(plain._hits(words)))
    known = [bool(counts[i]) or (bool(vectors) and normalise_word(entries[i]) in vectors) for i in range(len(entries))]
    order = sorted(range(len(entries)), key=lambda i: (not known[i], entries[i]))
    return Lexicon([entries[i] for i in order], [counts[i] for i in order], sum(known))


def _longest(hits: Sequence[tuple[int, int, int]]) -> Iterator[int]:
    """Entries of the occurrences that are not part of a longer one: SoftLexicon counts only these."""
    reach = -1
    for _, last, entry in sorted(hits, key=lambda hit: (hit[0], -hit[1])):
        if last > reach:
            reach = last
            yield entry


def collate_matches(arrays: Mapping[str, np.ndarray], indices: Sequence[int] | np.ndarray, words: int) -> MatchArrays:
    """The matches of a batch whose sentences are padded to a number of words; `arrays` are the fields of `Matches`."""
    slots, real = pad_rows(arrays["offsets"], indices)
    chosen = slots[real]
    sentence = np.nonzero(real)[0]
    first, last = arrays["first"][chosen], arrays["last"][chosen]
    lengths = last - first + 1
    pair_match = np.repeat(np.arange(len(chosen)), lengths)
    pair_word = run_positions(first, lengths)
    is_first, is_last = pair_word == first[pair_match], pair_word == last[pair_match]
    number = np.zeros(real.shape, dtype=np.int64)
    number[real] = np.arange(len(chosen))
    return {
        "number": arrays["number"][chosen],
        "frequency": arrays["frequency"][chosen],
        "first": first,
        "last": last,
        "slots": number,
        "real": real,
        "pair_word": sentence[pair_match] * words + pair_word,
        "pair_match": pair_match,
        "pair_position": np.select([is_first & is_last, is_first, is_last], [SINGLE, BEGIN, END], MIDDLE),
    }
