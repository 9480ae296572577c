"""Small files as the tools write them: invented content, real layout."""

from __future__ import annotations

import json
from typing import Any


def _statement(subject: str, property: str, number: int, name: str) -> dict[str, Any]:
    value = {"entity-type": "item", "numeric-id": int(name[1:]), "id": name}
    snak = {"snaktype": "value", "property": property, "datavalue": {"value": value, "type": "wikibase-entityid"}}
    snak["datatype"] = "wikibase-item"
    return {"mainsnak": snak, "type": "statement", "id": f"{subject}${number}", "rank": "normal"}


def wikidata_item(id: str, labels: dict[str, str], aliases: dict[str, list[str]], *classes: str) -> dict[str, Any]:
    """An item as it is in the JSON dump."""
    return {
        "type": "item",
        "id": id,
        "labels": {tag: {"language": tag, "value": text} for tag, text in labels.items()},
        "descriptions": {"en": {"language": "en", "value": "not a name"}},
        "aliases": {tag: [{"language": tag, "value": t} for t in texts] for tag, texts in aliases.items()} or [],
        "claims": {"P31": [_statement(id, "P31", n, name) for n, name in enumerate(classes)]} if classes else [],
        "sitelinks": {},
        "lastrevid": 1,
    }


def wikidata_subclass(id: str, parent: str) -> dict[str, Any]:
    """A class below another one, as it is in the JSON dump."""
    claims = {"P279": [_statement(id, "P279", 0, parent)]}
    return {**wikidata_item(id, {"en": f"kind {id}"}, {}), "claims": claims}


ITEMS = [
    wikidata_item("Q101", {"en": "Halden", "nb": "Halden", "fr": "Haldène"}, {"en": ["Fredrikshald", "H"]}, "Q515"),
    wikidata_item("Q102", {"en": "Mara Teel", "mul": "Mara Teel"}, {"en": ["M. Teel", "May"]}, "Q5"),
    wikidata_item("Q103", {"en": "a river"}, {}, "Q4022"),
    wikidata_item("Q104", {"de": "Bram Oster"}, {}, "Q5", "Q515"),
    {"type": "property", "id": "P31", "labels": {"en": {"language": "en", "value": "instance of"}}, "note": "Q5"},
]
WIKIDATA = "[\n" + ",\n".join(json.dumps(item, separators=(",", ":")) for item in ITEMS) + "\n]\n"

OBO = """format-version: 1.2
data-version: releases/2026-01-01
default-namespace: disease_ontology
ontology: doid

[Term]
id: DOID:4
name: ailment
namespace: disease_ontology

[Term]
id: DOID:77
name: bowel fever
namespace: disease_ontology
def: "A fever, \\"red\\" of course." [url:http\\://example.org]
synonym: "enteric fever" EXACT []
synonym: "fever of the \\"bowel\\"" EXACT OMO:0003003 [MESH:D1]
synonym: "fever" BROAD []
synonym: "typhus-like state" RELATED []
xref: MESH:D1
is_a: DOID:4 {source="x"} ! disease

[Term]
id: DOID:78
name: old fever
is_obsolete: true

[Term]
id: GO:1
name: walking
exact_synonym: "going on foot" []

[Typedef]
id: part_of
name: part of
"""

