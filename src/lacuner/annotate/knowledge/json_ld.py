"""SKOS thesauri and other concepts in JSON-LD: an array of nodes, a `@graph`, or one node after the other."""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from lacuner.annotate.gazetteer.entries import last_segment
from lacuner.annotate.knowledge.concepts import ALIAS, LABEL, Concept, KnowledgeFile, Name, add_ancestors
from lacuner.annotate.knowledge.rdf_xml import NAMES, PARENTS, short_id
from lacuner.corpus.json_stream import read_array

_NAMES = {**NAMES, "name": LABEL, "alternateName": ALIAS}
_CLASSES = ("@type", "type", "inScheme")


def read_json_ld(file: KnowledgeFile) -> Iterator[Concept]:
    """The nodes of a graph that have a name; with wanted classes, their ancestors are classes, too.

    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "thesaurus.jsonld"
    >>> _ = file.write_text('{"@id": "ex:1", "skos:prefLabel": {"@value": "pear", "@language": "en"}}')
    >>> [concept.names[0].surface for concept in read_json_ld(KnowledgeFile(file))]
    ['pear']
    """
    return add_ancestors(_read_nodes, file) if file.wanted else _read_nodes(file)


def _read_nodes(file: KnowledgeFile) -> Iterator[Concept]:
    source = file.open()
    for row in read_array(source, source.read_pieces(), ("@graph",)):
        for node in _nodes(row.value):
            id = node.get("@id", node.get("id"))
            names = [name for key, value in node.items() if _local(key) in _NAMES for name in _literals(key, value)]
            parents = tuple(short_id(parent) for parent in _references(node, PARENTS))
            if isinstance(id, str) and (names or parents):
                yield Concept(short_id(id), names, {short_id(name) for name in _references(node, _CLASSES)}, parents)
            elif names:
                file.skip("a node without @id", row.line)


def _nodes(content: object) -> Iterator[Mapping[str, Any]]:
    """All nodes, also those inside other nodes, without recursion."""
    queue = deque([content])
    while queue:
        item = queue.popleft()
        if isinstance(item, list):
            queue.extendleft(reversed(item))
        elif isinstance(item, Mapping):
            if "@value" not in item:
                yield item
            queue += [value for key, value in item.items() if key not in ("@context", "@value")]


def _local(key: str) -> str:
    return last_segment(key).rpartition(":")[2]


def _literals(key: str, value: object) -> Iterator[Name]:
    """The strings of a property: plain, with a language, or in a map from languages to strings."""
    kind = _NAMES[_local(key)]
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str):
            yield Name(item, kind)
        elif isinstance(item, Mapping) and "@value" in item:
            if isinstance(item["@value"], str):
                yield Name(item["@value"], kind, str(item.get("@language", "")))
        elif isinstance(item, Mapping) and "@id" not in item:
            for language, texts in item.items():
                for text in texts if isinstance(texts, list) else [texts]:
                    if isinstance(text, str):
                        yield Name(text, kind, "" if language == "@none" else language)


def _references(node: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[str]:
    for key, value in node.items():
        if key in keys or _local(key) in keys:
            for item in value if isinstance(value, list) else [value]:
                target = item.get("@id", item.get("id")) if isinstance(item, Mapping) else item
                if isinstance(target, str):
                    yield target if "://" in target else target.rpartition(":")[2]
