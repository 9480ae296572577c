"""What training costs: memory per sentence, and time with several processes.

`python -m benchmarks.scaling memory`: memory after each step of preparing weak documents for training.
`python -m benchmarks.scaling steps TEXT OUT`: CPU and wall-clock time of the steps of a short pre-training, in the new
folder OUT; with `torchrun --standalone --nproc-per-node 2 -m benchmarks.scaling steps TEXT OUT`, of each of two
processes. Run both in turn.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from lacuner.config import load_config
from lacuner.corpus import read
from lacuner.corpus.jsonl import write_jsonl
from lacuner.corpus.words import share_ranges, words_of
from lacuner.data import Lost, labels_of
from lacuner.demo import build
from lacuner.models.encoders.tiny import TinyEncoder
from lacuner.models.heads import build_head
from lacuner.models.model import Model
from lacuner.pretraining.pretrain import PretrainConfig, pretrain
from lacuner.pretraining.text import TextSource
from lacuner.training import loop
from lacuner.training.dataset import training_set, weak_training_set
from lacuner.training.distributed import join_processes, process_rank
from lacuner.training.identity import set_complete, sort_documents


def resident_bytes(name: str) -> int:
    """The memory of this process: `VmRSS`, or `VmHWM` for the highest so far."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def measure_memory(documents: int) -> None:
    """Print the memory per sentence after each step of preparing the demo corpus, repeated."""
    corpus = build().train
    labels = labels_of(corpus)
    heads: dict[str, dict[str, Any]] = {"token": {}, "span": {"widths": 10}}
    models = {
        kind: Model(encoder, build_head({"kind": kind, "labels": labels, **more}, encoder.width))
        for kind, more in heads.items()
        for encoder in [TinyEncoder()]
    }
    start = before = resident_bytes("VmRSS")

    def report(step: str) -> None:
        nonlocal before
        gc.collect()
        now = resident_bytes("VmRSS")
        highest = (resident_bytes("VmHWM") - start) / documents
        sys.stdout.write(f"{step}: {(now - before) / documents:,.0f} bytes per sentence, peak {highest:,.0f}\n")
        before = now

    with tempfile.TemporaryDirectory() as folder:
        copies = (replace(corpus[i % len(corpus)], id=str(i)) for i in range(documents))
        write_jsonl(copies, Path(folder) / "weak.jsonl", Lost())
        docs = list(share_ranges(read(Path(folder) / "weak.jsonl")))
    words = sum(len(words_of(doc)) for doc in docs) / documents
    report(f"documents of {words:.1f} words")
    docs = sort_documents(set_complete(docs, False))
    report("sorted")
    data = training_set(models["token"], docs, Lost())
    report("for a token classifier")
    del data
    report("without it")
    weak = weak_training_set(models["span"], docs, Lost())
    report(f"for a span classifier, both readings of {len(weak.as_annotated.features):,} sentences")


def measure_steps(text: Path, out: Path, words: int, budget: int) -> None:
    """Print CPU and wall-clock seconds of all training steps of this process."""
    torch.set_num_threads(1)
    seconds, update = [0.0, 0.0], loop._Trainer._update

    def timed(*args: Any) -> Any:
        start = time.process_time(), time.monotonic()
        try:
            return update(*args)
        finally:
            seconds[0] += time.process_time() - start[0]
            seconds[1] += time.monotonic() - start[1]

    loop._Trainer._update = timed  # type: ignore[method-assign]
    settings = ["encoder.name=tiny", "encoder.size=base", f"train.budget={budget}", f"words={words}", "dropout=0.2"]
    config = load_config(PretrainConfig, settings=[*settings, "shard=100000"])
    with join_processes():
        pretrain([TextSource(text.name, lambda: read(text), text.name)], out, config)
        rank = process_rank()
    sys.stdout.write(f"process {rank}: {seconds[0]:.2f} s of CPU time, {seconds[1]:.2f} s\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    memory = commands.add_parser("memory")
    memory.add_argument("--documents", type=int, default=160_000)
    steps = commands.add_parser("steps")
    steps.add_argument("text", type=Path)
    steps.add_argument("out", type=Path)
    steps.add_argument("--words", type=int, default=100_000)
    steps.add_argument("--budget", type=int, default=4096)
    options = parser.parse_args()
    if options.command == "memory":
        measure_memory(options.documents)
    else:
        measure_steps(options.text, options.out, options.words, options.budget)


if __name__ == "__main__":
    main()
