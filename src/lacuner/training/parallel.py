"""Parts of a run that need nothing of each other, learned side by side: each in a process of its own.

A process is told what to learn by a line on its standard input, reads the run's documents from a file, and leaves its
finished stages in the run folder. There the run finds them, and goes on as if it had learned them itself; what a
process has not finished, for whatever reason, the run learns afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from lacuner.config import Config
from lacuner.corpus.jsonl import write_jsonl
from lacuner.data import Lost, Splits
from lacuner.processes import Request, run_requests
from lacuner.training.run_folder import Run


def learn_side_by_side(recipe: str, splits: Splits, config: Config, run: Run, parts: Mapping[int, str]) -> None:
    """Call the recipe's `learn_part` for the numbers of which the stage, whose name is given, is not finished.

    Nothing is done where there is one core, one part, a GPU (which they would have to share) or somebody who watches.
    """
    missing = [number for number, stage in parts.items() if not _finished(run, stage)]
    count = min(len(missing), torch.get_num_threads())
    if count < 2 or torch.cuda.is_available() or run.callback is not None:
        return
    run.say(f"{recipe}: {len(missing)} models, {count} at a time, each in a process of its own")
    with TemporaryDirectory() as folder:
        given = {name: docs for name, docs in vars(splits).items() if docs is not None}
        files = {name: str(Path(folder) / f"{name}.jsonl") for name in given}
        for name, docs in given.items():
            write_jsonl(docs, Path(files[name]), Lost())
        about = {"recipe": recipe, "config": config.model_dump(mode="json"), "files": files}
        where = {"folder": str(run.folder.resolve()), "identity": run.identity}
        requests = [{**about, **where, "number": number, "stage": parts[number]} for number in missing]

        def on_exit(request: Request, failure: str | None) -> None:
            if failure:
                run.say(f"{request['stage']} is trained in this process instead: {failure}")

        threads = max(torch.get_num_threads() // count, 1)
        run_requests("lacuner.trainer.member_worker", requests, count, on_exit, run.say, threads)


def _finished(run: Run, name: str) -> bool:
    with run.stage(name) as stage:
        return stage.finished
