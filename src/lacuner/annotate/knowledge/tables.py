"""SPARQL results and other tables as concepts. They are read as a whole, as `--dictionary` reads them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from lacuner.annotate.gazetteer.entries import Gazetteer, GazetteerWarning
from lacuner.annotate.gazetteer.load import load_gazetteer
from lacuner.annotate.gazetteer.tables import split_aliases
from lacuner.annotate.knowledge.concepts import ALIAS, LABEL, Concept, KnowledgeFile, Name
from lacuner.corpus.streams import COMPRESSED
from lacuner.errors import CorpusError

UNLABELED = "(no label)"


def read_tables(file: KnowledgeFile) -> Iterator[Concept]:
    """The rows of a CSV, TSV or JSON file, or of the result of a SPARQL query; the class is its label column."""
    if file.path.suffix.lower() in COMPRESSED:
        raise file.error("a compressed table is not read: unpack it")
    format = None if file.path.suffix.lower() in (".json", ".csv", ".tsv", ".tab", ".jsonl", ".txt", ".srj") else "csv"
    encoding = None if file.encoding == "utf-8" else file.encoding
    gazetteer = load_gazetteer(file.path, label=file.label or UNLABELED, format=format, encoding=encoding)
    names = _names_by_surface(file) if file.path.suffix.lower() in (".json", ".srj") else {}
    yield from to_concepts(file, gazetteer, names)


def _names_by_surface(file: KnowledgeFile) -> dict[str, list[Name]]:
    """The names in the result of a SPARQL query, with their languages and kinds, which a gazetteer does not have."""
    names: dict[str, dict[Name, None]] = {}
    try:
        rows = json.loads("\n".join(line for _, line in file.lines()))["results"]["bindings"]
        for key, binding in [item for row in rows for item in row.items()]:
            is_alias = key.lower().endswith(("altlabel", "alias", "aliases"))
            for surface in split_aliases(key, binding["value"]) if is_alias else [binding["value"]]:
                name = Name(surface.strip(), ALIAS if is_alias else LABEL, str(binding.get("xml:lang", "")))
                names.setdefault(name.surface, {})[name] = None
    except (CorpusError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return {}  # not the result of a query, or damaged, which `load_gazetteer` has reported
    return {surface: [*kinds] for surface, kinds in names.items()}


def to_concepts(
    file: KnowledgeFile, gazetteer: Gazetteer, names: Mapping[str, Sequence[Name]] = MappingProxyType({})
) -> Iterator[Concept]:
    """The entries of a table as concepts; its problems are counted. `names` are the forms of a surface, if known."""
    for problem in gazetteer.problems:
        if not isinstance(problem, GazetteerWarning):
            file.skip(problem.problem, problem.line or 0)
    for entry in gazetteer.entries:
        classes = () if entry.label == UNLABELED else (entry.label,)
        yield Concept(entry.id or "", names.get(entry.surface) or [Name(entry.surface)], classes)
