"""Files with one result row per cell. What a row must contain is checked: such files are copied and merged by hand."""

import base64
import binascii
import json
import re
import zlib
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from lacuner.atomic import atomic_write, read_regular_file
from lacuner.errors import ConfigError

Row = dict[str, Any]
"""The result of a cell: one JSON object, in `results.jsonl` and in a file of its own below `cells/`."""
MAX_COUNTS = 1 << 26
"""Bytes of the counts of a row, unpacked: ten million sentences."""


class _Part(BaseModel):
    """Rows of other versions may have more keys."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)


class _F1(_Part):
    f1: float


class _Scores(_F1):
    precision: float
    recall: float


class _Cost(_Part):
    train_cpu_seconds: float
    test_cpu_seconds: float
    peak_mb: float


class _Accuracy(_Part):
    words: float
    spans: float
    sentences: float


class _Epoch(_Part):
    dev: _F1 = _F1(f1=0.0)


class _Sampling(_Part):
    missampling: float


class _Head(_Part):
    head: dict[str, Any] | None = None


def _check_key(key: str) -> str:
    if not re.fullmatch("[0-9a-f]{20}", key):
        raise PydanticCustomError("key", "must be a hash of 20 digits")
    return key


def _check_counts(text: str) -> str:
    unpack_counts(text)
    return text


class _Named(_Part):
    key: Annotated[str, AfterValidator(_check_key)]
    """It is used as a file name."""
    config: dict[str, Any]


class _Failed(_Named):
    error: str


class _Finished(_Named):
    code: str
    test: _Scores
    boundary: _F1
    dev: _F1 | None
    cost: _Cost
    epochs: list[_Epoch]
    sentences_test: Annotated[str, AfterValidator(_check_counts)]
    accuracy: _Accuracy = _Accuracy(words=0.0, spans=0.0, sentences=0.0)
    sampling: list[_Sampling] = Field(default_factory=list)
    contents: dict[str, str] = Field(default_factory=dict)
    model: _Head | None = None


def parse_row(text: str, file: Path) -> Row:
    """Parse a row, or say what is wrong with it.

    >>> parse_row('{"key": "0123456789abcdef0123", "config": {}, "error": "no labels"}', Path("x.jsonl"))["error"]
    'no labels'
    >>> parse_row('{"key": "../x", "config": {}, "error": ""}', Path("x.jsonl"))
    Traceback (most recent call last):
    lacuner.errors.ConfigError: x.jsonl: this row is no result of a bench: key must be a hash of 20 digits; remove it
    """
    try:
        row = json.loads(text)
        (_Failed if isinstance(row, dict) and "error" in row else _Finished).model_validate(row)
        json.dumps(row, ensure_ascii=False).encode()  # half of a surrogate pair cannot be written again
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))[:60] or "it"
        problem = f"{place} {first['msg'][:1].lower()}{first['msg'][1:]}"
        raise ConfigError(f"this row is no result of a bench: {problem}; remove it", file=file) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError("this row is no result of a bench: it is not JSON; remove it", file=file) from error
    return dict(row)


def read_rows(folder: Path) -> dict[str, Row]:
    """Read the rows of `results.jsonl`, which may have been copied without `cells/`, then those of `cells/`, by key."""
    rows = read_table(folder / "results.jsonl")
    rows += [read_row(path) for path in sorted((folder / "cells").glob("*.json"))]
    return {row["key"]: row for row in rows}


def read_table(path: Path) -> list[Row]:
    """Read a `results.jsonl`; without a file there are no rows."""
    return [parse_row(line, path) for line in _read_text(path).split("\n") if line] if path.exists() else []


def read_row(path: Path) -> Row:
    """Read the file of a single row."""
    return parse_row(_read_text(path), path)


def _read_text(path: Path) -> str:
    try:
        return read_regular_file(path).decode("utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read this file: {error.strerror}", file=path) from error
    except UnicodeDecodeError as error:
        raise ConfigError("this file is not UTF-8, so it has no results of a bench", file=path) from error


def write_row(path: Path, row: Row) -> None:
    """Write a single row to a file."""
    with atomic_write(path) as stream:
        stream.write(row_line(row).encode())


def row_line(row: Row) -> str:
    """Format a row as one line of JSON with sorted keys."""
    return json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n"


def pack_counts(counts: np.ndarray) -> str:
    """Encode counts per sentence, `[sentences, 3]`, as text: 16-bit columns, deflated, in base 64.

    >>> unpack_counts(pack_counts(np.array([[1, 2, 3], [0, 0, 1]]))).tolist()
    [[1, 2, 3], [0, 0, 1]]
    """
    data = np.ascontiguousarray(counts.T, dtype="<u2").tobytes()
    return base64.b64encode(zlib.compress(data, 9)).decode()


def unpack_counts(text: str) -> np.ndarray:
    """Decode the result of `pack_counts`."""
    try:
        packed = zlib.decompressobj()
        data = packed.decompress(base64.b64decode(text, validate=True), MAX_COUNTS)
        if packed.unconsumed_tail or not packed.eof or len(data) % 6:
            raise ValueError
    except (ValueError, zlib.error, binascii.Error) as error:
        raise PydanticCustomError("counts", "must be packed counts of sentences") from error
    return np.frombuffer(data, dtype="<u2").reshape(3, -1).T.astype(np.int64)
