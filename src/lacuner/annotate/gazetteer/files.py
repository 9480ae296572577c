"""The bytes of a file that is read as a whole: bounded, and never from a device that does not end."""

from pathlib import Path

from lacuner.corpus.streams import is_device
from lacuner.errors import GazetteerError

MAX_BYTES = 4 << 30


def read_file(file: Path, limit: int = MAX_BYTES) -> bytes:
    """The content of a file; an error if it is a device, or has more than `limit` bytes.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "stop.txt"
    >>> _ = path.write_text("Will")
    >>> read_file(path)
    b'Will'
    """
    try:
        if is_device(file):
            raise GazetteerError("this is a device, not a file", file=file)
        with file.open("rb") as stream:
            data = stream.read(limit + 1)
    except (OSError, ValueError) as error:  # a path with a NUL character is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise GazetteerError(f"cannot read this file: {reason}", file=file) from error
    if len(data) > limit:
        size = f"{limit >> 30} GiB" if limit >> 30 else f"{limit >> 20} MiB"
        raise GazetteerError(f"this file has more than {size}", file=file)
    return data
