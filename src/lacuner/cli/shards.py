"""`--on`: commands over a corpus that outgrows one process, in shards, into a folder that the command continues."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Exit, Option

from lacuner.atomic import STANDARD_STREAM
from lacuner.cli.console import log
from lacuner.cli.options import InputOptions, refuse_output_inside
from lacuner.cli.sources import LabellingSources, SourceOptions
from lacuner.corpus import write
from lacuner.data import Document, Lost
from lacuner.errors import ConfigError
from lacuner.processes import MAX_WORKERS
from lacuner.training.plan import format_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lacuner.annotate import LabelModel
    from lacuner.annotate.source_accuracy import SourceAccuracy
    from lacuner.scale.job import Counts, Job, Process
    from lacuner.scale.run import Progress

LOG_SECONDS = 30.0
"""Seconds between two lines about progress, if standard error is not a terminal."""


@dataclass(frozen=True)
class ShardOptions:
    """Where a large corpus is processed. Each field is an option."""

    on: Annotated[
        str | None,
        Option(
            metavar="ENGINE",
            help="Work in shards on processes, ray or ray://HOST:PORT. --out is then a folder; the same command "
            "continues an unfinished one.",
        ),
    ] = None
    workers: Annotated[int | None, Option(min=1, max=MAX_WORKERS, help="Number of processes. Default: all cores.")] = (
        None
    )
    shard_size: Annotated[
        int | None, Option(min=1, metavar="N", help="With --on: documents per shard. Default: 16384.")
    ] = None

    def check_unused(self, out: Path, *, workers: bool = True) -> None:
        """Refuse options that have no effect without `--on`, and a URL as output."""
        from lacuner.scale.locations import is_url

        if is_url(out):
            raise ConfigError(f"{out}: only work in shards can write to a URL: add --on processes")
        if self.shard_size is not None:
            raise ConfigError("--shard-size is for work in shards: add --on processes")
        if workers and self.workers is not None:
            raise ConfigError("--workers is for work in shards: add --on processes")


def refuse(options: dict[str, object]) -> None:
    """Refuse options, by name, that need the whole corpus in one process."""
    for name, value in options.items():
        if value:
            raise ConfigError(f"{name} needs all documents in one process: leave out {name} or --on")


@dataclass(frozen=True)
class AnnotateJob:
    """`lacuner annotate` for the documents of a shard."""

    labelling: SourceOptions
    combine: dict[str, Any]
    """Arguments of `LabelModel`, beside the sources."""
    format: str
    forkable: bool
    accuracy: SourceAccuracy | None = None
    """Of the sources, estimated from the beginning of the corpus."""
    output: str = "documents"
    working_folder: str = field(default_factory=os.getcwd)

    @property
    def ending(self) -> str:
        from lacuner.scale.shards import ending_of

        return ending_of(self.format)

    def identity(self) -> dict[str, Any]:
        from lacuner.scale.job import hash_files

        settings = asdict(self.labelling)
        options = {k: [str(item) for item in v] if isinstance(v, list) else v for k, v in settings.items()}
        accuracy = None if self.accuracy is None else [list(row) for row in self.accuracy.rows]
        facts = {"command": "annotate", "files": hash_files(self.labelling.files()), "accuracy": accuracy}
        return {**facts, **self.combine, **options, "format": self.format}

    def open(self) -> Process:
        with suppress(OSError):  # on another machine it may not exist, and need not if all paths are absolute
            os.chdir(self.working_folder)
        sources = LabellingSources(self.labelling, log=lambda text: None)
        with_own_terms = set().union(*sources.documents.values())
        return partial(self._label, self.label_model(sources), with_own_terms)

    def label_model(self, sources: LabellingSources) -> LabelModel:
        """The label model of these sources."""
        from lacuner.annotate import LabelModel

        return LabelModel(sources.sources, **self.combine, overlaps=self.labelling.overlaps, accuracy=self.accuracy)

    def _label(
        self, model: LabelModel, with_own_terms: set[str], docs: list[Document]
    ) -> tuple[list[Document], Counts]:
        """Label documents; count those that have terms of their own in a gazetteer."""
        from lacuner.annotate import LabellingStatistics, label_documents

        statistics = LabellingStatistics()
        weak = list(label_documents(docs, model, statistics=statistics))
        matched_ids = {doc.id: 1 for doc in docs if doc.id in with_own_terms}
        return weak, {**statistics.as_json(), "with_own_terms": matched_ids}

    def write(self, rows: Iterable[Document], path: Path) -> Lost:
        return write(rows, path, format=self.format)


def sample_documents(corpus: Path, inputs: InputOptions) -> Iterator[Document]:
    """The documents of a corpus; those that cannot be read are skipped here, and reported by the shard they are in."""
    from lacuner.cli.console import CorpusReader

    return iter(CorpusReader(corpus, inputs, on_error=lambda error: None))


def run_in_shards(job: Job, corpus: Path, out: Path, inputs: InputOptions, options: ShardOptions) -> dict[str, Any]:
    """Run a job over a corpus, show the progress, and return the summary."""
    from lacuner.scale.engines import open_engine
    from lacuner.scale.locations import is_url
    from lacuner.scale.run import ShardedRun
    from lacuner.scale.shards import SHARD_SIZE, Corpus

    engine = open_engine(options.on or "", options.workers)
    if out == STANDARD_STREAM:
        raise ConfigError("--on writes a folder, not to standard output: name one with --out")
    if out.exists() and not out.is_dir():
        raise ConfigError("with --on, --out is a folder: this is a file", file=out)
    refuse_output_inside(corpus, out)
    absolute = [path if is_url(path) else path.absolute() for path in (corpus, out)]
    source = Corpus(absolute[0], inputs.format, inputs.read_options())
    with _show_progress() as on_progress:
        run = ShardedRun(job, source, absolute[1], options.shard_size or SHARD_SIZE, log, on_progress)
        start = time.monotonic()
        summary = run.run(engine)
    if summary["failed"]:
        log(f"{summary['failed']:,} documents failed; the reasons are in {out / 'failed'}")
    log(f"wrote {out / job.output}: {summary['counts']['documents']:,} documents in {time.monotonic() - start:,.0f} s")
    return summary


@contextmanager
def _show_progress() -> Iterator[Any]:
    """A function that shows the progress of all workers: a bar on a terminal, otherwise a line now and then."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn())
    bar = Bar(*columns, console=console, disable=not console.is_terminal)
    row = bar.add_task("", total=None)
    last_line = time.monotonic()

    def show(progress: Progress) -> None:
        nonlocal last_line
        text = describe_progress(progress)
        if console.is_terminal:
            bar.update(row, total=progress.total, completed=progress.done, description=text)
        elif time.monotonic() - last_line >= LOG_SECONDS:
            log(text)
            last_line = time.monotonic()

    try:
        with bar:
            yield show
    except KeyboardInterrupt:
        log("lacuner: interrupted; the same command continues with the shards that are missing")
        raise Exit(130) from None


def describe_progress(progress: Progress) -> str:
    """Progress as one line.

    >>> from lacuner.scale.run import Progress
    >>> describe_progress(Progress(total=100, done=20, before=20, failed=1))
    '20 of 100 documents, 1 failed'
    """
    parts = [f"{progress.done:,} of {progress.total:,} documents"]
    seconds = progress.seconds_left
    if seconds is not None:
        parts += [f"{progress.rate:,.0f} documents/s", f"{format_time(seconds)} left"]
    if progress.failed:
        parts.append(f"{progress.failed:,} failed")
    return ", ".join(parts)


def lost_of(counts: dict[str, int]) -> Lost:
    """Counts of a summary as `Lost`."""
    lost = Lost()
    lost.counts.update(counts)
    return lost
