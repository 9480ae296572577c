"""Write the demo corpus to files."""

from dataclasses import replace
from os import PathLike
from pathlib import Path

from lacuner.atomic import atomic_write
from lacuner.corpus import write
from lacuner.demo.build import build, dictionary_tsv


def write_demo(folder: str | PathLike[str], seed: int = 1) -> dict[str, Path]:
    """Write the demo corpus into a folder and return the files by name.

    `train` has texts without labels; `train.gold` has their gold labels, to measure with.
    """
    demo = build(seed)
    folder = Path(folder)
    bare = [replace(doc, spans=(), complete=None) for doc in demo.train]
    splits = {"train": bare, "train.gold": demo.train, "dev": demo.dev, "test": demo.test}
    files = {name: folder / f"{name}.jsonl" for name in splits}
    for name, docs in splits.items():
        write(docs, files[name])
    files["dictionary"] = folder / "dictionary.tsv"
    with atomic_write(files["dictionary"]) as stream:
        stream.write(dictionary_tsv(demo).encode())
    return files
