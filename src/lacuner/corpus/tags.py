"""Tags <-> chunks of words, in every scheme of the field.

A chunk is `(first word, word after the last, label)`. The six schemes use disjoint letters for the same few
states (M and I are inside, L and E end, U and S stand alone), so one reader serves them all; the schemes
differ in what they write and in what counts as irregular.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

SCHEMES = ("IOB1", "IOB2", "BIOES", "BILOU", "BMES", "IO")

# begin, inside, end, single
_LETTERS = {
    "IOB2": "BIII",
    "IOB1": "IIII",  # B only where a chunk touches one of its own label: see encode
    "IO": "IIII",
    "BIOES": "BIES",
    "BILOU": "BILU",
    "BMES": "BMES",
}
_OPENS = frozenset("BSU")
_CLOSES = frozenset("ESLU")
_PREFIXES = frozenset("BIESLUM")


class Chunk(NamedTuple):
    """An entity in words, half-open."""

    start: int
    end: int
    label: str


def is_tag(tag: str) -> bool:
    """O, or a prefix letter, a hyphen and a label."""
    return tag == "O" or (len(tag) > 2 and tag[1] == "-" and tag[0] in _PREFIXES)


def decode(tags: Sequence[str]) -> list[Chunk]:
    """Chunks by conlleval's rule, which reads any sequence: one begins at B or S, after an end, or with a new label."""
    chunks: list[Chunk] = []
    start, label, closed = -1, "", False
    for i, tag in enumerate(tags):
        if tag == "O":
            if start >= 0:
                chunks.append(Chunk(start, i, label))
                start = -1
            continue
        if start >= 0 and (closed or tag[0] in _OPENS or tag[2:] != label):
            chunks.append(Chunk(start, i, label))
            start = -1
        if start < 0:
            start, label = i, tag[2:]
        closed = tag[0] in _CLOSES
    if start >= 0:
        chunks.append(Chunk(start, len(tags), label))
    return chunks


def decode_strict(tags: Sequence[str], scheme: str) -> list[Chunk]:
    """Only the chunks that are well-formed in the scheme, as seqeval's strict mode counts them."""
    begin, _, end, single = tuple(_LETTERS[scheme])
    if scheme in ("IOB1", "IO"):
        return decode(tags)
    chunks: list[Chunk] = []
    start, label = -1, ""
    for i, tag in enumerate([*tags, "O"]):
        letter, kind = tag[0], tag[2:]
        inside = start >= 0 and kind == label and not (letter in _OPENS or letter == "O")
        if start >= 0 and not inside:
            if end == "I":  # no letter of its own marks the end
                chunks.append(Chunk(start, i, label))
            start = -1
        if inside and letter == end != "I":
            chunks.append(Chunk(start, i + 1, label))
            start = -1
        elif letter == begin:
            start, label = i, kind
        elif letter == single != "I":
            chunks.append(Chunk(i, i + 1, kind))
    return chunks


def encode(chunks: Iterable[Chunk], length: int, scheme: str = "IOB2") -> list[str]:
    """Tags for chunks that do not overlap."""
    begin, inside, end, single = tuple(_LETTERS[scheme])
    tags = ["O"] * length
    last_end, last_label = -1, ""
    for start, stop, label in sorted(chunks):
        for i in range(start + 1, stop - 1):
            tags[i] = f"{inside}-{label}"
        tags[stop - 1] = f"{end}-{label}"
        first = single if stop - start == 1 and single != "I" else begin
        if scheme == "IOB1" and start == last_end and label == last_label:
            first = "B"
        tags[start] = f"{first}-{label}"
        last_end, last_label = stop, label
    return tags


def irregular(tags: Sequence[str], chunks: Iterable[Chunk], scheme: str) -> list[int]:
    """Positions whose tag is not the one that the scheme would use for the chunks that `decode` found."""
    regular = encode(chunks, len(tags), scheme)
    if regular == list(tags):
        return []
    return [i for i, (tag, good) in enumerate(zip(tags, regular, strict=True)) if tag != good]


def guess_scheme(sentences: Iterable[Sequence[str]]) -> str:
    """The scheme in which these sentences are written: the one with the fewest irregular tags, IOB2 if in doubt."""
    counts = dict.fromkeys(("IOB2", "IOB1", "BIOES", "BILOU", "BMES", "IO"), 0)
    for tags in sentences:
        chunks = decode(tags)
        for scheme in counts if chunks else ():
            counts[scheme] += len(irregular(tags, chunks, scheme))
    return min(counts, key=counts.__getitem__)
