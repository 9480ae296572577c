"""JSON lines: our own lossless form, and the tokens-and-tags form that other tools write.

Our form has `{"id", "text", "words", "spans", "rejected", "unsure", "complete", "meta"}`, with character offsets; only
`text` is required. The other form has `tokens` and either `tags` (or `ner_tags`) or `spans` over token numbers,
`{"start", "end", "label"}`, half-open. In both, `entities` or `label` (doccano) may stand for `spans`. Unknown keys
are kept in `meta`.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lacuner.corpus.conll import spans_of_tags, to_tags
from lacuner.corpus.json_rows import count_unread, get, json_reader, new_id, new_score, show, text_key, to_json
from lacuner.corpus.reader import CorpusFile, ReadOptions
from lacuner.corpus.streams import open_output
from lacuner.corpus.words import find_words, join_words
from lacuner.data import Document, Lost, Span, Words
from lacuner.errors import CorpusError

_KEYS = ("id", "text", "words", "spans", "rejected", "unsure", "complete", "meta")
ENDINGS = (".jsonl", ".ndjson")
TAG_KEYS = ("tags", "ner_tags")
_SPAN_KEYS = ("spans", "entities", "label", "labels")
"""Keys for spans: ours, and those of other tools."""
_FOREIGN = {"answer": "prodigy", "annotations": "labelstudio", "annotation": "argilla", "prediction": "argilla"}
"""Keys that change the meaning of a row, and the format that may read them."""
_OTHER_FORMS = {
    "paragraphs": "this is the training file of spaCy 2: `spacy convert` makes a .spacy file of it, which is read",
    "annotations": "these are annotations of an old doccano, which have numbers as labels: export JSONL (Text-Labels)",
}
"""What to do about rows that no format reads, by the key that shows what they are."""


def is_jsonl(row: Any, options: ReadOptions) -> bool:
    """Whether a row has a text or words."""
    return isinstance(row, dict) and any(key in row for key in (options.text_field or "text", "tokens"))


def document_from_row(row: dict[str, Any], number: int, file: CorpusFile) -> Document:
    """A document from a row in either form."""
    _refuse_other_forms(row)
    text_name = text_key(file)
    token_name = text_name if file.options.text_field and isinstance(row.get(text_name), list) else "tokens"
    tokens = get(row, token_name, list, None)
    text = None if token_name == text_name else get(row, text_name, str, None)
    words: Words | None = None
    offsets_are_tokens = text is None
    if tokens is not None:
        if not all(isinstance(token, str) and token for token in tokens):
            raise CorpusError(f"`{token_name}` must be a list of words, none of them empty")
        if text is None:
            text, words = join_words(tokens)
        else:
            words = find_words(text, tokens)
    elif text is None:
        raise CorpusError(
            f"there is neither `{text_name}` nor `tokens` in this line: name the key of the text, or of the words, "
            "with --text-field"
        )
    if "words" in row and token_name != "words":
        words = _words(row["words"], text)
    id_ = new_id(row.get("id"), file.number_id(number))
    doc = Document(id_, text, words, complete=get(row, "complete", bool, None))
    tag_key = _tag_key(row, file.options)
    span_key = next((key for key in _SPAN_KEYS if isinstance(row.get(key), list) and key != tag_key), "spans")
    if words is not None and _has_value_per_word(row.get(span_key), words):
        raise CorpusError(f"`{span_key}` has one value per word: if they are tags, give --tag-field {span_key}")
    for state in ("spans", "rejected", "unsure"):
        key = span_key if state == "spans" else state
        spans = tuple([_span(entry, key, state == "spans") for entry in get(row, key, list, [])])
        if offsets_are_tokens and words is not None:
            spans = tuple([_from_words(span, words) for span in spans])
        setattr(doc, state, spans)
    if words is None and file.options.tag_field is not None:
        raise CorpusError(f"`{tag_key}` has tags of words, but there are no words: name their key with --text-field")
    known = {*_KEYS, text_name, "tokens", span_key}
    if tag_key is not None and words is not None:
        doc.spans += _read_tags(get(row, tag_key, list, []), words, file.options)
        known.add(tag_key)
    doc.meta = get(row, "meta", dict, {})
    if not row.keys() <= known:
        others = count_unread(row, known, file.lost)
        doc.meta = {**doc.meta, **others}
        if words is not None and tag_key is None and not doc.spans:
            for key in [key for key, value in others.items() if _has_value_per_word(value, words)]:
                file.lost.count(f"`{key[:40]}` has one value per word, and is not read: --tag-field reads tags")
        if doc.spans and isinstance(row.get("answer"), str):  # Prodigy's are accept, reject and ignore
            file.lost.count("`answer` is none of Prodigy's, and is kept in meta only")
    return doc


read_jsonl = json_reader(document_from_row)


def _refuse_other_forms(row: dict[str, Any]) -> None:
    """Refuse rows of other tools whose annotation would not be read."""
    for key, advice in _OTHER_FORMS.items():
        first = row[key][0] if isinstance(row.get(key), list) and row[key] else None
        if isinstance(first, dict) and ("sentences" in first or "start_offset" in first):
            raise CorpusError(advice)
    for key, name in _FOREIGN.items():
        if isinstance(row.get(key), list | dict) or (
            key == "answer" and row.get(key) in ("accept", "reject", "ignore")
        ):
            raise CorpusError(
                f"there is annotation under `{key}`, which the format jsonl does not read: --format {name} may"
            )


def _tag_key(row: dict[str, Any], options: ReadOptions) -> str | None:
    if options.tag_field is not None and options.tag_field not in row:
        raise CorpusError(f"there is no `{options.tag_field}` in this line: check --tag-field")
    return options.tag_field or next((key for key in TAG_KEYS if key in row), None)


def _has_value_per_word(value: Any, words: Words) -> bool:
    """Whether a value is a list with one number or one string per word, as tags are."""
    if not isinstance(value, list) or not value or len(value) != len(words):
        return False
    return all(type(item) is int for item in value) or all(isinstance(item, str) for item in value)


def _words(value: Any, text: str) -> Words | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(
        isinstance(pair, list) and len(pair) == 2 and all(type(edge) is int for edge in pair) for pair in value
    ):
        raise CorpusError("`words` must be a list of [start, end] pairs")
    position = 0
    for start, end in value:
        if not position <= start < end <= len(text):
            raise CorpusError(f"the word {start}-{end} is empty, out of order or outside the text")
        position = end
    return tuple([(start, end) for start, end in value])


def _span(entry: Any, key: str, needs_label: bool) -> Span:
    if isinstance(entry, list) and len(entry) == 3:
        entry = dict(zip(("start", "end", "label"), entry, strict=True))
    if not isinstance(entry, dict) or type(entry.get("start")) is not int or type(entry.get("end")) is not int:
        if isinstance(entry, str):
            raise CorpusError(f"`{key}` has labels of the whole text, not of spans: {show(entry)}")
        raise CorpusError(f"an entry of `{key}` must have whole numbers `start` and `end`: {show(entry)}")
    place = f"{entry['start']}-{entry['end']}"
    label = entry.get("label", entry.get("type", ""))
    if not isinstance(label, str) or (needs_label and not label):
        raise CorpusError(f"the entry {place} of `{key}` needs a `label`")
    source = entry.get("source")
    if source is not None and not isinstance(source, str):
        raise CorpusError(f"the source of {place} must be a string")
    return Span(entry["start"], entry["end"], label, new_score(entry.get("score"), place), source)


def _from_words(span: Span, words: Words) -> Span:
    if not 0 <= span.start < span.end <= len(words):
        raise CorpusError(f"the span of tokens {span.start}-{span.end} is empty or outside the {len(words)} tokens")
    return span._replace(start=words[span.start][0], end=words[span.end - 1][1])


def _read_tags(tags: list[Any], words: Words, options: ReadOptions) -> tuple[Span, ...]:
    """The spans of a row's tags, which are strings, or integers that `options.label_names` names."""
    if len(tags) != len(words):
        raise CorpusError(f"there are {len(tags)} tags for {len(words)} tokens")
    if any(type(tag) is int for tag in tags):
        tags = [_tag_name(tag, options.label_names) for tag in tags]
    if not all(isinstance(tag, str) for tag in tags):
        raise CorpusError("tags must be strings such as B-PER, or integers")
    return spans_of_tags(tags, words, options.scheme)


