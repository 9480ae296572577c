"""Build a gazetteer from knowledge bases: choose labels by class, filter names, write a TSV file as a stream."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike

from lacuner.annotate.gazetteer.entries import last_segment
from lacuner.annotate.gazetteer.tables import escape_formula
from lacuner.annotate.knowledge.concepts import Concept, KnowledgeFile, Reader
from lacuner.annotate.knowledge.filters import NameFilter
from lacuner.annotate.knowledge.json_ld import read_json_ld
from lacuner.annotate.knowledge.obo import read_obo
from lacuner.annotate.knowledge.rdf_xml import read_rdf_xml
from lacuner.annotate.knowledge.rrf import NAMES_FILE, read_rrf
from lacuner.annotate.knowledge.spreadsheets import read_spreadsheet
from lacuner.annotate.knowledge.tables import read_tables
from lacuner.annotate.knowledge.wikidata import read_wikidata
from lacuner.atomic import atomic_write
from lacuner.errors import ConfigError, GazetteerError, LacunerError

KNOWLEDGE_FORMATS: dict[str, Reader] = {
    "wikidata": read_wikidata,
    "table": read_tables,
    "xlsx": read_spreadsheet,
    "obo": read_obo,
    "owl": read_rdf_xml,
    "json-ld": read_json_ld,
    "rrf": read_rrf,
}
"""The formats of knowledge bases; `table` is any file that `--dictionary` reads, also the result of a SPARQL query."""
LABELED = (read_tables, read_spreadsheet)
"""Readers of files with a column of labels: there, a class may be used as the label."""
_ENDINGS = {
    **{"obo": "obo", "owl": "owl", "rdf": "owl", "xml": "owl", "jsonld": "json-ld", "rrf": "rrf", "xlsx": "xlsx"},
    **dict.fromkeys(("csv", "tsv", "tab", "txt", "lst", "jsonl", "ndjson", "srj"), "table"),
}
_OTHER_RDF = (".ttl", ".nt", ".n3", ".nq", ".trig")
_COMPRESSED = ("gz", "bz2", "xz", "zst")
HEADER = ("surface", "label", "id", "kind", "language", "source")
MAX_REMEMBERED = 1_000_000
"""Entries among which duplicates are found. Later duplicates are written, and dropped when the gazetteer is loaded."""
# Why a concept, or a name, is not used:
OTHER_CLASS = "of another class"
NO_LABEL = "without a label"
_CLASS = "--class CLASS=LABEL"
DUPLICATE = "a duplicate"
NO_CHARACTER = "with half of a surrogate pair, which is not a character"


@dataclass(slots=True)
class BuildReport:
    """What a build has read, kept and filtered.

    >>> BuildReport().entries.total()
    0
    """

    concepts: int = 0
    entries: Counter[str] = field(default_factory=Counter)
    """Entries written, by label."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Concepts, and lines, that were not used, by reason."""
    filtered: Counter[str] = field(default_factory=Counter)
    """Names that were not used, by reason."""
    problems: list[GazetteerError] = field(default_factory=list)
    """The first problems of the files, with file and line."""


def build_gazetteer(
    files: Iterable[KnowledgeFile],
    out: str | PathLike[str],
    *,
    labels: Mapping[str, str] | None = None,
    names: NameFilter = NameFilter(),  # noqa: B008 (frozen)
    format: str | None = None,
) -> BuildReport:
    """Write a gazetteer of the names in some files, as TSV with the columns of `HEADER`.

    Args:
        files: the files of a knowledge base; `KnowledgeFile.label` is for concepts of no class.
        out: the gazetteer, replaced in one step.
        labels: the label of each class; concepts of other classes are skipped. Without it, the class is the label.
        names: which names to keep.
        format: a name in `KNOWLEDGE_FORMATS`; by default it follows from name and content of the file.

    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> term = '[Term]\\nid: DOID:1\\nname: asthma\\nsynonym: "bronchial asthma" EXACT []\\n'
    >>> _ = (folder / "do.obo").write_text(term)
    >>> report = build_gazetteer([KnowledgeFile(folder / "do.obo", label="Disease")], folder / "terms.tsv")
    >>> report.entries, (folder / "terms.tsv").read_text().splitlines()[1].split("\\t")[:3]
    (Counter({'Disease': 2}), ['asthma', 'Disease', 'DOID:1'])
    """
    report = BuildReport()
    seen: set[int] = set()
    with atomic_write(out) as stream:
        stream.write(("\t".join(HEADER) + "\n").encode())
        for file in files:
            read = _reader(file, format)
            if labels is None and file.label is None and read not in LABELED:
                raise ConfigError(
                    f"name the label of all entries (--label), or of each class ({_CLASS})", file=file.path
                )
            for row in _rows(file, read, labels, names, report, seen):
                stream.write(("\t".join(map(escape_formula, row)) + "\n").encode())
            report.skipped.update(file.skipped)
            report.problems += file.problems
        if not report.entries:
            raise _nothing_left(report, labels)
    return report


