"""OBO ontologies: names and synonyms of terms, with their scopes."""

import re
from collections.abc import Iterator

from lacuner.annotate.knowledge.concepts import LABEL, Concept, KnowledgeFile, Name, add_ancestors

_SYNONYM = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(EXACT|NARROW|BROAD|RELATED)?')
_ESCAPE = re.compile(r"\\(.)")
_OLD_SYNONYMS = {f"{scope}_synonym": scope for scope in ("exact", "narrow", "broad", "related")}


def read_obo(file: KnowledgeFile) -> Iterator[Concept]:
    """The terms of an ontology; with wanted classes, their ancestors are classes, too.

    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "doid.obo"
    >>> _ = file.write_text('[Term]\\nid: X:1\\nname: asthma\\nsynonym: "wheeze" BROAD []\\n')
    >>> [(name.surface, name.kind) for concept in read_obo(KnowledgeFile(file)) for name in concept.names]
    [('asthma', 'label'), ('wheeze', 'broad')]
    """
    return add_ancestors(_read_terms, file) if file.wanted else _read_terms(file)


def _read_terms(file: KnowledgeFile) -> Iterator[Concept]:
    stanza = namespace = ""
    tags: list[tuple[int, str, str]] = []
    for number, line in file.lines():
        file.check_size(len(tags), number)
        if line.startswith("["):
            yield from _to_concept(file, stanza, tags, namespace)
            stanza, tags = line.strip(), []
        elif not stanza and line.startswith("default-namespace:"):
            namespace = line.partition(":")[2].strip()
        elif stanza == "[Term]" and not line.startswith("!") and line.strip():
            tag, colon, value = line.partition(":")
            if colon:
                tags.append((number, tag.strip(), value.strip()))
            else:
                file.skip("this line is not written `tag: value`", number)
    yield from _to_concept(file, stanza, tags, namespace)


def _to_concept(
    file: KnowledgeFile, stanza: str, tags: list[tuple[int, str, str]], namespace: str
) -> Iterator[Concept]:
    """The concept of a stanza, if it is one; `namespace` is that of terms without one of their own."""
    if stanza != "[Term]":
        return
    id, names, parents = "", [], []
    for number, tag, value in tags:
        if tag == "is_obsolete" and value.startswith("true"):
            file.skip("obsolete")
            return
        if tag == "id":
            id = value.split(" ")[0]
        elif tag == "name":
            names.append(Name(_unescape(value), LABEL))
        elif tag == "synonym" or tag in _OLD_SYNONYMS:
            match = _SYNONYM.match(value)
            if match is None:
                file.skip("the text of this synonym is not in quotes", number)
                continue
            scope = _OLD_SYNONYMS.get(tag) or (match[2] or "RELATED").lower()  # RELATED is the default of the format
            names.append(Name(_unescape(match[1]), scope))
        elif tag == "namespace":
            namespace = value
        elif tag == "is_a":
            parents.append(value.split("!")[0].split("{")[0].strip())
    if id:
        yield Concept(id, names, {namespace} - {""}, tuple(parents))


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: {"n": " ", "t": " ", "W": " "}.get(match[1], match[1]), text)
