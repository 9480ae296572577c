"""`lacuner`: the commands, and what becomes of errors."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Annotated

import typer

from lacuner import __version__
from lacuner.cli import annotate, audit, augment, bench, check, evaluate, noise, predict, pretrain, recipes, train
from lacuner.errors import LacunerError

app = typer.Typer(
    name="lacuner",
    help="Train named-entity recognisers from annotations with gaps.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


app.command("check")(check.check)
app.command("annotate")(annotate.annotate)
app.add_typer(noise.app, name="noise")
app.command("pretrain")(pretrain.pretrain)
app.command("augment")(augment.augment)
app.command("train")(train.train)
app.command("predict")(predict.predict)
app.command("evaluate")(evaluate.evaluate)
app.command("bench")(bench.bench)
app.add_typer(audit.app, name="audit")
app.command("recipes")(recipes.recipes)


def main() -> None:
    """Run a command. The user's mistakes end with status 2 and one sentence; anything else with status 1."""
    # before torch is loaded: a waiting thread that spins would cost two busy processes a factor of two to seven
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if threading.current_thread() is threading.main_thread():
        signal.signal(
            signal.SIGTERM, lambda *_: sys.exit(143)
        )  # so that half-written files and workers are cleared away
    try:
        app()
    except LacunerError as error:
        typer.echo(f"lacuner: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone, which is its right
        sys.exit(1)
