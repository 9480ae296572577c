"""The data sets of a benchmark: the documents of a cell, and the shell commands that make the same files."""

import hashlib
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from pathlib import Path

from lacuner.annotate import annotate, gazetteer_source, load_gazetteer
from lacuner.annotate.gazetteer.entries import Entry
from lacuner.bench.gold_subset import select_gold_subset, subset_command
from lacuner.bench.spec import FILES, GOLD_SUBSET, PROFILE, DataSpec, NoiseLevel, is_demo
from lacuner.corpus import read
from lacuner.corpus.jsonl import as_line
from lacuner.data import Document, Splits
from lacuner.demo import build
from lacuner.errors import ConfigError
from lacuner.models.gazetteer import TaggerGazetteer
from lacuner.noise import Noise, corrupt, noise_profile

_demo = cache(build)
_DEMO_FILES = {"gold": "train.gold", "weak": "weak", "dev": "dev", "test": "test"}


def data_hashes(name: str, data: DataSpec, data_folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a data set, wherever it is stored."""
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


@dataclass(frozen=True)
class _Split:
    """The documents of one role, and the shell commands that make files with the same documents."""

    load: Callable[[], list[Document]]
    files: tuple[str, ...]
    commands: tuple[str, ...]


class DataSet:
    """A data set whose documents are read on demand."""

    def __init__(self, name: str, data: DataSpec, data_folder: Path) -> None:
        self.name, self.data = name, data
        self.folder = data_folder / (data.folder or "")
        self.demo = _demo() if is_demo(name, data) else None

    @property
    def has_gold(self) -> bool:
        """Whether there is gold for training sentences."""
        return self.demo is not None or self.data.gold is not None

    @property
    def test_file(self) -> str:
        """Path of the test file for the shell command that scores it."""
        return shlex.quote(self._path("test"))

    def read(self, role: str) -> list[Document]:
        """Read the documents of a role, up to the number of sentences in the spec."""
        limit = self._limit(role)
        if self.demo is not None:
            docs = {"dev": self.demo.dev, "test": self.demo.test}.get(role, self.demo.train)[:limit]
            entries = [Entry(surface, label) for surface, label in self.demo.dictionary]
            return list(annotate(docs, [gazetteer_source(entries)])) if role == "weak" else docs
        file = getattr(self.data, role)
        if file is None:
            raise ConfigError(f"data set {self.name} has no {role} file")
        return list(islice(read(self.folder / file, complete=role not in ("weak", "extra", "unlabeled")), limit))

    def read_gazetteer(self) -> TaggerGazetteer | None:
        """The gazetteer of the data set, if it has one."""
        file = self.data.dictionary
        return None if file is None else TaggerGazetteer(load_gazetteer(self.folder / file).entries)

    @property
    def dictionary_file(self) -> str:
        """Path of the gazetteer in shell commands."""
        return self._path("dictionary")

    def splits(self, needs: Sequence[str], noise: NoiseLevel | None, seed: int) -> Splits:
        """Return the splits that a recipe uses, and dev if there is any."""
        return Splits(**{role: split.load() for role, split in self._splits(needs, noise, seed).items()})

    def commands(self, needs: Sequence[str], noise: NoiseLevel | None, seed: int) -> tuple[list[str], list[str]]:
        """Return shell commands that make the same splits, and the options that pass them to `lacuner train`."""
        splits = self._splits(needs, noise, seed)
        commands = dict.fromkeys(command for split in splits.values() for command in split.commands)
        options = [part for role, split in splits.items() for file in split.files for part in (f"--{role}", file)]
        return list(commands), options

    def _splits(self, needs: Sequence[str], noise: NoiseLevel | None, seed: int) -> dict[str, _Split]:
        splits: dict[str, _Split] = {}
        if "weak" in needs and noise is not None:
            splits["weak"] = self._weak(noise, seed)
        if "gold" in needs:
            splits["gold"] = self._file("gold")
        if noise is not None and noise.kind == GOLD_SUBSET:
            splits = self._subset(splits, noise, seed)
        if "unlabeled" in needs and self.data.unlabeled is not None:
            splits["unlabeled"] = self._file("unlabeled")
        if self.demo is not None or self.data.dev is not None:
            splits["dev"] = self._file("dev")
        return splits

    def _file(self, role: str) -> _Split:
        """A file of the data set, cut to the number of sentences in the spec."""
        path, limit = self._path(role), self._limit(role)
        commands = ["python -m lacuner.demo demo"] if self.demo is not None else []
        if self.demo is not None and role == "weak":
            commands.append(f"lacuner annotate demo/train.jsonl --dictionary demo/dictionary.tsv --out {path}")
        if limit is not None:
            commands.append(_head_command(limit, path))
            path = Path(path).name
        return _Split(partial(self.read, role), (path,), tuple(commands))

    def _weak(self, noise: NoiseLevel, seed: int) -> _Split:
        """The weak labels of the data set, or gold with simulated noise."""
        if noise.kind in ("given", GOLD_SUBSET):
            files = [self._file("weak"), *([self._file("extra")] if self.data.extra else [])]
            return _Split(
                lambda: [doc for file in files for doc in file.load()],
                tuple(path for file in files for path in file.files),
                tuple(command for file in files for command in file.commands),
            )
        gold, rates = self._file("gold"), _noise_rates(noise, seed)
        command = f"lacuner noise corrupt {shlex.quote(gold.files[0])}"
        if noise.kind.startswith(PROFILE):
            command += f" --profile {noise.kind.removeprefix(PROFILE)}"
        else:
            command += f" --drop {rates.drop:g}" + (" --by-surface" if rates.by_surface else "")
            command += f" --wrong-type {rates.wrong_type} --shift {rates.shift}" if rates.wrong_type else ""
        command += f" --seed {seed} --out masked.jsonl"
        return _Split(lambda: list(corrupt(gold.load(), rates)), ("masked.jsonl",), (*gold.commands, command))

    def _subset(self, splits: dict[str, _Split], noise: NoiseLevel, seed: int) -> dict[str, _Split]:
        """Replace gold by a subset of it, and weak by the sentences that are not in that subset."""
        gold, weak = splits.get("gold", self._file("gold")), splits.get("weak")

        def load(role: str) -> list[Document]:
            weak_docs = weak.load() if weak else []
            subset, others = select_gold_subset(gold.load(), weak_docs, noise.rate, seed, noise.weak)
            return subset if role == "gold" else others

        command = subset_command(gold.files[0], weak.files if weak else (), noise.rate, seed, noise.weak)
        commands = (*(weak.commands if weak else ()), *gold.commands, command)
        return {role: _Split(partial(load, role), (f"little/{role}.jsonl",), commands) for role in splits}

    def _limit(self, role: str) -> int | None:
        return {"gold": self.data.sentences, "weak": self.data.sentences, "dev": self.data.dev_sentences}.get(role)

    def _path(self, role: str) -> str:
        """Path of a file in shell commands, in which DATA stands for the data folder."""
        if self.demo is not None:
            return f"demo/{_DEMO_FILES[role]}.jsonl"
        return f"{(Path('DATA') / (self.data.folder or '')).as_posix()}/{getattr(self.data, role)}"


def _noise_rates(noise: NoiseLevel, seed: int) -> Noise:
    """Translate a kind and rate of noise into the rates of `noise.corrupt`.

    `shift` applies to labels that keep their type, so its rate is higher to make both mistakes equally frequent.
    """
    if noise.kind.startswith(PROFILE):
        return noise_profile(noise.kind.removeprefix(PROFILE), seed)
    wrong = noise.rate / 2 if noise.kind == "wrong" else 0.0
    shift = wrong / (1 - wrong)
    return Noise(drop=noise.rate, by_surface=noise.kind == "surface", wrong_type=wrong, shift=shift, seed=seed)


def _head_command(count: int, path: str) -> str:
    """Return the shell command for the first sentences of a file; in a column file, a sentence is a paragraph."""
    name = shlex.quote(Path(path).name)
    if path.endswith(".jsonl"):
        return f"head -n {count} {shlex.quote(path)} > {name}"
    return f"awk -v RS= -v ORS='\\n\\n' 'NR <= {count}' {shlex.quote(path)} > {name}"
