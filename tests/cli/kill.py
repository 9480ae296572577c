"""Run a command, kill it at many points, run it again: in forked children of one process, because torch loads slowly.

Usage: python -m tests.cli.kill FOLDER COMMAND POINTS
COMMAND is a key of `COMMANDS`. POINTS kills are spread evenly over the function calls of an uninterrupted run (counted
by a profiler, so that they are the same every time), and one more before each file gets its name, when half is written.
Prints a JSON object: what was compared, and each point after which something was wrong.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import lacuner.trainer.train  # noqa: F401 (here, so that no child must load it)
from lacuner import atomic
from lacuner.annotate.gazetteer.entries import Entry
from lacuner.cli.main import main as run_lacuner
from lacuner.corpus import write
from lacuner.data import Document, Span
from lacuner.models.gazetteer import TaggerGazetteer
from lacuner.models.sidecar import write_sidecar
from lacuner.noise import Noise, corrupt
from lacuner.review.queue import ReviewQueue, decision_log, save_queue
from tests.demo_corpus import demo_corpus

QUICK = ["--set", "encoder.name=tiny", "--set", "train.epochs=1", "--set", "train.checkpoint_seconds=0"]
TRAIN = ["train", "--recipe", "trust", "--weak", "weak.jsonl", "--dev", "dev.jsonl", *QUICK, "--set", "head.kind=token"]
ANNOTATE = ["annotate", "text.txt", "--dictionary", "terms.tsv", "--workers", "1"]
COMMANDS: dict[str, list[str]] = {
    "convert": ["convert", "gold.jsonl", "out.conll"],
    "check": ["check", "bad.jsonl", "--fix", "--out", "out.jsonl"],
    "dictionary build": ["dictionary", "build", "terms.obo", "--label", "X", "--out", "out.tsv"],
    "annotate": [*ANNOTATE, "--out", "out.jsonl", "--report", "out.html"],
    "noise corrupt": ["noise", "corrupt", "gold.jsonl", "--drop", "0.5", "--out", "out.jsonl"],
    "predict": ["predict", "model", "gold.jsonl", "--out", "out.jsonl", "--html", "out.html"],
    "apply": ["apply", "reviewed", "reviewed.jsonl", "--out", "out.jsonl"],
    "apply from disk": ["apply", "reviewed", "reviewed.jsonl", "--out", "out.jsonl", "--stream"],
    "audit sample": ["audit", "sample", "model", "gold.jsonl", "--sentences", "5", "--out", "out"],
    "audit sample from disk": [
        "audit",
        "sample",
        "model",
        "gold.jsonl",
        "--sentences",
        "5",
        "--out",
        "out",
        "--stream",
    ],
    "audit export": ["audit", "export", "reviewed", "--out", "out.jsonl"],
    "audit import": ["audit", "import", "reviewed", "annotated.jsonl", "--complete"],
    "audit issues": ["audit", "issues", "out", "--weak", "weak.jsonl", "--folds", "2", *QUICK],
    "audit sampling": ["audit", "sampling", "--weak", "weak.jsonl", "--gold", "gold.jsonl", "--out", "out", *QUICK],
    "train": [*TRAIN, "--out", "out"],
    "pretrain": ["pretrain", "text.txt", "--encoder", "tiny", "--out", "out", "--set", "train.epochs=1"],
    "distil": ["distil", "model", "--to", "tiny", "--text", "text.txt", "--out", "out", "--set", "train.epochs=1"],
    "export": ["export", "untrained", "--to", "spacy", "--text", "text.txt", "--out", "out"],
    "bench": ["bench", "spec.toml", "--out", "out", "--data", ".", "--workers", "1"],
    "augment": ["augment", "text.txt", "--encoder", "run:earlier", "--least-top5", "0", "--out", "out.jsonl"],
    "audit labels": ["audit", "labels", "model", "weak.jsonl", "--workers", "1", "--out", "out"],
    "audit removed": ["audit", "removed", "earlier", "--gold", "gold.jsonl", "--out", "out"],
    "audit completion": ["audit", "completion", "earlier", "--gold", "gold.jsonl", "--out", "out"],
}
EARLIER = {
    "augment": ["pretrain", "text.txt", "--encoder", "tiny", "--set", "train.epochs=1"],
    "audit removed": ["train", "--recipe", "two_step", "--weak", "weak.jsonl", *QUICK],
    "audit completion": ["train", "--recipe", "needle", "--gold", "dev.jsonl", "--weak", "weak.jsonl", *QUICK],
}
"""The command whose output, the folder `earlier`, another one reads."""
SPEC = """
seeds = [1]
settings = ["train.epochs=1"]
[data.demo]
sentences = 20
[noise]
masked = [0.5]
[recipes.dictionary]
recipe = "dictionary"
"""
OBO = '[Term]\nid: X:1\nname: asthma\nsynonym: "bronchial asthma" EXACT []\n\n[Term]\nid: X:2\nname: bowel fever\n'
TIMES = ("cost", "documents_per_second", "versions", "time", "seconds", "date")


def prepare(folder: Path, name: str) -> None:
    """The files that the commands read; some only if the command called `name` reads them."""
    os.chdir(folder)
    demo = demo_corpus()
    gold = demo.train[:20]
    write(gold, "gold.jsonl")
    write(corrupt(gold, Noise(drop=0.3)), "weak.jsonl")
    write(demo.dev[:10], "dev.jsonl")
    Path("text.txt").write_text("".join(f"{doc.text}\n" for doc in gold))
    Path("bad.jsonl").write_text(
        '{"id": "1", "text": "Mara left Halden ", "spans": [[0, 5, "PER"], [10, 17, "LOC"]]}\n'
    )
    entries = [
        Entry(*entry[:2]) for entry in sorted({(d.text[s.start : s.end], s.label) for d in gold for s in d.spans})
    ]
    Path("terms.tsv").write_text("".join(f"{entry.surface}\t{entry.label}\n" for entry in entries))
    Path("terms.obo").write_text(OBO)
    Path("spec.toml").write_text(SPEC)
    docs = [Document("1", "Mara met Teel.", spans=(Span(9, 13, "PER"),)), Document("2", "Nobody came.")]
    write(docs, "reviewed.jsonl")
    write([Document("1", "Mara met Teel.", spans=(Span(0, 4, "PER"),), complete=True)], "annotated.jsonl")
    write_sidecar(TaggerGazetteer([Entry("Teel", "PER")]), Path("reviewed.jsonl"))
    from lacuner.audit.issues import new_issue

    issue = new_issue("missing", docs[0], Span(0, 4, "PER"), (), 0.9)
    queue = ReviewQueue((issue,), {doc.id: doc for doc in docs}, (), ("PER",))
    save_queue(queue, Path("reviewed"))
    decision_log(Path("reviewed")).append(queue.decide(issue.id, "accept"))
    save_untrained(Path("untrained"))
    for command in [[*TRAIN, "--out", "model"], *([[*EARLIER[name], "--out", "earlier"]] if name in EARLIER else [])]:
        assert run_in_child(command, lambda: None) == 0, Path("said.txt").read_text()


def save_untrained(folder: Path) -> None:
    """A model with random weights: it predicts entities, as the proof of an export needs."""
    from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
    from lacuner.models.heads import build_head
    from lacuner.models.model import Model
    from lacuner.models.storage import save
    from lacuner.models.tagger import Tagger

    torch.manual_seed(0)
    encoder = TinyEncoder(TinyConfig(width=16, layers=1, rows=64, feature=8, heads=2))
    save(Tagger(Model(encoder, build_head({"kind": "token", "labels": ["LOC", "PER"]}, encoder.width))), folder)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def count_calls(limit: int | None) -> list[int]:
    """Count function calls, and die at the given one."""
    count = [0]

    def profile(frame: Any, event: str, _: object) -> None:
        if event == "call":
            count[0] += 1
            if count[0] == limit:
                die()

    threading.setprofile(profile)
    sys.setprofile(profile)
    return count


def die_at_replace(number: int) -> None:
    """Die when half of the n-th file is written, before it gets its name."""
    replace, remaining = os.replace, [number]

    def replace_or_die(part: Any, path: Any) -> None:
        remaining[0] -= 1
        if remaining[0] == 0:
            os.truncate(part, os.path.getsize(part) // 2)
            die()
        replace(part, path)

    atomic.os.replace = replace_or_die


def run_in_child(command: list[str], arm: Callable[[], object]) -> int:
    """Exit status of a command in a forked child; negative if it was killed."""
    child = os.fork()
    if child == 0:
        said = open("said.txt", "w", buffering=1)  # noqa: SIM115 (closed by the end of the process)
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
        sys.stdout = sys.stderr = said
        sys.argv = ["lacuner", *command]
        status = 0
        try:
            arm()
            run_lacuner()
        except SystemExit as end:
            status = int(end.code or 0)
        except BaseException as error:
            said.write(f"Traceback: {type(error).__name__}: {error}\n")
            status = 1
        sys.setprofile(None)
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def measure(command: list[str]) -> tuple[int, int]:
    """Function calls, and files written, of an uninterrupted run."""
    counts: dict[str, Any] = {"files": 0}
    replace = os.replace

    def arm() -> None:
        def note(part: Any, path: Any) -> None:
            counts["files"] += 1
            replace(part, path)

        atomic.os.replace = note
        counts["calls"] = count_calls(None)
        exit_now = os._exit

        def leave(status: int) -> None:
            sys.setprofile(None)
            Path("counts.json").write_text(json.dumps([counts["calls"][0], counts["files"]]))
            exit_now(status)

        os._exit = leave  # type: ignore[assignment]

    assert run_in_child(command, arm) in (0, 1), Path("said.txt").read_text()
    calls, files = json.loads(Path("counts.json").read_text())
    Path("counts.json").unlink()
    return calls, files


def stable(value: Any) -> Any:
    """A JSON value without the times that differ from run to run."""
    if isinstance(value, dict):
        return {key: stable(inner) for key, inner in value.items() if key not in TIMES}
    return [stable(inner) for inner in value] if isinstance(value, list) else value


def digest(folder: Path) -> dict[str, str]:
    """The hash of every file that the command left, up to times."""
    result = {}
    for file in sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in ("said.txt", ".lock")):
        if file.name.endswith(".lock") or "inputs" in file.parts:
            continue
        data = file.read_bytes()
        if file.suffix in (".json", ".jsonl"):
            rows = [json.loads(data)] if file.suffix == ".json" else [json.loads(line) for line in data.splitlines()]
            data = json.dumps(stable(rows), sort_keys=True).encode()
        elif file.name in ("table.md", "report.html"):  # the last table is that of times
            data = re.split(rb"## Cost|<h2>Cost", data)[0]
        elif file.name == "README.md":  # the card of an export says how fast it was
            data = b"".join(line for line in data.splitlines() if b"documents/s" not in line)
        result[file.relative_to(folder).as_posix()] = hashlib.sha256(data).hexdigest()
    return result


def check_point(
    point: str, arm: Callable[[], object], folder: Path, inputs: Path, command: list[str], whole: dict[str, str]
) -> str:
    """Kill, look at what is left, run again; returns what is wrong."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(inputs, folder)
    os.chdir(folder)
    before = digest(folder)
    killed = run_in_child(command, arm)
    if killed != -signal.SIGKILL:
        return f"it was not killed: {killed}"
    outputs = [file for file in folder.glob("out*") if file.is_file()]
    for file in outputs:  # a file with its name is whole; folders of runs have states of their own
        if digest(folder)[file.name] != whole[file.name]:
            return f"{file.name} is neither old nor new"
    readable = [path.name for path in folder.rglob("*.part") if path.is_file() and path.stat().st_mode & 0o077]
    if readable and "file" not in point:  # the mode of the file itself is set right before it gets its name
        return f"others can read {readable}"
    status = run_in_child(command, lambda: None)
    said = Path("said.txt").read_text()
    if status not in (0, 1) or "Traceback" in said:
        return f"the same command ends with status {status}: {said[-500:]}"
    after = digest(folder)
    different = sorted(name for name in {*after, *whole} if after.get(name) != whole.get(name))
    return f"these files differ: {different}" if different or before.keys() - after.keys() else ""


def main() -> None:
    folder, name, number = Path(sys.argv[1]).resolve(), sys.argv[2], int(sys.argv[3])
    torch.set_num_threads(1)
    command = COMMANDS[name]
    inputs = folder / "prepared"
    inputs.mkdir()
    prepare(inputs, name)
    work = folder / "work"  # the same for all: some files contain paths
    shutil.copytree(inputs, work)
    os.chdir(work)
    calls, files = measure(command)
    whole = digest(work)
    points: dict[str, Callable[[], object]] = {}
    for at in sorted({calls * i // (number + 1) for i in range(1, number + 1)}):
        points[f"call {at}"] = lambda at=at: count_calls(at)  # type: ignore[misc]
    for at in range(1, min(files, number) + 1):
        points[f"file {at}"] = lambda at=at: die_at_replace(at)  # type: ignore[misc]
    wrong = {}
    for point, arm in points.items():
        if problem := check_point(point, arm, work, inputs, command, whole):
            wrong[point] = problem
    sys.stdout.write(json.dumps({"calls": calls, "files": files, "points": len(points), "wrong": wrong}))


if __name__ == "__main__":
    main()
