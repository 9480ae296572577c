"""`lacuner train`: a recogniser from labels with gaps."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lacuner.cli import options

if TYPE_CHECKING:
    from lacuner.techniques.label_issues import Suspect, Suspects

SHOWN = 20
LITTLE = 0.02
"""If the model finds less than this beyond the labels, as a share of them, it has hardly found anything."""


def train(
    out: Annotated[Path, typer.Option("--out", help="The run folder; the same command continues an unfinished run.")],
    recipe: Annotated[
        str, typer.Option("--recipe", help="How to train; `lacuner recipes` lists them. auto: what suits the data.")
    ] = "auto",
    weak: Annotated[list[Path] | None, typer.Option("--weak", help="Labels with gaps; may be repeated.")] = None,
    gold: Annotated[list[Path] | None, typer.Option("--gold", help="Complete labels; may be repeated.")] = None,
    dev: Annotated[Path | None, typer.Option("--dev", help="Complete labels to choose the best epoch by.")] = None,
    encoder: Annotated[
        str | None, typer.Option("--encoder", help="tiny, lstm, hf:NAME_OR_PATH, or run:PATH; tiny by default.")
    ] = None,
    from_: Annotated[
        Path | None, typer.Option("--from", metavar="RUN", help="The run whose model finetune goes on with.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Another seed, other weights.")] = 1,
    config: Annotated[Path | None, typer.Option("--config", help="Settings of the recipe, in TOML.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting, such as train.epochs=5.")
    ] = None,
    format: options.Format = None,
    encoding: options.Encoding = "utf-8",
    words: options.Words = "unicode",
    separator: options.Separator = None,
    token_column: options.TokenColumn = 0,
    tag_column: options.TagColumn = -1,
    scheme: options.Scheme = None,
    json: options.Json = False,
) -> None:
    """Train a model by a recipe. On weak labels it ends with what the model finds that the labels lack."""
    from lacuner.cli.console import print_json, read_roles, say
    from lacuner.data import Splits
    from lacuner.errors import ConfigError
    from lacuner.trainer.train import settings_for
    from lacuner.trainer.train import train as train_documents

    paths = {"weak": weak, "gold": gold, "dev": [dev] if dev else None}
    chosen = [*(set_ or []), *([f'encoder.name="{encoder}"'] if encoder else []), *_start(recipe, from_)]
    settings = settings_for(recipe, [role for role, files in paths.items() if files], config, chosen)
    if getattr(settings, "start", "") is None:  # before anything is read
        raise ConfigError(f"the recipe {recipe} needs --from RUN")

    reading = options.read_options(encoding, scheme, words, (separator, token_column, tag_column))
    splits = Splits(**read_roles(paths, format, reading))
    trained = train_documents(recipe, splits, out, settings, seed, say)
    suspects = trained.suspects
    if json:
        found = {} if suspects is None else _counts(suspects)
        made = {"run": str(out), "recipe": trained.run.identity["recipe"], "model": str(trained.run.model_folder)}
        print_json({**made, "labels": trained.tagger.labels, **found})
        return
    if suspects is not None:
        _show(suspects, out)
        if not dev and not gold:
            typer.echo(
                "nobody has judged this model, and what it finds may be a small part of what is missing: a hundred "
                "sentences with all their names labelled, as --gold or --dev of another training (another --out), help "
                "most"
            )
    typer.echo(f"model: {trained.run.model_folder}")


def _start(recipe: str, run: Path | None) -> list[str]:
    """The setting behind `--from`, for the recipe that has it."""
    from lacuner.errors import ConfigError
    from lacuner.recipes import RECIPES

    if run is None:
        return []
    if recipe == "auto" or (recipe in RECIPES and "start" not in RECIPES[recipe].Config.model_fields):
        raise ConfigError(f"the recipe {recipe} begins with fresh weights: --from is for finetune")
    return [f"start={dumps(str(run))}"]


def _counts(suspects: Suspects) -> dict[str, int]:
    names, doubtful = len(suspects.names()), len(suspects.doubtful)
    return {"labels_given": suspects.labels, "missing": len(suspects.missing), "names": names, "doubtful": doubtful}


def _show(suspects: Suspects, out: Path) -> None:
    from lacuner.techniques.label_issues import context

    names = suspects.names()
    typer.echo(
        f"the labels name {suspects.labels:,} entities; the model finds {len(suspects.missing):,} mentions of "
        f"{len(names):,} names that they lack, and doubts {len(suspects.doubtful):,} of them"
    )
    if len(suspects.missing) < LITTLE * suspects.labels:
        typer.echo(
            "that is next to nothing: either little is missing, or the model has learned the names by heart; then "
            "more texts help too (`lacuner pretrain`)"
        )
    if names:
        typer.echo("missing, it seems (best probability, mentions):")
    for name in names[:SHOWN]:
        times = f"{len(name.mentions):,} x"
        typer.echo(f"  {_number(name.score)} {times:>7}  {name.label:<12} {context(name.mentions[0])}")
    if suspects.doubtful:
        typer.echo("doubtful:")
    for suspect in suspects.doubtful[:SHOWN]:
        seen = f"{suspect.instead.label} [{_inside(suspect)}]" if suspect.instead else "nothing"
        number = _number(suspect.instead.score if suspect.instead else suspect.span.score)
        typer.echo(f"  {number}  {suspect.span.label:<12} {context(suspect)} (model: {seen})")
    typer.echo(f"all mentions: {out / 'suspects.jsonl'}")
    if names:
        typer.echo(
            f"the names as a dictionary: {out / 'suspects.tsv'}; delete what is wrong, and give it to "
            "`lacuner annotate` as another --dictionary"
        )


def _number(score: float | None) -> str:
    return "    " if score is None else f"{score:.2f}"


def _inside(suspect: Suspect) -> str:
    """The text that the model has labelled instead."""
    assert suspect.instead is not None
    return " ".join(suspect.document.text[suspect.instead.start : suspect.instead.end].split())
