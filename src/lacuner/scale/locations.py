"""Files here or elsewhere: a path, or a URL that fsspec understands (`s3://`, `gs://`, `hf://`, `file://` ...)."""

from __future__ import annotations

import json
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lacuner.atomic import atomic_write
from lacuner.errors import ConfigError, need_library


def is_url(text: object) -> bool:
    """Whether a location is a URL.

    >>> is_url("s3://bucket/texts"), is_url("texts/2026")
    (True, False)
    """
    return "://" in str(text)


def location(text: str) -> Path:
    """A path, or an object that reads like one if the text is a URL.

    >>> location("texts/a.jsonl").name
    'a.jsonl'
    """
    if not is_url(text):
        return Path(text)
    with need_library(f"{text}: URLs need fsspec", "lacuner[scale]"):
        from upath import UPath
    try:
        place: Any = UPath(text)
        place.exists()  # an unknown protocol, or one whose library is missing
    except Exception as error:  # each protocol has errors of its own: no library, no connection, no credentials
        raise ConfigError(f"{text}: fsspec cannot open this URL: {error or type(error).__name__}") from error
    opened: Path = place
    return opened


@contextmanager
def open_for_writing(place: Path) -> Iterator[Path]:
    """A local path to write to. What is written there by `atomic_write` appears at `place` in one step.

    For a path that is the path itself. For a URL it is a private temporary file, which is uploaded under another name
    and then renamed.
    """
    if not is_url(place):
        yield place
        return
    with tempfile.TemporaryDirectory() as folder:  # 0700
        local = Path(folder) / place.name
        yield local
        files: Any = place.fs  # type: ignore[attr-defined]
        # a name of its own: Ray tries a shard again if a machine does not answer, which may still be writing
        part = str(place.parent / f".{place.name}.{secrets.token_hex(8)}.part")
        files.makedirs(str(place.parent), exist_ok=True)
        try:
            files.put_file(str(local), part)
            files.mv(part, str(place))
        except BaseException:
            with suppress(Exception):
                files.rm(part)
            raise


def write_file(place: Path, data: bytes, *, private: bool = False) -> None:
    """Write a file in one step."""
    with open_for_writing(place) as local, atomic_write(local, private=private) as stream:
        stream.write(data)


def remove_folder(place: Path) -> None:
    """Remove a folder at a URL, if it exists."""
    files: Any = place.fs  # type: ignore[attr-defined]
    if place.exists():
        files.rm(str(place), recursive=True)


def write_json(place: Path, value: Any, indent: int | None = None) -> None:
    """Write a value as JSON, equal values as equal bytes."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, sort_keys=True) + "\n"
    write_file(place, text.encode("utf-8", "surrogatepass"))  # a file's name need not be Unicode


def read_json(place: Path) -> Any:
    """The value in a file; None if there is no such file, or it is not JSON."""
    try:
        return json.loads(place.read_bytes())
    except (FileNotFoundError, ValueError, RecursionError):
        return None
