"""Folders of files that are all in one format, perhaps the splits of a data set."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from lacuner.corpus.reader import CorpusFile
from lacuner.data import Where

_SPLIT_NAMES = {"train", "training", "dev", "devel", "valid", "val", "validation", "test", "testing"}
_HIDDEN = re.compile(r"[.~]|__MACOSX")
"""Beginnings of names of files and folders that programs leave beside data, such as `._text.txt`."""
_NOTES = re.compile(r"(readme|licen[cs]e|changelog|citation)\b", re.IGNORECASE)
"""Beginnings of names of files that describe data."""


def visible_paths(folder: CorpusFile) -> list[Path]:
    """The files below a folder that are not hidden, by name."""
    paths = [path for path in folder.path.rglob("*") if path.is_file()]
    return sorted(path for path in paths if not any(map(_HIDDEN.match, path.relative_to(folder.path).parts)))


def data_paths(folder: CorpusFile) -> list[Path]:
    """The files below a folder that may be data, by name."""
    paths = visible_paths(folder)
    return [path for path in paths if not any(map(_NOTES.match, path.relative_to(folder.path).parts))]


def count_others(folder: CorpusFile, reason: str, paths: Iterable[Path], chosen: Iterable[Path]) -> None:
    """Count the files of a folder that are not read, and name the first."""
    read = {*chosen}
    others = [path.relative_to(folder.path).as_posix() for path in paths if path not in read]
    folder.lost.count(reason, len(others), Where(others[0]) if others else None)


def choose_files(folder: CorpusFile, is_readable: Callable[[CorpusFile], bool]) -> list[CorpusFile]:
    """The files of a folder to be read in some format: those that are in it, or all if none is recognised as such.

    If they are splits of a data set, those of one. The id of a document without one is `FILE:NUMBER`.
    """
    paths = data_paths(folder)
    chosen = [path for path in paths if is_readable(folder.at(path))] or paths
    if not chosen:
        raise folder.error("there is no file in this folder")
    count_others(folder, "file in another format not read", paths, chosen)
    chosen = choose_split(folder, {path: split_name(path) for path in chosen})
    names = [path.relative_to(folder.path).as_posix() for path in chosen]
    return [replace(folder, path=path, id_prefix=f"{name}:") for path, name in zip(chosen, names, strict=True)]


def split_name(path: Path) -> str:
    """The split of a data set that a file name tells, if any.

    >>> split_name(Path("test-00000-of-00002.parquet")), split_name(Path("train.jsonl.gz")), split_name(Path("a.txt"))
    ('test', 'train', '')
    """
    name = re.sub(r"-\d{5}-of-\d{5}$", "", path.name.partition(".")[0])
    return name if name.lower() in _SPLIT_NAMES else ""


def choose_split(folder: CorpusFile, splits: Mapping[Path, str]) -> list[Path]:
    """The files of one split, given the split of each file: the only one, or that of `--split`."""
    names = list(dict.fromkeys(filter(None, splits.values())))
    split = folder.options.split
    if split is None and len(names) > 1:
        raise folder.error(f"this data set has the splits {', '.join(names)}: choose one with --split")
    if split is not None and split not in names:
        advice = f"--split is one of {', '.join(names)}" if names else "no file is named after a split"
        raise folder.error(f"there is no split {split!r}: {advice}")
    return [path for path, name in splits.items() if split in (None, name)]
