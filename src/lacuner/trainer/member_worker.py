"""Train one member of an ensemble in a process of its own: the child half of `training.parallel`."""

from __future__ import annotations

import json
import sys

from lacuner.corpus import read
from lacuner.data import Splits
from lacuner.processes import read_request
from lacuner.recipes import RECIPES
from lacuner.training.run_folder import Row, Run


class _Part(Run):
    """The run as seen from a process that learns a part of it; what the metrics are, the run itself will write."""

    def record(self, stage: str, rows: list[Row]) -> None:
        pass


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Learn the part that standard input names."""
    request = read_request()
    module = RECIPES[request["recipe"]]
    config = module.Config.model_validate_json(json.dumps(request["config"]))
    splits = Splits(**{name: list(read(path)) for name, path in request["files"].items()})
    run = _Part(request["folder"], request["identity"], _say)
    module.learn_part(splits, config, run, request["number"])
