"""Tag sequences and chunks of words, in all common tag schemes.

A chunk is `(first word, end word, label)`, half-open. The schemes use different letters for the same states (M and I:
inside, L and E: end, U and S: single word), so one decoder reads them all.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

SCHEMES = {
    "IOB2": "BIII",
    "IOB1": "IIII",  # B only where a chunk touches one of its own label: see encode
    "BIOES": "BIES",
    "BILOU": "BILU",
    "BMES": "BMES",
    "IO": "IIII",
}
"""Letters for begin, inside, end and single word."""
_OPENS = frozenset("BSU")
_CLOSES = frozenset("ESLU")
_PREFIXES = frozenset("BIESLUM")


class Chunk(NamedTuple):
    """An entity as a range of words, half-open."""

    start: int
    end: int
    label: str


def is_tag(tag: str) -> bool:
    """Whether this is O, or a prefix letter, a hyphen and a label."""
    return tag == "O" or (len(tag) > 2 and tag[1] == "-" and tag[0] in _PREFIXES)


def not_a_tag(tag: str) -> str:
    """The error message for a string that is not a tag."""
    return f"{tag!r} is not a tag (O, or a letter of BIESLUM, a hyphen and a label); for bare labels, use --scheme IO"


def decode(tags: Sequence[str]) -> list[Chunk]:
    """Decode by conlleval's rule, which accepts any sequence.

    A chunk starts at B or S, after an end, or at a new label.

    >>> decode(["B-PER", "I-PER", "O", "I-LOC"])
    [Chunk(start=0, end=2, label='PER'), Chunk(start=3, end=4, label='LOC')]
    """
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
    """Decode only chunks that are well-formed in the scheme, like seqeval's strict mode."""
    chunks = decode(tags)
    if scheme in ("IOB1", "IO"):
        return chunks
    regular = encode(chunks, len(tags), scheme)
    return [chunk for chunk in chunks if list(tags[chunk.start : chunk.end]) == regular[chunk.start : chunk.end]]


def encode(chunks: Iterable[tuple[int, int, str]], length: int, scheme: str = "IOB2") -> list[str]:
    """Encode chunks that do not overlap.

    >>> encode([Chunk(0, 2, "PER")], length=3, scheme="BIOES")
    ['B-PER', 'E-PER', 'O']
    """
    begin, inside, end, single = tuple(SCHEMES[scheme])
    tags = ["O"] * length
    last_end, last_label = -1, ""
    for start, stop, label in sorted(chunks):
        first = begin
        if stop - start > 1:
            tags[start + 1 : stop - 1] = [f"{inside}-{label}"] * (stop - start - 2)
            tags[stop - 1] = f"{end}-{label}"
        elif single != "I":
            first = single
        if scheme == "IOB1" and start == last_end and label == last_label:
            first = "B"
        tags[start] = f"{first}-{label}"
        last_end, last_label = stop, label
    return tags


def find_irregular(tags: Sequence[str], chunks: Iterable[Chunk], scheme: str) -> list[int]:
    """Positions whose tag differs from the scheme's encoding of the chunks that `decode` returned."""
    regular = encode(chunks, len(tags), scheme)
    if regular == list(tags):
        return []
    return [i for i, (tag, expected) in enumerate(zip(tags, regular, strict=True)) if tag != expected]


def guess_scheme(sentences: Iterable[Sequence[str]]) -> str:
    """The scheme with the fewest irregular tags in these sentences; ties go to IOB2."""
    counts = dict.fromkeys(SCHEMES, 0)
    for tags in sentences:
        chunks = decode(tags)
        for scheme in counts if chunks else ():
            counts[scheme] += len(find_irregular(tags, chunks, scheme))
    return min(counts, key=counts.__getitem__)
