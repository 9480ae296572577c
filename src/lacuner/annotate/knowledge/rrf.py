"""UMLS in Rich Release Format: names from MRCONSO.RRF, semantic types from the MRSTY.RRF beside it.

Both files are sorted by concept, as they are released, and are read side by side: memory does not grow.
"""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from lacuner.annotate.knowledge.concepts import ALIAS, LABEL, Concept, KnowledgeFile, Name
from lacuner.errors import GazetteerError

NAMES_FILE, TYPES_FILE = "MRCONSO.RRF", "MRSTY.RRF"
_COLUMNS = 18
_Row = tuple[int, list[str]]


def read_rrf(file: KnowledgeFile) -> Iterator[Concept]:
    """The concepts of a folder, or of an MRCONSO file. Classes are the semantic types: number (T121) and name."""
    names_file = _find(file.path, NAMES_FILE) if file.path.is_dir() else file.path
    if names_file is None:
        raise file.error(f"there is no {NAMES_FILE} in this folder")
    types = _types(file, _find(names_file.parent, TYPES_FILE))
    next_type = next(types, None)
    for id, rows in groupby(_rows(file, names_file, _COLUMNS), key=lambda row: row[1][0]):
        while next_type is not None and next_type[0] < id:
            next_type = next(types, None)
        classes = next_type[1] if next_type is not None and next_type[0] == id else set()
        yield Concept(id, list(_names(file, rows)), classes)


def _find(folder: Path, name: str) -> Path | None:
    """A file of this name in a folder, compressed or not, in any case."""
    candidates = sorted(path for path in folder.iterdir() if path.name.upper().startswith(name))
    if len(candidates) > 1:  # UMLS is released in pieces: MRCONSO.RRF.aa.gz, MRCONSO.RRF.ab.gz
        names = ", ".join(path.name for path in candidates)[:100]
        raise GazetteerError(f"which of these is {name}? Join the pieces of one file into it: {names}", file=folder)
    return candidates[0] if candidates else None


def _rows(file: KnowledgeFile, path: Path, columns: int) -> Iterator[_Row]:
    """The rows of a file, which must be sorted by concept."""
    last = ""
    for number, line in file.lines(path):
        cells = line.split("|")
        if not line:
            continue
        if len(cells) < columns:
            file.skip(f"this row has fewer than {columns} columns", number, path)
            continue
        if cells[0] < last:
            problem = f"{path.name} is not sorted by concept: sort it by its first column (LC_ALL=C sort)"
            raise GazetteerError(problem, file=path, line=number)
        last = cells[0]
        yield number, cells


def _types(file: KnowledgeFile, path: Path | None) -> Iterator[tuple[str, set[str]]]:
    if path is None:
        if file.wanted:
            raise file.error(f"there is no {TYPES_FILE} beside the names, so --class cannot be used: use --label")
        return
    for id, rows in groupby(_rows(file, path, 4), key=lambda row: row[1][0]):
        types: set[str] = set()
        for number, cells in rows:
            types |= {cells[1], cells[3]}
            file.check_size(len(types), number)
        yield id, types


def _names(file: KnowledgeFile, rows: Iterator[_Row]) -> Iterator[Name]:
    """The names of a concept.

    The columns: CUI LAT TS LUI STT SUI ISPREF AUI SAUI SCUI SDUI SAB TTY CODE STR SRL SUPPRESS CVF.
    """
    for count, (number, cells) in enumerate(rows, 1):
        file.check_size(count, number)
        if cells[16] in ("O", "E", "Y"):
            file.skip("obsolete or suppressed")
        else:
            preferred = cells[2] == "P" and cells[4] == "PF" and cells[6] == "Y"
            yield Name(cells[14], LABEL if preferred else ALIAS, cells[1])
