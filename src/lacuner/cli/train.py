"""`lacuner train`: train a recogniser on weak or gold labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from lacuner.cli.console import echo, log, log_unused_names, print_json, print_table, read_or_store, read_splits
from lacuner.cli.options import (
    Cache,
    Dev,
    Encoder,
    InputOptions,
    Json,
    On,
    RunFolder,
    Seed,
    Settings,
    SettingsFile,
    Stream,
    parse_pairs,
)
from lacuner.data import Document, Splits
from lacuner.errors import ConfigError

if TYPE_CHECKING:
    from lacuner.models.gazetteer import TaggerGazetteer
    from lacuner.techniques.hidden_entries import OperatingPoint
    from lacuner.techniques.label_issues import LabelIssues
    from lacuner.trainer.comparison import Comparison

ISSUES_SHOWN = 20
FEW_MISSING = 0.02
"""Below this ratio of missing mentions to labels the model has found almost nothing beyond the labels."""
MANY_DOUBTFUL = 0.8
"""Above this share of labels that the model does not predict, it has not learned them."""
WORTH_REVIEWING = 0.7
"""Score of a missing name from which it is worth reading. With half of a gazetteer (`ensemble` without dev, seven cells
of four corpora, seeds 11 to 14), 59 to 83 % of the names above it were right, and 22 to 52 % of those below."""
HELPS = 0.01
"""Minimum estimated gain in F1 to report that the model helps."""
_ADVICE = (
    "What would help most: about 60 completely labeled sentences (--gold), more text, or an encoder pre-trained on "
    "your kind of text (`lacuner pretrain`)."
)


def train(
    out: RunFolder,
    *,
    recipe: Annotated[str, Option(help="Training method (`lacuner recipes`); auto: chosen from the data.")] = "auto",
    weak: Annotated[list[Path] | None, Option(metavar="FILE", help="Weak labels (incomplete). Repeatable.")] = None,
    gold: Annotated[list[Path] | None, Option(metavar="FILE", help="Gold annotations (complete). Repeatable.")] = None,
    dev: Dev = None,
    unlabeled: Annotated[
        list[Path] | None,
        Option(metavar="FILE", help="Unlabeled text for sst, mean_teacher and vat; labels are ignored. Repeatable."),
    ] = None,
    dictionary: Annotated[
        list[Path] | None,
        Option(metavar="FILE", help="Gazetteer to store with the tagger. Default: that of `annotate`. Repeatable."),
    ] = None,
    map_: Annotated[
        list[str] | None, Option("--map", metavar="LABEL=LABEL", help="Rename a label in all inputs. Repeatable.")
    ] = None,
    encoder: Encoder = None,
    from_: Annotated[
        Path | None, Option("--from", metavar="RUN", help="Run whose model the recipe `finetune` continues.")
    ] = None,
    stream: Stream = None,
    cache: Cache = None,
    on: On = "processes",
    seed: Seed = 1,
    config: SettingsFile = None,
    set_: Settings = None,
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """Train a tagger; the recipe is chosen from your data, or by you.

    After training on weak labels, the names that the labels seem to miss are listed, and written to
    OUT/label_issues.tsv.
    """
    from lacuner.config import string_setting
    from lacuner.scale.engines import open_launcher
    from lacuner.trainer.train import check_on, load_recipe_config
    from lacuner.trainer.train import train as train_documents

    files = {"weak": weak, "gold": gold, "dev": [dev] if dev else None, "unlabeled": unlabeled}
    settings = [*(set_ or []), *string_setting("encoder.name", encoder), *_start_setting(recipe, from_)]
    recipe_config = load_recipe_config(recipe, [role for role, paths in files.items() if paths], config, settings)
    if getattr(recipe_config, "start", "") is None:  # it would continue another run; checked before anything is read
        raise ConfigError(f"recipe `{recipe}` needs --from RUN")
    run_requests = open_launcher(on) if on != "processes" else None
    check_on(recipe, run_requests)
    names = parse_pairs(map_ or [], "--map", "LABEL=LABEL")
    unused = set(names)
    splits = _read_documents(files, inputs, names, recipe, (stream, cache or out / "prepared"), unused)
    gazetteer = _find_gazetteer(dictionary, weak, names, unused)
    log_unused_names(unused)
    data = Splits(**splits)
    trained = train_documents(
        recipe, data, out, recipe_config, seed, log, gazetteer=gazetteer, run_requests=run_requests
    )
    issues, model_folder, comparison = trained.label_issues, trained.run.model_folder, trained.comparison
    estimate = trained.estimate if comparison is None and not dev else None
    if json:
        facts = {"run": str(out), "recipe": trained.run.identity["recipe"], "model": str(model_folder)}
        counts = {}
        if issues is not None:
            missing = len(issues.missing) + issues.unlisted_missing
            counts = {"labels_given": issues.labels, "missing": missing, "names": len(issues.missing_names())}
            counts["doubtful"] = len(issues.doubtful) + issues.unlisted_doubtful
        rows = () if comparison is None else comparison.rows
        scores = {row.system: {**row.count.as_json(), "low": row.low, "high": row.high} for row in rows}
        facts |= {} if comparison is None else {"merge_rule": comparison.rule}
        facts |= {"gazetteer_entries": len(gazetteer)} if gazetteer is not None else {}
        facts |= {"estimate": vars(estimate)} if estimate is not None else {}
        print_json({**facts, "labels": trained.tagger.labels, **counts, **({"scores": scores} if scores else {})})
        return
    if issues is not None:
        _print_issues(issues, out)
    if comparison is not None:
        _print_comparison(comparison)
    elif estimate is not None:
        _print_estimate(estimate, gazetteer is not None)
    if issues is not None and not dev and not gold:
        echo(
            "This model has not been evaluated on gold. The best next step is to label about 60 sentences completely "
            "and train again with --gold or --dev (into a new --out)."
        )
    echo(f"model: {model_folder}")


def _read_documents(
    files: Mapping[str, list[Path] | None],
    inputs: InputOptions,
    names: Mapping[str, str],
    recipe: str,
    storage: tuple[bool | None, Path],
    unused: set[str],
) -> dict[str, Sequence[Document]]:
    """The documents of each role that has files; `storage` says whether weak ones are stored on disk, and where.

    `names` are new names of labels; those that occur are removed from `unused`.
    """
    from lacuner.corpus.stored import StoredDocuments
    from lacuner.trainer.streaming import can_stream, check_stream

    stream, folder = storage
    if stream:
        check_stream(recipe)
    others = {role: paths for role, paths in files.items() if role != "weak"}
    splits: dict[str, Sequence[Document]] = {**read_splits(others, inputs, names, unused)}
    if weak := files["weak"]:
        on_disk = (stream if can_stream(recipe) else False, folder)
        splits["weak"] = read_or_store(weak, "weak", inputs, on_disk, names, unused=unused)
    if isinstance(splits.get("weak"), StoredDocuments):
        unused.clear()  # unknown: what an earlier run has stored is not read again
    return splits


def _find_gazetteer(
    dictionary: list[Path] | None, weak: list[Path] | None, names: Mapping[str, str], unused: set[str]
) -> TaggerGazetteer | None:
    """The gazetteer of `--dictionary`, or the one that `annotate` wrote beside the weak labels; `--map` renames."""
    from lacuner.models.gazetteer import TaggerGazetteer
    from lacuner.models.sidecar import read_sidecars

    if dictionary:
        gazetteer = reduce(TaggerGazetteer.join, map(_read_gazetteer, dictionary))
    else:
        _log_sidecars(weak or ())
        beside_labels = read_sidecars(weak or ())
        if beside_labels is None:
            return None
        gazetteer = beside_labels
    unused.difference_update(gazetteer.labels)
    gazetteer = gazetteer.rename_labels(names)
    size = f"{len(gazetteer):,} {'entry' if len(gazetteer) == 1 else 'entries'}"
    log(f"the tagger also uses the gazetteer ({size}); `predict --no-gazetteer` uses the model alone")
    return gazetteer


def _read_gazetteer(file: Path) -> TaggerGazetteer:
    """A gazetteer file; one that `annotate` wrote keeps its options."""
    from lacuner.annotate import load_gazetteer
    from lacuner.models.gazetteer import TaggerGazetteer
    from lacuner.models.sidecar import is_sidecar, read_sidecar

    if is_sidecar(file):
        return read_sidecar(file)
    loaded = load_gazetteer(file)
    for sentence in loaded.describe_for_tagger():
        log(sentence)
    return TaggerGazetteer(loaded.entries)


def _log_sidecars(weak: Iterable[Path]) -> None:
    """Name the gazetteer of each file of weak labels, and say if there is none, or if the labels have changed since."""
    from lacuner.models.sidecar import ENDING, find_sidecar, has_changed

    for labels in weak:
        if (file := find_sidecar(labels)) is None:
            log(
                f"{labels}: no gazetteer beside these labels, so the tagger will not use one for them; if a gazetteer "
                f"made them, name it with --dictionary (or the file *{ENDING} that `annotate` wrote)"
            )
            continue
        log(f"gazetteer: {file}")
        if has_changed(labels, file):
            log(f"{labels} has changed since this gazetteer labeled it; use --dictionary to name another gazetteer")


def _print_comparison(comparison: Comparison) -> None:
    """A table of gazetteer, model and both on dev or gold, the merge rule, and whether the model helps."""
    from lacuner.models.merging import DEFAULT_RULE, RULE_SENTENCES

    cells = [
        (
            row.system,
            *(f"{100 * value:.1f}" for value in (row.count.precision, row.count.recall, row.count.f1)),
            f"{100 * row.low:.1f} - {100 * row.high:.1f}",
        )
        for row in comparison.rows
    ]
    where = "On dev" if comparison.chosen_on == "dev" else "On gold, each part by a model that was trained on the rest"
    print_table(f"\n{where}", ("", "P", "R", "F1", "95 % interval of F1"), cells)
    by_system = {row.system: row.count.f1 for row in comparison.rows}
    if by_system["both"] <= by_system["gazetteer alone"]:
        echo(f"The model does not improve on the gazetteer. {_ADVICE}")
    elif by_system["both"] < by_system["model alone"]:
        echo("The model alone is better than both together: compare on more sentences, or predict with --no-gazetteer.")
    why = (
        f"chosen on {comparison.chosen_on}"
        if comparison.rule != DEFAULT_RULE
        else "the default: no other is clearly better"
    )
    echo(f"Merge rule of the tagger ({why}): {RULE_SENTENCES[comparison.rule]}.")


def _print_estimate(point: OperatingPoint, has_gazetteer: bool) -> None:
    """What the names that were hidden from the models say about the model, without gold."""
    labels = "the gazetteer" if has_gazetteer else "the weak labels"
    alone, together = round(100 * point.labels_f1), round(100 * point.f1)
    found = round(100 * point.recall)
    echo(
        f"Estimate without gold (some names were hidden during training; assumes correct labels): F1 {alone} "
        f"for {labels} alone, {together} with the model. A single model finds about {found} % of the missing entities."
    )
    if point.f1 <= point.labels_f1:
        echo(f"So the model does not improve on {labels}. {_ADVICE}")
    elif point.f1 <= point.labels_f1 + HELPS:
        echo(f"So the model adds little. {_ADVICE}")


def _start_setting(recipe: str, run: Path | None) -> list[str]:
    """The setting behind `--from`; an error if the recipe does not have it."""
    from lacuner.recipes import RECIPES

    if run is None:
        return []
    if recipe == "auto" or (recipe in RECIPES and "start" not in RECIPES[recipe].Config.model_fields):
        raise ConfigError(f"recipe `{recipe}` trains from scratch: --from is for `finetune`")
    return [f"start={dumps(str(run))}"]


def _print_issues(issues: LabelIssues, out: Path) -> None:
    from lacuner.techniques.label_issues import context

    names = issues.missing_names()
    missing, doubtful_labels = len(issues.missing) + issues.unlisted_missing, len(issues.doubtful)
    doubtful_labels += issues.unlisted_doubtful
    echo(
        f"{issues.labels:,} labeled entities. The model found {missing:,} unlabeled mentions "
        f"({len(names):,} distinct names) and disagrees with {doubtful_labels:,} labels."
    )
    if issues.unlisted_missing or issues.unlisted_doubtful:
        echo(f"Only the {len(issues.missing):,} and {len(issues.doubtful):,} with the highest scores are listed.")
    learned = doubtful_labels <= MANY_DOUBTFUL * issues.labels
    if not learned:
        echo(
            "The model predicts hardly any of the labeled entities: it has not learned them. Train longer "
            "(--set train.epochs=...) or with more labels; until then, ignore label_issues.jsonl."
        )
    elif missing < FEW_MISSING * issues.labels:
        echo(
            "The model found almost no new mentions. Either few labels are missing, or it has memorised the labeled "
            "names; in that case, pre-training on more text helps (`lacuner pretrain`)."
        )
    worth_reviewing = sum(name.score >= WORTH_REVIEWING for name in names)
    if names:
        echo(f"{'probably' if worth_reviewing else 'perhaps'} missing (score, number of mentions):")
    for name in names[:ISSUES_SHOWN]:
        mentions = f"{len(name.mentions):,} x"
        echo(f"  {_format_score(name.score)} {mentions:>7}  {name.label:<12} {context(name.mentions[0])}")
    doubtful = issues.doubtful[:ISSUES_SHOWN] if learned else []
    if doubtful:
        echo("probably wrong:")
    for issue in doubtful:
        score, model = _format_score(issue.span.score), "no entity"
        if (span := issue.predicted) is not None:
            text = " ".join(issue.document.text[span.start : span.end].split())
            score, model = _format_score(span.score), f"{span.label} [{text}]"
        echo(f"  {score}  {issue.span.label:<12} {context(issue)} (model: {model})")
    echo(f"all label issues: {out / 'label_issues.jsonl'}")
    if names:
        echo(
            f"names as a gazetteer: {out / 'label_issues.tsv'} (delete wrong rows, then add it to `lacuner annotate` "
            "with --dictionary)"
        )
        echo(
            f"worth reviewing: the {worth_reviewing:,} of {len(names):,} names with a score of {WORTH_REVIEWING} or "
            "more. In our measurements about 70 % of these were right, and 35 % of the others."
            if worth_reviewing
            else f"hardly worth reviewing: none of the {len(names):,} names has a score of {WORTH_REVIEWING} or more. "
            "In our measurements about 35 % of such names were right."
        )


def _format_score(score: float | None) -> str:
    return "    " if score is None else f"{score:.2f}"
