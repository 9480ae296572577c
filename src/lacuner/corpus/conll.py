"""Column files (CoNLL): one word per line, a blank line between sentences; each sentence is a document.

Separator, number of columns and tag scheme are detected from the beginning of the file, unless the options give them.
`-DOCSTART-` lines number the original documents in `meta["document"]`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from pathlib import Path

from lacuner.corpus import tags as tagging
from lacuner.corpus.reader import CorpusFile, begins_with_word
from lacuner.corpus.streams import open_output
from lacuner.corpus.words import flatten, join_words, split_with_spans
from lacuner.data import Document, Lost, Span, Where, Words
from lacuner.errors import CorpusError

DOCSTART = "-DOCSTART-"
MAX_COLUMNS_LINE = 100_000
"""Characters of a line, which holds one word, at most."""
_SAMPLE_LINES = 5_000


@dataclass(frozen=True)
class Layout:
    """The columns of a file; `scheme` is None without tags, `bare` if tags are labels without a prefix."""

    separator: str
    width: int = 0
    token: int = 0
    tag: int = 0
    scheme: str | None = None
    bare: bool = False

    def split(self, lines: list[str]) -> list[list[str]]:
        if self.separator == " ":
            return [re.split(r"[ \t]+", line.strip(" \t")) for line in lines]
        separator = self.separator
        return [line.split(separator) for line in lines]


def read_conll(file: CorpusFile) -> Iterator[Document]:
    """Sentences as documents, numbered from 1."""
    layout = _detect_layout(file)
    checked_tags = {"O"}
    number, document = 0, 0
    for first_line, lines in file.read_paragraphs(MAX_COLUMNS_LINE, DOCSTART):
        if not lines:
            document += 1
            continue
        try:
            rows, numbers = _rows(lines, first_line, layout, file)
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
                if not used <= checked_tags:
                    _check_tags(tags, numbers, file)
                    checked_tags |= used
                if used != {"O"}:
                    spans = _spans(tags, words, numbers, layout.scheme, file)
        except CorpusError as error:
            file.report(error)
            continue
        number += 1
        meta = {"document": document} if document else {}
        where = Where(str(file.path), numbers[0], line_per_word=True)
        yield Document(id=file.number_id(number), text=text, words=words, spans=spans, meta=meta, where=where)


def spans_of_tags(tags: Sequence[str], words: Words, scheme: str | None) -> tuple[Span, ...]:
    """The spans of the tags of some words; in the scheme IO, tags may be labels without a prefix.

    >>> spans_of_tags(["PER", "O"], ((0, 4), (5, 9)), "IO")
    (Span(start=0, end=4, label='PER', score=None, source=None),)
    """
    if scheme == "IO" and not all(map(tagging.is_tag, tags)):
        tags = [tag if tag == "O" else f"I-{tag}" for tag in tags]
    for tag in tags:
        if not tagging.is_tag(tag):
            raise CorpusError(tagging.not_a_tag(tag))
    return _to_spans(tagging.decode(tags), words)


def _to_spans(chunks: Iterable[tagging.Chunk], words: Words) -> tuple[Span, ...]:
    return tuple([Span(words[i][0], words[j - 1][1], label) for i, j, label in chunks])


def _spans(
    tags: Sequence[str], words: Words, numbers: Sequence[int], scheme: str, file: CorpusFile
) -> tuple[Span, ...]:
    chunks = tagging.decode(tags)
    irregular = tagging.find_irregular(tags, chunks, scheme)
    if irregular:
        action = "not counted" if file.options.strict else "repaired"
        where = Where(str(file.path), numbers[irregular[0]])
        file.lost.count(f"tag against {scheme} {action}", len(irregular), where)
        if file.options.strict:
            chunks = tagging.decode_strict(tags, scheme)
    return _to_spans(chunks, words)


def _rows(lines: list[str], first: int, layout: Layout, file: CorpusFile) -> tuple[list[list[str]], Sequence[int]]:
    """The cells of each word's line, and the numbers of these lines."""
    rows = layout.split(lines)
    regular = not lines[0].startswith("# ") and set(map(len, rows)) == {layout.width}
    if regular and "" not in map(itemgetter(layout.token), rows):
        return rows, range(first, first + len(rows))
    kept, numbers = [], []
    for number, (row, line) in enumerate(zip(rows, lines, strict=True), first):
        if _is_comment(line, row, layout):
            file.lost.count("comment not kept")
            continue
        if len(row) != layout.width:
            raise file.error(
                f"this line has {len(row)} columns where the file has {layout.width} "
                f"(separated by {layout.separator!r}): correct the line, or give --separator",
                number,
            )
        if not row[layout.token]:
            raise file.error("the word in this line is empty: check --token-column", number)
        kept.append(row)
        numbers.append(number)
    return kept, numbers


