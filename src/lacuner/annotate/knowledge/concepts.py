"""What all readers of knowledge bases produce: concepts with their names, and lines to read them from."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from lacuner.corpus.reader import CorpusFile, ReadOptions
from lacuner.errors import GazetteerError

MAX_PROBLEMS = 100
"""Problems that are listed; later ones are only counted."""
MAX_PARTS = 100_000
"""Names and other statements of one concept, at most: readers hold a concept in memory."""
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

    def skip(self, reason: str, line: int | None = None, path: Path | None = None) -> None:
        """Count something that cannot be used; the first ones are listed."""
        self.skipped[reason] += 1
        if line is not None and len(self.problems) < MAX_PROBLEMS:
            self.problems.append(GazetteerError(reason, file=path or self.path, line=line))

    def check_size(self, parts: int, line: int | None) -> None:
        """Refuse a concept that never ends."""
        if parts > MAX_PARTS:
            raise self.error(f"this concept has more than {MAX_PARTS:,} names and other statements", line)

    def open(self, path: Path | None = None) -> CorpusFile:
        """The file, or another one beside it, to be read as text; compressed files are unpacked on the way."""
        return CorpusFile(path or self.path, ReadOptions(encoding=self.encoding))

    def lines(self, path: Path | None = None) -> Iterator[tuple[int, str]]:
        """The lines of the file, or of another one beside it, numbered."""
        for first, lines in self.open(path).read_blocks():
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
    above = find_wanted_above(file.wanted, children)
    for concept in read(file):
        yield concept._replace(classes={*concept.classes, *above.get(concept.id, ()), concept.id})


def find_wanted_above(wanted: Iterable[str], children: Mapping[str, list[str]]) -> dict[str, set[str]]:
    """For each wanted concept and each one below: the wanted ones that it is, or that are above it.

    The search has no recursion: hostile files have cycles and long chains.

    >>> {id: sorted(above) for id, above in find_wanted_above("A", {"A": ["B"], "B": ["C", "A"]}).items()}
    {'A': ['A'], 'B': ['A'], 'C': ['A']}
    """
    above: dict[str, set[str]] = {}
    for id in wanted:
        queue = [id]
        while queue:
            below = queue.pop()
            if id not in above.setdefault(below, set()):
                above[below].add(id)
                queue += children.get(below, ())
    return above
