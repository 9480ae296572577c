"""`python -m benchmarks.first_hour DATA OUT [--seeds 1 2 3] [--encoders tiny auto] ...`: what a newcomer gets.

A newcomer has texts, half of a gazetteer, and nothing else, or 60 completely labeled sentences (`gold`, or `dev`). Each
row trains with the default settings of `lacuner train`, and scores on test: the gazetteer alone, the model alone, both
as `lacuner predict` combines them, and both with the threshold that is best on all of dev. The texts are the first 800
training sentences. The gazetteer is a random half of the corpus's dictionary (bc5cdr, ec), or of the names in the
training gold (wikigold, resume). OUT/rows.jsonl gets one row per condition; rows that are there are not run again. If
`--runs` has kept their run folders, their label issues are ranked again by the present code.
"""

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

from lacuner.annotate import Entry, annotate, gazetteer_source, load_gazetteer
from lacuner.atomic import write_json_lines
from lacuner.corpus import read
from lacuner.data import Document, Splits
from lacuner.evaluate.scores import count_exact
from lacuner.models.gazetteer import TaggerGazetteer
from lacuner.models.tagger import Tagger
from lacuner.techniques.label_issues import LabelIssues
from lacuner.trainer.auto import AUTO, AutoSettings
from lacuner.trainer.comparison import compare_on_dev
from lacuner.trainer.merge_rule import tune_with_gazetteer
from lacuner.trainer.train import TrainingResult, train

CORPORA = {"bc5cdr": "train.gold", "ec": "train", "wikigold": "train.gold", "resume": "train"}
"""Corpora, and their file of training gold, from which the texts are taken."""
SENTENCES, LABELED, FIRST_ISSUES = 800, 60, 50
EXTRAS = ("nothing", "gold", "dev")

Row = dict[str, Any]
Cell = tuple[str, str, str, int]
"""Corpus, extra, encoder and seed."""


def prepare(data: Path, corpus: str, seed: int) -> tuple[list[Document], list[Entry]]:
    """The training sentences with their gold, and the newcomer's half of the gazetteer."""
    docs = list(read(data / corpus / f"{CORPORA[corpus]}.conll", complete=True))[:SENTENCES]
    file = data / corpus / "dictionary.tsv"
    entries = list(load_gazetteer(file).entries) if file.exists() else list(names_of(docs))
    rng = random.Random(seed)
    return docs, [entry for entry in entries if rng.random() < 0.5]


def names_of(docs: Sequence[Document]) -> Iterator[Entry]:
    """The names in gold, each with its most frequent label."""
    labels: dict[str, Counter[str]] = {}
    for doc in docs:
        for span in doc.spans:
            labels.setdefault(doc.text[span.start : span.end], Counter())[span.label] += 1
    for name, counts in sorted(labels.items()):
        yield Entry(name, min(counts, key=lambda label: (-counts[label], label)))


def without_labels(docs: Sequence[Document]) -> list[Document]:
    return [replace(doc, spans=(), rejected=(), unsure=(), complete=None) for doc in docs]


def train_cell(data: Path, corpus: str, extra: str, encoder: str, seed: int, runs: Path) -> TrainingResult:
    """Train as a newcomer does, in a folder in `runs`; a run that is there is loaded."""
    docs, entries = prepare(data, corpus, seed)
    dev = list(read(data / corpus / "dev.conll", complete=True))
    weak = list(annotate(without_labels(docs), [gazetteer_source(entries)]))
    own = random.Random(seed + 1000).sample(range(len(docs)), LABELED)
    splits = Splits(
        weak=weak,
        gold=[docs[i] for i in sorted(own)] if extra == "gold" else None,
        dev=dev[:LABELED] if extra == "dev" else None,
    )
    settings = AutoSettings(settings=(f'encoder.name="{encoder}"',))
    folder = run_folder(runs, corpus, extra, encoder, seed)
    return train(AUTO, splits, folder, settings, seed, gazetteer=TaggerGazetteer(entries))


def run_folder(runs: Path, corpus: str, extra: str, encoder: str, seed: int) -> Path:
    return runs / "-".join((corpus, extra, encoder, str(seed)))


