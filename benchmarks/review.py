"""`python -m benchmarks.review DATA OUT [--corpora bc5cdr] [--seeds 1] [--recipe ensemble] ...`: what review is worth.

A simulated reviewer answers from the training gold. The set-up is that of `benchmarks.first_hour`: 800 sentences, half
of a gazetteer, no dev. Each arm spends the same budget of spans looked at, and the recipe is trained again:

- `issues`: decisions on the queue of `lacuner audit issues`, in the order of the page, which skips what is settled. A
  decision holds for all equal strings, with the answer for the first of them; that is one span looked at. After every
  `--round` decisions they are applied, and the next round of review has a new queue (0: a single queue).
- `random`: randomly drawn sentences, labeled completely. One costs as many spans as it has entities, at least one.
- `useful`: the same for the sentences that the queue puts first.

OUT/rows.jsonl gets one row per arm and budget with F1 on test (or `--on dev`), of the model alone and with the
gazetteer; rows that are there are not run again. `calibration.md` beside each queue compares the scores of the issues
with how many are real, `orders.md` the F1 of the training labels after decisions in other orders.
"""

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np

from benchmarks.first_hour import CORPORA, prepare, without_labels
from lacuner.annotate import annotate, gazetteer_source
from lacuner.audit.cross_fitting import CrossFitOptions, cross_fit_settings
from lacuner.audit.issues import KINDS, LabelIssue
from lacuner.corpus import read
from lacuner.data import Document, Span, Splits
from lacuner.evaluate.scores import count_exact
from lacuner.models.gazetteer import TaggerGazetteer
from lacuner.models.tagger import Tagger
from lacuner.review.apply import apply_decisions, revise_gazetteer
from lacuner.review.decisions import Action, Decision, DecisionLog
from lacuner.review.prepare import prepare_review
from lacuner.review.queue import ReviewQueue
from lacuner.review.session import Filter, ReviewSession
from lacuner.trainer.train import load_recipe_config, train

BUDGETS = (0, 50, 100, 200, 400)
ARMS = ("issues", "random", "useful")
KEYS = ("corpus", "seed", "recipe", "encoder", "arm", "budget", "round", "on")
"""What identifies a row."""
LINE = ("corpus", "recipe", "arm", "round")
"""What identifies a line of the table."""

Row = dict[str, Any]


def answer(issue: LabelIssue, gold: Sequence[Span]) -> tuple[Action, Span | None]:
    """What a reviewer who knows the gold spans of the document decides."""
    keys = {span.key for span in gold}
    proposed = (issue.start, issue.end, issue.label)
    if issue.kind == "spurious":
        if proposed in keys:
            return "reject", None
    elif proposed in keys:
        return "accept", None
    elif any(span.key in keys for span in issue.current):
        return "reject", None
    touching = [span for span in gold if span.overlaps(issue.span)]
    if touching:  # the entity with most characters in common
        entity = max(touching, key=lambda span: min(span.end, issue.end) - max(span.start, issue.start))
        return "change", entity
    return {"missing": ("reject", None), "spurious": ("accept", None)}.get(issue.kind, ("change", None))  # type: ignore[return-value]


def judge_queue(queue: ReviewQueue, gold: dict[str, Document], bins: int = 5) -> Iterator[str]:
    """For each kind: number, mean score and share of real issues, in bins of equal size, most probable first."""
    yield "| kind | issues | mean score | real |\n|---|---|---|---|"
    for kind in KINDS:
        issues = sorted((issue for issue in queue.issues if issue.kind == kind), key=lambda issue: -issue.score)
        for part in np.array_split(np.arange(len(issues)), min(bins, len(issues))) if issues else ():
            own = [issues[number] for number in part]
            real = mean(answer(issue, gold[issue.doc_id].spans)[0] == "accept" for issue in own)
            yield f"| {kind} | {len(own)} | {mean(issue.score for issue in own):.2f} | {real:.2f} |"


def best(issues: Sequence[LabelIssue]) -> float:
    return max(issue.score for issue in issues)


def alternate(groups: Sequence[Sequence[LabelIssue]]) -> list[Sequence[LabelIssue]]:
    """A missing label, then a doubtful one, and so on."""
    kinds: tuple[list[Sequence[LabelIssue]], ...] = ([], [])
    for issues in groups:
        kinds[issues[0].kind != "missing"].append(issues)
    return [issues for pair in zip_longest(*kinds) for issues in pair if issues is not None]


ORDERS: dict[str, Callable[[list[list[LabelIssue]]], Sequence[Sequence[LabelIssue]]]] = {
    "queue: score x square root of number": lambda groups: groups,
    "score": lambda groups: sorted(groups, key=lambda issues: -best(issues)),
    "score x number": lambda groups: sorted(groups, key=lambda issues: -best(issues) * len(issues)),
    "sum of scores": lambda groups: sorted(groups, key=lambda issues: -sum(issue.score for issue in issues)),
    "missing and doubtful in turn": alternate,
}


