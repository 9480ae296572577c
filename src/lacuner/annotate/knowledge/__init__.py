"""Gazetteers from knowledge bases: Wikidata, ontologies, UMLS, thesauri and spreadsheets (`lacuner dictionary build`).

Each reader turns a file into a stream of `Concept`s (`concepts.py`): an identifier, names with their kind and language,
and classes. `build.py` has the one table of readers, chooses labels by class, filters, and writes a gazetteer.
"""

from lacuner.annotate.knowledge.build import KNOWLEDGE_FORMATS, BuildReport, build_gazetteer
from lacuner.annotate.knowledge.concepts import Concept, KnowledgeFile, Name
from lacuner.annotate.knowledge.filters import NameFilter

__all__ = ["KNOWLEDGE_FORMATS", "BuildReport", "Concept", "KnowledgeFile", "Name", "NameFilter", "build_gazetteer"]
