"""Bytes in and out: plain or compressed files, standard input and standard output.

Compression is recognised by the first bytes of an input and by the ending of an output. A pipe can be read only once,
so its beginning, which is needed to detect the format, is kept.
"""

import bz2
import gzip
import io
import lzma
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import IO, Any, BinaryIO

from lacuner.atomic import STANDARD_STREAM, atomic_write

HEAD = 1 << 20
"""Bytes at the beginning of an input from which format and layout are detected."""
MAX_WINDOW = 1 << 27
"""Bytes of memory that a zstd or xz file may ask for; xz needs half as much at its highest level."""


def is_device(path: Path) -> bool:
    """Whether a path is a device, which may have no end: it is never read as a whole.

    >>> is_device(Path("/dev/zero")), is_device(Path("-"))
    (True, False)
    """
    return path.is_char_device() or path.is_block_device()


class _Frames(io.RawIOBase):
    """A decompressed stream of zstd frames or xz streams, with the errors of the standard library's decompressors.

    zstandard's own stream takes a truncated file for a complete one, and `lzma.open` has no limit of memory. Frames are
    fed in small pieces, because each kilobyte may become 32 megabytes.
    """

    def __init__(self, stream: BinaryIO, new_frame: Callable[[], Any], error: type[Exception], padding: bytes) -> None:
        self._stream, self._new_frame, self._error, self._padding = stream, new_frame, error, padding
        self._frame, self._output = new_frame(), bytearray()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self._output) < size:
            data = self._stream.read(1024)
            if not data:
                if not self._frame.eof:
                    raise EOFError("the file ends in the middle of its compressed data")
                break
            try:
                self._unpack(data)
            except self._error as error:
                raise OSError(str(error)) from error
        taken = bytes(self._output[:size] if size >= 0 else self._output)
        del self._output[: len(taken)]
        return taken

    def _unpack(self, data: bytes) -> None:
        while data:
            if self._frame.eof:
                data = data.lstrip(self._padding)
                if not data:
                    return
                self._frame = self._new_frame()
            self._output += self._frame.decompress(data)
            data = self._frame.unused_data


def _open_zstd(stream: BinaryIO) -> _Frames:
    import zstandard

    return _Frames(
        stream, zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).decompressobj, zstandard.ZstdError, b""
    )


def _open_xz(stream: BinaryIO) -> _Frames:
    new_frame = partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, MAX_WINDOW)
    return _Frames(stream, new_frame, lzma.LZMAError, b"\0")


def _write_zstd(stream: IO[bytes]) -> Any:
    import zstandard

    return zstandard.ZstdCompressor().stream_writer(stream, closefd=False)


MAGIC: dict[bytes, Callable[[BinaryIO], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": _open_xz,
    b"\x28\xb5\x2f\xfd": _open_zstd,
}
"""First bytes of a compressed file, and how it is opened."""
COMPRESSED: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": lambda stream: gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0, compresslevel=6),
    ".bz2": partial(bz2.open, mode="wb"),
    ".xz": partial(lzma.open, mode="wb"),
    ".zst": _write_zstd,
}
"""Endings of compressed files, and how they are written: without name and time, so that equal texts are equal files."""


class _Counted(io.RawIOBase):
    """A stream that begins with bytes already read from it, and counts what is taken from it."""

    def __init__(self, beginning: bytes, stream: BinaryIO) -> None:
        self._beginning, self._stream, self.taken = beginning, stream, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._beginning:
            data = self._beginning if size < 0 else self._beginning[:size]
            self._beginning = self._beginning[len(data) :]
        else:
            data = self._stream.read(size)
        self.taken += len(data)
        return data


class Input:
    """A file, a pipe or standard input, decompressed while it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._head: bytes | None = None
        self._rest: tuple[_Counted, BinaryIO] | None = None

    @cached_property
    def is_pipe(self) -> bool:
        """Whether it can be read only once: standard input, a named pipe or a device."""
        return self.path == STANDARD_STREAM or not (self.path.is_file() or self.path.is_dir())

    def head(self) -> bytes:
        """The first `HEAD` bytes, decompressed; fewer if the input is shorter or damaged after them."""
        if self._head is None:
            if self.is_pipe:
                raw = sys.stdin.buffer if self.path == STANDARD_STREAM else self.path.open("rb")
                self._rest = _decompress(raw)
                self._head = _read_up_to(self._rest[1], HEAD)
            else:
                with self.path.open("rb") as file:
                    self._head = _read_up_to(_decompress(file)[1], HEAD)
        return self._head

    @contextmanager
    def open(self) -> Iterator[tuple[BinaryIO, Callable[[], int]]]:
        """The decompressed stream, and a function that tells how many bytes of the file were taken so far."""
        if self.is_pipe:
            head = self.head()
            assert self._rest is not None
            counted, stream = self._rest
            yield _Counted(head, stream), lambda: counted.taken  # type: ignore[misc]
            return
        with self.path.open("rb") as file:
            counted, stream = _decompress(file)
            yield stream, lambda: counted.taken


def _decompress(raw: BinaryIO) -> tuple[_Counted, BinaryIO]:
    start = raw.read(max(map(len, MAGIC)))
    counted = _Counted(start, raw)
    for magic, opener in MAGIC.items():
        if start.startswith(magic):
            return counted, opener(counted)  # type: ignore[arg-type]
    return counted, counted  # type: ignore[return-value]


def _read_up_to(stream: BinaryIO, size: int) -> bytes:
    """As many bytes as there are, up to `size`; damage after the first of them is left to the reader."""
    parts: list[bytes] = []
    while size > 0:
        try:
            data = stream.read(min(size, 1 << 16))
        except (OSError, EOFError, lzma.LZMAError, ValueError):
            if not parts:
                raise
            break
        if not data:
            break
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


@contextmanager
def open_output(path: Path) -> Iterator[IO[bytes]]:
    """A stream that becomes the file `path` when all is written; compressed if the ending says so, `-` is stdout.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "texts.txt.gz"
    >>> with open_output(file) as stream:
    ...     _ = stream.write(b"Mara left")
    >>> Input(file).head()
    b'Mara left'
    """
    compress = COMPRESSED.get(path.suffix.lower())
    with atomic_write(path) as stream:
        if compress is None:
            yield stream
        else:
            with compress(stream) as packed:
                yield packed


def format_ending(path: Path) -> str:
    """The ending that names the format, in lower case.

    >>> format_ending(Path("gold.CONLL.gz"))
    '.conll'
    """
    ending = path.suffix.lower()
    return Path(path.stem).suffix.lower() if ending in COMPRESSED else ending
