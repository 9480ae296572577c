"""Output for people and for programs, and corpus reading with a progress bar."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lacuner.atomic import STANDARD_STREAM
from lacuner.cli.options import InputOptions
from lacuner.corpus.formats import choose_format, read_file
from lacuner.corpus.reader import CorpusFile, raise_error
from lacuner.corpus.streams import Input
from lacuner.corpus.words import share_ranges
from lacuner.data import Document, Lost
from lacuner.errors import ConfigError, CorpusError
from lacuner.reporting.html import escape_control_characters

if TYPE_CHECKING:
    from rich.progress import Progress

    from lacuner.evaluate import Evaluation

PROGRESS_AFTER = 2.0
"""Seconds of reading after which a progress bar is shown."""
LOST_SHOWN = 5
_UNPRINTABLE = "[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
"""Control characters that JSON does not escape, directions of text, and halves of surrogate pairs."""


def print_json(value: Any) -> None:
    """Print one JSON object to standard output; what a terminal might obey, or cannot show, is escaped.

    >>> print_json({"label": "\\x9b2J Köln\\ud800"})
    {"label": "\\u009b2J Köln\\ud800"}
    """
    is_unicode = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
    text = json.dumps(value, ensure_ascii=not is_unicode, allow_nan=False)
    sys.stdout.write(re.sub(_UNPRINTABLE, lambda match: f"\\u{ord(match[0]):04x}", text) + "\n")


def visible(text: str) -> str:
    """A text for the terminal: labels, names and terms come from files, and must not move the cursor or change colours.

    >>> visible("Mara\\x1b[2J\\rTeel")
    'Mara␛[2J␍Teel'
    """
    return escape_control_characters(text).replace("\r", "␍")


def log(text: str) -> None:
    """Print a message to standard error, beside the result."""
    sys.stderr.write(visible(text) + "\n")


def echo(text: str) -> None:
    """Print a line to standard output."""
    sys.stdout.write(visible(text) + "\n")


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table to standard output, numbers right-aligned; it is not wrapped unless it goes to a terminal."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    cells = [[visible(str(cell)) for cell in row] for row in rows]
    table = Table(
        title=title and escape(visible(title)), title_justify="left", title_style="bold", box=None, pad_edge=False
    )
    for i, column in enumerate(columns):
        numeric = all(not row[i] or row[i].replace(",", "").replace(".", "").isdigit() for row in cells)
        table.add_column(escape(visible(column)), justify="right" if numeric and i else "left", overflow="fold")
    for row in cells:
        table.add_row(*map(escape, row))  # labels come from files: they are text, never markup
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def print_scores(scores: Evaluation, predicted: str, title: str = "") -> None:
    """Print averages, then each type, then the scores that ignore type or boundary; and why they are not final."""
    mark = "" if scores.final else "*"
    types = {f"  {label}": count for label, count in scores.per_type.items()}
    ignoring = {"boundary only": scores.boundary, "type only, any overlap": scores.type_only}
    rows = [
        (
            name,
            *[f"{100 * value:.1f}" for value in (count.precision, count.recall, count.f1)],
            *[f"{number:,}" for number in (count.correct, count.predicted, count.gold)],
        )
        for name, count in {f"all (micro){mark}": scores.exact, **types, **ignoring}.items()
    ]
    rows.insert(1, (f"all (macro){mark}", *[f"{100 * value:.1f}" for value in scores.macro], "", "", ""))
    print_table(title, ("", "P", "R", "F1", "correct", predicted, "gold"), rows)
    if not scores.final:
        low, high = scores.precision_range
        echo(
            f"* not final: gold is incomplete in {scores.incomplete:,} of {scores.documents:,} documents, so "
            f"{scores.unjudged:,} predicted spans cannot be judged; precision is between {100 * low:.1f} and "
            f"{100 * high:.1f}, and recall counts only the entities that gold has"
        )


def log_lost(lost: Lost, step: str) -> None:
    """Report what a step dropped, also when it dropped nothing."""
    log(f"{step}: {lost}")
    for reason, where in lost.first.items():
        log(f"  {reason}: first at {where}")
    for row in lost.spans[:LOST_SHOWN]:
        log(f"  document {row.document!r}, {row.label} {row.start}-{row.end} {row.text!r}: {row.reason}")
    if len(lost.spans) > LOST_SHOWN:
        log(f"  and {len(lost.spans) - LOST_SHOWN:,} more")


def log_unused_names(unused: Iterable[str]) -> None:
    """Report labels after `--map` that no input has: a misspelled one would be passed over in silence."""
    if unused := sorted(unused):
        log(f"--map names labels that do not occur: {', '.join(unused)}")


class CorpusReader:
    """The documents of a file or folder, with a progress bar and the time left if reading takes long."""

    def __init__(
        self,
        path: Path,
        inputs: InputOptions,
        *,
        complete: bool | None = None,
        keep_bad_spans: bool = False,
        on_error: Callable[[CorpusError], None] = raise_error,
    ) -> None:
        self.path = path
        self._name = "standard input" if path == STANDARD_STREAM else str(path)
        self.lost = Lost()
        self.documents = 0
        self._sizes: list[int] = []  # bytes of each piece that was read
        options = inputs.read_options(keep_bad_spans)
        file = CorpusFile(path, options, self.lost, on_error, on_bytes=self._sizes.append)
        self.format = choose_format(file, inputs.format)
        self._docs = read_file(file, self.format, complete)
        if self.format == "txt" and not path.is_dir():
            log(f"{self._name}: read as one document per line")

    def __iter__(self) -> Iterator[Document]:
        start = time.monotonic()
        next_update = start + PROGRESS_AFTER
        bar: Progress | None = None
        try:
            for doc in self._docs:
                self.documents += 1
                yield doc
                if (now := time.monotonic()) > next_update:
                    bar = bar or self._progress_bar()
                    rate = f"{self.documents / (now - start):,.0f} documents/s"
                    bar.update(bar.task_ids[0], completed=sum(self._sizes), rate=rate)
                    next_update = now + 0.2
        finally:
            if bar is not None:
                bar.stop()

    def _progress_bar(self) -> Progress:
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import Progress, TextColumn

        files = [file for file in (self.path.rglob("*") if self.path.is_dir() else [self.path]) if file.is_file()]
        columns = (*Progress.get_default_columns(), TextColumn("{task.fields[rate]}"))  # the default has the time left
        bar = Progress(*columns, console=Console(stderr=True))
        bar.add_task(escape(visible(self.path.name)), total=sum(file.stat().st_size for file in files) or None, rate="")
        bar.start()
        return bar

    def log_lost(self, role: str = "") -> None:
        """Report how many documents were read and what was dropped."""
        log_lost(self.lost, f"read {self._name}{role and f' as {role}'}: {self.documents:,} documents ({self.format})")


def read_splits(
    files: Mapping[str, Iterable[Path] | None],
    inputs: InputOptions,
    names: Mapping[str, str] | None = None,
    unused: set[str] | None = None,
) -> dict[str, list[Document]]:
    """The documents of each role that has files; gold and dev are complete unless the file says otherwise.

    `names` are new names of labels; those that occur are removed from `unused`.
    """
    with_files = {role: list(paths) for role, paths in files.items() if paths}
    return {role: list(share_ranges(_read(paths, role, inputs, names, unused))) for role, paths in with_files.items()}


def read_or_store(
    files: Sequence[Path],
    role: str,
    inputs: InputOptions,
    storage: tuple[bool | None, Path],
    names: Mapping[str, str] | None = None,
    *,
    unused: set[str] | None = None,
    ordered: bool = False,
) -> Sequence[Document]:
    """Documents that may be larger than memory; `storage` says whether they are stored on disk, and where.

    They are stored as they are trained on, or in their order if `ordered`. Without a role, nothing is assumed about
    their completeness.
    """
    from lacuner.trainer.streaming import keep_or_store

    stream, folder = check_pipes(files, storage[0]), storage[1]
    read = partial(_read, files, role, inputs, names, unused)
    if stream is False:
        return list(share_ranges(read()))
    sources = [hash_corpus(path, inputs, names=True) for path in files]
    settings = [f"{old}={new}" for old, new in sorted((names or {}).items())]
    return keep_or_store(read, folder, [*sources, *settings], stream, log, ordered=ordered)


def check_pipes(files: Iterable[Path], stream: bool | None) -> bool | None:
    """`stream` for these files: pipes are kept in memory, because what is stored is found by the hash of the files."""
    if not any(path == STANDARD_STREAM or (path.exists() and Input(path).is_pipe) for path in files):
        return stream
    if stream:
        raise ConfigError("--stream needs files: standard input, or a pipe, cannot be read twice")
    return False


def _read(
    files: Iterable[Path],
    role: str,
    inputs: InputOptions,
    names: Mapping[str, str] | None,
    unused: set[str] | None = None,
) -> Iterator[Document]:
    from lacuner.trainer.labels import rename_labels

    for path in files:
        reader = CorpusReader(path, inputs, complete=role in ("gold", "dev") if role else None)
        yield from rename_labels(reader, names, unused) if names else reader
        reader.log_lost(role)


def hash_corpus(path: Path, inputs: InputOptions, *, names: bool = False) -> str:
    """Hash of a file, or of all files of a folder, and of the options that decide how they are read.

    With `names`, of these too: a format may be chosen by the ending of a file, and ids are made from names in a folder.
    """
    digest = hashlib.sha256(" ".join(inputs.arguments()).encode())
    try:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                if names:
                    digest.update(os.fsencode(file.relative_to(path) if path.is_dir() else "".join(file.suffixes)))
                with file.open("rb") as stream:
                    digest.update(hashlib.file_digest(stream, "sha256").digest())
    except OSError as error:
        raise CorpusError(f"cannot read this file: {error.strerror}", file=path) from error
    return digest.hexdigest()