def _rows(
    file: KnowledgeFile,
    read: Reader,
    labels: Mapping[str, str] | None,
    names: NameFilter,
    report: BuildReport,
    seen: set[int],
) -> Iterator[tuple[str, ...]]:
    for concept in read(file):
        report.concepts += 1
        own_labels = _labels_of(concept, labels, None if read in LABELED else file.label)
        if not own_labels:
            report.skipped[OTHER_CLASS if labels is not None else NO_LABEL] += 1
        for name in concept.names if own_labels else ():
            surface = " ".join(name.surface.split())
            if surface != _clean(surface):
                report.filtered[NO_CHARACTER] += 1
                continue
            if reason := names.reason(name._replace(surface=surface)):
                report.filtered[reason] += 1
                continue
            for label in own_labels:
                key = hash((surface, label))
                if key in seen:
                    report.filtered[DUPLICATE] += 1
                    continue
                if len(seen) < MAX_REMEMBERED:
                    seen.add(key)
                report.entries[label] += 1
                yield surface, label, _clean(concept.id), name.kind, _clean(name.language), file.path.name


def _labels_of(concept: Concept, labels: Mapping[str, str] | None, default: str | None) -> list[str]:
    """The labels of a concept's classes, each once; without labels of classes, the default, or the class itself."""
    if labels is not None:
        candidates = {labels.get(name) or labels.get(last_segment(name)) or "" for name in concept.classes}
    else:
        candidates = {default} if default else set(concept.classes)
    return sorted(filter(None, map(_clean, candidates)))


def _clean(text: str) -> str:
    """Text for a column: no tabs or line ends, and a question mark for half of a surrogate pair."""
    return " ".join(text.split()).encode("utf-8", "replace").decode("utf-8")


def _nothing_left(report: BuildReport, labels: Mapping[str, str] | None) -> LacunerError:
    """Why no entry is left, with the option that helps."""
    (reason, times), *_ = (report.skipped + report.filtered).most_common(1) or [("", 0)]
    hints = {
        OTHER_CLASS: f"--class names {', '.join(labels or ())}; is it spelt as in the file? "
        "For items of its subclasses in Wikidata's dump, add --subclasses",
        NO_LABEL: "name the label of all entries (--label)",
    }
    why = f": {times:,} are {reason}; {hints.get(reason, 'change the filters')}" if reason else ""
    if report.problems:
        first = report.problems[0]
        return GazetteerError(first.problem, file=first.file, line=first.line)
    return GazetteerError(f"none of {report.concepts:,} concepts gives an entry{why}")


def _reader(file: KnowledgeFile, format: str | None) -> Reader:
    """The reader of this name or, without one, for the name and the content of the file."""
    path = file.path
    if not path.exists():
        raise GazetteerError("there is no such file or folder", file=path)
    name = format or _recognise(file)
    if not name and path.suffix.lower() in _OTHER_RDF:
        raise GazetteerError("this RDF is neither XML nor JSON-LD: convert it to .rdf or .jsonld", file=path)
    if name not in KNOWLEDGE_FORMATS:
        known = ", ".join(KNOWLEDGE_FORMATS)
        raise GazetteerError(f"the format is not recognised: name one of {known} (--format)", file=path)
    if path.is_dir() and name != "rrf":
        raise GazetteerError(f"this is a folder; only a folder with {NAMES_FILE} can be read", file=path)
    return KNOWLEDGE_FORMATS[name]


def _recognise(file: KnowledgeFile) -> str:
    path = file.path
    if path.is_dir():
        return "rrf"
    endings = [ending for ending in path.name.lower().split(".")[1:] if ending not in _COMPRESSED]
    ending = endings[-1] if endings else ""
    if ending != "json":
        return _ENDINGS.get(ending, "")
    start = ""
    for _, line in file.lines():
        start += line.strip()[:2_000]
        if len(start) > 4_000:
            break
    if any(mark in start for mark in ('"@context"', '"@graph"', '"@id"')):
        return "json-ld"
    is_dump = '"labels"' in start or '"claims"' in start or '"type":"item"' in start.replace(" ", "")
    return "wikidata" if is_dump and '"bindings"' not in start else "table"
