"""`python -m benchmarks.label_issues DATA OUT [--corpora ...] [--seeds ...] [--signals ...]`: precision of issues.

The set-up is that of `benchmarks.first_hour`: 800 sentences, weak labels from half of a gazetteer, no dev. The signals
are `cross-fitted` and `aum`, with the same recipe and settings, and `aum-trust`: margins while `trust` is trained. An
issue of a missing label is right if gold has exactly the proposed span, any other if the disputed label is wrong.

OUT gets one line of JSON per corpus, seed and signal: CPU seconds; then, for missing labels, for doubtful labels and
for all issues, the precision of the first 50, 100 and 200. Lines that are there are not run again.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.first_hour import CORPORA, prepare, without_labels
from lacuner.annotate import annotate, gazetteer_source
from lacuner.audit.cross_fitting import CrossFitOptions, cross_fit_settings
from lacuner.audit.issues import LabelIssue
from lacuner.data import Document, Splits
from lacuner.review.prepare import prepare_review
from lacuner.trainer.train import load_recipe_config

SIGNALS = ("aum", "cross-fitted", "aum-trust")
FIRST = (50, 100, 200)


def is_right(issue: LabelIssue, gold: Document) -> bool:
    """Whether gold confirms the issue."""
    keys = {span.key for span in gold.spans}
    if issue.kind == "missing":
        return (issue.start, issue.end, issue.label) in keys
    return not any(span.key in keys for span in issue.current)


def precision_at(issues: Sequence[LabelIssue], gold: dict[str, Document]) -> dict[str, float]:
    """The share of right issues among the first ones; and the number of all issues, `n`."""
    right = [is_right(issue, gold[issue.doc_id]) for issue in issues]
    return {str(k): round(sum(right[:k]) / max(min(k, len(right)), 1), 3) for k in FIRST} | {"n": len(right)}


def run(data: Path, corpus: str, seed: int, signal: str) -> list[Any]:
    """One line of the output."""
    docs, entries = prepare(data, corpus, seed)
    weak = list(annotate(without_labels(docs), [gazetteer_source(entries)]))
    gold = {doc.id: doc for doc in docs}
    recipe = "trust" if signal == "aum-trust" else "negative_sampling"
    settings = ["train.epochs=6"] if recipe == "trust" else cross_fit_settings()
    config = load_recipe_config(recipe, ["weak"], None, settings)
    options = CrossFitOptions(recipe, config, seed=seed, signal="cross-fitted" if signal == "cross-fitted" else "aum")
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        queue = prepare_review(Splits(weak=weak), Path(folder), options)
    seconds = round(time.process_time() - start, 1)
    ranked = sorted(queue.issues, key=lambda issue: (-issue.score, -float(issue.evidence["probability"] or 0.0)))
    missing = [issue for issue in ranked if issue.kind == "missing"]
    doubtful = [issue for issue in ranked if issue.kind != "missing"]
    return [corpus, seed, signal, seconds, *(precision_at(part, gold) for part in (missing, doubtful, ranked))]


def main(arguments: list[str]) -> None:
    """Parse the options and run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--corpora", nargs="+", choices=CORPORA, default=["bc5cdr", "wikigold", "ec"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[11, 12, 13])
    parser.add_argument("--signals", nargs="+", choices=SIGNALS, default=SIGNALS)
    options = parser.parse_args(arguments)
    lines = options.out.read_text().splitlines() if options.out.exists() else []
    done = {tuple(json.loads(line)[:3]) for line in lines}
    for corpus in options.corpora:
        for seed in options.seeds:
            for signal in options.signals:
                if (corpus, seed, signal) not in done:
                    with options.out.open("a") as stream:
                        stream.write(json.dumps(run(options.data, corpus, seed, signal)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