def compare_orders(
    queue: ReviewQueue, weak: Sequence[Document], gold: dict[str, Document], budgets: Sequence[int]
) -> Iterator[str]:
    """F1 of the weak labels against gold after decisions on the first groups of the queue, in several orders."""
    yield f"| order | {' | '.join(map(str, budgets))} |\n" + "|---" * (len(budgets) + 1) + "|"
    answers = [gold[doc.id] for doc in weak]
    for name, order in ORDERS.items():
        ordered = replace(queue, issues=tuple(chain.from_iterable(order(list(queue.groups.values())))))
        decisions = decide_issues(ordered, gold, max(budgets))
        counts = [count_exact(answers, apply_decisions(weak, decisions[:budget]).docs) for budget in budgets]
        yield f"| {name} | {' | '.join(f'{100 * count.f1:.1f}' for count in counts)} |"


def decide_issues(queue: ReviewQueue, gold: dict[str, Document], budget: int) -> list[Decision]:
    """Decide on the issues that the page shows, one after the other, each time for all equal strings."""
    with tempfile.TemporaryDirectory() as folder:
        session = ReviewSession(queue, DecisionLog(Path(folder) / "decisions.jsonl"))
        issue = session.find_issue(Filter())
        for _ in range(budget):
            if issue is None:
                break
            action, span = answer(issue, gold[issue.doc_id].spans)
            session.decide(queue.decide(issue.id, action, span=span, everywhere=True), expected=None)
            issue = session.find_issue(Filter(), start=issue.id)
        return session.log.read()


