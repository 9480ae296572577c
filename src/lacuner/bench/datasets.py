"""The documents of a cell, and hashes that say what they are."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

from lacuner.annotate import annotate, gazetteer_source
from lacuner.annotate.gazetteer.entries import Entry
from lacuner.bench.gold_subset import little_command, little_gold
from lacuner.bench.spec import FILES, LITTLE, MADE, DataSpec, is_demo
from lacuner.corpus import read
from lacuner.corpus.jsonl import as_line
from lacuner.data import Document, Splits
from lacuner.demo import Demo, build
from lacuner.errors import ConfigError
from lacuner.noise import Noise, corrupt


def data_hashes(name: str, data: DataSpec, data_folder: Path) -> dict[str, str]:
    """What the files of a data set are, wherever they lie."""
    if is_demo(name, data):
        demo = _demo()
        digest = hashlib.sha256()
        for doc in (*demo.train, *demo.dev, *demo.test):
            digest.update(as_line(doc).encode())
        digest.update(repr(demo.dictionary).encode())
        hashes = {"demo": digest.hexdigest()}
    else:
        folder = data_folder / (data.folder or "")
        files = {role: getattr(data, role) for role in FILES}
        hashes = {r: hashlib.sha256((folder / file).read_bytes()).hexdigest() for r, file in files.items() if file}
    return hashes if data.dev_sentences is None else {**hashes, "dev sentences": str(data.dev_sentences)}


def _noise(kind: str, rate: float, seed: int) -> Noise:
    """What is done to gold. Of what is not given another type `shift` takes its share, so that both have as many."""
    wrong = rate / 2 if kind == "wrong" else 0.0
    return Noise(drop=rate, by_surface=kind == "surface", wrong_type=wrong, shift=wrong / (1 - wrong), seed=seed)


@lru_cache(1)
def _demo() -> Demo:
    return build()


class DataSet:
    """A data set at work: reads what is asked for."""

    def __init__(self, name: str, data: DataSpec, data_folder: Path) -> None:
        self.name, self.data = name, data
        self.folder = data_folder / (data.folder or "")
        self.demo = _demo() if is_demo(name, data) else None

    @property
    def has_gold(self) -> bool:
        """Whether the truth about the training sentences is there."""
        return self.demo is not None or self.data.gold is not None

    def read(self, role: str) -> list[Document]:
        """Documents by role; of the training files only as many as are wanted."""
        limit = self.data.dev_sentences if role == "dev" else self.data.sentences if role in ("gold", "weak") else None
        if self.demo is not None:
            docs = {"dev": self.demo.dev, "test": self.demo.test}.get(role, self.demo.train)[:limit]
            return _by_dictionary(docs, self.demo) if role == "weak" else docs
        file = getattr(self.data, role)
        if file is None:
            raise ConfigError(f"the data set {self.name} has no {role} file")
        return list(islice(read(self.folder / file, complete=role not in ("weak", "extra")), limit))

    def splits(
        self, needs: Sequence[str], kind: str | None, rate: float, seed: int, weak_sentences: int | None = None
    ) -> Splits:
        """Exactly what a recipe needs, and dev if there is any."""
        given: dict[str, list[Document]] = {}
        if kind == LITTLE:
            weak = self._weak("given", rate, seed) if "weak" in needs else []
            gold, weak = little_gold(self.read("gold"), weak, rate, seed, weak_sentences)
            given = {role: docs for role, docs in (("gold", gold), ("weak", weak)) if role in needs}
        elif "weak" in needs and kind is not None:
            given["weak"] = self._weak(kind, rate, seed)
        if "gold" in needs and "gold" not in given:
            given["gold"] = self.read("gold")
        if self.demo is not None or self.data.dev is not None:
            given["dev"] = self.read("dev")
        return Splits(**given)

    def _weak(self, kind: str, rate: float, seed: int) -> list[Document]:
        if kind == "given":
            return self.read("weak") + (self.read("extra") if self.data.extra else [])
        return list(corrupt(self.read("gold"), _noise(kind, rate, seed)))

    def commands(
        self, needs: Sequence[str], kind: str | None, rate: float, seed: int, weak_sentences: int | None = None
    ) -> tuple[list[str], list[str]]:
        """How to make the same training data in a shell, and the options that hand it to `lacuner train`."""
        files, steps = self._paths(), []
        made = "weak" in needs and kind in MADE
        own = "weak" in needs and kind in ("given", LITTLE)
        if self.demo is not None:
            steps.append("python -m lacuner.demo demo")
        if self.demo is not None and (kind == "given" or (kind == LITTLE and own)):
            steps.append(f"lacuner annotate demo/train.jsonl --dictionary demo/dictionary.tsv --out {files['weak']}")
        wanted = ["gold"] if "gold" in needs or made or kind == LITTLE else []
        wanted += ["weak"] if own else []
        if self.data.sentences is not None:
            steps += [_first(self.data.sentences, files[role]) for role in wanted]
            files |= {role: Path(files[role]).name for role in wanted}
        if self.data.dev_sentences is not None and "dev" in files:
            steps.append(_first(self.data.dev_sentences, files["dev"]))
            files["dev"] = Path(files["dev"]).name
        if made:
            noise = _noise(kind or "", rate, seed)
            how = " --by-surface" if noise.by_surface else ""
            how += f" --wrong-type {noise.wrong_type} --shift {noise.shift}" if kind == "wrong" else ""
            corrupted = f"lacuner noise corrupt {shlex.quote(files['gold'])} --drop {noise.drop:g}{how} --seed {seed}"
            steps.append(f"{corrupted} --out masked.jsonl")
            files["weak"] = "masked.jsonl"
        if kind == LITTLE:
            weak = [files["weak"], *([files["extra"]] if self.data.extra else [])] if own else []
            steps.append(little_command(files["gold"], weak, rate, seed, weak_sentences))
            files |= {"gold": "little/gold.jsonl", "weak": "little/weak.jsonl"}
        roles = [role for role in ("weak", "gold") if role in needs] + (["dev"] if "dev" in files else [])
        options = [part for role in roles for part in (f"--{role}", files[role])]
        if "weak" in needs and kind == "given" and self.data.extra:
            options += ["--weak", files["extra"]]
        return steps, options

    def _paths(self) -> dict[str, str]:
        """The files by role, as somebody with the data folder in DATA would write them."""
        if self.demo is not None:
            names = {"gold": "train.gold", "weak": "weak", "dev": "dev", "test": "test"}
            return {role: f"demo/{name}.jsonl" for role, name in names.items()}
        place = Path("DATA") / (self.data.folder or "")
        names = {role: getattr(self.data, role) for role in FILES}
        return {role: (place / name).as_posix() for role, name in names.items() if name}

    @property
    def test_path(self) -> str:
        """Where the test file lies, for the command that scores it."""
        return shlex.quote(self._paths()["test"])


def _first(count: int, path: str) -> str:
    """The shell's way to the first sentences of a file; a sentence of a column file is a paragraph."""
    name = shlex.quote(Path(path).name)
    if path.endswith(".jsonl"):
        return f"head -n {count} {shlex.quote(path)} > {name}"
    return f"awk -v RS= -v ORS='\\n\\n' 'NR <= {count}' {shlex.quote(path)} > {name}"


def _by_dictionary(docs: list[Document], demo: Demo) -> list[Document]:
    """What the demo's dictionary knows of the documents."""
    return list(annotate(docs, [gazetteer_source([Entry(surface, label) for surface, label in demo.dictionary])]))
