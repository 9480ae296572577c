"""What every reader is given, and the checks that every reader makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from lacuner.corpus.lines import Seen
from lacuner.data import Document, Lost, Span, Words
from lacuner.errors import CorpusError


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file that does not speak for itself. The defaults find out by looking at its beginning."""

    encoding: str = "utf-8"
    separator: str | None = None
    """Column files: what separates columns; None looks for tabs, then spaces."""
    token_column: int = 0
    """Column files: where the word stands, counted from 0, or from the end if negative."""
    tag_column: int = -1
    """Column files: where the tag stands."""
    scheme: str | None = None
    """Column files and tags in JSON: one of `tags.SCHEMES`; None looks at the tags."""
    strict: bool = False
    """Tags that break their scheme make no entity, as in seqeval's strict mode, not as conlleval reads them."""
    words: Literal["unicode", "space"] = "unicode"
    """Texts whose words are not given: split by the Unicode rule when needed, or at white space now."""
    keep_bad_spans: bool = False
    """Keep spans that lie outside the text or are empty instead of refusing them: for `check` only."""


def raise_error(error: CorpusError) -> None:
    raise error


@dataclass(frozen=True)
class Reading:
    """One file being read. `report` is given what is wrong with one document, and raises unless somebody collects."""

    path: Path
    options: ReadOptions = ReadOptions()
    lost: Lost = field(default_factory=Lost)
    report: Callable[[CorpusError], None] = raise_error
    seen: Seen | None = None

    def error(self, problem: str, line: int | None = None) -> CorpusError:
        return CorpusError(problem, file=self.path, line=line)


def span_problem(text: str, span: Span) -> str | None:
    """Why this span cannot be one of this text, in a few words; None if it can."""
    if span.start == span.end:
        return f"the span {span.start}-{span.end} is empty"
    if span.start > span.end:
        return f"the span {span.start}-{span.end} ends before it begins"
    if span.start < 0 or span.end > len(text):
        return f"the span {span.start}-{span.end} is outside the text, which has {len(text)} characters"
    return None


def words_problem(text: str, words: Words) -> str | None:
    """Why these cannot be the words of this text; None if they can."""
    position = 0
    for start, end in words:
        if not position <= start < end <= len(text):
            return f"the word {start}-{end} is empty, out of order or outside the text"
        position = end
    return None


def check_spans(doc: Document, reading: Reading, line: int | None) -> None:
    """Refuse a document that has an impossible span."""
    if reading.options.keep_bad_spans:
        return
    for span in (*doc.spans, *doc.rejected, *doc.unsure):
        problem = span_problem(doc.text, span)
        if problem:
            raise reading.error(problem, line)
