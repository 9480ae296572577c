"""Train one member of an ensemble in a child process: the other half of `training.parallel`."""

import json
import sys
from pathlib import Path

from lacuner.corpus import read
from lacuner.corpus.stored import open_documents
from lacuner.data import Splits
from lacuner.processes import read_request
from lacuner.recipes import RECIPES
from lacuner.training.plan import EpochReport
from lacuner.training.run_folder import Row, Run


class _MemberRun(Run):
    """The run as seen by a child process, which writes stages but not the metrics of the whole run."""

    def record(self, stage: str, rows: list[Row]) -> None:
        pass

    def log_epoch(self, report: EpochReport) -> None:
        self.log(report.as_json())


def _log(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Train the member that the request on standard input names."""
    request = read_request()
    module = RECIPES[request["recipe"]]
    config = module.Config.model_validate_json(json.dumps(request["config"]))
    docs = {role: list(read(path)) for role, path in request["files"].items()}
    stored = {role: open_documents(Path(folder), identity) for role, (folder, identity) in request["stored"].items()}
    splits = Splits(**docs, **stored)
    run = _MemberRun(request["folder"], request["identity"], _log)
    module.train_member(splits, config, run, request["number"])
