"""How time and memory grow with the input: `python -m benchmarks.limits [NAME...]`. Each step is a process of its own.

Sizes are small, so that each step takes less than a minute: what counts is the growth from one size to the next.
Prints one row per step and size: seconds of processor time, peak memory, and both relative to the size before.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile

PEAK = """
import re, sys, time
from pathlib import Path
def report():
    peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024
    print(__import__("json").dumps({"seconds": round(time.process_time(), 2), "mb": peak}))
size, folder = int(sys.argv[1]), Path(sys.argv[2])
def entries(n):
    for i in range(n):
        yield f"Nam{i} Teel{i % 977}"
"""
STEPS: dict[str, tuple[str, tuple[int, ...]]] = {
    "gazetteer of N entries": (
        """
from lacuner.annotate import gazetteer_source, load_gazetteer
path = folder / "terms.tsv"
with path.open("w") as stream:
    stream.writelines(f"{name}\\tPER\\n" for name in entries(size))
gazetteer_source(load_gazetteer(path).entries, name="g")
""",
        (100_000, 300_000, 1_000_000),
    ),
    "annotate N documents, 1,000 entries": (
        """
from lacuner.annotate import Entry, annotate, gazetteer_source
from lacuner.corpus import read, write
path = folder / "text.txt"
with path.open("w") as stream:
    stream.writelines(f"On day {i} Nam{i % 1000} Teel{i % 977} left Halden and went home.\\n" for i in range(size))
source = gazetteer_source([Entry(name, "PER") for name in entries(1000)], name="g")
write(annotate(read(path), [source]), folder / "weak.jsonl")
""",
        (20_000, 40_000, 80_000),
    ),
    "predict N documents": (
        """
import torch
from lacuner.corpus import read, write
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.heads import build_head
from lacuner.models.model import Model
from lacuner.models.tagger import Tagger
torch.set_num_threads(1)
path = folder / "text.txt"
with path.open("w") as stream:
    stream.writelines(f"On day {i} the ship left the town of Halden and went home.\\n" for i in range(size))
encoder = TinyEncoder(TinyConfig())
tagger = Tagger(Model(encoder, build_head({"kind": "token", "labels": ["PER"]}, encoder.width)))
write(tagger.predict(read(path)), folder / "out.jsonl")
""",
        (5_000, 10_000, 20_000),
    ),
    "windows of one document of N words, a third labeled": (
        """
from lacuner.data import Document, Lost, Span
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.windows import cut_sentences
words = tuple((2 * i, 2 * i + 1) for i in range(size))
doc = Document("1", "w " * size, words, spans=tuple(Span(*word, "X") for word in words[::3]))
cut_sentences([doc], TinyEncoder(TinyConfig(width=8, heads=0)), Lost())
""",
        (100_000, 300_000, 1_000_000),
    ),
    **{
        f"{work} of one document with N labels of {types}": (
            f"""
from dataclasses import replace
from lacuner.advice import profile
from lacuner.audit.issues import label_issues
from lacuner.data import Document, Span
from lacuner.noise import Noise, corrupt, measure
from lacuner.review.build import build_queue
gold = Document("1", "Mara Teel left " * size, spans=tuple(
    Span(15 * i, 15 * i + 9, f"L{{i % {count}}}", 0.8) for i in range(size)), complete=True)
[weak] = corrupt([gold], Noise(drop=0.3, wrong_type=0.1, shift=0.1))
{code}
""",
            (10_000, 30_000),
        )
        for work, code in {
            "noise": "measure([weak], [gold])",
            "profile": "profile([weak])",
            "review queue": "build_queue([weak], label_issues([weak], [gold]))",
        }.items()
        for types, count in (("5 types", "5"), ("N types", "size"))
    },
    "similar names among N labels": (
        """
from lacuner.corpus.check import similar_labels
list(similar_labels({f"L{i}": 1 for i in range(size)}))
""",
        (10_000, 30_000, 100_000),
    ),
}


def measure(code: str, size: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", f"{PEAK}{code}\nreport()", str(size), folder]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    chosen = [name for name in STEPS if not sys.argv[1:] or any(part in name for part in sys.argv[1:])]
    for name in chosen:
        code, sizes = STEPS[name]
        before: dict[str, float] | None = None
        for size in sizes:
            result = measure(code, size)
            growth = f", time x {result['seconds'] / before['seconds']:.1f}" if before else ""
            print(f"{name}: N = {size:,}: {result['seconds']:.1f} s, {result['mb']:,} MB{growth}", flush=True)
            before = result


if __name__ == "__main__":
    main()
