"""Column files: one word a line, a blank line between sentences. A document is a sentence.

What the layout is (separator, number of columns, tag scheme) is read off the beginning of the file, unless the
options say it. `-DOCSTART-` lines number the documents of the original in `meta["document"]`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from operator import itemgetter
from pathlib import Path

from lacuner.atomic import atomic_write
from lacuner.corpus import tags as tagging
from lacuner.corpus.lines import read_blocks
from lacuner.corpus.reader import Reading
from lacuner.corpus.words import flatten, join_words, to_words, words_of
from lacuner.data import Document, Lost, Span, Where, Words
from lacuner.errors import CorpusError

DOCSTART = "-DOCSTART-"
MAX_SENTENCE = 1_000_000
_SAMPLE = 5_000


@dataclass(frozen=True)
class Layout:
    """How a column file is laid out: `scheme` is None without tags, `bare` if tags are labels without a prefix."""

    separator: str
    width: int
    token: int
    tag: int
    scheme: str | None
    bare: bool

    def split(self, lines: list[str]) -> list[list[str]]:
        if self.separator == " ":
            return [re.split(r"[ \t]+", line.strip(" \t")) for line in lines]
        separator = self.separator
        return [line.split(separator) for line in lines]


def read_conll(reading: Reading) -> Iterator[Document]:
    """Sentences as documents, numbered from 1."""
    layout = _layout(reading)
    known_tags = {"O"}
    number, document = 0, 0
    for first, lines in _sentences(reading):
        if not lines:
            document += 1
            continue
        try:
            rows, numbers = _rows(lines, first, layout, reading)
            if not rows:
                continue
            columns = list(zip(*rows, strict=True))
            text, words = join_words(columns[layout.token])
            spans: tuple[Span, ...] = ()
            if layout.scheme is not None:
                tags = columns[layout.tag]
                if layout.bare:
                    tags = tuple([tag if tag == "O" else f"I-{tag}" for tag in tags])
                used = set(tags)
                if not used <= known_tags:
                    _check_tags(tags, numbers, reading)
                    known_tags |= used
                if len(used) > 1 or "O" not in used:
                    spans = _spans(tags, words, numbers, layout.scheme, reading)
        except CorpusError as error:
            reading.report(error)
            continue
        number += 1
        yield Document(
            id=str(number),
            text=text,
            words=words,
            spans=spans,
            meta={"document": document} if document else {},
            where=Where(str(reading.path), numbers[0], line_per_word=True),
        )


def _spans(
    tags: Sequence[str], words: Words, numbers: Sequence[int], scheme: str, reading: Reading
) -> tuple[Span, ...]:
    chunks = tagging.decode(tags)
    bad = tagging.irregular(tags, chunks, scheme)
    if bad:
        done = "not counted" if reading.options.strict else "repaired"
        reading.lost.count(f"tag against {scheme} {done}", len(bad), Where(str(reading.path), numbers[bad[0]]))
        if reading.options.strict:
            chunks = tagging.decode_strict(tags, scheme)
    return tuple([Span(words[i][0], words[j - 1][1], label) for i, j, label in chunks])


def _is_docstart(line: str) -> bool:
    return line.startswith(DOCSTART) and (line == DOCSTART or line[len(DOCSTART)].isspace())


def _sentences(reading: Reading) -> Iterator[tuple[int, list[str]]]:
    """Runs of lines that are not blank, with the number of their first line; no lines where a document begins."""
    current: list[str] = []
    first = 1
    for block in read_blocks(reading.path, reading.options.encoding, seen=reading.seen):
        lines, at = block.lines, 0
        breaks = [
            i for i, line in enumerate(lines) if not line or line.isspace() or (line[0] == "-" and _is_docstart(line))
        ]
        for stop in breaks:
            if current or stop > at:
                yield (first if current else block.first + at), current + lines[at:stop]
                current = []
            if lines[stop].startswith(DOCSTART):
                yield block.first + stop, []
            at = stop + 1
        if not current:
            first = block.first + at
        current += lines[at:]
        if len(current) > MAX_SENTENCE:
            raise reading.error(f"no blank line ends this sentence of more than {MAX_SENTENCE:,} words", first)
    if current:
        yield first, current


def _rows(lines: list[str], first: int, layout: Layout, reading: Reading) -> tuple[list[list[str]], Sequence[int]]:
    """The cells of each word's line, and the lines' numbers."""
    rows = layout.split(lines)
    plain = not lines[0].startswith("# ") and set(map(len, rows)) == {layout.width}
    if plain and "" not in map(itemgetter(layout.token), rows):
        return rows, range(first, first + len(rows))
    good, numbers = [], []
    for number, (row, line) in enumerate(zip(rows, lines, strict=True), first):
        if _is_comment(line, row, layout):
            reading.lost.count("comment not kept")
            continue
        if len(row) != layout.width:
            separator = "tabs" if layout.separator == "\t" else repr(layout.separator)
            raise reading.error(
                f"this line has {len(row)} columns where the file has {layout.width} (separated by {separator})", number
            )
        if not row[layout.token]:
            raise reading.error("the word in this line is empty", number)
        good.append(row)
        numbers.append(number)
    return good, numbers


def _is_comment(line: str, row: list[str], layout: Layout) -> bool:
    """A hash begins a comment only if it does not begin a word: tweets are full of words that do."""
    if not line.startswith("#"):
        return False
    if len(row) != layout.width:
        return " " in line or "=" in line or line == "#"
    return (
        line.startswith("# ") and layout.scheme is not None and not layout.bare and not tagging.is_tag(row[layout.tag])
    )


def _check_tags(tags: Sequence[str], numbers: Sequence[int], reading: Reading) -> None:
    for line, tag in zip(numbers, tags, strict=True):
        if not tagging.is_tag(tag):
            raise reading.error(f"{tag!r} is not a tag (O, or a letter of BIESLUM, a hyphen and a label)", line)


def _layout(reading: Reading) -> Layout:
    """Look at the beginning of the file."""
    options = reading.options
    beginning = (line for block in read_blocks(reading.path, options.encoding) for line in block.lines)
    lines = [line for line in islice(beginning, _SAMPLE) if not _is_docstart(line)]
    sample = [line for line in lines if line.strip()]
    plain = [line for line in sample if not line.startswith("#")] or sample
    separator = options.separator or _separator(plain, options.tag_column)
    guess = Layout(separator, 0, 0, 0, None, False)
    width = Counter(map(len, guess.split(plain))).most_common(1)[0][0] if plain else 1
    places = []
    for name, column in (("word", options.token_column), ("tag", options.tag_column)):
        if not -width <= column < width:
            raise reading.error(f"there is no column {column} for the {name}: this file has {width}")
        places.append(column % width)
    token, tag = places
    reading.lost.count("column not read", max(width - 2, 0))
    if token == tag:
        return Layout(separator, width, token, tag, None, False)
    seen: list[list[str]] = [[]]
    for line, row in zip(lines, guess.split(lines), strict=True):
        if len(row) == width and line.strip():
            seen[-1].append(row[tag])
        elif not line.strip():
            seen.append([])
    labels = {tag for tags in seen for tag in tags} - {"O"}
    bare = bool(labels) and not any(map(tagging.is_tag, labels))
    usable = [tags for tags in seen if all(map(tagging.is_tag, tags))]
    scheme = options.scheme or ("IO" if bare else tagging.guess_scheme(usable))
    return Layout(separator, width, token, tag, scheme, bare)


def _separator(lines: list[str], tag_column: int) -> str:
    """What separates columns: what leaves a tag at its place in most lines; if nothing does, tabs if there are any."""
    for separator in ("\t", " ", ",", ";", "|"):
        rows = Layout(separator, 0, 0, 0, None, False).split(lines)
        good = [row for row in rows if len(row) > 1 and -len(row) <= tag_column < len(row)]
        if 2 * sum(tagging.is_tag(row[tag_column]) for row in good) > len(lines):
            return separator
    return "\t" if 2 * sum("\t" in line for line in lines) > len(lines) else " "


def write_conll(docs: Iterable[Document], path: Path, lost: Lost, scheme: str = "IOB2") -> None:
    """`word<TAB>tag`, as every tool of the field reads it. Only words and flat spans can be expressed."""
    document = 0
    number = 0
    with atomic_write(path) as stream:
        for doc in docs:
            tokens, tags = tagged(doc, lost, scheme)
            if not tokens:
                lost.count("document without words")
                continue
            number += 1
            meta = dict(doc.meta)
            if meta.get("document") == document + 1:
                document += 1
                stream.write(f"{DOCSTART}\tO\n\n".encode())
            if meta.get("document") == document:
                meta.pop("document", None)
            lost.count("meta not written", bool(meta))
            lost.count("id not written", doc.id != str(number))
            lost.count("text: other white space than the words' own", join_words(tokens)[0] != doc.text)
            rows = [f"{token}\t{tag}\n" for token, tag in zip(tokens, tags, strict=True)]
            stream.write(("".join(rows) + "\n").encode())


def tagged(doc: Document, lost: Lost, scheme: str) -> tuple[list[str], list[str]]:
    """A document as words and tags, and what that cannot express."""
    tokens = [doc.text[start:end] for start, end in words_of(doc)]
    for i, token in enumerate(tokens):
        if any(mark in token for mark in "\t\n") or (i == 0 and (token == DOCSTART or token[0] == "\ufeff")):
            lost.count("word changed: it would break its line")
            tokens[i] = (
                token.replace("\t", " ").replace("\n", " ").replace(DOCSTART, "DOCSTART").replace("\ufeff", "\u2060")
            )
    spans = [span for _, _, span in to_words(doc, doc.spans, lost)]
    for span in spans:
        if any(mark in span.label for mark in "\t\n\r"):
            lost.span(doc, span, "label would break its line")
    spans = flatten(doc, [span for span in spans if not any(mark in span.label for mark in "\t\n\r")], lost)
    chunks = [tagging.Chunk(first, last, span.label) for first, last, span in to_words(doc, spans, lost)]
    for left, right in pairwise(chunks):
        if scheme == "IO" and left.end == right.start and left.label == right.label:
            lost.count("spans that touch become one in IO")
    lost.count("score not written", sum(span.score is not None for span in spans))
    lost.count("source not written", sum(span.source is not None for span in spans))
    lost.count("rejected span not written", len(doc.rejected))
    lost.count("unsure span not written", len(doc.unsure))
    lost.count("complete or not: not written", doc.complete is not None)
    return tokens, tagging.encode(chunks, len(tokens), scheme)
