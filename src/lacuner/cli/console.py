"""Printing for people and for machines, and progress."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lacuner.corpus import ReadOptions, read
from lacuner.data import Document, Lost

if TYPE_CHECKING:
    from rich.progress import Progress

Roles = dict[str, list[Document]]
"""Documents by their role: weak, gold, dev, unlabeled."""
PATIENCE = 2.0
"""Seconds after which a person wants to see that something happens."""


def print_json(value: Any) -> None:
    """One object on standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n")


def say(text: str) -> None:
    """A line on standard error: what is said beside the result."""
    sys.stderr.write(text + "\n")


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table on standard output; columns of numbers are right-aligned. Nobody folds it if it is not a terminal."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    cells = [[str(cell) for cell in row] for row in rows]
    table = Table(title=title or None, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for i, column in enumerate(columns):
        numbers = all(not row[i] or row[i].replace(",", "").replace(".", "").isdigit() for row in cells)
        table.add_column(column, justify="right" if numbers and i else "left", overflow="fold")
    for row in cells:
        table.add_row(*map(escape, row))  # labels come from files: they are text, never markup
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def report_lost(lost: Lost, what: str) -> None:
    """Say what a step lost, also when it lost nothing."""
    say(f"{what}: {lost}")
    for reason, where in lost.first.items():
        say(f"  {reason}: first at {where.file}:{where.line}")
    for row in lost.spans[:5]:
        say(f"  document {row.document!r}, {row.label} {row.start}-{row.end} {row.text!r}: {row.reason}")
    if len(lost.spans) > 5:
        say(f"  and {len(lost.spans) - 5:,} more")


class Watched:
    """Documents read from a file, with a bar on standard error once it takes longer than people wait gladly."""

    def __init__(
        self,
        path: Path,
        *,
        format: str | None = None,
        complete: bool | None = None,
        options: ReadOptions = ReadOptions(),
        on_error: Any = None,
    ) -> None:
        self.path = path
        self.lost = Lost()
        self.documents = 0
        self._bytes = 0
        self._docs = read(
            path,
            format=format,
            complete=complete,
            options=options,
            lost=self.lost,
            on_error=on_error,
            seen=self._seen,
        )
        if path.suffix == ".txt" and path.is_file():
            say(f"{path}: a single text file is read as one document a line")

    def _seen(self, count: int) -> None:
        self._bytes += count

    def __iter__(self) -> Iterator[Document]:
        start = shown = time.monotonic()
        bar: Progress | None = None
        try:
            for doc in self._docs:
                self.documents += 1
                yield doc
                if self.documents % 256:
                    continue
                now = time.monotonic()
                if bar is None and now - start > PATIENCE:
                    bar = self._bar()
                if bar is not None and now - shown > 0.2:
                    shown = now
                    rate = f"{self.documents / (now - start):,.0f} documents/s"
                    bar.update(bar.task_ids[0], completed=self._bytes, rate=rate)
        finally:
            if bar is not None:
                bar.stop()

    def _bar(self) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        size = sum(file.stat().st_size for file in self.path.rglob("*.txt")) if self.path.is_dir() else None
        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        bar.add_task(self.path.name, total=size if size is not None else self.path.stat().st_size, rate="")
        bar.start()
        return bar


INCOMPLETE = ("weak", "unlabeled")
"""Roles whose labels have gaps; those of the others are complete."""


def read_roles(files: Mapping[str, Iterable[Path] | None], format: str | None, options: ReadOptions) -> Roles:
    """All documents of each role that has files; what was lost in reading is said."""
    found: Roles = {}
    for role, path in ((role, path) for role, paths in files.items() for path in paths or ()):
        docs = Watched(path, format=format, complete=role not in INCOMPLETE, options=options)
        found.setdefault(role, []).extend(docs)
        report_lost(docs.lost, f"read {path} as {role}: {docs.documents:,} documents")
    return found