def review_in_rounds(
    weak: Sequence[Document],
    gold: dict[str, Document],
    budgets: Sequence[int],
    size: int,
    make_queue: Callable[[int, Sequence[Document]], ReviewQueue],
) -> Iterator[tuple[int, Sequence[Document], Counter[str]]]:
    """After each budget of decisions: the labels, and how often each action was chosen.

    `make_queue` makes the queue of a round, from its number and the labels after the rounds before.
    """
    actions: Counter[str] = Counter()
    start, labels = 0, weak
    while start < max(budgets):
        last = min(start + size, max(budgets)) if size else max(budgets)
        decisions = decide_issues(make_queue(start // size if size else 0, labels), gold, last - start)
        for budget in budgets:
            if start < budget <= last:
                done = decisions[: budget - start]
                docs = apply_decisions(labels, done).docs
                yield budget, docs, actions + Counter(decision.action for decision in done)
        actions.update(decision.action for decision in decisions)
        start, labels = last, apply_decisions(labels, decisions).docs


def label_sentences(queue: ReviewQueue, gold: dict[str, Document], budget: int, ids: Sequence[str]) -> list[Decision]:
    """Label sentences completely, in the given order, until the budget is spent."""
    decisions: list[Decision] = []
    for doc_id in ids:
        cost = max(len(gold[doc_id].spans), 1)
        if cost > budget:
            break
        budget -= cost
        decisions.append(queue.label_sentence(doc_id, gold[doc_id].spans))
    return decisions


def number(decisions: Sequence[Decision]) -> list[Decision]:
    return [Decision(d.action, d.edits, d.undoes, d.reviewer, n) for n, d in enumerate(decisions, 1)]


def run(options: argparse.Namespace, corpus: str, seed: int, done: set[tuple[Any, ...]]) -> Iterator[Row]:
    """All arms and budgets of a corpus and seed that are not done yet."""
    docs, entries = prepare(options.data, corpus, seed)
    scored = list(read(options.data / corpus / f"{options.on}.conll", complete=True))[: options.test]
    weak = list(annotate(without_labels(docs), [gazetteer_source(entries)]))
    gold = {doc.id: doc for doc in docs}
    settings = [f'encoder.name="{options.encoder}"', *options.set]
    config = load_recipe_config(options.recipe, ["weak"], None, settings)
    models = load_recipe_config("negative_sampling", ["weak"], None, [*cross_fit_settings(), *settings])
    labels = sorted({span.label for doc in docs for span in doc.spans})
    review = options.out / f"{corpus}-{options.encoder}-{seed}"

    def make_queue(round_number: int, docs: Sequence[Document]) -> ReviewQueue:
        folder, fit = review / str(round_number), CrossFitOptions(config=models, folds=options.folds, seed=seed)
        return replace(prepare_review(Splits(weak=docs), folder, fit), labels=tuple(labels))

    queue = make_queue(0, weak)
    (review / "calibration.md").write_text("\n".join(judge_queue(queue, gold)) + "\n")
    (review / "orders.md").write_text("\n".join(compare_orders(queue, weak, gold, options.budgets)) + "\n")
    shuffled = random.Random(seed).sample(sorted(gold), len(gold))
    orders = {"random": shuffled, "useful": [sentence.doc_id for sentence in queue.sentences]}

    def arms() -> Iterator[tuple[str, int, Sequence[Document], Counter[str]]]:
        yield "none", 0, weak, Counter()
        for arm in options.arms:
            if arm == "issues":
                rounds = review_in_rounds(weak, gold, options.budgets, options.round, make_queue)
                yield from ((arm, budget, docs, actions) for budget, docs, actions in rounds)
                continue
            for budget in filter(None, options.sentence_budgets or options.budgets):
                decisions = number(label_sentences(queue, gold, budget, orders[arm]))
                actions = Counter(decision.action for decision in decisions)
                yield arm, budget, apply_decisions(weak, decisions).docs, actions

    for arm, budget, labeled, actions in arms():
        row = {
            "corpus": corpus,
            "seed": seed,
            "recipe": options.recipe,
            "encoder": options.encoder,
            "arm": arm,
            "budget": budget,
            "round": options.round if arm == "issues" else 0,
            "on": options.on,
        }
        if tuple(row[key] for key in KEYS) in done:
            continue
        with tempfile.TemporaryDirectory() as folder:
            gazetteer, *_ = revise_gazetteer(TaggerGazetteer(entries), labeled)
            result = train(options.recipe, Splits(weak=labeled), folder, config, seed, gazetteer=gazetteer)
        assert isinstance(result.tagger, Tagger)
        scores = {
            "both": count_exact(scored, list(result.tagger.predict(scored))).as_json(),
            "model": count_exact(scored, list(Tagger(result.tagger.model).predict(scored))).as_json(),
            "labels": count_exact(docs, labeled).as_json(),
        }
        yield row | {"decisions": dict(sorted(actions.items())), "scores": scores}


def table(rows: Sequence[Row]) -> Iterator[str]:
    """F1 of model and gazetteer, mean and deviation over seeds: a line per corpus and arm, a column per budget."""
    budgets = sorted({row["budget"] for row in rows})
    yield f"| corpus | recipe | arm | round | {' | '.join(map(str, budgets))} | seeds |"
    yield "|---" * (len(budgets) + 5) + "|"
    for line in sorted({tuple(row[key] for key in LINE) for row in rows if row["arm"] != "none"}):
        cells: list[str] = []
        seeds: set[int] = set()
        for budget in budgets:
            own = [row for row in rows if row["budget"] == budget and tuple(row[key] for key in LINE) == line]
            if not budget:  # without decisions; of the seeds that the arm has
                arms = {row["seed"] for row in rows if tuple(row[key] for key in LINE) == line}
                own = [row for row in rows if row["arm"] == "none" and row["seed"] in arms]
                own = [row for row in own if (row["corpus"], row["recipe"]) == line[:2]]
            seeds |= {row["seed"] for row in own}
            f1 = [100 * row["scores"]["both"]["f1"] for row in own]
            cells.append(f"{mean(f1):.1f}" + (f" ± {stdev(f1):.1f}" if len(f1) > 1 else "") if f1 else "")
        yield f"| {' | '.join(map(str, line))} | {' | '.join(cells)} | {', '.join(map(str, sorted(seeds)))} |"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--corpora", nargs="+", choices=CORPORA, default=["bc5cdr", "wikigold", "ec"])
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--budgets", nargs="+", type=int, default=list(BUDGETS))
    parser.add_argument(
        "--sentence-budgets", nargs="+", type=int, help="those of random and useful (default: --budgets)"
    )
    parser.add_argument("--round", type=int, default=0, metavar="N", help="decisions per round; 0: a single queue")
    parser.add_argument("--recipe", default="ensemble")
    parser.add_argument("--encoder", default="auto")
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--on", choices=("test", "dev"), default="test", help="documents to score on")
    parser.add_argument("--test", type=int, default=None, help="number of sentences to score on (default: all)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    results = options.out / "rows.jsonl"
    rows = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    done = {tuple(row[key] for key in KEYS) for row in rows}
    for seed in options.seeds:
        for corpus in options.corpora:
            for row in run(options, corpus, seed, done):
                rows.append(row)
                with results.open("a") as stream:
                    stream.write(json.dumps(row) + "\n")
                f1 = {name: round(100 * score["f1"], 1) for name, score in row["scores"].items()}
                print(corpus, seed, row["arm"], row["budget"], f1, row["decisions"], flush=True)
    own = [row for row in rows if row["on"] == options.on]
    (options.out / "table.md").write_text("\n".join(table(own)) + "\n")
    print("\n".join(table(own)))


if __name__ == "__main__":
    main(sys.argv[1:])
