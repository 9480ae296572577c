"""Wikidata's JSON dump: an array with one entity per line, compressed or not. Labels and aliases by class (P31)."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from lacuner.annotate.knowledge.concepts import ALIAS, LABEL, Concept, KnowledgeFile, Name, find_wanted_above

_ITEM = re.compile(r'"(?:Q|numeric-id": *)([0-9]{1,12})')
"""The number of an item that a line mentions; old dumps have only the number."""
INSTANCE_OF, SUBCLASS_OF = "P31", "P279"


def read_wikidata(file: KnowledgeFile) -> Iterator[Concept]:
    """The items of a dump, each with its classes and, if `file.subclasses` is set, the wanted classes above them.

    If classes are wanted, lines that mention neither them nor their subclasses are skipped before they are parsed.

    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "dump.json"
    >>> _ = file.write_text('[\\n{"id": "Q1", "labels": {"en": {"language": "en", "value": "Oslo"}}}\\n]\\n')
    >>> [(concept.id, concept.names) for concept in read_wikidata(KnowledgeFile(file))]
    [('Q1', [Name(surface='Oslo', kind='label', language='en')])]
    """
    above = _wanted_above(file) if file.subclasses else {name: {name} for name in file.wanted}
    numbers = {name.removeprefix("Q") for name in above}
    for number, line in _entity_lines(file):
        if above and line.startswith("{") and numbers.isdisjoint(_ITEM.findall(line)):
            file.skip("of another class")
            continue
        entity = _parse(line)
        if entity is None:
            file.skip("this line is not an entity of a Wikidata dump", number)
        elif entity.get("type", "item") != "item":
            file.skip("a property or lexeme, not an item")
        else:
            classes = _items(entity.get("claims"), INSTANCE_OF)
            classes = classes.union(*[above.get(name, ()) for name in classes])
            yield Concept(entity["id"], list(_names(entity)), classes)


def _entity_lines(file: KnowledgeFile) -> Iterator[tuple[int, str]]:
    for number, line in file.lines():
        line = line.strip().removesuffix(",")
        if line not in ("", "[", "]"):
            yield number, line


def _parse(line: str) -> dict[str, Any] | None:
    """An entity, or None if this is something else."""
    try:
        entity = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entity if isinstance(entity, dict) and isinstance(entity.get("id"), str) else None


def _wanted_above(file: KnowledgeFile) -> dict[str, set[str]]:
    """The wanted classes that each of them and each class below them belongs to; this is a first pass over the file."""
    children: dict[str, list[str]] = {}
    for _, line in _entity_lines(file):
        entity = _parse(line) if f'"{SUBCLASS_OF}"' in line else None
        if entity is not None:
            for parent in _items(entity.get("claims"), SUBCLASS_OF):
                children.setdefault(parent, []).append(entity["id"])
    return find_wanted_above(file.wanted, children)


def _names(entity: Mapping[str, Any]) -> Iterator[Name]:
    for key, kind in (("labels", LABEL), ("aliases", ALIAS)):
        by_language = entity.get(key)
        if not isinstance(by_language, Mapping):  # an empty object is written as an empty list
            continue
        for values in by_language.values():
            for value in values if isinstance(values, list) else [values]:
                if isinstance(value, Mapping) and isinstance(value.get("value"), str):
                    yield Name(value["value"], kind, str(value.get("language", "")))


def _items(claims: object, property: str) -> set[str]:
    """The items that a property of an entity names, except for deprecated statements."""
    statements = claims.get(property) if isinstance(claims, Mapping) else None
    items = set()
    for statement in statements if isinstance(statements, list) else []:
        value: Any = statement
        for key in ("mainsnak", "datavalue", "value"):
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, Mapping) and statement.get("rank") != "deprecated":
            id = value.get("id") or f"Q{value.get('numeric-id')}"  # old dumps have only the number
            items.add(str(id))
    return items
