"""OWL ontologies and SKOS thesauri in RDF/XML, read as a stream and without the dangers of XML.

Entities may only abbreviate namespaces, as Protégé declares them. An entity that names another one, or a file, is
refused: expanding it could fill the memory or read other files.
"""

from collections.abc import Iterator
from xml.parsers import expat

from lacuner.annotate.gazetteer.entries import MAX_SURFACE, last_segment
from lacuner.annotate.knowledge.concepts import ALIAS, LABEL, Concept, KnowledgeFile, Name, add_ancestors

MAX_ENTITY, MAX_ENTITIES = 200, 1_000
"""Characters of an entity, and entities of a file."""
MAX_DEPTH = 500
NAMES = {
    **{"label": LABEL, "prefLabel": LABEL},
    **{"altLabel": ALIAS, "hiddenLabel": "hidden", "IAO_0000118": ALIAS, "alternativeLabel": ALIAS},
    **{f"has{scope.title()}Synonym": scope for scope in ("exact", "narrow", "broad", "related")},
}
"""Properties that hold a name, by the last part of their address, and its kind."""
PARENTS = ("subClassOf", "broader", "broaderTransitive", "broaderGeneric")
_CLASSES = ("type", "inScheme", "hasOBONamespace")
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_LANGUAGE = "http://www.w3.org/XML/1998/namespace lang"


def read_rdf_xml(file: KnowledgeFile) -> Iterator[Concept]:
    """The classes, individuals and concepts of a file; with wanted classes, their ancestors are classes, too.

    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "thesaurus.rdf"
    >>> rdf = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:s="http://www.w3.org/2004/02/skos/core#"'
    >>> _ = file.write_text(f'<s:Concept {rdf} rdf:about="http://ex.org/7"><s:prefLabel>pear</s:prefLabel></s:Concept>')
    >>> [(concept.id, concept.names[0].surface) for concept in read_rdf_xml(KnowledgeFile(file))]
    [('7', 'pear')]
    """
    return add_ancestors(_read_concepts, file) if file.wanted else _read_concepts(file)


def _read_concepts(file: KnowledgeFile) -> Iterator[Concept]:
    parser = _Parser(file)
    line = 1
    try:
        for number, text in file.lines():
            line = number
            parser.feed(text + "\n")
            yield from parser.take()
        parser.feed("", final=True)
        yield from parser.take()
    except expat.ExpatError as error:
        raise file.error(f"this is not well-formed XML ({error})", line) from error
    if not parser.has_rdf:
        raise file.error("this XML is not RDF: no element is called rdf:RDF or has rdf:about")


class _Parser:
    """Collects concepts from the events of the XML parser."""

    def __init__(self, file: KnowledgeFile) -> None:
        self.file, self.has_rdf = file, False
        self._done: list[Concept] = []
        self._depth = self._entities = 0
        self._node: dict[str, list[str]] | None = None
        self._names: list[Name] = []
        self._node_depth = 0
        self._text: list[str] | None = None
        self._language = ""
        self._parser = parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = self._entity
        parser.ExternalEntityRefHandler = self._refuse_external

    def feed(self, text: str, final: bool = False) -> None:
        self._parser.Parse(text.encode("utf-8", "surrogatepass"), final)

    def take(self) -> list[Concept]:
        done, self._done = self._done, []
        return done

    def _entity(self, name: str, is_parameter: bool, value: str | None, *place: object) -> None:
        self._entities += 1
        harmless = value is not None and len(value) <= MAX_ENTITY and "&" not in value and "%" not in value
        if not harmless or is_parameter or self._entities > MAX_ENTITIES:
            problem = f"the XML entity {name!r} is refused: it is not an abbreviation of a namespace"
            raise self.file.error(problem, self._parser.CurrentLineNumber)

    def _refuse_external(self, *_: object) -> int:
        raise self.file.error("this XML refers to another file, which is not read", self._parser.CurrentLineNumber)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.file.error("this XML is nested too deeply", self._parser.CurrentLineNumber)
        about = attributes.get(f"{_RDF} about") or attributes.get(f"{_RDF} ID")
        self.has_rdf = self.has_rdf or tag == f"{_RDF} RDF" or about is not None
        local = tag.rpartition(" ")[2]
        if self._node is None:
            if about is not None:
                self._node, self._node_depth, self._names = {"id": [about], "type": [local]}, self._depth, []
            return
        if self._depth != self._node_depth + 1:  # parts of anonymous classes: no statements about this concept
            return
        resource = attributes.get(f"{_RDF} resource")
        key = last_segment(local)
        if resource is not None and (key in PARENTS or key in _CLASSES):
            self._node.setdefault("parents" if key in PARENTS else "type", []).append(resource)
        elif resource is None and (key in NAMES or key in ("deprecated", "hasOBONamespace")):
            self._text, self._language = [], attributes.get(_LANGUAGE, "")

    def _characters(self, text: str) -> None:
        if self._text is not None and sum(map(len, self._text)) <= MAX_SURFACE:
            self._text.append(text)

    def _end(self, tag: str) -> None:
        if self._node is not None and self._depth == self._node_depth + 1 and self._text is not None:
            key, text = tag.rpartition(" ")[2], "".join(self._text)
            if key in NAMES:
                self._names.append(Name(text, NAMES[key], self._language))
            else:
                self._node.setdefault(key, []).append(text.strip())
            self._text = None
        elif self._node is not None and self._depth == self._node_depth:
            self._finish(self._node)
            self._node = None
        self._depth -= 1

    def _finish(self, node: dict[str, list[str]]) -> None:
        if "true" in node.get("deprecated", ()):
            self.file.skip("obsolete")
        elif self._names or node.get("parents"):
            classes = {short_id(name) for name in (*node["type"], *node.get("hasOBONamespace", ()))}
            parents = tuple(short_id(parent) for parent in node.get("parents", ()))
            self._done.append(Concept(short_id(node["id"][0]), self._names, classes, parents))


def short_id(uri: str) -> str:
    """The identifier in a URI; those of OBO ontologies are written with a colon, as in their OBO files.

    >>> short_id("http://purl.obolibrary.org/obo/DOID_4"), short_id("http://example.org/thesaurus#c7")
    ('DOID:4', 'c7')
    """
    last = last_segment(uri).lstrip("#")
    prefix, _, number = last.partition("_")
    return f"{prefix}:{number}" if "/obo/" in uri and prefix.isalpha() and number.isalnum() else last
