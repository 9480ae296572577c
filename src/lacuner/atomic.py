"""Atomic writes: a reader sees the old file or the new one, never half of it."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from lacuner.errors import CorpusError


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A temporary file beside `path` that replaces it on success and is deleted on error."""
    path = Path(path)
    name: str | None = None
    try:
        if path.exists() and not path.is_file():  # a pipe or a device: nothing to protect or to replace
            with path.open("wb") as stream:
                yield stream
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, 0o666 & ~_umask())  # mkstemp makes files that only the owner may read
        os.replace(name, path)
    except BrokenPipeError:
        raise  # the reader of the pipe has closed it, which is not an error of the user
    except OSError as error:
        raise CorpusError(f"cannot write this file: {error.strerror or error}", file=path) from error
    finally:
        if name is not None and os.path.exists(name):
            os.unlink(name)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
