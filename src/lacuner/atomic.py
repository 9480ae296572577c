"""Atomic writes: a reader sees the old file or the new one, never half of it."""

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from lacuner.errors import CorpusError

STANDARD_STREAM = Path("-")
"""The name of standard input or standard output in place of a file."""


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A temporary file beside `path` that replaces it on success and is deleted on error; `-` is standard output."""
    path = Path(path)
    if path == STANDARD_STREAM:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    part = path.parent / f".{path.name}.{secrets.token_hex(8)}.part"
    try:
        if path.exists() and not path.is_file():  # a pipe or a device: nothing to protect or to replace
            with path.open("wb") as stream:
                yield stream
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, path)
    except BrokenPipeError:
        raise  # the reader of the pipe has closed it, which is not an error of the user
    except OSError as error:
        raise CorpusError(f"cannot write this file: {error.strerror or error}", file=path) from error
    finally:
        with suppress(OSError):
            part.unlink()
