"""`lacuner train`: train a recogniser on weak or gold labels."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option, echo

from lacuner.cli.console import log, print_json, read_splits
from lacuner.cli.options import Dev, Encoder, InputOptions, Json, RunFolder, Seed, Settings, SettingsFile
from lacuner.data import Splits
from lacuner.errors import ConfigError

if TYPE_CHECKING:
    from lacuner.techniques.label_issues import LabelIssues

ISSUES_SHOWN = 20
FEW_MISSING = 0.02
"""Below this ratio of missing mentions to labels the model has found almost nothing beyond the labels."""
MANY_DOUBTFUL = 0.8
"""Above this share of labels that the model does not predict, it has not learned them."""


def train(
    out: RunFolder,
    *,
    recipe: Annotated[str, Option(help="Training method (`lacuner recipes`); auto: chosen from the data.")] = "auto",
    weak: Annotated[list[Path] | None, Option(metavar="FILE", help="Weak labels (incomplete). Repeatable.")] = None,
    gold: Annotated[list[Path] | None, Option(metavar="FILE", help="Gold annotations (complete). Repeatable.")] = None,
    dev: Dev = None,
    encoder: Encoder = None,
    from_: Annotated[Path | None, Option("--from", metavar="RUN", help="Run that finetune starts from.")] = None,
    seed: Seed = 1,
    config: SettingsFile = None,
    set_: Settings = None,
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """Train a model by a recipe.

    After training on weak labels, the mentions that the model finds and the labels lack are listed.
    """
    from lacuner.trainer.train import load_recipe_config
    from lacuner.trainer.train import train as train_documents

    files = {"weak": weak, "gold": gold, "dev": [dev] if dev else None}
    settings = [*(set_ or []), *([f'encoder.name="{encoder}"'] if encoder else []), *_start_setting(recipe, from_)]
    recipe_config = load_recipe_config(recipe, [role for role, paths in files.items() if paths], config, settings)
    if getattr(recipe_config, "start", "") is None:  # it would continue another run; checked before anything is read
        raise ConfigError(f"recipe `{recipe}` needs --from RUN")
    trained = train_documents(recipe, Splits(**read_splits(files, inputs)), out, recipe_config, seed, log)
    issues, model_folder = trained.label_issues, trained.run.model_folder
    if json:
        facts = {"run": str(out), "recipe": trained.run.identity["recipe"], "model": str(model_folder)}
        counts = {}
        if issues is not None:
            counts = {"labels_given": issues.labels, "missing": len(issues.missing)}
            counts |= {"names": len(issues.missing_names()), "doubtful": len(issues.doubtful)}
        print_json({**facts, "labels": trained.tagger.labels, **counts})
        return
    if issues is not None:
        _print_issues(issues, out)
        if not dev and not gold:
            echo(
                "This model has not been evaluated, and it may have found only part of what is missing. The best next "
                "step is to label about 100 sentences completely and train again with --gold or --dev (into a new "
                "--out)."
            )
    echo(f"model: {model_folder}")


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
    echo(
        f"{issues.labels:,} labeled entities. The model found {len(issues.missing):,} unlabeled mentions "
        f"({len(names):,} distinct names) and disagrees with {len(issues.doubtful):,} labels."
    )
    learned = len(issues.doubtful) <= MANY_DOUBTFUL * issues.labels
    if not learned:
        echo(
            "The model predicts hardly any of the labeled entities: it has not learned them. Train longer "
            "(--set train.epochs=...) or with more labels; suspects.jsonl is not meaningful before."
        )
    elif len(issues.missing) < FEW_MISSING * issues.labels:
        echo(
            "That is almost nothing: either few labels are missing or the model has memorised the labeled names. In "
            "the second case, pre-training on more text helps too (`lacuner pretrain`)."
        )
    if names:
        echo("probably missing (highest probability, mentions):")
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
    echo(f"all mentions: {out / 'suspects.jsonl'}")
    if names:
        echo(
            f"names as a gazetteer: {out / 'suspects.tsv'} (delete wrong rows, then add it to `lacuner annotate` with "
            "--dictionary)"
        )


def _format_score(score: float | None) -> str:
    return "    " if score is None else f"{score:.2f}"
