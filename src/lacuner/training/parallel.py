"""Train the members of an ensemble in parallel, each in a process of its own, here or on other machines.

A process leaves its finished stage in the run folder, where the run loads it: one core and several give the same
bytes, and a process that dies costs only time, because what is missing is then trained in the main process.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import torch

from lacuner.atomic import temporary_folder
from lacuner.config import Config
from lacuner.corpus.jsonl import write_jsonl
from lacuner.corpus.stored import StoredDocuments
from lacuner.data import Lost, Splits
from lacuner.processes import Request, run_requests
from lacuner.training.distributed import process_count
from lacuner.training.plan import read_report
from lacuner.training.run_folder import Run


def train_members(
    recipe: str,
    splits: Splits,
    config: Config,
    run: Run,
    stages: Mapping[int, str],
    train_member: Callable[[int], object],
) -> None:
    """Train every member, by number and stage name, whose stage is not finished.

    Child processes call `train_member(splits, config, run, number)` of the recipe's module. With one core, one missing
    member, a GPU (which they would have to share) or a callback, all is trained here, by `train_member(number)`. The
    same holds if several processes train together: all of them train each member, one after the other.
    """
    missing = [number for number, stage in stages.items() if not run.stage(stage).finished]
    workers = min(len(missing), torch.get_num_threads())
    if run.run_requests is not None and missing:
        run.log(f"{recipe}: training {len(missing)} models on the cluster")
        _train_in_processes(recipe, splits, config, run, {number: stages[number] for number in missing}, len(missing))
    elif workers > 1 and process_count() == 1 and not torch.cuda.is_available() and run.callback is None:
        run.log(f"{recipe}: training {len(missing)} models, {workers} at a time")
        _train_in_processes(recipe, splits, config, run, {number: stages[number] for number in missing}, workers)
    for number, name in stages.items():
        stage = run.stage(name)
        if stage.finished:  # perhaps by an earlier process: its rows keep their place in metrics.jsonl
            stage.record(stage.state["rows"])
        else:
            train_member(number)


def _train_in_processes(
    recipe: str, splits: Splits, config: Config, run: Run, stages: Mapping[int, str], workers: int
) -> None:
    with temporary_folder(run.folder) as folder:
        splits_by_role = {role: docs for role, docs in vars(splits).items() if docs is not None}
        stored, files = {}, {}
        for role, docs in splits_by_role.items():
            if isinstance(docs, StoredDocuments):
                assert docs.is_whole
                stored[role] = [str(docs.folder.resolve()), docs.identity]
            else:
                files[role] = str((folder / f"{role}.jsonl").resolve())
                write_jsonl(docs, Path(files[role]), Lost())
        common = {"recipe": recipe, "config": config.model_dump(mode="json"), "files": files, "stored": stored}
        common |= {"folder": str(run.folder.resolve()), "identity": run.identity}
        requests: list[Request] = [{**common, "number": number, "stage": stage} for number, stage in stages.items()]

        def on_exit(request: Request, failure: str | None) -> None:
            if failure:
                run.log(f"{request['stage']}: child process failed ({failure}), training it in this process")
            else:
                run.planned.finish(request["stage"])

        def log(line: str) -> None:  # only this process knows the time left for the whole run
            report = read_report(line)
            run.log(line) if report is None else run.log_epoch(report)

        threads = max(torch.get_num_threads() // workers, 1)
        run.planned.run_in_parallel(list(stages.values()), workers)
        start = run.run_requests or run_requests
        start("lacuner.trainer.member_worker", requests, workers, on_exit, log, threads)
        run.planned.run_in_parallel([], 1)
