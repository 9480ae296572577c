"""Result rows: one JSON object per grid cell, in `results.jsonl` and in single files below `cells/`."""

import json
import re
from pathlib import Path
from typing import Any

from lacuner.atomic import atomic_write
from lacuner.errors import ConfigError

Row = dict[str, Any]
_KEY = re.compile("[0-9a-f]{20}")


def parse_row(text: str, file: Path) -> Row:
    """Parse a row. Its key must be a hash, because it is used as a file name.

    >>> parse_row('{"key": "../../precious"}', Path("results.jsonl"))
    Traceback (most recent call last):
    lacuner.errors.ConfigError: results.jsonl: ...
    """
    try:
        row = json.loads(text)
        valid = _KEY.fullmatch(row["key"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigError("this file has a row that is no result of a bench: remove that row", file=file) from error
    if not valid:
        raise ConfigError(f"{row['key']!r} is not the key of a result: remove that row", file=file)
    return dict(row)


def read_rows(folder: Path) -> dict[str, Row]:
    """Read the rows of `results.jsonl`, which may have been copied without `cells/`, then those of `cells/`, by key."""
    rows = read_table(folder / "results.jsonl")
    rows += [read_row(path) for path in sorted((folder / "cells").glob("*.json"))]
    return {row["key"]: row for row in rows}


def read_table(path: Path) -> list[Row]:
    """Read a `results.jsonl`; without a file there are no rows."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [parse_row(line, path) for line in lines]


def read_row(path: Path) -> Row:
    """Read the file of a single row."""
    return parse_row(path.read_text(encoding="utf-8"), path)


def write_row(path: Path, row: Row) -> None:
    """Write a single row to a file."""
    with atomic_write(path) as stream:
        stream.write(row_line(row).encode())


def row_line(row: Row) -> str:
    """Format a row as one line of JSON with sorted keys."""
    return json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n"
