"""Dictionaries in JSON: a row a line, spaCy's patterns, terms by document, results of SPARQL queries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from lacuner.annotate.gazetteer.entries import Collector
from lacuner.annotate.gazetteer.tables import add_item, lines, split_aliases
from lacuner.errors import GazetteerError

_SURFACE = ("surface", "term", "pattern", "text", "name", "phrase", "mention")
_LABEL = ("label", "type", "class", "category", "tag")
_WEIGHT = ("weight", "score", "confidence")
_ID = ("id", "item", "uri", "kb_id")
_ALIAS = ("itemAltLabel", "altLabel", "alias", "aliases")
_TOKEN_KEYS = ("LOWER", "ORTH", "TEXT")


class _BadRowError(Exception):
    """A row has a mistake; the argument is the sentence."""


def read_json_lines(text: str, collector: Collector) -> None:
    """An object a line."""
    for number, line in enumerate(lines(text), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            problem = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"
            collector.problem(number, f"this line is not JSON ({problem})")
            continue
        _add(number, row, collector)


def read_json(text: str, collector: Collector) -> None:
    """The results of a SPARQL query, in the standard's form or as a list of flat objects."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        file = collector.dictionary.file
        raise GazetteerError(f"this is not JSON ({error.msg})", file=file, line=error.lineno) from error
    except RecursionError as error:
        raise GazetteerError("this JSON is nested too deeply", file=collector.dictionary.file) from error
    if isinstance(content, Mapping):
        results = content.get("results")
        content = results.get("bindings") if isinstance(results, Mapping) else None
    if not isinstance(content, list):
        raise GazetteerError("this is neither a list nor the result of a SPARQL query", file=collector.dictionary.file)
    for number, row in enumerate(content, 1):
        collector.place = f"row {number:,}: "
        _add(0, row, collector)


def _add(line: int, row: object, collector: Collector) -> None:
    try:
        if isinstance(row, list):
            row = dict(zip(("surface", "label", "weight"), row, strict=False))
        if not isinstance(row, Mapping):
            raise _BadRowError("this row is neither an object nor a list")
        row = {key: value["value"] if _is_binding(value) else value for key, value in row.items()}
        if "terms" in row:
            _add_document(line, row, collector)
        elif "item" in row and not any(key in row for key in ("surface", "term", "pattern")):
            label, kind = (_text(row, names) for names in (("itemLabel", "label"), ("class", "classLabel")))
            column = next((name for name in _ALIAS if row.get(name) is not None), "")
            aliases = split_aliases(column, _text(row, (column,)))
            add_item(line, _text(row, ("item",)), label, aliases, kind, collector)
        else:
            surface = _pattern(row["pattern"]) if "pattern" in row else _text(row, _SURFACE, needed="surface")
            collector.add(line, surface, _text(row, _LABEL), _weight(row), _text(row, _ID) or None)
    except _BadRowError as error:
        collector.problem(line, str(error))


def _is_binding(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("value"), str)


def _text(row: Mapping[str, Any], names: tuple[str, ...], needed: str = "") -> str:
    for name in names:
        value = row.get(name)
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            return str(value)
        if value is not None:
            raise _BadRowError(f"{name!r} is not text")
    if needed:
        raise _BadRowError(f"this row has no {needed}")
    return ""


def _weight(row: Mapping[str, Any]) -> str | float | None:
    value = next((row[name] for name in _WEIGHT if row.get(name) is not None), None)
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float, str))):
        raise _BadRowError("the weight is not a number")
    return value


def _pattern(pattern: object) -> str:
    """The plain string of a spaCy pattern."""
    if isinstance(pattern, str):
        return pattern
    if not isinstance(pattern, list) or not pattern:
        raise _BadRowError("the pattern is neither text nor a list of tokens")
    words = []
    for token in pattern:
        if not isinstance(token, Mapping) or len(token) != 1:
            raise _BadRowError("a pattern with more than the text of its tokens cannot be an entry")
        key, value = next(iter(token.items()))
        if str(key).upper() not in _TOKEN_KEYS or not isinstance(value, str):
            raise _BadRowError(f"a pattern with {key} cannot be an entry: only plain LOWER, ORTH and TEXT can")
        words.append(value)
    return _join(words)


def _join(words: list[str]) -> str:
    """Put tokens together as they would be written: no space around hyphens and slashes, none before `'s`."""
    text = words[0]
    for before, word in pairwise(words):
        tight = before in ("-", "/", "(") or word in ("-", "/", ")", ",", ".") or word.startswith(("'", "\u2019"))
        text += word if tight else f" {word}"
    return text


def _add_document(line: int, row: Mapping[str, Any], collector: Collector) -> None:
    """The terms of one document: each a pair of surface and label, or an object."""
    if not isinstance(row["terms"], list):
        raise _BadRowError("the terms of a document are a list")
    id = _text(row, ("id",))
    if not id:
        raise _BadRowError("these terms have no id of a document beside them")
    terms = collector.dictionary.by_document.setdefault(id, [])
    for term in row["terms"]:
        if isinstance(term, str):
            term = [term, ""]
        if isinstance(term, list):
            term = dict(zip(("surface", "label", "weight"), term, strict=False))
        if not isinstance(term, Mapping):
            raise _BadRowError("a term is neither a pair nor an object")
        surface = _text(term, _SURFACE, needed="surface")
        entry = collector.checked(line, surface, _text(term, _LABEL), _weight(term), _text(term, _ID) or None)
        if entry is not None:
            terms.append(entry)