def _is_comment(line: str, row: list[str], layout: Layout) -> bool:
    """Whether a hash begins a comment and not a word, as in tweets."""
    if not line.startswith("#"):
        return False
    if len(row) != layout.width:
        return " " in line or "=" in line or line == "#"
    has_tags = layout.scheme is not None and not layout.bare
    return line.startswith("# ") and has_tags and not tagging.is_tag(row[layout.tag])


def _check_tags(tags: Sequence[str], numbers: Sequence[int], file: CorpusFile) -> None:
    for line, tag in zip(numbers, tags, strict=True):
        if not tagging.is_tag(tag):
            header = "; if the first line has the names of the columns, delete it" if line == 1 else ""
            raise file.error(tagging.not_a_tag(tag) + header, line)


def _detect_layout(file: CorpusFile) -> Layout:
    """Detect the layout from the beginning of the file, as far as the options leave it open."""
    options = file.options
    lines = [line for line in file.head_lines()[:_SAMPLE_LINES] if not begins_with_word(line, DOCSTART)]
    sample = [line for line in lines if line.strip()]
    no_comments = [line for line in sample if not line.startswith("#")] or sample
    separator = options.separator or _detect_separator(no_comments, options.tag_column)
    split = Layout(separator).split
    width = Counter(map(len, split(no_comments))).most_common(1)[0][0] if no_comments else 1
    for name, column in (("token", options.token_column), ("tag", options.tag_column)):
        if not -width <= column < width:
            raise file.error(f"there is no column {column}: this file has {width}; check --{name}-column")
    token, tag = options.token_column % width, options.tag_column % width
    file.lost.count("column not read", max(width - 2, 0))
    if token == tag:
        return Layout(separator, width, token, tag)
    sentences: list[list[str]] = [[]]
    for line, row in zip(lines, split(lines), strict=True):
        if len(row) == width and line.strip():
            sentences[-1].append(row[tag])
        elif not line.strip():
            sentences.append([])
    labels = {tag for tags in sentences for tag in tags} - {"O"}
    bare = bool(labels) and not any(map(tagging.is_tag, labels))
    if bare and options.scheme is None and options.tag_column == -1:
        _refuse_tags_elsewhere([row for row in split(no_comments) if len(row) == width], token, tag, file)
    usable = [tags for tags in sentences if all(map(tagging.is_tag, tags))]
    scheme = options.scheme or ("IO" if bare else tagging.guess_scheme(usable))
    return Layout(separator, width, token, tag, scheme, bare)


def _refuse_tags_elsewhere(rows: list[list[str]], token: int, tag: int, file: CorpusFile) -> None:
    """Refuse to read bare labels from a column if another one has tags."""
    for number, column in enumerate(zip(*rows, strict=True)):
        tags = sum(map(tagging.is_tag, column))
        if number != tag and 2 * tags > len(column) and any(cell != "O" and tagging.is_tag(cell) for cell in column):
            advice = f"--tag-column {number}" + (f" --token-column {tag}" if number == token else "")
            raise file.error(f"the tags are in column {number}, counted from 0, not in column {tag}: give {advice}")


def has_tags(file: CorpusFile) -> bool:
    """Whether most lines at the beginning end in a tag, and some are not O."""
    lines = [line for line in file.head_lines()[:_SAMPLE_LINES] if line.strip() and not line.startswith("#")]
    last = [re.split(r"[ \t]+", line.strip())[-1] for line in lines if len(line.split()) > 1]
    return 2 * sum(map(tagging.is_tag, last)) > len(lines) and any(tag != "O" and tagging.is_tag(tag) for tag in last)


