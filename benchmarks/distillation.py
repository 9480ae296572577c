"""`python -m benchmarks.distillation DATA ENCODER OUT [--students tiny tiny-en] [--text FILE] ...`: quality and speed.

A transformer (ENCODER, a folder or name as after `hf:`) is fine-tuned on the training gold of each corpus, with dev for
early stopping. Students learn from it on the training texts without their labels, and on `--text` if given; dev selects
their epoch and threshold, too. Each row has F1 on dev and test of teacher and student, with `--supervised` also of the
same small encoder trained on gold directly, and how many times faster a student predicts the test texts than its
teacher, in CPU time with one thread, in turns. OUT/rows.jsonl gets one row per corpus, student and seed; rows that are
there are not measured again.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from benchmarks.speed.models import in_turns, ratio
from lacuner.atomic import atomic_write
from lacuner.config import load_config
from lacuner.corpus import read
from lacuner.data import Document, Splits
from lacuner.evaluate.scores import count_exact
from lacuner.export.distil import DistilConfig, distil
from lacuner.recipes import find_recipe
from lacuner.trainer.train import train

CORPORA = ("wikigold", "bc5cdr")
MOST_TIMED = 1000
"""Test sentences on which speed is measured."""
Row = dict[str, Any]


def f1_of(tagger: Any, docs: Sequence[Document]) -> float:
    return count_exact(docs, list(tagger.predict(docs))).f1


def train_teacher(corpus: str, seed: int, splits: Splits, options: argparse.Namespace) -> Any:
    """The fine-tuned transformer; one that is trained already is loaded."""
    settings = [f'encoder.name="hf:{options.encoder}"', f"train.epochs={options.teacher_epochs}", "train.dev_every=2"]
    config = load_config(find_recipe("supervised").Config, settings=settings)
    return train("supervised", splits, options.out / f"{corpus}_{seed}" / "teacher", config, seed).tagger


def measure(corpus: str, student: str, seed: int, options: argparse.Namespace) -> Row:
    """Train the teacher (once per corpus and seed) and the student, and compare them."""
    gold, dev, test = (
        list(read(options.data / corpus / f"{part}.conll", complete=True)) for part in ("train.gold", "dev", "test")
    )
    texts = [replace(doc, spans=(), complete=False) for doc in gold]
    for file in options.text:
        texts += islice(read(file), options.most)
    gold, dev = gold[: options.most_gold], dev[: options.most_gold]
    folder = options.out / f"{corpus}_{seed}"
    recipe = find_recipe("supervised").Config
    splits = Splits(gold=gold, dev=dev)
    teacher = train_teacher(corpus, seed, splits, options)
    settings = [f'encoder.name="{student}"', f"train.epochs={options.epochs}"]
    config = load_config(DistilConfig, settings=settings)
    result = distil(folder / "teacher", texts, folder / f"distilled_{student}", config, dev=dev, seed=seed)
    bare = [Document(doc.id, doc.text, doc.words) for doc in test[:MOST_TIMED]]
    sides = {"teacher": lambda: list(teacher.predict(bare)), "student": lambda: list(result.tagger.predict(bare))}
    times = in_turns(sides, 3, time.process_time)
    row = {
        "corpus": corpus,
        "student": student,
        "seed": seed,
        "texts": len(texts),
        "teacher_dev": round(f1_of(teacher, dev), 4),
        "student_dev": round(f1_of(result.tagger, dev), 4),
        "teacher_f1": round(f1_of(teacher, test), 4),
        "student_f1": round(f1_of(result.tagger, test), 4),
        "agreement": round(result.agreement.f1, 4),
        "speed_ratio": round(ratio(times, "student", "teacher"), 2),
    }
    if options.supervised:
        alone = train(
            "supervised", splits, folder / f"supervised_{student}", load_config(recipe, settings=settings), seed
        ).tagger
        row["supervised_f1"] = round(f1_of(alone, test), 4)
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("encoder")
    parser.add_argument("out", type=Path)
    parser.add_argument("--students", nargs="+", default=["tiny", "tiny-en"])
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--text", nargs="*", type=Path, default=[], help="further texts to distil on")
    parser.add_argument("--most", type=int, default=20_000, help="documents taken from each of them")
    parser.add_argument(
        "--most-gold", type=int, help="first sentences of training gold and of dev that are used; by default all"
    )
    parser.add_argument("--supervised", action="store_true", help="also train the student's encoder on gold")
    parser.add_argument("--teacher-epochs", type=int, default=6)
    parser.add_argument("--epochs", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(1)
    path = options.out / "rows.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    done = {(row["corpus"], row["student"], row["seed"]) for row in rows}
    for seed in options.seeds:
        for corpus in options.corpora:
            for student in options.students:
                if (corpus, student, seed) not in done:
                    rows.append(measure(corpus, student, seed, options))
                    sys.stdout.write(json.dumps(rows[-1]) + "\n")
                    with atomic_write(path) as stream:
                        stream.write("".join(json.dumps(row) + "\n" for row in rows).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
