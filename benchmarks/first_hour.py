"""`python -m benchmarks.first_hour DATA OUT [--seeds 1 2 3] [--encoders tiny auto] ...`: what a newcomer gets.

A newcomer has texts, half of a gazetteer, and nothing else, or 60 completely labeled sentences (`gold`, or `dev`). Each
row trains with the default settings of `lacuner train`, and scores on test: the gazetteer alone, the model alone, both
as `lacuner predict` combines them, and both with the threshold that is best on all of dev. The texts are the first 800
training sentences. The gazetteer is a random half of the corpus's dictionary (bc5cdr, ec), or of the names in the
training gold (wikigold, resume). OUT/rows.jsonl gets one row per condition; rows that are there are not run again.
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
from lacuner.corpus import read
from lacuner.data import Document, Splits
from lacuner.evaluate.scores import count_exact
from lacuner.models.gazetteer import TaggerGazetteer
from lacuner.models.tagger import Tagger
from lacuner.techniques.label_issues import LabelIssues
from lacuner.trainer.auto import AUTO, AutoSettings
from lacuner.trainer.comparison import compare_on_dev
from lacuner.trainer.merge_rule import tune_with_gazetteer
from lacuner.trainer.train import train

CORPORA = {"bc5cdr": "train.gold", "ec": "train", "wikigold": "train.gold", "resume": "train"}
"""Corpora, and their file of training gold, from which the texts are taken."""
SENTENCES, LABELED, FIRST_ISSUES = 800, 60, 50
EXTRAS = ("nothing", "gold", "dev")

Row = dict[str, Any]


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


def run(data: Path, corpus: str, extra: str, encoder: str, seed: int) -> Row:
    """Train as a newcomer does, and score on test."""
    docs, entries = prepare(data, corpus, seed)
    dev, test = (list(read(data / corpus / f"{part}.conll", complete=True)) for part in ("dev", "test"))
    weak = list(annotate(without_labels(docs), [gazetteer_source(entries)]))
    own = random.Random(seed + 1000).sample(range(len(docs)), LABELED)
    splits = Splits(
        weak=weak,
        gold=[docs[i] for i in sorted(own)] if extra == "gold" else None,
        dev=dev[:LABELED] if extra == "dev" else None,
    )
    log: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        settings = AutoSettings(settings=(f'encoder.name="{encoder}"',))
        gazetteer = TaggerGazetteer(entries)
        result = train(AUTO, splits, Path(folder) / "run", settings, seed, log.append, gazetteer=gazetteer)
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
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    results = options.out / "rows.jsonl"
    rows = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    done = {(row["corpus"], row["extra"], row["encoder"], row["seed"]) for row in rows}
    for seed in options.seeds:
        for encoder in options.encoders:
            for extra in options.extras:
                for corpus in options.corpora:
                    if (corpus, extra, encoder, seed) not in done:
                        rows.append(run(options.data, corpus, extra, encoder, seed))
                        with results.open("a") as stream:
                            stream.write(json.dumps(rows[-1]) + "\n")
                        f1 = {name: round(100 * score["f1"], 1) for name, score in rows[-1]["scores"].items()}
                        print(corpus, extra, encoder, seed, f1, rows[-1]["issues"], flush=True)
    (options.out / "table.md").write_text("\n".join(table(rows)) + "\n")
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main(sys.argv[1:])