def _detect_separator(lines: list[str], tag_column: int) -> str:
    """The first separator that puts a tag into the tag column of most lines; otherwise tab if most lines have one."""
    for separator in ("\t", " ", ",", ";", "|"):
        rows = Layout(separator).split(lines)
        usable = [row for row in rows if len(row) > 1 and -len(row) <= tag_column < len(row)]
        if 2 * sum(tagging.is_tag(row[tag_column]) for row in usable) > len(lines):
            return separator
    return "\t" if 2 * sum("\t" in line for line in lines) > len(lines) else " "


def write_conll(docs: Iterable[Document], path: Path, lost: Lost, scheme: str = "IOB2") -> None:
    """Write `word<TAB>tag` lines, which can express words and flat spans only."""
    document = 0
    number = 0
    with open_output(path) as stream:
        for doc in docs:
            tokens, tags = to_tags(doc, lost, scheme)
            if not tokens:
                lost.count("document without words")
                continue
            number += 1
            if doc.meta:
                if doc.meta.get("document") == document + 1:
                    document += 1
                    stream.write(f"{DOCSTART}\tO\n\n".encode())
                lost.count("meta not written", len(doc.meta) > (doc.meta.get("document") == document))
            lost.count("id not written", doc.id != str(number))
            lost.count("text: other white space than the words' own", differs_from_words(doc.text, tokens))
            cells = ["", "\t", "", "\n"] * len(tokens)
            cells[::4], cells[2::4] = tokens, tags  # twice as fast as joining word and tag of each line
            stream.write(("".join(cells) + "\n").encode())


def differs_from_words(text: str, tokens: Sequence[str]) -> bool:
    """Whether a text cannot be restored from its words."""
    return " ".join(tokens) != text if text.isascii() else join_words(tokens)[0] != text


def to_tags(doc: Document, lost: Lost, scheme: str) -> tuple[list[str], list[str]]:
    """A document as words and tags; `lost` records what these cannot express."""
    tokens, spans_in_words = split_with_spans(doc, lost)
    may_break = not doc.text.isprintable() or DOCSTART in doc.text
    for i, token in enumerate(tokens if may_break else ()):
        if "\t" in token or "\n" in token or (i == 0 and (token == DOCSTART or token[0] == "\ufeff")):
            lost.count("word changed: it would break its line")
            token = token.replace("\t", " ").replace("\n", " ").replace(DOCSTART, "DOCSTART")
            tokens[i] = token.replace("\ufeff", "\u2060")
    chunks: list[tuple[int, int, str]] = []
    for first, last, (_, _, label, score, source) in _flat_spans(doc, spans_in_words, lost):
        chunks.append((first, last, label))
        if score is not None:
            lost.count("score not written")
        if source is not None:
            lost.count("source not written")
    for (_, end, label), (start, _, other) in pairwise(chunks) if scheme == "IO" else ():
        if end == start and label == other:
            lost.count("spans that touch become one in IO")
    for state, others in (("rejected", doc.rejected), ("unsure", doc.unsure)):
        for span in others:
            lost.span(doc, span, f"{state} span not written")
    lost.count("complete or not: not written", doc.complete is not None)
    return tokens, tagging.encode(chunks, len(tokens), scheme)


def _flat_spans(doc: Document, spans: list[tuple[int, int, Span]], lost: Lost) -> list[tuple[int, int, Span]]:
    """Those spans, given with their words, that tags can express: without overlaps, and with labels on one line."""
    writable, last_end, overlap = [], 0, False
    for word_span in sorted(spans, key=itemgetter(0)):
        first, last, span = word_span
        label = span[2]
        if not label.isprintable() and any(mark in label for mark in "\t\n\r"):
            lost.span(doc, span, "label would break its line")
            continue
        writable.append(word_span)
        overlap = overlap or first < last_end
        last_end = last
    if not overlap:
        return writable
    places = {span: (first, last) for first, last, span in writable}
    return [(*places[span], span) for span in flatten(doc, [span for *_, span in writable], lost)]