OWL = """<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [
    <!ENTITY owl "http://www.w3.org/2002/07/owl#" >
    <!ENTITY obo "http://purl.obolibrary.org/obo/" >
]>
<rdf:RDF xmlns="http://example.org/onto.owl#"
     xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
     xmlns:owl="http://www.w3.org/2002/07/owl#"
     xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#"
     xmlns:oboInOwl="http://www.geneontology.org/formats/oboInOwl#"
     xmlns:obo="http://purl.obolibrary.org/obo/">
    <owl:Ontology rdf:about="http://example.org/onto.owl"/>
    <owl:AnnotationProperty rdf:about="&obo;IAO_0000115"/>
    <!-- &obo;DOID_4 -->
    <owl:Class rdf:about="&obo;DOID_4">
        <rdfs:label xml:lang="en">ailment</rdfs:label>
    </owl:Class>
    <owl:Class rdf:about="&obo;DOID_77">
        <rdfs:subClassOf rdf:resource="&obo;DOID_4"/>
        <rdfs:subClassOf>
            <owl:Restriction>
                <owl:onProperty rdf:resource="&obo;RO_1"/>
                <owl:someValuesFrom rdf:resource="&obo;GO_1"/>
            </owl:Restriction>
        </rdfs:subClassOf>
        <obo:IAO_0000115>A fever.</obo:IAO_0000115>
        <oboInOwl:hasExactSynonym
            rdf:datatype="http://www.w3.org/2001/XMLSchema#string">enteric fever &amp; chill</oboInOwl:hasExactSynonym>
        <oboInOwl:hasRelatedSynonym>typhus-like state</oboInOwl:hasRelatedSynonym>
        <rdfs:label xml:lang="en">bowel fever</rdfs:label>
        <rdfs:label xml:lang="de">Darmfieber</rdfs:label>
    </owl:Class>
    <owl:Axiom>
        <owl:annotatedSource rdf:resource="&obo;DOID_77"/>
        <owl:annotatedTarget>enteric fever</owl:annotatedTarget>
    </owl:Axiom>
    <owl:Class rdf:about="&obo;DOID_78">
        <rdfs:label>old fever</rdfs:label>
        <owl:deprecated rdf:datatype="http://www.w3.org/2001/XMLSchema#boolean">true</owl:deprecated>
    </owl:Class>
    <owl:Class rdf:about="&obo;GO_1"><rdfs:label>walking</rdfs:label></owl:Class>
</rdf:RDF>
"""

SKOS = {
    "@context": {"skos": "http://www.w3.org/2004/02/skos/core#", "prefLabel": {"@id": "skos:prefLabel"}},
    "@graph": [
        {"@id": "http://example.org/t#fruit", "@type": "skos:Concept", "prefLabel": {"en": "pome fruit", "de": "Obst"}},
        {
            "@id": "http://example.org/t#apple",
            "@type": ["skos:Concept"],
            "skos:prefLabel": [
                {"@language": "en", "@value": "Grey Pippin"},
                {"@language": "de", "@value": "Graupepping"},
            ],
            "skos:altLabel": {"@language": "en", "@value": "pippin, grey"},
            "skos:hiddenLabel": "Gray Pipin",
            "skos:broader": {"@id": "http://example.org/t#fruit"},
        },
        {
            "@id": "http://example.org/t#halden",
            "@type": "http://example.org/Place",
            "http://www.w3.org/2004/02/skos/core#prefLabel": [{"@value": "Halden"}],
        },
    ],
}


def conso(cui: str, text: str, language: str = "ENG", preferred: bool = False, suppress: str = "N") -> str:
    """A row of MRCONSO.RRF: 18 columns, each ended by a bar."""
    term = ["P", "L1", "PF", "S1", "Y"] if preferred else ["S", "L1", "VO", "S1", "N"]
    cells = [cui, language, *term, "A1", "", "M1", "D1", "MSH", "MH", "D1", text, "0", suppress, "256"]
    assert len(cells) == 18
    return "|".join(cells) + "|\n"


MRCONSO = (
    conso("C0000001", "Veltazine", preferred=True)
    + conso("C0000001", "Veltazine hydrochloride")
    + conso("C0000001", "Veltazin", "GER")
    + conso("C0000001", "veltazine [obsolete]", suppress="O")
    + conso("C0000002", "Bowel fever", preferred=True)
    + conso("C0000003", "Walking", preferred=True)
)
MRSTY = (
    "C0000001|T109|A1.4.1.2.1|Organic Chemical|AT1|256|\n"
    "C0000001|T121|A1.4.1.1.1|Pharmacologic Substance|AT2|256|\n"
    "C0000002|T047|B2.2.1.2.1|Disease or Syndrome|AT3|256|\n"
    "C0000004|T047|B2.2.1.2.1|Disease or Syndrome|AT4|256|\n"
)
