"""`lacuner audit`: diagnose a training run with the help of gold."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from lacuner.cli.console import echo, log, print_json, print_table, read_splits
from lacuner.cli.options import (
    Dev,
    Gold,
    InputOptions,
    Json,
    LabelPrecision,
    Seed,
    Settings,
    parse_location,
    refuse_overwriting,
    to_arguments,
)
from lacuner.cli.shards import ShardOptions, run_in_shards
from lacuner.data import Splits

if TYPE_CHECKING:
    from lacuner.audit.sampling import SamplingAudit

SYSTEMATIC_SHOWN = 10
"""Systematic errors that `audit errors` prints; --json has all."""
PlotFolder = Annotated[Path | None, Option("--out", help="Folder for the plots. Default: no plots.")]


def sampling(
    weak: Annotated[Path, Option("--weak", help="Weak labels.")],
    gold: Gold,
    out: Annotated[Path, Option("--out", help="Folder for report.html and sampling.json.")],
    *,
    dev: Dev = None,
    recipe: Annotated[list[str] | None, Option(help="Recipe to train. Repeatable. Default: negative_sampling.")] = None,
    follow: Annotated[list[str] | None, Option(metavar="TEXT", help="Unlabeled entity to track. Repeatable.")] = None,
    seed: Seed = 1,
    set_: Settings = None,
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """Track what a training run does with unlabeled entities.

    Shows per epoch how many sampled negatives are entities, how sparse entities are, and the probability that the
    model gives to unlabeled entities. Only the diagnosis sees gold. No model is kept.
    """
    from lacuner.audit.report import write_audit
    from lacuner.audit.sampling import audit_sampling, plan_trainings

    recipes, settings, names = recipe or ["negative_sampling"], set_ or [], follow or []
    plans = plan_trainings(recipes, settings)
    files = {role: [path] for role, path in (("weak", weak), ("gold", gold), ("dev", dev)) if path is not None}
    audit = audit_sampling(plans, Splits(**read_splits(files, inputs)), names, seed, log=log, folder=out)
    options = to_arguments({**files, "recipe": recipes, "follow": names, "set": settings, "seed": [seed], "out": [out]})
    write_audit(audit, out, shlex.join(["lacuner", "audit", "sampling", *options]))
    if json:
        print_json({"out": str(out), **audit.as_json()})
        return
    _print_audit(audit)
    echo(f"report: {out / 'report.html'}\nnumbers: {out / 'sampling.json'}")


def _print_audit(audit: SamplingAudit) -> None:
    from lacuner.audit.report import epoch_columns, format_percent, format_value

    names = epoch_columns(audit)
    rows = [
        (training.name, number, *[format_value(row.get(name), name) for name in names])
        for training in audit.trainings
        for number, row in enumerate(training.epochs, 1)
    ]
    print_table("", ("recipe", "epoch", *names.values()), rows)
    facts = audit.as_json()
    sparsity, expected, bound = facts["sparsity"], facts["corpus"], facts["bound"]
    echo(
        f"{sparsity['dense']:,} of {sparsity['sentences']:,} sentences have more than sqrt(n) entities; "
        f"on average {sparsity['words']:.1f} words and {sparsity['entities']:.2f} entities"
    )
    lower_bound = "" if bound["at_least"] is None else f" (lower bound {bound['at_least']:.3f})"
    echo(
        f"probability that no sampled negative is an entity, at {audit.rate:g} negatives per word: "
        f"{bound['worst_case']:.3f}{lower_bound} for {bound['words']} words with sqrt(n) unlabeled entities, "
        f"{expected['clean']:.3f} for a sentence of this corpus"
    )
    echo(f"expected share of entities among uniformly sampled negatives: {format_percent(expected['missampling'])}")
    for training in audit.trainings:
        if len(training.probs) and audit.tracked:
            first, last = training.mean_probs
            echo(
                f"{training.name}: mean probability of the right label over {len(audit.tracked):,} unlabeled "
                f"entities: {first:.3f} after the first epoch, {last:.3f} after the last"
            )


def labels(
    run: Annotated[Path, Argument(metavar="RUN", help="Run folder of a model that was trained on other documents.")],
    weak: Annotated[Path, Argument(metavar="WEAK", parser=parse_location, help="Weak labels to audit.")],
    out: Annotated[
        Path,
        Option("--out", metavar="FOLDER", parser=parse_location, help="Output folder; the same command continues it."),
    ],
    *,
    label_precision: LabelPrecision = 0.9,
    min_score: Annotated[float, Option(min=0, max=1, help="Minimum score of the issues to list.")] = 0.5,
    json: Json = False,
    shards: ShardOptions,
    inputs: InputOptions,
) -> None:
    """Find label issues in a huge corpus, with a model you have.

    Works in shards (`--on`, default: processes), document by document. The model must not have been trained on the
    documents. Its scores are not calibrated: they are good for ranking. For a corpus that fits into memory, `lacuner
    audit issues` trains models of its own and calibrates them.
    """
    from lacuner.scale.label_audit import LabelAuditJob

    refuse_overwriting({"--out": out}, weak)
    job = LabelAuditJob(run.absolute(), label_precision, min_score)
    summary = run_in_shards(job, weak, out, inputs, replace(shards, on=shards.on or "processes"))
    counts = summary["counts"]
    issues = counts.get("issues", {})
    if json:
        facts = {"documents": counts["documents"], "labels": counts.get("labels", 0), "issues": issues}
        print_json({"out": str(out), **facts, "failed": summary["failed"]})
        return
    numbers = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in issues.items())
    echo(f"{sum(issues.values()):,} label issues in {counts['documents']:,} documents: {numbers}\n{out / job.output}")


def removed(
    runs: Annotated[list[Path], Argument(metavar="RUN", help="Runs of two_step to compare.")],
    gold: Gold,
    *,
    out: PlotFolder = None,
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """Compare the tokens that two_step removed with gold."""
    from lacuner.audit.filtered_tokens import audit_filtered_tokens, removal_curve, removal_figures
    from lacuner.reporting.svg import write_figures

    gold_docs = read_splits({"gold": [gold]}, inputs)["gold"]
    results = {str(run): audit_filtered_tokens(run, gold_docs) for run in runs}
    if out is not None:
        write_figures(removal_figures(results), out)
    counts = {name: result.as_json() for name, result in results.items()}
    curve = removal_curve(results)
    if json:
        shares = [{"run": name, "share": share, "precision": p, "recall": r} for name, share, p, r in curve]
        print_json({"runs": counts, "shares": shares})
        return
    rows = [
        (name, *[f"{value:,}" if isinstance(value, int) else f"{value:.3f}" for value in count.values()])
        for name, count in counts.items()
    ]
    print_table("", ("run", "unlabeled tokens", "in entities", "removed", "P", "R"), rows)
    rows = [(name, f"{share:.4f}", f"{p:.3f}", f"{r:.3f}") for name, share, p, r in curve]
    print_table("\nFor other shares of removed tokens", ("run", "share", "P", "R"), rows)


def completion(
    runs: Annotated[list[Path], Argument(metavar="RUN", help="Runs of needle to compare.")],
    gold: Gold,
    *,
    out: PlotFolder = None,
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """Compare the labels that needle completed with gold."""
    from lacuner.audit.completion import CHANGES, COLUMNS, audit_completion, completion_figures, completion_rows
    from lacuner.reporting.svg import write_figures

    gold_docs = read_splits({"gold": [gold]}, inputs)["gold"]
    results = {
        str(run) if number == 1 else f"{run}, round {number}": result
        for run in runs
        for number, result in audit_completion(run, gold_docs).items()
    }
    if out is not None:
        write_figures(completion_figures(results), out)
    if json:
        print_json({"runs": {name: result.as_json() for name, result in results.items()}})
        return
    print_table("", COLUMNS, completion_rows(results))
    for change, meaning in CHANGES.items():
        echo(f"{change}: {meaning}")
    for name, result in results.items():
        if result.without_gold:
            echo(f"{name}: {result.without_gold:,} completed texts are not in gold")


def errors(
    run: Annotated[Path, Argument(metavar="RUN", help="Run of needle.")],
    gold: Gold,
    *,
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """Show which errors the later stages of needle fixed or added.

    Compares the model of stage I, trained on gold alone, with the final model, on gold that neither has seen.
    """
    from lacuner.audit.errors import COLUMNS, audit_errors, error_rows

    audit = audit_errors(run, read_splits({"gold": [gold]}, inputs)["gold"])
    if json:
        print_json(audit.as_json())
        return
    print_table("", COLUMNS, error_rows(audit))
    if audit.systematic:
        header = ("name", "weak label", "gold label", "entities", "right before", "right after")
        rows = [tuple(map(str, error)) for error in audit.systematic[:SYSTEMATIC_SHOWN]]
        print_table("\nNames whose usual weak label is not their gold label", header, rows)
