"""Parts of a run that need nothing of each other, learned side by side: each in a process of its own.

A process is told what to learn by a line on its standard input, reads the run's documents from a file, and leaves its
finished stages in the run folder. There the run finds them, and goes on as if it had learned them itself; what a
process has not finished, for whatever reason, the run learns afterwards.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from lacuner.config import Config
from lacuner.corpus.jsonl import write_jsonl
from lacuner.data import Lost, Splits
from lacuner.training.run_folder import Run


def learn_side_by_side(recipe: str, splits: Splits, config: Config, run: Run, parts: Mapping[int, str]) -> None:
    """Call the recipe's `learn_part` for the numbers of which the stage, whose name is given, is not finished.

    Nothing is done where there is one core, one part, a GPU (which they would have to share) or somebody who watches.
    """
    missing = [number for number, stage in parts.items() if not _finished(run, stage)]
    count = min(len(missing), torch.get_num_threads())
    if count < 2 or torch.cuda.is_available() or run.watch is not None:
        return
    run.say(f"{recipe}: {len(missing)} models, {count} at a time, each in a process of its own")
    threads = str(max(torch.get_num_threads() // count, 1))
    env = {**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, "OMP_WAIT_POLICY": "PASSIVE"}
    with TemporaryDirectory() as folder:
        given = {name: docs for name, docs in vars(splits).items() if docs is not None}
        files = {name: str(Path(folder) / f"{name}.jsonl") for name in given}
        for name, docs in given.items():
            write_jsonl(docs, Path(files[name]), Lost())
        about = {"recipe": recipe, "config": config.model_dump(mode="json"), "files": files}
        where = {"folder": str(run.folder.resolve()), "identity": run.identity}
        with ThreadPoolExecutor(count) as pool, _children(pool) as children:
            requests = [{**about, **where, "number": number, "stage": parts[number]} for number in missing]
            for learned in [pool.submit(_learn, request, env, run, children) for request in requests]:
                learned.result()


def _finished(run: Run, name: str) -> bool:
    with run.stage(name) as stage:
        return stage.finished


@contextmanager
def _children(pool: ThreadPoolExecutor) -> Iterator[list[subprocess.Popen[str]]]:
    """The processes of a pool's threads, ended when somebody interrupts."""
    children: list[subprocess.Popen[str]] = []
    try:
        yield children
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in children:
            child.kill()
            child.wait()


def _learn(request: dict[str, Any], env: dict[str, str], run: Run, children: list[subprocess.Popen[str]]) -> None:
    """One part in a process, whose lines are said here."""
    command = [sys.executable, "-P", "-c", "from lacuner.trainer.member_worker import main; main()"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    child = subprocess.Popen(command, env=env, start_new_session=True, encoding="utf-8", errors="replace", **pipes)
    children.append(child)
    assert child.stdin is not None and child.stdout is not None and child.stderr is not None
    errors: list[str] = []
    reader = threading.Thread(target=errors.extend, args=(child.stderr,), daemon=True)
    reader.start()
    try:
        child.stdin.write(json.dumps(request) + "\n")
        child.stdin.flush()  # and left open: when it ends, so does the process
    except BrokenPipeError:
        pass  # it died at once; `errors` has what it said
    for line in child.stdout:
        run.say(line.rstrip("\n"))
    if child.wait():
        reader.join()
        why = errors[-1].strip() if errors else f"status {child.returncode}"
        run.say(f"{request['stage']}: its process ended before it was done ({why}); it will be learned here")
