"""Small runs in shards, for the tests of all engines."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from lacuner.scale.run import ShardedRun
from lacuner.scale.shards import Corpus
from tests.conftest import ROOT
from tests.scale.word_count import WordCount

TEXTS = [f"Mara met Teel {i} times" + " again" * (i % 3) for i in range(20)]


def new_run(corpus: Path, out: str, job: WordCount | None = None, size: int = 3) -> ShardedRun:
    job = job or WordCount(str(corpus.with_name(f"{out}.log")))
    return ShardedRun(job, Corpus(corpus), corpus.with_name(out), size)


def files(folder: Path) -> dict[str, bytes]:
    """The content of every file, by name."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


PROGRAM = """
import sys
from pathlib import Path
from lacuner.scale.engines import open_engine
from lacuner.scale.run import ShardedRun
from lacuner.scale.shards import Corpus
from tests.conftest import ROOT
from tests.scale.word_count import WordCount

corpus, out, engine = sys.argv[1:]
job = WordCount(out + ".log", seconds=0.2)
ShardedRun(job, Corpus(Path(corpus)), Path(out), 3).run(open_engine(engine, 2))
"""


def start_run(corpus: Path, out: Path, engine: str, program: str = PROGRAM) -> subprocess.Popen[bytes]:
    """Start a run in a process of its own, and wait until a shard is finished and others are not."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    process = subprocess.Popen([sys.executable, "-c", program, str(corpus), str(out), engine], env=env)
    while process.poll() is None and not list((out / "records").glob("0*.json")):
        time.sleep(0.02)
    return process
