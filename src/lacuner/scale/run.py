"""Run a job over a corpus in shards: cut, run what is missing, merge the counts.

The output folder has `manifest.json` (the job and the shards), `documents/`, or another folder that the job names (one
file per shard), `failed/` (documents that could not be processed, with the reason), `records/` (the counts of each
shard) and, when all shards are done, `summary.json`. It contains no times, so two runs are equal byte for byte,
whatever the engine and the number of workers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lacuner import __version__
from lacuner.atomic import TEMPORARY, temporary_folder
from lacuner.data import Lost
from lacuner.errors import ConfigError, CorpusError
from lacuner.processes import lock_folder
from lacuner.scale.engines import Engine
from lacuner.scale.job import (
    Counts,
    Job,
    Record,
    ShardTask,
    add_counts,
    failed_file,
    hash_job,
    output_file,
    read_record,
    record_file,
)
from lacuner.scale.locations import is_url, read_json, remove_folder, write_file, write_json
from lacuner.scale.shards import SHARD_SIZE, Corpus, Cutting, Shard, cut_corpus

MAX_FAILURES = 1000
"""Number of failed documents after which a run stops, if no document has succeeded."""


@dataclass
class Progress:
    """How far a run is."""

    total: int
    done: int
    """Documents that are done, with those of earlier runs."""
    before: int
    """Documents that earlier runs have done."""
    failed: int = 0
    start: float = field(default_factory=time.monotonic)

    @property
    def rate(self) -> float:
        """Documents per second in this run."""
        return (self.done - self.before) / max(time.monotonic() - self.start, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """Estimated time to the end; None before the first shard is done."""
        return (self.total - self.done) / self.rate if self.done > self.before else None


@dataclass(frozen=True)
class ShardedRun:
    """A job, its corpus, and where the output goes."""

    job: Job
    corpus: Corpus
    out: Path
    """Output folder; it may be a URL."""
    shard_size: int = SHARD_SIZE
    log: Callable[[str], None] = lambda text: None
    on_progress: Callable[[Progress], None] = lambda progress: None

    def run(self, engine: Engine) -> dict[str, Any]:
        """Process what is not finished yet; return the summary of the whole corpus."""
        with self._working_folder() as temporary:
            return self._run(engine, temporary)

    def _run(self, engine: Engine, temporary: Path) -> dict[str, Any]:
        corpus, out = self.corpus, self.out
        job_hash = hash_job(self.job, corpus.options, corpus.format, __version__)
        manifest = read_json(out / "manifest.json")
        identity = {"job": job_hash, "shard_size": self.shard_size}
        if manifest is not None and not (isinstance(manifest, dict) and identity.items() <= manifest.items()):
            raise ConfigError("this folder has the output of other settings or models: choose another --out", file=out)
        failures: list[CorpusError] = []
        lost = Lost()
        finished = self._finished_shards(manifest, job_hash)
        cutting = Cutting(temporary, self.shard_size, failures.append, lambda *shard: shard in finished)
        with engine(ShardTask(self.job, str(out), corpus.options, job_hash)) as run_shards:
            shards = list(cut_corpus(corpus, cutting, lost))
            facts = {**identity, "settings": self.job.identity(), "version": __version__}
            self._write_manifest(facts, shards, manifest)
            self._write_unreadable(failures)
            _check_any_read(shards, failures)
            totals, missing = Totals(), []
            for shard in shards:
                record = self._read_record(shard.name, shard.sha256, job_hash) if shard.key in finished else None
                if record is None:
                    missing.append(shard)
                else:
                    totals.add(shard, record)
            if missing:
                (out / "summary.json").unlink(missing_ok=True)  # a summary means that all documents are there
            progress = self._start_progress(shards, missing, totals.failed)
            for shard, record in run_shards(missing):
                totals.add(shard, record)
                progress.done += shard.documents
                progress.failed = totals.failed
                self.on_progress(progress)
                if progress.failed >= MAX_FAILURES:
                    totals.check_any_processed()
        totals.check_any_processed()
        summary = totals.summary()
        summary["failed"] += len(failures)
        add_counts(summary["reading"], dict(lost))
        write_json(out / "summary.json", summary, indent=1)
        return summary

    def _start_progress(self, shards: Sequence[Shard], missing: Sequence[Shard], failed: int) -> Progress:
        total = sum(shard.documents for shard in shards)
        done = total - sum(shard.documents for shard in missing)
        self.log(f"{len(shards):,} shards, {total:,} documents" + (f"; {done:,} are done" if done else ""))
        return Progress(total, done, done, failed)

    def _finished_shards(self, manifest: dict[str, Any] | None, job_hash: str) -> set[tuple[str, str]]:
        """Names and hashes of finished shards."""
        keys = [(row["name"], row["sha256"]) for row in (manifest or {}).get("shards", ())]
        return {key for key in keys if self._read_record(*key, job_hash) is not None}

    def _read_record(self, name: str, sha256: str, job_hash: str) -> Record | None:
        return read_record(self.out, self.job, name, [sha256, job_hash])

    @contextmanager
    def _working_folder(self) -> Iterator[Path]:
        """The folder for converted documents. The output folder is locked while it is in use."""
        if is_url(self.out):  # there are no locks elsewhere
            try:
                yield self.out / TEMPORARY
            finally:
                remove_folder(self.out / TEMPORARY)
            return
        with ExitStack() as stack:
            stack.enter_context(lock_folder(self.out))
            yield stack.enter_context(temporary_folder(self.out))

    def _write_manifest(self, facts: dict[str, Any], shards: Sequence[Shard], previous: dict[str, Any] | None) -> None:
        """Write the manifest; the output of shards that no longer exist is removed."""
        rows = [shard.as_json() for shard in shards]
        for row in rows:
            if row["converted"]:
                row["file"] = Path(row["file"]).name  # it is temporary
        names = {shard.name for shard in shards}
        for row in (previous or {}).get("shards", ()):
            name = row["name"]
            if name not in names and name.isdigit():
                for file in (record_file(self.out, name), output_file(self.out, self.job, name)):
                    file.unlink(missing_ok=True)
                failed_file(self.out, name).unlink(missing_ok=True)
        write_json(self.out / "manifest.json", {**facts, "shards": rows}, indent=1)

    def _write_unreadable(self, failures: Sequence[CorpusError]) -> None:
        """List the documents that could not be converted."""
        path = self.out / "failed" / "unreadable.tsv"
        if failures:
            lines = [f"{' '.join(str(error).split())}\n" for error in failures]
            write_file(path, "".join(["reason\n", *lines]).encode("utf-8", "replace"))
        else:
            path.unlink(missing_ok=True)


class Totals:
    """What is counted in all shards, added up as they finish: a record may have a megabyte, so none is kept.

    >>> from lacuner.corpus.reader import Part
    >>> shard = Shard("00000", "texts.txt", "txt", Part(0, 9), 1, "")
    >>> record = {"failed": 1, "reading": {}, "writing": {"id not written": 1}, "counts": {"documents": 2}}
    >>> totals = Totals()
    >>> for _ in range(2):
    ...     totals.add(shard, {**record, "first_failure": "texts.txt:1: no"})
    >>> totals.summary()
    {'counts': {'documents': 4}, 'failed': 2, 'reading': {}, 'writing': {'id not written': 2}}
    """

    def __init__(self) -> None:
        self._counts: Counts = {"failed": 0, "reading": {}, "writing": {}, "counts": {"documents": 0}}
        self._first_failure = ("", "")
        """The name of the first shard in which a document failed, and its reason."""

    @property
    def failed(self) -> int:
        """Number of documents that could not be processed."""
        return int(self._counts["failed"])

    def add(self, shard: Shard, record: Record) -> None:
        """Add the counts of a finished shard."""
        add_counts(self._counts, {name: record[name] for name in self._counts})
        if record["failed"] and (not self._first_failure[0] or shard.name < self._first_failure[0]):
            self._first_failure = shard.name, record["first_failure"]

    def summary(self) -> dict[str, Any]:
        """The counts by sorted names: shards finish in any order."""
        return sort_names(self._counts)

    def check_any_processed(self) -> None:
        """Stop if no document at all could be processed."""
        if self.failed and not self._counts["counts"]["documents"]:
            raise CorpusError(f"no document could be processed; the first failed: {self._first_failure[1]}")


def sort_names(counts: Counts) -> Counts:
    """The same counts, sorted by name at every level.

    >>> sort_names({"PER": 1, "LOC": {"b": 1, "a": 2}})
    {'LOC': {'a': 2, 'b': 1}, 'PER': 1}
    """
    return {name: sort_names(value) if isinstance(value, dict) else value for name, value in sorted(counts.items())}


def _check_any_read(shards: Sequence[Shard], failures: Sequence[CorpusError]) -> None:
    """Stop if no document at all could be read."""
    if failures and not shards:
        raise CorpusError(f"no document could be read; the first failed: {failures[0]}")
