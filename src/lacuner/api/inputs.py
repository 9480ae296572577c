"""What the functions of `lacuner.api` take: paths, documents or texts, gazetteers, and where progress is printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from errno import ENAMETOOLONG
from os import PathLike
from os.path import exists
from typing import Any

from lacuner.annotate import Entry, load_gazetteer
from lacuner.corpus import read
from lacuner.data import Document
from lacuner.errors import CorpusError

Documents = str | PathLike[str] | Iterable[Document | str]
"""A path, documents, or plain texts, which get their number as id."""
Gazetteer = str | PathLike[str] | Mapping[str, str]
"""A gazetteer file, or labels by surface form."""
Progress = bool | Callable[[str], Any] | None
"""True: print messages to standard error. None: only in a terminal or notebook. A function gets each message."""

_DICTIONARY = 'as in {"Halden": "PLACE"}'


def documents_of(docs: object, name: str, complete: bool | None = None) -> Iterator[Document]:
    """Documents from what a caller passed as argument `name`; `complete` applies to files that do not say."""
    if isinstance(docs, str | PathLike):
        try:
            return read(docs, complete=complete)
        except CorpusError as error:
            is_long = getattr(error.__cause__, "errno", None) == ENAMETOOLONG
            if not is_long and not (isinstance(docs, str) and len(docs.split()) > 2 and not exists(docs)):
                raise
            raise CorpusError(f"{name}: a path or a list is expected; put a single text in a list") from error
    if not isinstance(docs, Iterable) or isinstance(docs, Mapping | bytes):
        raise TypeError(f"{name}: expected a path or a list of documents, got {type(docs).__name__}")
    return (
        Document(str(number), doc) if isinstance(doc, str) else expect(doc, Document, f"{name}[{number - 1}]")
        for number, doc in enumerate(docs, 1)
    )


def entries_of(gazetteer: Gazetteer) -> Sequence[Entry]:
    """The entries of a gazetteer file, or of labels by surface form."""
    if isinstance(gazetteer, Mapping):
        for surface, label in gazetteer.items():
            expect(surface, str, "gazetteer: a surface form", _DICTIONARY)
            expect(label, str, f"gazetteer: the label of {surface!r}", _DICTIONARY)
        return [Entry(*item) for item in gazetteer.items()]
    expect(gazetteer, (str, PathLike), "gazetteer", f"labels by surface form go in a dictionary, {_DICTIONARY}")
    return load_gazetteer(gazetteer).entries


def expect(value: Any, types: type[Any] | tuple[type[Any], ...], name: str, hint: str = "") -> Any:
    """The value, if it is of an expected type; otherwise a TypeError that says what was expected."""
    if isinstance(value, types):
        return value
    types = types if isinstance(types, tuple) else (types,)
    *expected, actual = (
        f"{kind.__module__}.{kind.__name__}".removeprefix("builtins.") for kind in (*types, type(value))
    )
    raise TypeError(f"{name}: expected {' or '.join(expected)}, got {actual}{hint and f'; {hint}'}")


def message_printer(progress: Progress) -> Callable[[str], Any]:
    """The function that gets progress messages."""
    from rich.console import Console

    if callable(progress):
        return progress
    console = Console(stderr=True, markup=False, highlight=False, soft_wrap=True)
    if progress or (progress is None and (console.is_terminal or console.is_jupyter)):
        return console.print
    return lambda _: None
