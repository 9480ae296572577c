"""What the reader of every format is given."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from lacuner.corpus.lines import OnBytes
from lacuner.data import Lost, Span
from lacuner.errors import CorpusError


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file; by default the layout is detected from the beginning of the file.

    >>> ReadOptions(separator=",", tag_column=1).scheme is None  # detected
    True
    """

    encoding: str = "utf-8"
    separator: str | None = None
    """Column files: column separator; None detects it."""
    token_column: int = 0
    """Column files: column of the word, from 0, or from the end if negative."""
    tag_column: int = -1
    """Column files: column of the tag."""
    scheme: str | None = None
    """Column files and tags in JSON: one of `tags.SCHEMES`; None detects it."""
    strict: bool = False
    """Drop entities whose tags break the scheme, as seqeval's strict mode does; by default they are repaired as
    conlleval reads them."""
    words: Literal["unicode", "space"] = "unicode"
    """Word splitting of texts without words: by the Unicode rule, or at white space."""
    keep_bad_spans: bool = False
    """Keep spans that are empty or outside the text instead of refusing them; only for `check`."""


def raise_error(error: CorpusError) -> None:
    raise error


@dataclass(frozen=True)
class CorpusFile:
    """A file or folder being read; `report` receives the error of a single document, and raises it by default."""

    path: Path
    options: ReadOptions = ReadOptions()
    lost: Lost = field(default_factory=Lost)
    report: Callable[[CorpusError], None] = raise_error
    on_bytes: OnBytes | None = None

    def error(self, problem: str, line: int | None = None) -> CorpusError:
        return CorpusError(problem, file=self.path, line=line)


def span_problem(text: str, span: Span) -> str | None:
    """Why a span is impossible in this text, or None."""
    if span.start == span.end:
        return f"the span {span.start}-{span.end} is empty"
    if span.start > span.end:
        return f"the span {span.start}-{span.end} ends before it begins"
    if span.start < 0 or span.end > len(text):
        return f"the span {span.start}-{span.end} is outside the text of {len(text)} characters"
    return None
