"""What `--on` costs: CPU time per document, peak memory per worker, and how engines and numbers of workers compare.

`python -m benchmarks.shards annotate FOLDER --documents 500000 --on processes --workers 2` writes invented sentences
and a gazetteer of 100,000 entries to FOLDER, annotates them, and prints one JSON object; `predict` does the same with
an untrained `tiny` token classifier. FOLDER is kept, so that the next measurement uses the same sentences.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from lacuner.atomic import append_line
from lacuner.cli.shards import AnnotateJob
from lacuner.cli.sources import SourceOptions
from lacuner.corpus.json_rows import write_lines
from lacuner.data import Lost
from lacuner.demo import build
from lacuner.demo.names import LABELS, coin
from lacuner.scale.engines import open_engine
from lacuner.scale.job import Job, Process
from lacuner.scale.run import Progress, ShardedRun
from lacuner.scale.shards import SHARD_SIZE, Corpus

ENTRIES = 100_000


@dataclass(frozen=True)
class MeasuredJob:
    """A job whose workers note what each shard has cost them."""

    job: Job
    log: str
    output: str
    ending: str
    forkable: bool

    def identity(self) -> dict[str, Any]:
        return self.job.identity()

    def open(self) -> Process:
        return self.job.open()

    def write(self, rows: Iterable[Any], path: Path) -> Lost:
        start = time.process_time()  # reading and processing happen while the rows are written
        lost = self.job.write(rows, path)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        facts = {"worker": os.getpid(), "peak": peak, "cpu": time.process_time() - start}
        append_line(self.log, json.dumps(facts).encode())
        return lost


def invent_entries(rng: Random) -> list[tuple[str, str]]:
    """Two-word names with their types."""
    endings = ("an", "en", "or", "ia", "os", "um", "ard", "eth")
    names = {f"{coin(rng, endings).capitalize()} {coin(rng, endings).capitalize()}" for _ in range(2 * ENTRIES)}
    return [(name, rng.choice(LABELS)) for name in sorted(names)[:ENTRIES]]


def write_inputs(folder: Path, documents: int) -> tuple[Path, Path]:
    """A gazetteer, and sentences of the demo corpus that are continued by one of its names each."""
    gazetteer, corpus = folder / "names.tsv", folder / f"{documents}.jsonl"
    entries = invent_entries(Random(1))
    if not corpus.exists():
        gazetteer.parent.mkdir(parents=True, exist_ok=True)
        gazetteer.write_text("".join(f"{name}\t{label}\n" for name, label in entries), encoding="utf-8")
        texts, rng = [doc.text.rstrip(".") for doc in build().train], Random(2)
        rows = (
            {"id": str(i), "text": f"{texts[i % len(texts)]}, according to {rng.choice(entries)[0]}."}
            for i in range(documents)
        )
        write_lines(corpus, rows)
    return gazetteer, corpus


def new_job(command: str, folder: Path, gazetteer: Path) -> Job:
    if command == "annotate":
        combine = {"by": "priority", "ambiguous": "unsure", "min_probability": 0.2}
        return AnnotateJob(SourceOptions(dictionary=[gazetteer]), combine, "jsonl", forkable=True)
    from lacuner.models.encoders.tiny import TinyEncoder
    from lacuner.models.heads import build_head
    from lacuner.models.model import Model
    from lacuner.models.storage import save
    from lacuner.models.tagger import Tagger
    from lacuner.scale.prediction import PredictJob

    model = folder / "model"
    if not model.exists():
        encoder = TinyEncoder()
        save(Tagger(Model(encoder, build_head({"kind": "token", "labels": LABELS}, encoder.width))), model)
    return PredictJob(model, "jsonl")


def cpu_of_all_processes() -> float:
    """CPU seconds, until now, of this process and of all that it has started, Ray's own included (Linux)."""
    parents, seconds = dict[int, int](), dict[int, float]()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            values = stat.read_text().rpartition(")")[2].split()
            ticks = sum(map(int, values[11:15]))  # its own, and those of its children that have ended
            parents[int(stat.parent.name)], seconds[int(stat.parent.name)] = int(values[1]), ticks
    inside = {os.getpid()}
    while more := {process for process, parent in parents.items() if parent in inside} - inside:
        inside |= more
    return sum(seconds[process] for process in inside) / os.sysconf("SC_CLK_TCK")


def measure(
    command: str, folder: Path, documents: int, on: str, workers: int, shard_size: int = SHARD_SIZE
) -> dict[str, Any]:
    """Run a command over the sentences; what it cost."""
    gazetteer, corpus = write_inputs(folder, documents)
    job = new_job(command, folder, gazetteer)
    out, log = folder / "out", folder / "log.jsonl"
    shutil.rmtree(out, ignore_errors=True)
    log.unlink(missing_ok=True)
    measured = MeasuredJob(job, str(log), job.output, job.ending, job.forkable)
    start, cpu, cpu_before = time.monotonic(), time.process_time(), cpu_of_all_processes()
    finished: list[tuple[float, int]] = []
    """When a shard was finished, and how many documents were done then."""
    cpu_after = 0.0

    def on_progress(progress: Progress) -> None:
        nonlocal cpu_after
        finished.append((time.monotonic(), progress.done))
        if progress.done == progress.total:  # now, because Ray's processes are killed at the end
            cpu_after = cpu_of_all_processes()

    summary = ShardedRun(measured, Corpus(corpus), out, shard_size, on_progress=on_progress).run(
        open_engine(on, workers)
    )
    seconds = time.monotonic() - start
    notes = [json.loads(line) for line in log.read_text().splitlines()]
    in_workers = sum(note["cpu"] for note in notes)
    own = 0.0 if workers == 1 and on == "processes" else time.process_time() - cpu
    peaks = {note["worker"]: note["peak"] for note in notes}
    first_peaks = {note["worker"]: note["peak"] for note in reversed(notes)}
    written = sum(file.stat().st_size for file in (out / job.output).iterdir())
    return {
        "command": command,
        "on": on,
        "workers": workers,
        "documents": summary["counts"]["documents"],
        "cpu_microseconds_per_document": round(1e6 * in_workers / documents, 2),
        "cpu_seconds_per_shard": [round(share, 2) for share in np.quantile([n["cpu"] for n in notes], (0.1, 0.5, 0.9))],
        "cpu_seconds_of_the_first_process": round(own, 1),
        "cpu_seconds_of_all_processes": round(cpu_after - cpu_before, 1),
        "seconds": round(seconds, 1),
        "seconds_until_the_first_shard": round(finished[0][0] - start, 1),
        "documents_per_second_afterwards": round((documents - finished[0][1]) / (finished[-1][0] - finished[0][0])),
        "peak_megabytes_per_worker_after_its_first_shard": sorted(round(peak / 1e6) for peak in first_peaks.values()),
        "peak_megabytes_per_worker": sorted(round(peak / 1e6) for peak in peaks.values()),
        "input_bytes_per_document": round(corpus.stat().st_size / documents),
        "output_bytes_per_document": round(written / documents),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("annotate", "predict"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--documents", type=int, default=500_000)
    parser.add_argument("--on", default="processes")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--shard-size", type=int, default=SHARD_SIZE)
    options = vars(parser.parse_args())
    facts = measure(**{**options, "folder": options["folder"].resolve()})
    sys.stdout.write(json.dumps(facts) + "\n")


if __name__ == "__main__":
    main()
