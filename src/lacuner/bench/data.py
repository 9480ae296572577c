"""The documents of a cell, and hashes that say what they are."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

from lacuner.annotate import annotate, dictionary_source
from lacuner.annotate.entries import Entry
from lacuner.bench.spec import FILES, DataSpec, is_demo
from lacuner.corpus import read
from lacuner.corpus.jsonl import as_line
from lacuner.demo import Demo, build
from lacuner.errors import ConfigError
from lacuner.noise import Noise, corrupt
from lacuner.recipes.parts import Splits
from lacuner.types import Document


def data_hashes(name: str, data: DataSpec, data_folder: Path) -> dict[str, str]:
    """What the files of a data set are, wherever they lie."""
    if is_demo(name, data):
        demo = _demo()
        digest = hashlib.sha256()
        for doc in (*demo.train, *demo.dev, *demo.test):
            digest.update(as_line(doc).encode())
        digest.update(repr(demo.dictionary).encode())
        return {"demo": digest.hexdigest()}
    folder = data_folder / (data.folder or "")
    files = {role: getattr(data, role) for role in FILES}
    return {role: hashlib.sha256((folder / file).read_bytes()).hexdigest() for role, file in files.items() if file}


@lru_cache(1)
def _demo() -> Demo:
    return build()


class DataSet:
    """A data set at work: reads what is asked for."""

    def __init__(self, name: str, data: DataSpec, data_folder: Path) -> None:
        self.name, self.data = name, data
        self.folder = data_folder / (data.folder or "")
        self.demo = _demo() if is_demo(name, data) else None

    def read(self, role: str) -> list[Document]:
        """Documents by role; of the training files only as many as are wanted."""
        limit = self.data.sentences if role in ("gold", "weak") else None
        if self.demo is not None:
            docs = {"dev": self.demo.dev, "test": self.demo.test}.get(role, self.demo.train)[:limit]
            return _by_dictionary(docs, self.demo) if role == "weak" else docs
        file = getattr(self.data, role)
        if file is None:
            raise ConfigError(f"the data set {self.name} has no {role} file")
        return list(islice(read(self.folder / file, complete=role != "weak"), limit))

    def splits(self, needs: Sequence[str], kind: str | None, rate: float, seed: int) -> Splits:
        """Exactly what a recipe needs, and dev if there is any."""
        given: dict[str, list[Document]] = {}
        if "weak" in needs and kind is not None:
            given["weak"] = self._weak(kind, rate, seed)
        if "gold" in needs:
            given["gold"] = self.read("gold")
        if self.demo is not None or self.data.dev is not None:
            given["dev"] = self.read("dev")
        return Splits(**given)

    def _weak(self, kind: str, rate: float, seed: int) -> list[Document]:
        if kind == "given":
            return self.read("weak")
        return list(corrupt(self.read("gold"), Noise(drop=rate, by_surface=kind == "surface", seed=seed)))

    def commands(self, needs: Sequence[str], kind: str | None, rate: float, seed: int) -> tuple[list[str], list[str]]:
        """How to make the same training data in a shell, and the options that hand it to `lacuner train`."""
        if self.demo is not None:
            steps, train, weak = ["python -m lacuner.demo demo"], "demo/train.gold.jsonl", "demo/weak.jsonl"
            steps += ["lacuner annotate demo/train.jsonl --dictionary demo/dictionary.tsv --out demo/weak.jsonl"]
            steps, dev, place = (steps if kind == "given" else steps[:1]), "demo/dev.jsonl", "demo"
        else:
            place = (Path("DATA") / (self.data.folder or "")).as_posix()
            train, weak, dev = (f"{place}/{file}" if file else "" for file in self._names())
            steps = []
        source = weak if kind == "given" else train
        cut, gold = [], train
        if self.data.sentences is not None:
            cut = [_first(self.data.sentences, path) for path in dict.fromkeys([train, source]) if path]
            source, gold = (Path(path).name for path in (source, train))
        options = [] if "gold" not in needs else ["--gold", gold]
        if "weak" in needs and kind is not None:
            options += ["--weak", source if kind == "given" else "masked.jsonl"]
            names = " --by-surface" if kind == "surface" else ""
            if kind != "given":
                cut.append(f"lacuner noise corrupt {source} --drop {rate:g}{names} --seed {seed} --out masked.jsonl")
        return [*steps, *cut], [*options, *(["--dev", dev] if dev else [])]

    def _names(self) -> tuple[str | None, str | None, str | None]:
        return self.data.gold, self.data.weak, self.data.dev

    @property
    def test_path(self) -> str:
        """Where the test file lies, for the command that scores it."""
        return "demo/test.jsonl" if self.demo else (Path("DATA") / self.folder.name / str(self.data.test)).as_posix()


def _first(count: int, path: str) -> str:
    """The shell's way to the first sentences of a file; a sentence of a column file is a paragraph."""
    name = shlex.quote(Path(path).name)
    if path.endswith(".jsonl"):
        return f"head -n {count} {shlex.quote(path)} > {name}"
    return f"awk -v RS= -v ORS='\\n\\n' 'NR <= {count}' {shlex.quote(path)} > {name}"


def _by_dictionary(docs: list[Document], demo: Demo) -> list[Document]:
    """What the demo's dictionary knows of the documents."""
    return list(annotate(docs, [dictionary_source([Entry(surface, label) for surface, label in demo.dictionary])]))
