"""Wikidata's JSON dump: an array with one entity per line, compressed or not. Labels and aliases by class (P31)."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from lacuner.annotate.knowledge.concepts import ALIAS, LABEL, Concept, KnowledgeFile, Name


def read_wikidata(file: KnowledgeFile) -> Iterator[Concept]:
    """The items of a dump. If classes are wanted, lines that do not mention one are skipped before they are parsed.

    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "dump.json"
    >>> _ = file.write_text('[\\n{"id": "Q1", "labels": {"en": {"language": "en", "value": "Oslo"}}}\\n]\\n')
    >>> [(concept.id, concept.names) for concept in read_wikidata(KnowledgeFile(file))]
    [('Q1', [Name(surface='Oslo', kind='label', language='en')])]
    """
    mentions = [f'"{name}"' for name in file.wanted]
    for number, line in file.lines():
        line = line.strip().removesuffix(",")
        if line in ("", "[", "]"):
            continue
        if mentions and line.startswith("{") and not any(mention in line for mention in mentions):
            file.skip("of another class")
            continue
        try:
            entity = json.loads(line)
        except (ValueError, RecursionError):
            file.skip("this line is not an entity of a Wikidata dump", number)
            continue
        if not isinstance(entity, Mapping) or not isinstance(entity.get("id"), str):
            file.skip("this line is not an entity of a Wikidata dump", number)
        elif entity.get("type", "item") != "item":
            file.skip("a property or lexeme, not an item")
        else:
            yield Concept(entity["id"], list(_names(entity)), _classes(entity.get("claims")))


def _names(entity: Mapping[str, Any]) -> Iterator[Name]:
    for key, kind in (("labels", LABEL), ("aliases", ALIAS)):
        by_language = entity.get(key)
        if not isinstance(by_language, Mapping):  # an empty object is written as an empty list
            continue
        for values in by_language.values():
            for value in values if isinstance(values, list) else [values]:
                if isinstance(value, Mapping) and isinstance(value.get("value"), str):
                    yield Name(value["value"], kind, str(value.get("language", "")))


def _classes(claims: object) -> set[str]:
    """The classes that an item is an instance of, except for deprecated statements."""
    statements = claims.get("P31") if isinstance(claims, Mapping) else None
    classes = set()
    for statement in statements if isinstance(statements, list) else []:
        value: Any = statement
        for key in ("mainsnak", "datavalue", "value"):
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, Mapping) and statement.get("rank") != "deprecated":
            id = value.get("id") or f"Q{value.get('numeric-id')}"  # old dumps have only the number
            classes.add(str(id))
    return classes
