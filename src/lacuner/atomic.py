"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from lacuner.errors import CorpusError


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A temporary file beside `path`: on success it takes the place of `path` in one step, on error it vanishes."""
    path = Path(path)
    try:
        if path.exists() and not path.is_file():  # a pipe or a device: there is nothing to protect or to replace
            with path.open("wb") as stream:
                yield stream
            return
    except BrokenPipeError:
        raise  # its reader has gone, which is no mistake
    except OSError as error:
        raise CorpusError(f"cannot write this file: {error.strerror or error}", file=path) from error
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise CorpusError(f"cannot write here: {error.strerror}", file=path) from error
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, 0o666 & ~_umask())  # mkstemp makes files that only the owner may read
        os.replace(name, path)
    except OSError as error:
        raise CorpusError(f"cannot write this file: {error.strerror or error}", file=path) from error
    finally:
        if os.path.exists(name):
            os.unlink(name)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
