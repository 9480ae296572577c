"""Commands that cannot write; in forked children of one process, because loading torch takes long.

Usage: python -m tests.training.no_room FOLDER
Prints a JSON object: for each case the exit status and what the command said last.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import torch

import lacuner.trainer.train  # noqa: F401 (here, so that no child must do it)
from lacuner.cli.main import main as run_lacuner
from lacuner.corpus import write
from tests.demo_corpus import demo_corpus

TRAIN = ["train", "--recipe", "supervised", "--gold", "gold.jsonl", "--dev", "gold.jsonl"]
TRAIN += ["--encoder", "tiny", "--set", "train.epochs=1", "--set", "train.checkpoint_seconds=0", "--out"]


def nothing() -> None:
    """A disk with room."""


def small_disk() -> None:
    """A file may have a megabyte: enough for JSON, too little for weights."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))


def as_a_user() -> None:
    """Root may write everywhere; from here on permissions count for root too."""
    version_3, all_of_them, none = 0x20080522, 0, bytes(24)
    if os.geteuid() == 0 and ctypes.CDLL(None).capset(struct.pack("Ii", version_3, all_of_them), none):
        raise OSError("the rights of root cannot be given up here")


def command(prepare: Callable[[], None], *args: str) -> tuple[int, str]:
    """The exit status of a command, and the last lines that it said."""
    said = Path("said.txt")
    said.write_text("")
    child = os.fork()
    if child == 0:
        try:
            sys.stdout = sys.stderr = said.open("w", buffering=1)
            prepare()
            sys.argv = ["lacuner", *args]
            run_lacuner()
            os._exit(0)
        except SystemExit as ended:
            os._exit(int(ended.code or 0))
        except BaseException as error:
            said.open("a").write(f"Traceback: {type(error).__name__}: {error}\n")
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status, said.read_text()[-500:]


def main() -> None:
    os.chdir(sys.argv[1])
    torch.set_num_threads(1)
    write(demo_corpus().train[:30], "gold.jsonl")
    result = {"whole": command(nothing, *TRAIN, "whole"), "full": command(small_disk, *TRAIN, "run")}
    Path("full.jsonl").symlink_to("/dev/full")
    result["full, at the end"] = command(small_disk, "predict", "whole", "gold.jsonl", "--out", "full.jsonl")
    result["room again"] = command(nothing, *TRAIN, "run")
    Path("closed").mkdir()
    Path("closed/old.jsonl").write_text("precious\n")
    for folder in (Path("closed"), *(path for path in Path("run").rglob("*") if path.is_dir()), Path("run")):
        folder.chmod(0o555)
    Path("run/.lock").chmod(0o444)
    result["read-only, new"] = command(as_a_user, *TRAIN, "closed/run")
    result["read-only, again"] = command(as_a_user, *TRAIN, "run")
    result["read-only, out"] = command(as_a_user, "predict", "run", "gold.jsonl", "--out", "closed/old.jsonl")
    result["read-only, in"] = command(as_a_user, "predict", "run", "gold.jsonl", "--out", "found.jsonl")
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    main()
