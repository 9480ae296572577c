"""Atomic writes: a reader sees the old file or the new one, never half of it. Appending writes whole lines.

Files that are read as a whole are regular ones: a device has no end, and a pipe without a writer no beginning.
"""

import errno
import json
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from lacuner.errors import CorpusError

STANDARD_STREAM = Path("-")
"""The name of standard input or standard output in place of a file."""
TEMPORARY = ".temporary"
"""The folder, in a run folder, of data that is needed only while the run is running."""
MAX_FILE = 1 << 30
"""Bytes of a file that is read as a whole."""
_UMASK = os.umask(0o077)
os.umask(_UMASK)  # there is no other way to ask for it


@contextmanager
def atomic_write(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[IO[bytes]]:
    """A temporary file beside `path` that replaces it on success and is deleted on error; `-` is standard output.

    Only the owner can read a `private` file, at any time.
    """
    path = Path(path)
    if path == STANDARD_STREAM:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        if path.exists() and not path.is_file():  # a pipe or a device: nothing to protect or to replace
            with path.open("wb") as stream:
                yield stream
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        part, descriptor = _open_part(path)
        with os.fdopen(descriptor, "wb") as stream:  # closed, and so unlocked, when the part has its name no longer
            try:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
                os.chmod(part, 0o600 if private else 0o666 & ~_UMASK)
                os.replace(part, path)
            except BaseException:
                with suppress(OSError):
                    part.unlink()
                raise
    except BrokenPipeError:
        raise  # the reader of the pipe has closed it, which is not an error of the user
    except OSError as error:
        raise CorpusError(f"cannot write this file: {error.strerror or error}", file=path) from error


def read_regular_file(path: str | os.PathLike[str]) -> bytes:
    """The content of a file in a folder of ours; an OSError if it is a device, a pipe or larger than a gibibyte.

    >>> read_regular_file("/dev/zero")
    Traceback (most recent call last):
    OSError: [Errno 22] not a regular file
    """
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    if status.st_size > MAX_FILE:
        raise OSError(errno.EFBIG, f"larger than {MAX_FILE >> 20:,} MiB")
    return Path(path).read_bytes()


def write_json(path: str | os.PathLike[str], value: Any, *, private: bool = False) -> None:
    """Write a value as a JSON file that people can read; lone surrogates in its texts are kept.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "facts.json"
    >>> write_json(path, {"epochs": 3})
    >>> json.loads(path.read_bytes())
    {'epochs': 3}
    """
    text = json.dumps(value, ensure_ascii=False, indent=1) + "\n"
    with atomic_write(path, private=private) as stream:
        stream.write(text.encode("utf-8", "surrogatepass"))


def write_json_lines(path: str | os.PathLike[str], rows: Iterable[Any], *, private: bool = False) -> None:
    """Write one JSON value per line; lone surrogates in their texts are kept.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rows.jsonl"
    >>> write_json_lines(path, [{"text": "Mara\\ud800"}])
    >>> json.loads(path.read_bytes().decode("utf-8", "surrogatepass"))
    {'text': 'Mara\\ud800'}
    """
    with atomic_write(path, private=private) as stream:
        for row in rows:
            stream.write((json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass"))


def _open_part(path: Path) -> tuple[Path, int]:
    """A new, empty file beside `path` that only its owner can read, and its descriptor.

    Its name is the same each time, so that what a killed process has left is overwritten by the next one. If another
    process is writing to the same path, which its lock shows, the name is a random one.
    """
    part = path.parent / f".{path.name}.part"
    with suppress(OSError, ImportError):
        import fcntl  # here, because Windows has no such module

        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            own = os.fstat(descriptor)
            # meanwhile, the other process may have moved its file to its place: then this is no longer a part
            if own.st_uid == os.geteuid() and own.st_nlink == 1 and os.path.samestat(own, os.stat(part)):
                os.fchmod(descriptor, 0o600)
                os.ftruncate(descriptor, 0)
                return part, descriptor
            os.close(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
    part = path.parent / f".{path.name}.{os.urandom(8).hex()}.part"
    return part, os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


@contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """A folder for data that others must not read. If the process is killed, the next one with this parent removes it.

    The caller holds the lock of the parent.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent, temporary_folder(Path(parent)) as folder:
    ...     folder.name, oct(folder.stat().st_mode)
    ('.temporary', '0o40700')
    """
    folder = parent / TEMPORARY
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def append_line(path: str | os.PathLike[str], line: bytes) -> None:
    """Append a line to a file and wait until it is on the disk. Only the owner can read a file that this creates.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "log.jsonl"
    >>> append_line(path, b"{}")
    >>> path.read_bytes()
    b'{}\\n'
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            data = memoryview(line + b"\n")
            while data:
                data = data[os.write(descriptor, data) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if is_new:  # otherwise a crash of the machine could lose the name of the file
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as error:
        raise CorpusError(f"cannot write this file: {error.strerror or error}", file=path) from error


def end_last_line(path: str | os.PathLike[str], is_whole: Callable[[bytes], bool]) -> None:
    """Repair the end of a file of lines after a crash: end its last line if that is whole, otherwise remove it.

    The caller holds the lock under which lines are appended.
    """
    path = Path(path)
    try:
        if not path.exists() or not path.stat().st_size:
            return
        with path.open("rb+") as stream:
            stream.seek(-1, os.SEEK_END)
            if stream.read(1) == b"\n":
                return
            stream.seek(0)
            data = stream.read()
            start = data.rfind(b"\n") + 1
            if is_whole(data[start:]):
                stream.write(b"\n")
            else:
                stream.truncate(start)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise CorpusError(f"cannot write this file: {error.strerror or error}", file=path) from error