def _tag_name(number: Any, names: tuple[str, ...]) -> str:
    if not names:
        raise CorpusError(
            "the tags are numbers, which have no meaning without their names: give --label-names O,B-PER,..."
        )
    if type(number) is not int or not 0 <= number < len(names):
        raise CorpusError(f"there is a tag {show(number)}, but --label-names has {len(names)} names, from 0")
    return names[number]


def write_jsonl(docs: Iterable[Document], path: Path, lost: Lost, scheme: str = "IOB2") -> None:
    """Write our own form, which loses nothing."""
    with open_output(path) as stream:
        for doc in docs:
            stream.write(as_line(doc).encode())


def as_entry(span: Span) -> dict[str, Any]:
    """A span in our own form; what it does not have is left out."""
    start, end, label, score, source = span
    entry: dict[str, Any] = {"start": start, "end": end, "label": label}
    if score is not None:
        entry["score"] = score
    if source is not None:
        entry["source"] = source
    return entry


def as_line(doc: Document) -> str:
    """A document in our own form, as one line."""
    row: dict[str, Any] = {"id": doc.id, "text": doc.text}
    if doc.words is not None:
        row["words"] = doc.words
    for state in ("spans", "rejected", "unsure"):
        spans = getattr(doc, state)
        if spans or state == "spans":
            row[state] = [as_entry(span) for span in spans]
    if doc.complete is not None:
        row["complete"] = doc.complete
    if doc.meta:
        row["meta"] = doc.meta
    return to_json(row) + "\n"


def document_from_line(line: bytes) -> Document:
    """The document of a line that `as_line` wrote. The line is not checked: for files of other people see `read_jsonl`.

    >>> doc = Document("1", "Mara left", words=((0, 4), (5, 9)), spans=(Span(0, 4, "PER"),))
    >>> document_from_line(as_line(doc).encode()) == doc
    True
    """
    row = json.loads(line)
    words = row.get("words")
    spans, rejected, unsure = (
        tuple([Span(**entry) for entry in row.get(state, ())]) for state in ("spans", "rejected", "unsure")
    )
    return Document(
        row["id"],
        row["text"],
        None if words is None else tuple([(start, end) for start, end in words]),
        spans,
        rejected,
        unsure,
        row.get("complete"),
        row.get("meta", {}),
    )


def write_tokens(docs: Iterable[Document], path: Path, lost: Lost, scheme: str = "IOB2") -> None:
    """Write `tokens` and `ner_tags`; `text` only if the tokens do not determine it."""
    with open_output(path) as stream:
        for doc in docs:
            tokens, tags = to_tags(doc, lost, scheme)
            row: dict[str, Any] = {"id": doc.id, "tokens": tokens, "ner_tags": tags}
            if join_words(tokens)[0] != doc.text:
                row["text"] = doc.text
            if doc.meta:
                row["meta"] = doc.meta
            stream.write((to_json(row) + "\n").encode())
