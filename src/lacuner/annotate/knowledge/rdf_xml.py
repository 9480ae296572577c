"""OWL ontologies and SKOS thesauri in RDF/XML, read as a stream and without the dangers of XML.

Entities may only abbreviate namespaces, as Protégé declares them. An entity that names another one, or a file, is
refused: expanding it could fill the memory or read other files.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from xml.parsers import expat

from lacuner.annotate.gazetteer.entries import MAX_SURFACE, last_segment
from lacuner.annotate.knowledge.concepts import ALIAS, LABEL, Concept, KnowledgeFile, Name, add_ancestors
from lacuner.corpus.xml_stream import MAX_DEPTH, feed_parser

MAX_ENTITY, MAX_ENTITIES = 200, 1_000
"""Characters of an entity, and entities of a file."""
NAMES = {
    **{"label": LABEL, "prefLabel": LABEL},
    **{"altLabel": ALIAS, "hiddenLabel": "hidden", "IAO_0000118": ALIAS, "alternativeLabel": ALIAS},
    **{f"has{scope.title()}Synonym": scope for scope in ("exact", "narrow", "broad", "related")},
}
"""Properties that hold a name, by the last part of their address, and its kind."""
PARENTS = ("subClassOf", "broader", "broaderTransitive", "broaderGeneric")
_CLASSES = ("type", "inScheme", "hasOBONamespace")
_TEXTS = ("deprecated", "hasOBONamespace")
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
    pieces = (text.encode("utf-8", "surrogatepass") for text in file.open().read_pieces() if text)
    for _ in feed_parser(parser.expat, chain(pieces, [b""]), file.error):
        yield from parser.take()
    if not parser.has_rdf:
        raise file.error("this XML is not RDF: no element is called rdf:RDF or has rdf:about")


@dataclass(slots=True)
class _Node:
    """A concept whose element is open."""

    id: str
    depth: int
    types: list[str]
    parents: list[str] = field(default_factory=list)
    names: list[Name] = field(default_factory=list)
    obsolete: bool = False
    property: str = ""
    """The statement that is being read."""


class _Parser:
    """Collects concepts from the events of the XML parser."""

    def __init__(self, file: KnowledgeFile) -> None:
        self.file, self.has_rdf = file, False
        self._done: list[Concept] = []
        self._nodes: list[_Node] = []  # a concept may be written inside a statement about another one
        self._languages = [""]  # of all open elements: an element has the language of the one around it
        self._entities = 0
        self._text: list[str] | None = None
        # the encoding is given because the text has been decoded, whatever the XML declaration says
        self.expat = parser = expat.ParserCreate("utf-8", " ")
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = self._entity
        parser.ExternalEntityRefHandler = self._refuse_external

    def take(self) -> list[Concept]:
        done, self._done = self._done, []
        return done

    @property
    def _depth(self) -> int:
        return len(self._languages) - 1

    def _entity(self, name: str, is_parameter: bool, value: str | None, *place: object) -> None:
        self._entities += 1
        harmless = value is not None and len(value) <= MAX_ENTITY and "&" not in value and "%" not in value
        if not harmless or is_parameter or self._entities > MAX_ENTITIES:
            problem = f"the XML entity {name[:100]!r} is refused: it is not an abbreviation of a namespace"
            raise self.file.error(problem, self.expat.CurrentLineNumber)

    def _refuse_external(self, *_: object) -> int:
        raise self.file.error("this XML refers to another file, which is not read", self.expat.CurrentLineNumber)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._languages.append(attributes.get(_LANGUAGE, self._languages[-1]))
        if self._depth > MAX_DEPTH:
            raise self.file.error("this XML is nested too deeply", self.expat.CurrentLineNumber)
        about = attributes.get(f"{_RDF} about") or attributes.get(f"{_RDF} ID")
        self.has_rdf = self.has_rdf or tag == f"{_RDF} RDF" or about is not None
        node = self._nodes[-1] if self._nodes else None
        if node is not None and self._depth == node.depth + 1:
            self._start_property(node, last_segment(tag.rpartition(" ")[2]), attributes)
        elif about is not None:
            if node is not None and self._depth == node.depth + 2:
                self._add_resource(node, about)
            new = _Node(about, self._depth, [tag.rpartition(" ")[2]])
            for key, value in attributes.items():  # the short form of statements
                namespace, _, local = key.rpartition(" ")
                if namespace and local in NAMES:
                    new.names.append(Name(value, NAMES[local], self._languages[-1]))
            self._nodes.append(new)
        # all others are parts of anonymous classes: no statements about this concept

    def _start_property(self, node: _Node, key: str, attributes: dict[str, str]) -> None:
        node.property = key
        self.file.check_size(len(node.types) + len(node.parents) + len(node.names), self.expat.CurrentLineNumber)
        resource = attributes.get(f"{_RDF} resource")
        if resource is not None:
            self._add_resource(node, resource)
        elif key in NAMES or key in _TEXTS:
            self._text = []

    def _add_resource(self, node: _Node, resource: str) -> None:
        if node.property in PARENTS:
            node.parents.append(resource)
        elif node.property in _CLASSES:
            node.types.append(resource)

    def _characters(self, text: str) -> None:
        if self._text is not None and sum(map(len, self._text)) <= MAX_SURFACE:
            self._text.append(text)

    def _end(self, tag: str) -> None:
        node = self._nodes[-1] if self._nodes else None
        if node is not None and self._depth == node.depth + 1 and self._text is not None:
            text = "".join(self._text)
            if node.property in NAMES:
                node.names.append(Name(text, NAMES[node.property], self._languages[-1]))
            elif node.property == "deprecated":
                node.obsolete = node.obsolete or text.strip() == "true"
            else:
                node.types.append(text.strip())
            self._text = None
        elif node is not None and self._depth == node.depth:
            self._finish(self._nodes.pop())
        self._languages.pop()

    def _finish(self, node: _Node) -> None:
        if node.obsolete:
            self.file.skip("obsolete")
        elif node.names or node.parents:
            classes = {short_id(name) for name in node.types}
            self._done.append(Concept(short_id(node.id), node.names, classes, tuple(map(short_id, node.parents))))


def short_id(uri: str) -> str:
    """The identifier in a URI; those of OBO ontologies are written with a colon, as in their OBO files.

    >>> short_id("http://purl.obolibrary.org/obo/DOID_4"), short_id("http://example.org/thesaurus#c7")
    ('DOID:4', 'c7')
    """
    last = last_segment(uri).lstrip("#")
    prefix, _, number = last.partition("_")
    return f"{prefix}:{number}" if "/obo/" in uri and prefix.isalpha() and number.isalnum() else last