def run(data: Path, corpus: str, extra: str, encoder: str, seed: int, runs: Path) -> Row:
    """Train as a newcomer does, and score on test."""
    result = train_cell(data, corpus, extra, encoder, seed, runs)
    docs, _ = prepare(data, corpus, seed)
    dev, test = (list(read(data / corpus / f"{part}.conll", complete=True)) for part in ("dev", "test"))
    tagger = result.tagger
    assert isinstance(tagger, Tagger)
    scores = {row.system: row.count.as_json() for row in compare_on_dev(tagger, test).rows}
    rule = tagger.gazetteer.rule if tagger.gazetteer is not None else None
    threshold = getattr(tagger.model.head, "threshold", None)
    tune_with_gazetteer(tagger, dev)
    scores["both, tuned on all of dev"] = count_exact(test, list(tagger.predict(test))).as_json()
    return {
        "corpus": corpus,
        "extra": extra,
        "encoder": encoder,
        "seed": seed,
        "recipe": result.run.identity["recipe"],
        "scores": scores,
        "threshold": threshold,
        "rule": rule,
        "estimate": result.estimate and vars(result.estimate),
        "issues": judge_issues(result.label_issues, docs),
    }


def judge_issues(issues: LabelIssues | None, gold: Sequence[Document]) -> Row | None:
    """How many names there are among the label issues, and how many of the first 50 have a right mention."""
    if issues is None:
        return None
    keys = {doc.id: {span.key for span in doc.spans} for doc in gold}
    names = issues.missing_names()
    right = [any(m.span.key in keys[m.document.id] for m in name.mentions) for name in names[:FIRST_ISSUES]]
    return {"names": len(names), "first": len(right), "right": sum(right)}


def table(rows: Sequence[Row]) -> Iterator[str]:
    """F1 per encoder and extra: a line per corpus, means over seeds, and the mean over corpora."""
    columns = ("gazetteer alone", "model alone", "both", "both, tuned on all of dev")
    for encoder, extra in sorted({(row["encoder"], row["extra"]) for row in rows}):
        yield f"\n{encoder}, {extra}\n\n| corpus | {' | '.join(columns)} | gain | least gain | issues P@50 | seeds |"
        yield "|---" * (len(columns) + 5) + "|"
        gains = []
        for corpus in CORPORA:
            own = [row for row in rows if (row["encoder"], row["extra"], row["corpus"]) == (encoder, extra, corpus)]
            if own:
                f1 = {name: [100 * row["scores"][name]["f1"] for row in own] for name in columns}
                gain = [both - alone for both, alone in zip(f1["both"], f1["gazetteer alone"], strict=True)]
                gains.append(mean(gain))
                found = [row["issues"]["right"] / max(row["issues"]["first"], 1) for row in own if row["issues"]]
                cells = [f"{mean(f1[name]):.1f}" for name in columns]
                issues = f"{mean(found):.2f}" if found else ""
                cells += [f"{mean(gain):+.1f}", f"{min(gain):+.1f}", issues, str(len(own))]
                yield f"| {corpus} | {' | '.join(cells)} |"
        yield f"| mean | {' | ' * len(columns)} {mean(gains):+.1f} | | | |"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--corpora", nargs="+", choices=CORPORA, default=list(CORPORA))
    parser.add_argument("--extras", nargs="+", choices=EXTRAS, default=list(EXTRAS))
    parser.add_argument("--encoders", nargs="+", default=["tiny", "auto"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--runs", type=Path, help="folder that keeps the run folders; default: they are deleted")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    cells = [
        (corpus, extra, encoder, seed)
        for seed in options.seeds
        for encoder in options.encoders
        for extra in options.extras
        for corpus in options.corpora
    ]
    with tempfile.TemporaryDirectory() as folder:
        rows = run_cells(cells, options.data, options.out / "rows.jsonl", options.runs or Path(folder))
    (options.out / "table.md").write_text("\n".join(table(rows)) + "\n")
    print("\n".join(table(rows)))


def run_cells(cells: Sequence[Cell], data: Path, results: Path, runs: Path) -> list[Row]:
    """The rows in `results`, with those of the cells that have none, and label issues ranked again for kept runs."""
    lines = results.read_text().splitlines() if results.exists() else []
    rows: dict[Cell, Row] = {
        (row["corpus"], row["extra"], row["encoder"], row["seed"]): row for row in map(json.loads, lines)
    }
    for cell in cells:
        if cell not in rows:
            rows[cell] = run(data, *cell, runs)
        elif run_folder(runs, *cell).exists():
            docs, _ = prepare(data, cell[0], cell[-1])
            rows[cell]["issues"] = judge_issues(train_cell(data, *cell, runs).label_issues, docs)
        else:
            continue
        write_json_lines(results, rows.values())
        f1 = {name: round(100 * score["f1"], 1) for name, score in rows[cell]["scores"].items()}
        print(*cell, f1, rows[cell]["issues"], flush=True)
    return list(rows.values())


if __name__ == "__main__":
    main(sys.argv[1:])
