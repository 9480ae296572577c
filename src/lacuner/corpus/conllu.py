"""CoNLL-U: ten columns, with tags under `NER=` in the last one (MISC); each sentence is a document.

A multi-word token (`1-2`) is one word, because it is what the text contains. Empty nodes (`1.1`) are not in the text.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from lacuner.corpus import tags as tagging
from lacuner.corpus.conll import spans_of_tags, to_tags
from lacuner.corpus.reader import CorpusFile
from lacuner.corpus.records import Record, read_documents
from lacuner.corpus.streams import open_output
from lacuner.corpus.words import find_words, split_words, words_of
from lacuner.data import Document, Lost, Words
from lacuner.errors import CorpusError

_ID = re.compile(r"\d+(?:([-.])(\d+))?")
_OTHER_KEYS = {"Entity", "Entities", "Ner", "ner", "NE", "Name"}
"""Keys of MISC under which others write entities, such as the brackets of CorefUD."""


class _Word(NamedTuple):
    form: str
    tag: str
    space_after: bool


def is_conllu(file: CorpusFile) -> bool:
    """Whether lines have ten columns, the first a number, and some have a tag in the last."""
    if file.path.is_dir():
        return False
    rows = [line.split("\t") for line in file.head_lines()[:2000] if line and not line.startswith("#")]
    return (
        bool(rows)
        and all(len(row) == 10 and _ID.fullmatch(row[0]) for row in rows)
        and any("NER=" in row[9] for row in rows)
    )


def read_conllu(file: CorpusFile) -> Iterator[Document]:
    """Sentences as documents."""
    records = (Record(number, *block) for number, block in enumerate(file.read_paragraphs(), 1))
    return read_documents(file, records, _document, offsets="characters")


def _document(lines: list[str], number: int, file: CorpusFile) -> Document:
    comments = dict(_comment(line) for line in lines if line.startswith("#"))
    tokens = list(_words([line for line in lines if not line.startswith("#")], file))
    text, words = _text(tokens, comments.get("text"))
    spans = spans_of_tags([token.tag for token in tokens], words, file.options.scheme)
    meta = {key.replace("newdoc id", "document"): comments[key] for key in comments if key not in ("text", "sent_id")}
    return Document(comments.get("sent_id") or file.number_id(number), text, words, spans, meta=meta)


def _comment(line: str) -> tuple[str, str]:
    key, _, value = line[1:].partition("=")
    return key.strip(), value.removeprefix(" ")


def _words(lines: list[str], file: CorpusFile) -> Iterator[_Word]:
    """Words of the text: multi-word tokens instead of their parts, and no empty nodes."""
    inside = 0  # the last part of the current multi-word token
    for line in lines:
        row = line.split("\t")
        match = _ID.fullmatch(row[0]) if len(row[0]) < 20 else None
        if len(row) != 10 or match is None:
            raise CorpusError(f"a line of CoNLL-U has ten columns, the first a number: {line[:60]!r}")
        if not row[1]:
            raise CorpusError("a word is empty")
        if match[1] == ".":
            file.lost.count("empty node not read")
            continue
        start = int(re.split("[-.]", row[0])[0])
        if match[1] is None and start <= inside:
            continue
        inside = int(match[2]) if match[1] == "-" else 0
        misc = dict(part.partition("=")[::2] for part in row[9].split("|"))
        for key in misc.keys() & _OTHER_KEYS:
            file.lost.count(f"{key} in MISC not read: only NER is")
        if tagging.is_tag(row[9]):
            file.lost.count(
                "tag without NER= in MISC not read: --format conll --token-column 1 reads it", row[9] != "O"
            )
        yield _Word(row[1], misc.get("NER") or "O", misc.get("SpaceAfter") != "No")


def _text(tokens: list[_Word], text: str | None) -> tuple[str, Words]:
    if text is not None:
        return text, find_words(text, [token.form for token in tokens])
    words: list[tuple[int, int]] = []
    text = ""
    for token in tokens:
        words.append((len(text), len(text) + len(token.form)))
        text += token.form + " " * token.space_after
    return text.removesuffix(" "), tuple(words)


def write_conllu(docs: Iterable[Document], path: Path, lost: Lost, scheme: str = "IOB2") -> None:
    """Write `# sent_id`, `# text` and one line per word, with its tag in MISC."""
    with open_output(path) as stream:
        for doc in docs:
            if not words_of(doc):
                lost.count("document without text")
                continue
            stream.write(_sentence(doc, lost, scheme).encode())


def _sentence(doc: Document, lost: Lost, scheme: str) -> str:
    doc = _without_lines(doc, lost)
    words = words_of(doc)
    _, tags = to_tags(doc, lost, scheme)
    lost.count("meta not written", bool(doc.meta))
    lines = [f"# text = {doc.text}"]
    if re.search(r"\s", doc.id) is None:
        lines.insert(0, f"# sent_id = {doc.id}")
    else:
        lost.count("id not written: it has white space")
    for number, ((start, end), tag) in enumerate(zip(words, tags, strict=True), 1):
        misc = [] if tag == "O" else [f"NER={tag}"]
        misc += ["SpaceAfter=No"] if end < len(doc.text) and not doc.text[end].isspace() else []
        lines.append("\t".join([str(number), doc.text[start:end], *["_"] * 7, "|".join(misc) or "_"]))
    return "\n".join(lines) + "\n\n"


def _without_lines(doc: Document, lost: Lost) -> Document:
    """A document that fits into lines and columns: without line breaks, and with words that cover its text."""
    text = doc.text.replace("\n", " ").replace("\r", " ")
    lost.count("text: line break became a space", text != doc.text)
    words = words_of(doc)
    surfaces = [text[start:end] for start, end in words]
    if text != doc.text or "".join(surfaces) != "".join(text.split()) or any("\t" in word for word in surfaces):
        lost.count("words not written: they leave out text or contain white space", words != split_words(text))
        words = split_words(text)
    spans = []
    for span in doc.spans:
        if "|" in span.label:
            lost.span(doc, span, "label would break its column")
        else:
            spans.append(span)
    return Document(doc.id, text, words, tuple(spans), doc.rejected, doc.unsure, doc.complete, doc.meta)
