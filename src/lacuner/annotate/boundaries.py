"""Find gazetteer entries that are usually part of a longer phrase: the entry is right, its boundary is not.

`hearing loss` may occur almost only as `sensorineural hearing loss`. There is neither a tagger nor gold here, so the
words beside each match are counted. In an English noun phrase modifiers precede the noun. What follows a name is mostly
a verb or another head (`creatinine clearance`), so a word on the right counts only inside a capitalised name.
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappush, heappushpop
from typing import NamedTuple

from lacuner.annotate.gazetteer.entries import Entry
from lacuner.annotate.matching.terms import COMMON_WORDS, normalise_surface
from lacuner.annotate.sources import SourceOutput
from lacuner.data import Document

MAX_SAMPLE = 100
"""Matches per surface whose neighbours are kept, so that memory is bounded by the number of matched entries."""

MIN_MATCHES, MIN_DOCUMENTS, MIN_REPEATED = 5, 3, 2
"""Evidence needed: matches of the entry, documents with one, and occurrences of the most frequent longer phrase."""

MIN_SHARE, MIN_SHARE_SUPPORTED = 0.8, 0.5
"""Share of matches inside a longer phrase; less is enough if the gazetteer has longer entries with the same ending."""

MIN_ASSOCIATION = 10
"""How many times as often a word must stand beside this entry as beside the other entries."""

MAX_WORD = 40
"""Characters of the longest neighbour. What is longer is hardly a word."""

MAX_PHRASES = 3
"""Longer phrases named in a reason."""

_FUNCTION_WORDS = """amongst besides cause causes despite further furthermore hence include includes moreover neither
plus prof reduces shows suggest suggests therefore towards unlike versus via whereas"""
"""Function words and verbs that are not among the common words."""
_NO_MODIFIERS = COMMON_WORDS.union(_FUNCTION_WORDS.split())
_VERBAL_ENDINGS = ("ed", "ing", "ly")
_SENTENCE_ENDS = frozenset(".!?:")

Neighbours = tuple[int, int, str, str]
"""One match: its rank, a hash of the document, and the content words to the left and right; empty if there is none."""


@dataclass(slots=True)
class NeighbourSample:
    """The words beside a sample of the matches of each surface, by source.

    The matches with the highest ranks are kept, and a rank is a hash. So the sample depends neither on the order of the
    documents nor on how they were divided among processes.

    >>> from lacuner.annotate import gazetteer_source
    >>> doc, sample = Document("1", "with profound hearing loss"), NeighbourSample()
    >>> sample.add(doc, "dictionary", gazetteer_source([Entry("hearing loss", "Disease")]).find(doc))
    >>> [left for _, _, left, right in sample.matches["dictionary"]["hearing loss"]]
    ['profound']
    """

    matches: dict[str, dict[str, list[Neighbours]]] = field(default_factory=partial(defaultdict, dict))
    """By source and surface in lower case: a heap."""
    totals: dict[str, Counter[str]] = field(default_factory=partial(defaultdict, Counter))
    """By source and surface in lower case: number of matches, sampled or not."""

    def add(self, doc: Document, source: str, output: SourceOutput) -> None:
        """Count the matches of a gazetteer in one document."""
        spans = [*output.spans, *(group[0] for group in output.ambiguous)]
        if not spans:
            return
        text = doc.text
        doc_hash = zlib.crc32(f"{doc.id}\n{text}".encode("utf-8", "surrogatepass"))
        label_from, label_to = {s.start: s.label for s in spans}, {s.end: s.label for s in spans}
        samples, totals = self.matches[source], self.totals[source]
        for start, end, label, _, _ in spans:
            surface = text[start:end]
            lower = surface.lower()
            totals[lower] += 1
            rank = zlib.crc32(b"%d %d" % (start, end), doc_hash)
            sample = samples.setdefault(lower, [])
            if len(sample) == MAX_SAMPLE and rank < sample[0][0]:  # nearly always, if the entry is frequent
                continue
            # `cocaine overdose`: a neighbour with another label is an entity of its own
            left = _left_modifier(text, start) if label_to.get(start - 1, label) == label else ""
            right = _rest_of_name(text, surface, end) if label_from.get(end + 1, label) == label else ""
            _offer(sample, (rank, doc_hash, left, right))

    def merge(self, other: NeighbourSample) -> None:
        """Add the matches in another part of the corpus."""
        for source, samples in other.matches.items():
            self.totals[source].update(other.totals[source])
            for surface, sample in samples.items():
                own = self.matches[source].setdefault(surface, [])
                for match in sample:
                    _offer(own, match)


def _offer(sample: list[Neighbours], match: Neighbours) -> None:
    if len(sample) < MAX_SAMPLE:
        heappush(sample, match)
    else:
        heappushpop(sample, match)


def _left_modifier(text: str, start: int) -> str:
    """The word before a match, with its hyphens (`non-syndromic`, `non - syndromic`), if it can modify the match."""
    if start < 2 or text[start - 1] != " " or not text[start - 2].isalpha():
        return ""
    line = text[max(0, start - MAX_WORD - 1) : start - 1].rpartition("\n")[2]
    words = line.rsplit(" ", 5)
    word = words.pop()
    while len(words) > 1 and words[-1] == "-" and words[-2][-1:].isalpha():  # tokenised text
        word = f"{words[-2]} - {word}"
        del words[-2:]
    if len(word) >= MAX_WORD:  # it may start before `line`
        return ""
    if not word.islower() and (not words or words[-1][-1:] in _SENTENCE_ENDS) and word[1:].islower():
        word = word.lower()
    parts = word.replace(" ", "").split("-")
    if not (all(map(str.isalpha, parts)) and _is_content_word(parts[-1])):
        return ""
    return word if word.islower() or (text[start].isupper() and word[0].isupper()) else ""


def _rest_of_name(text: str, surface: str, end: int) -> str:
    """The word after a match, if both are capitalised, not acronyms: `Halden` is followed by `University`."""
    if text[end : end + 1] != " " or not text[end + 1 : end + 2].isupper() or not surface.istitle():
        return ""
    word = text[end + 1 : end + 2 + MAX_WORD].split(maxsplit=1)[0].rstrip(".,;:!?)")
    if len(word) > MAX_WORD or not word.istitle() or not _is_content_word(word):
        return ""
    return word


def _is_content_word(word: str) -> bool:
    """Whether a word may be part of a name: in a script with cases, and no function word, verb, adverb or initial."""
    lower = word.lower()
    if len(word) < 3 or lower == word.upper() or not word.isalpha() or lower in _NO_MODIFIERS:
        return False
    return not (word.islower() and word.endswith(_VERBAL_ENDINGS))


class LongerPhrases(NamedTuple):
    """The longer phrases around the matches of one entry.

    >>> phrases = LongerPhrases(14, (("profound hearing loss", 7), ("mild hearing loss", 5)), sampled=False)
    >>> phrases.reason
    '12 of 14 matches are inside a longer phrase: profound hearing loss (7), mild hearing loss (5)'
    """

    matches: int
    """Matches that were looked at."""
    phrases: tuple[tuple[str, int], ...]
    """Phrases and how often they occur, most frequent first."""
    sampled: bool
    """Whether the entry has more matches than these."""

    @property
    def inside(self) -> int:
        """Matches inside one of the phrases."""
        return sum(times for _, times in self.phrases)

    @property
    def reason(self) -> str:
        shown = ", ".join(f"{phrase} ({times})" for phrase, times in self.phrases[:MAX_PHRASES])
        more = ", ..." if len(self.phrases) > MAX_PHRASES else ""
        sampled = "sampled " if self.sampled else ""
        return f"{self.inside} of {self.matches} {sampled}matches are inside a longer phrase: {shown}{more}"


def longer_phrases(
    sample: NeighbourSample, source: str, entries: Iterable[Entry], surfaces: Mapping[str, str]
) -> dict[str, LongerPhrases]:
    """The matched entries that are usually part of a longer phrase, by normal form.

    `surfaces` has the surface of each matched entry by its normal form. An entry is returned if the share of its
    matches inside a longer phrase is high enough. A word that is often beside other entries, too, makes no phrase.

    >>> longer_phrases(NeighbourSample(), "dictionary", [], {})
    {}
    """
    matches_of: dict[str, list[Neighbours]] = defaultdict(list)
    totals: Counter[str] = Counter()
    for surface, matches in sample.matches.get(source, {}).items():
        form = normalise_surface(surface)
        matches_of[form] += matches
        totals[form] += sample.totals[source][surface]
    all_matches = sum(map(len, matches_of.values()))
    beside = Counter(word for matches in matches_of.values() for word in _neighbours(matches))
    phrases_of = {}
    for form in surfaces.keys() & matches_of.keys():
        matches = matches_of[form]
        if len(matches) < MIN_MATCHES or len({match[1] for match in matches}) < MIN_DOCUMENTS:
            continue
        own, others = Counter(_neighbours(matches)), max(all_matches - len(matches), 1)
        associated = {
            word
            for word, times in own.items()
            if times / len(matches) >= MIN_ASSOCIATION * (beside[word] - times) / others
        }
        phrases = _count_phrases(matches, surfaces[form], associated, surfaces)
        inside = sum(phrases.values())
        if inside >= MIN_SHARE_SUPPORTED * len(matches) and max(phrases.values()) >= MIN_REPEATED:
            ordered = tuple(sorted(phrases.items(), key=lambda item: (-item[1], item[0])))
            phrases_of[form] = LongerPhrases(len(matches), ordered, sampled=totals[form] > len(matches))
    supported = _forms_inside_entries(phrases_of.keys(), entries) if phrases_of else set()
    return {
        form: phrases_of[form]
        for form in sorted(phrases_of)
        if form in supported or phrases_of[form].inside >= MIN_SHARE * phrases_of[form].matches
    }


def _neighbours(matches: Sequence[Neighbours]) -> Iterator[tuple[str, str]]:
    """Side and word of every neighbour, in lower case."""
    for _, _, left, right in matches:
        if left:
            yield "left", left.lower()
        if right:
            yield "right", right.lower()


def _count_phrases(
    matches: Sequence[Neighbours], surface: str, associated: set[tuple[str, str]], known: Container[str]
) -> Counter[str]:
    """The longer phrases whose normal forms are not known as entries."""
    phrases: Counter[str] = Counter()
    for _, _, left, right in matches:
        if not surface[0].isupper():
            left = left.lower()
        before = f"{left} " if ("left", left.lower()) in associated else ""
        after = f" {right}" if ("right", right.lower()) in associated else ""
        if before or after:
            phrases[f"{before}{surface}{after}"] += 1
    return Counter({phrase: times for phrase, times in phrases.items() if normalise_surface(phrase) not in known})


def _forms_inside_entries(forms: Iterable[str], entries: Iterable[Entry]) -> set[str]:
    """The forms with which a longer entry of the gazetteer ends: its names include the words that precede them."""
    forms = set(forms)
    last_words = {form.rpartition(" ")[2] for form in forms}
    longest = max(len(form.split()) for form in forms)
    supported: set[str] = set()
    for entry in entries:
        words = entry.surface.lower().split()
        if len(words) > 1 and words[-1] in last_words:
            starts = range(max(1, len(words) - longest), len(words))
            supported.update(forms.intersection(" ".join(words[first:]) for first in starts))
    return supported
