"""Arrays that may be larger than memory: written to files part by part, then mapped into memory.

A folder has one file of plain numbers per array, and `arrays.json` with what the arrays were made from (`identity`),
their types and shapes, and other facts. It is written last: a folder without it is not finished.
"""

import json
import mmap
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, NamedTuple
from weakref import WeakSet

import numpy as np

from lacuner.atomic import atomic_write, read_regular_file
from lacuner.errors import CorpusError

Parts = Iterable[Mapping[str, np.ndarray]]
"""The parts of some arrays in order, by the name of the array; not every part has all arrays."""
INDEX = "arrays.json"
_maps: WeakSet[mmap.mmap] = WeakSet()
"""All files that are mapped now."""


class ArrayFolder(NamedTuple):
    """The arrays of a folder, mapped and read-only, and the facts that were stored with them."""

    folder: Path
    arrays: dict[str, np.ndarray]
    facts: Any


def join_parts(parts: Parts) -> dict[str, np.ndarray]:
    """Concatenate the parts of each array, in memory.

    >>> join_parts([{"ids": np.array([1, 2])}, {"ids": np.array([3])}])["ids"].tolist()
    [1, 2, 3]
    """
    columns: dict[str, list[np.ndarray]] = {}
    for part in parts:
        for name, array in part.items():
            columns.setdefault(name, []).append(array)
    return {name: np.concatenate(columns.pop(name)) for name in list(columns)}  # two copies of one column at most


def write_arrays(folder: Path, identity: Any, parts: Parts, facts: Callable[[], Any] = dict) -> None:
    """Write arrays to a folder, part by part; what `facts` returns after the last part is stored as JSON.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_arrays(folder, "v1", [{"ids": np.array([1, 2])}, {"ids": np.array([3])}], lambda: {"words": 3})
    >>> opened = open_arrays(folder, "v1")
    >>> opened.arrays["ids"].tolist(), opened.facts
    ([1, 2, 3], {'words': 3})
    >>> open_arrays(folder, "v2") is None  # made from something else
    True
    """
    (folder / INDEX).unlink(missing_ok=True)
    index: dict[str, dict[str, Any]] = {}
    with ExitStack() as stack:
        streams: dict[str, IO[bytes]] = {}
        for part in parts:
            for name, array in part.items():
                if name not in streams:
                    streams[name] = stack.enter_context(atomic_write(folder / f"{name}.bin", private=True))
                    index[name] = {"type": array.dtype.str, "length": 0, "row": list(array.shape[1:])}
                assert index[name]["type"] == array.dtype.str, "the parts of an array have one type"
                index[name]["length"] += len(array)
                streams[name].write(np.ascontiguousarray(array).data if array.size else b"")
    content = {"identity": identity, "arrays": index, "facts": facts()}
    with atomic_write(folder / INDEX, private=True) as stream:
        stream.write(json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def open_arrays(folder: Path, identity: Any) -> ArrayFolder | None:
    """Map the arrays of a folder; None if it is not finished, or was made from something else."""
    try:
        content = json.loads(read_regular_file(folder / INDEX).decode("utf-8", "surrogatepass"))
        if content["identity"] != identity:
            return None
        if not all(name.isidentifier() for name in content["arrays"]):
            raise ValueError("a name that is not one of ours, and might be a path")
        arrays = {name: _map(folder / f"{name}.bin", entry) for name, entry in content["arrays"].items()}
        return ArrayFolder(folder, arrays, content["facts"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorpusError("this prepared data is damaged: delete the folder", file=folder) from error


def _map(path: Path, entry: Mapping[str, Any]) -> np.ndarray:
    dtype, shape = np.dtype(entry["type"]), (int(entry["length"]), *map(int, entry["row"]))
    if dtype.hasobject or path.stat().st_size != dtype.itemsize * int(np.prod(shape)):
        raise ValueError("an array does not have the size that it should have")
    if not path.stat().st_size:
        return np.zeros(shape, dtype=dtype)
    with path.open("rb") as stream:
        mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    _maps.add(mapped)
    return np.frombuffer(mapped, dtype=dtype).reshape(shape)


def release_pages() -> None:
    """Release the pages of mapped arrays that were read; they are read again when they are needed.

    The kernel would release them only when memory runs out. Loops over a corpus call this now and then.
    """
    if hasattr(mmap, "MADV_DONTNEED"):
        for mapped in list(_maps):
            mapped.madvise(mmap.MADV_DONTNEED)
