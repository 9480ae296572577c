"""`python -m benchmarks.label_model DATA OUT [--part dev] [--seeds 1 2 3]`: three sources on bc5cdr, combined.

The sources: a random half of the gazetteer; patterns for the endings of drug and disease names; and a weak model,
trained on 100 sentences of the training part with default settings. They label the texts of `--part` (of `train.gold`,
those that the model was not trained on). The labels of that part are used to score the result, never to make it. OUT
gets `rows.jsonl` and `table.md`. The settings of the label model, and how it chooses between overlapping spans, were
chosen on `train.gold`. An earlier version, which chose the more probable of them, had been measured on `dev` before.
"""

import argparse
import json
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from lacuner.annotate import (
    LabellingStatistics,
    LabelModel,
    Source,
    gazetteer_source,
    label_documents,
    load_gazetteer,
    patterns_source,
    tagger_source,
)
from lacuner.annotate.patterns import compile_pattern
from lacuner.corpus import read
from lacuner.data import Document, Splits
from lacuner.evaluate.scores import count_exact
from lacuner.recipes import find_recipe
from lacuner.trainer.train import train

TRAINED = 100
"""Sentences that the weak model is trained on."""
PATTERNS = (
    ("Disease", r"\b[A-Za-z-]{2,}(?:itis|osis|emia|aemia|opathy|oma|algia|uria|plegia|rrhea|rrhage|toxicity)\b"),
    ("Disease", r"\b(?:[a-z]+ )?(?:disease|syndrome|disorder|failure|infarction|seizures|pain)\b"),
    ("Chemical", r"\b[A-Za-z-]{2,}(?:ine|ide|amide|azole|pril|statin|mycin|cillin|azine|olol|pam|caine|one|ate)\b"),
)
WAYS = ("priority", "vote", "model")

Row = dict[str, Any]


def make_sources(data: Path, out: Path, seed: int) -> list[Source]:
    """The three sources; the half of the gazetteer and the sentences of the weak model depend on the seed."""
    rng = random.Random(seed)
    entries = [entry for entry in load_gazetteer(data / "bc5cdr" / "dictionary.tsv").entries if rng.random() < 0.5]
    gold = training_sentences(data, seed)
    config = find_recipe("supervised").Config()
    model = train("supervised", Splits(gold=gold), out / f"model-{seed}", config, seed, lambda _: None).tagger
    patterns = [compile_pattern(*pattern) for pattern in PATTERNS]
    return [
        gazetteer_source(entries, name="half gazetteer", case="exact"),
        patterns_source("patterns", patterns),
        tagger_source("weak model", model),
    ]


def training_sentences(data: Path, seed: int) -> list[Document]:
    docs = list(read(data / "bc5cdr" / "train.gold.conll", complete=True))
    return [docs[number] for number in sorted(random.Random(seed + 1000).sample(range(len(docs)), TRAINED))]


def run(data: Path, out: Path, part: str, seed: int) -> Iterator[Row]:
    """Label the texts of a part, in each way, and score the labels."""
    sources = make_sources(data, out, seed)
    seen = {doc.text for doc in training_sentences(data, seed)}
    gold = [doc for doc in read(data / "bc5cdr" / f"{part}.conll", complete=True) if doc.text not in seen]
    for source in sources:
        weak = list(label_documents(gold, LabelModel([source])))
        yield {"part": part, "seed": seed, "by": source.name, **count_exact(gold, weak).as_json()}
    for way in WAYS:
        model = LabelModel(sources, way)  # type: ignore[arg-type]
        weak = list(label_documents(gold, model, statistics=LabellingStatistics()))
        row = {"part": part, "seed": seed, "by": way, **count_exact(gold, weak).as_json()}
        if model.accuracy is not None:
            estimates = {f"{name} {label}": accuracy for name, label, _, accuracy, _ in model.accuracy.rows}
            row["accuracy"] = {name: [value, 0.0] for name, value in estimates.items()}
            for name, true in measure_accuracy(sources, gold).items():
                row["accuracy"][name][1] = true
        yield row


def measure_accuracy(sources: Sequence[Source], gold: Sequence[Document]) -> dict[str, float]:
    """The share of right spans of each source and label."""
    right: dict[str, list[bool]] = defaultdict(list)
    for source in sources:
        for doc, weak in zip(gold, label_documents(gold, LabelModel([source])), strict=True):
            keys = {span.key for span in doc.spans}
            for span in weak.spans:
                right[f"{source.name} {span.label}"].append(span.key in keys)
    return {name: mean(values) for name, values in right.items()}


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Mean and standard deviation over seeds, and the estimated beside the measured accuracies."""
    yield "| | P | R | F1 | seeds |\n|---|---|---|---|---|"
    for by in dict.fromkeys(row["by"] for row in rows):
        own = [row for row in rows if row["by"] == by]
        cells = [
            f"{100 * mean(values):.1f} ± {100 * (stdev(values) if len(values) > 1 else 0):.1f}"
            for values in ([row[name] for row in own] for name in ("precision", "recall", "f1"))
        ]
        yield f"| {by} | {' | '.join(cells)} | {len(own)} |"
    yield "\n| source and label | estimated accuracy | measured |\n|---|---|---|"
    pairs = defaultdict(list)
    for row in rows:
        for name, pair in row.get("accuracy", {}).items():
            pairs[name].append(pair)
    for name, values in pairs.items():
        yield f"| {name} | {mean(value[0] for value in values):.2f} | {mean(value[1] for value in values):.2f} |"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--part", choices=("train.gold", "dev"), default="dev")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    rows = [row for seed in options.seeds for row in run(options.data, options.out, options.part, seed)]
    (options.out / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (options.out / "table.md").write_text("\n".join(table(rows)) + "\n")
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main(sys.argv[1:])
