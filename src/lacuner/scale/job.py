"""What is done to the documents of a shard: the job, opened once per worker, and the files that a shard leaves."""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from lacuner.corpus.reader import ReadOptions
from lacuner.data import Document, Lost
from lacuner.errors import CorpusError
from lacuner.scale.locations import location, open_for_writing, read_json, write_file, write_json
from lacuner.scale.shards import Shard, read_shard

GROUP = 2048
"""Documents that are processed together, as many as a tagger scores together."""

Counts = dict[str, Any]
"""Whole numbers by name, or counts by name again: `{"documents": 2, "spans": {"LOC": 1}}`."""
Record = dict[str, Any]
"""What a finished shard leaves behind: the hashes of input and job, and its counts."""


Process = Callable[[list[Document]], tuple[Sequence[Any], Counts]]
"""An opened job, with its models and gazetteers: from documents to rows of output, and what is to be counted."""


class Job(Protocol):
    """What to do with every document of a corpus. It is sent to the workers, and opened once in each of them."""

    @property
    def output(self) -> str:
        """The folder of output files, inside the output folder: what they contain."""

    @property
    def ending(self) -> str:
        """The ending of output files."""

    @property
    def forkable(self) -> bool:
        """Whether workers may be forked from a process that has opened the job: not if torch is in it."""

    def identity(self) -> dict[str, Any]:
        """Everything beside the documents that the output depends on, as JSON."""

    def open(self) -> Process:
        """Load models and gazetteers."""

    def write(self, rows: Iterable[Any], path: Path) -> Lost:
        """Write the rows of a shard."""


@dataclass(frozen=True)
class ShardTask:
    """Runs a job on one shard after the other, in any process: the function that the engines call."""

    job: Job
    folder: str
    """Output folder, a path or URL."""
    options: ReadOptions
    job_hash: str

    def __call__(self, shard: Shard) -> Record:
        """Process a shard and write its files, the record last; a finished shard is not processed again."""
        folder = location(self.folder)
        record = read_record(folder, self.job, shard.name, [shard.sha256, self.job_hash])
        return record if record is not None else self._run(shard, folder)

    def _run(self, shard: Shard, folder: Path) -> Record:
        process = open_once(self.job, self.job_hash)
        failures: list[tuple[str, str, str]] = []
        counts: Counts = {"documents": 0}
        lost = Lost()

        def on_error(error: CorpusError) -> None:
            where = "" if error.file is None else f"{error.file}{'' if error.line is None else f':{error.line}'}"
            failures.append((where, "", error.problem))

        def rows() -> Iterator[Any]:
            docs = read_shard(shard, self.options, lost, on_error)
            while group := list(islice(docs, GROUP)):
                for processed, part in process_group(process, group, failures, named=not shard.converted):
                    add_counts(counts, part)
                    yield from processed

        # of another input; if this process is killed before it writes its own, the output must not seem to belong to it
        record_file(folder, shard.name).unlink(missing_ok=True)
        with open_for_writing(output_file(folder, self.job, shard.name)) as path:
            unwritten = self.job.write(rows(), path)
        if failures:
            lines = ["\t".join(" ".join(cell.split()) for cell in row) for row in failures]
            write_file(
                failed_file(folder, shard.name), "\n".join(["where\tid\treason", *lines, ""]).encode("utf-8", "replace")
            )
        else:
            failed_file(folder, shard.name).unlink(missing_ok=True)
        record = {
            "input": shard.sha256,
            "job": self.job_hash,
            "failed": len(failures),
            "first_failure": ": ".join(filter(None, failures[0])) if failures else None,
            "reading": dict(lost),
            "writing": dict(unwritten),
            "counts": counts,
        }
        write_json(record_file(folder, shard.name), record)
        return record


def process_group(
    process: Process, docs: list[Document], failures: list[tuple[str, str, str]], *, named: bool = True
) -> Iterator[tuple[Sequence[Any], Counts]]:
    """Process documents together or, if that fails, one by one; those that fail alone are added to `failures`.

    `named`: whether the place of a document is one that the user knows.
    """
    try:
        yield process(docs)
        return
    except MemoryError:
        raise
    except Exception as error:
        if len(docs) == 1:
            reason = str(error) if isinstance(error, CorpusError) else f"{type(error).__name__}: {error}"
            failures.append((str(docs[0].where or "") if named else "", docs[0].id, reason))
            return
    for doc in docs:
        yield from process_group(process, [doc], failures, named=named)


_opened: dict[str, Process] = {}


def open_once(job: Job, job_hash: str) -> Process:
    """The opened job of this process. A forked worker inherits it.

    What is open stays open: the garbage collector need not look at a gazetteer of a million objects again and again,
    which costs a tenth of the time of `annotate`.
    """
    if job_hash not in _opened:
        _opened.clear()
        gc.unfreeze()
        _opened[job_hash] = job.open()
        gc.collect()
        gc.freeze()
    return _opened[job_hash]


def hash_job(job: Job, options: ReadOptions, format: str | None, version: str) -> str:
    """Hash of everything beside the documents that the output depends on."""
    facts = [job.identity(), asdict(options), format, version]
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()


def hash_files(paths: Iterable[Path]) -> dict[str, str]:
    """The hash of each file; of a folder, the hash of the names and hashes of its files."""
    hashes = {}
    for path in paths:
        if path.is_dir():
            inside = hash_files(sorted(file for file in path.rglob("*") if file.is_file()))
            rows = [[str(Path(name).relative_to(path)), value] for name, value in inside.items()]
            hashes[str(path)] = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
        elif path.is_file():
            with path.open("rb") as stream:
                hashes[str(path)] = hashlib.file_digest(stream, "sha256").hexdigest()
    return hashes


def output_file(folder: Path, job: Job, name: str) -> Path:
    """What a shard is written to."""
    return folder / job.output / f"{name}{job.ending}"


def record_file(folder: Path, name: str) -> Path:
    """Where the record of a shard is."""
    return folder / "records" / f"{name}.json"


def failed_file(folder: Path, name: str) -> Path:
    """Where the documents of a shard that failed are listed."""
    return folder / "failed" / f"{name}.tsv"


def read_record(folder: Path, job: Job, name: str, hashes: list[str]) -> Record | None:
    """The record of a finished shard; None if it is not finished, its output is gone, or input or job were others.

    `hashes` are those of the input and of the job.
    """
    record = read_json(record_file(folder, name))
    if not isinstance(record, dict) or [record.get("input"), record.get("job")] != hashes:
        return None
    return record if output_file(folder, job, name).exists() else None


def add_counts(total: Counts, part: Counts) -> None:
    """Add counts to others, name by name.

    >>> total = {"documents": 2, "spans": {"LOC": 1}}
    >>> add_counts(total, {"documents": 1, "spans": {"LOC": 2, "PER": 1}})
    >>> total
    {'documents': 3, 'spans': {'LOC': 3, 'PER': 1}}
    """
    for name, value in part.items():
        if isinstance(value, dict):
            add_counts(total.setdefault(name, {}), value)
        else:
            total[name] = total.get(name, 0) + value
