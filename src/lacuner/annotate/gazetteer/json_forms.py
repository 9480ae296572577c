"""Gazetteers in JSON: one object per line, spaCy patterns, terms per document, SPARQL results, our own files."""

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from lacuner.annotate.gazetteer.entries import GazetteerBuilder
from lacuner.annotate.gazetteer.tables import add_item, split_aliases
from lacuner.errors import GazetteerError

_SURFACE = ("surface", "term", "pattern", "text", "name", "phrase", "mention")
_LABEL = ("label", "type", "class", "category", "tag")
_WEIGHT = ("weight", "score", "confidence")
_ID = ("id", "item", "uri", "kb_id")
_ALIAS = ("itemAltLabel", "altLabel", "alias", "aliases")
_TOKEN_KEYS = ("LOWER", "ORTH", "TEXT")


class _RowError(Exception):
    """A row cannot be used; the argument is the problem."""


def read_json_lines(text: str, builder: GazetteerBuilder) -> None:
    """Read one JSON object per line."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            builder.add_problem(number, f"this line is not JSON ({_json_problem(error)})")
            continue
        _add_row(number, row, builder)


def read_json(text: str, builder: GazetteerBuilder) -> None:
    """Read a SPARQL result, in the standard JSON format or as a list of flat objects; or a tagger's gazetteer."""
    file = builder.file
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else None
        raise GazetteerError(f"this is not JSON ({_json_problem(error)})", file=file, line=line) from error
    if isinstance(content, Mapping) and isinstance(content.get("entries"), list):  # written by `annotate`
        others = content.get("others")
        parts = [content, *(others if isinstance(others, list) else ())]
        lists = [part.get("entries") for part in parts if isinstance(part, Mapping)]
        content = [row for rows in lists if isinstance(rows, list) for row in rows]
    elif isinstance(content, Mapping):
        results = content.get("results")
        content = results.get("bindings") if isinstance(results, Mapping) else None
    if not isinstance(content, list):
        raise GazetteerError("this is neither a list nor the result of a SPARQL query", file=file)
    for number, row in enumerate(content, 1):
        builder.row_name = f"row {number:,}: "
        _add_row(0, row, builder)


def _json_problem(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return error.msg
    return "nested too deeply" if isinstance(error, RecursionError) else "a number has too many digits"


def _add_row(line: int, row: object, builder: GazetteerBuilder) -> None:
    try:
        fields = _fields(row, "this row is neither an object nor a list")
        fields = {key: value["value"] if _is_binding(value) else value for key, value in fields.items()}
        if "terms" in fields:
            _add_document(line, fields, builder)
        elif "item" in fields and not any(key in fields for key in ("surface", "term", "pattern")):
            label, kind = (_text(fields, names) for names in (("itemLabel", "label"), ("class", "classLabel")))
            column = next((name for name in _ALIAS if fields.get(name) is not None), "")
            aliases = split_aliases(column, _text(fields, (column,)))
            add_item(line, _text(fields, ("item",)), label, aliases, kind, builder)
        else:
            surface = _pattern_text(fields["pattern"]) if "pattern" in fields else _surface(fields)
            builder.add(line, surface, _text(fields, _LABEL), _weight(fields), _text(fields, _ID) or None)
    except _RowError as error:
        builder.add_problem(line, str(error))


def _fields(row: object, problem: str) -> Mapping[str, Any]:
    """An object as it is, or a list of surface, label and weight as an object."""
    if isinstance(row, list):
        return dict(zip(("surface", "label", "weight"), row, strict=False))
    if not isinstance(row, Mapping):
        raise _RowError(problem)
    return row


def _is_binding(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("value"), str)


def _text(fields: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """The first of the named fields that is there, as text; empty if none is."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            return str(value)
        if value is not None:
            raise _RowError(f"{name!r} is not text")
    return ""


def _surface(fields: Mapping[str, Any]) -> str:
    if all(fields.get(name) is None for name in _SURFACE):
        raise _RowError("this row has no surface")
    return _text(fields, _SURFACE)


def _weight(fields: Mapping[str, Any]) -> str | float | None:
    value = next((fields[name] for name in _WEIGHT if fields.get(name) is not None), None)
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float, str))):
        raise _RowError("the weight is not a number")
    return value


def _pattern_text(pattern: object) -> str:
    """The text that a spaCy pattern matches, if it is only text."""
    if isinstance(pattern, str):
        return pattern
    if not isinstance(pattern, list) or not pattern:
        raise _RowError("the pattern is neither text nor a list of tokens")
    words = []
    for token in pattern:
        if not isinstance(token, Mapping) or len(token) != 1:
            raise _RowError("only patterns of plain tokens, with one key each, can be entries")
        key, value = next(iter(token.items()))
        if str(key).upper() not in _TOKEN_KEYS or not isinstance(value, str):
            raise _RowError(f"a pattern with {key} cannot be an entry: only plain LOWER, ORTH and TEXT can")
        words.append(value)
    return _join_tokens(words)


def _join_tokens(words: list[str]) -> str:
    """Join tokens as they are usually written: no space around hyphens and slashes, none before `'s`."""
    text = words[0]
    for before, word in pairwise(words):
        tight = before in ("-", "/", "(") or word in ("-", "/", ")", ",", ".") or word.startswith(("'", "\u2019"))
        text += word if tight else f" {word}"
    return text


def _add_document(line: int, fields: Mapping[str, Any], builder: GazetteerBuilder) -> None:
    """Add the terms of one document, each a string, a pair of surface and label, or an object."""
    if not isinstance(fields["terms"], list):
        raise _RowError("the terms of a document must be a list")
    id = _text(fields, ("id",))
    if not id:
        raise _RowError("these terms have no document id beside them")
    entries = builder.by_document.setdefault(id, [])
    for item in fields["terms"]:
        term = _fields([item, ""] if isinstance(item, str) else item, "a term is neither a pair nor an object")
        entry = builder.check(line, _surface(term), _text(term, _LABEL), _weight(term), _text(term, _ID) or None)
        if entry is not None:
            entries.append(entry)
