"""What all readers of knowledge bases produce: concepts with their names, and lines to read them from."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from lacuner.corpus.reader import CorpusFile, ReadOptions
from lacuner.errors import GazetteerError

MAX_PROBLEMS = 100
"""Problems that are listed; later ones are only counted."""
# kinds of names:
LABEL, ALIAS = "label", "alias"


class Name(NamedTuple):
    """A name of a concept. `kind` is `label`, `alias`, or the scope of a synonym: exact, narrow, broad, related.

    >>> Name("Oslo", language="nb").kind
    'label'
    """

    surface: str
    kind: str = LABEL
    language: str = ""
    """Language tag; empty if the file does not say."""


class Concept(NamedTuple):
    """An entry of a knowledge base. `classes` are the identifiers or names of its types, ancestors and schemes.

    >>> Concept("Q585", [Name("Oslo")], {"Q515"}).names[0].surface
    'Oslo'
    """

    id: str
    names: Iterable[Name]
    classes: Iterable[str] = ()
    parents: tuple[str, ...] = ()
    """Identifiers of the concepts directly above it."""


@dataclass(slots=True)
class KnowledgeFile:
    """A file of a knowledge base that is being read, and what is wrong with it."""

    path: Path
    encoding: str = "utf-8"
    wanted: frozenset[str] = frozenset()
    """The classes that have labels; a reader may skip concepts of other classes."""
    sheet: str | None = None
    """Name of a sheet, in spreadsheets."""
    label: str | None = None
    """Label of rows that have none, in tables."""
    subclasses: bool = False
    """Whether items of subclasses count, too, in Wikidata's dump; ontologies and thesauri always include them."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Concepts and rows that the reader skipped, by reason."""
    problems: list[GazetteerError] = field(default_factory=list)
    """The first problems, with file and line."""

    def error(self, problem: str, line: int | None = None) -> GazetteerError:
        return GazetteerError(problem, file=self.path, line=line)

    def skip(self, reason: str, line: int | None = None, times: int = 1) -> None:
        """Count something that cannot be used; the first ones are listed."""
        self.skipped[reason] += times
        if line is not None and len(self.problems) < MAX_PROBLEMS:
            self.problems.append(self.error(reason, line))

    def lines(self, path: Path | None = None) -> Iterator[tuple[int, str]]:
        """The lines of the file, or of another one beside it, numbered; compressed files are unpacked on the way."""
        corpus_file = CorpusFile(path or self.path, ReadOptions(encoding=self.encoding))
        for first, lines in corpus_file.read_blocks():
            yield from enumerate(lines, first)


Reader = Callable[[KnowledgeFile], Iterator[Concept]]


def add_ancestors(read: Reader, file: KnowledgeFile) -> Iterator[Concept]:
    """The concepts with their ancestors as classes. The file is read twice, first for who is above whom.

    >>> rows = [Concept("C", [Name("c")], parents=("B",)), Concept("B", [], parents=("A",))]
    >>> file = KnowledgeFile(Path("x"), wanted=frozenset({"A"}))
    >>> [sorted(concept.classes) for concept in add_ancestors(lambda _: iter(rows), file)]
    [['A', 'C'], ['A', 'B']]
    """
    children: dict[str, list[str]] = {}
    for concept in read(KnowledgeFile(file.path, file.encoding)):
        for parent in concept.parents:
            children.setdefault(parent, []).append(concept.id)
    above: dict[str, set[str]] = {}
    for ancestor in file.wanted:
        for id in find_descendants(ancestor, children):
            above.setdefault(id, set()).add(ancestor)
    for concept in read(file):
        yield concept._replace(classes={*concept.classes, *above.get(concept.id, ()), concept.id})


def find_descendants(id: str, children: dict[str, list[str]]) -> set[str]:
    """All concepts below a concept, by a search without recursion: hostile files have cycles and long chains.

    >>> sorted(find_descendants("A", {"A": ["B"], "B": ["C", "A"]}))
    ['B', 'C']
    """
    seen = {id}
    queue = [id]
    while queue:
        for child in children.get(queue.pop(), ()):
            if child not in seen:
                seen.add(child)
                queue.append(child)
    return seen - {id}
