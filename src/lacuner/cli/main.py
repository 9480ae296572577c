"""`lacuner`: the commands, and what becomes of errors."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from lacuner import __version__
from lacuner.cli import check, evaluate, noise
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
app.add_typer(noise.app, name="noise")
app.command("evaluate")(evaluate.evaluate)


def main() -> None:
    """Run a command. The user's mistakes end with status 2 and one sentence; anything else with status 1."""
    try:
        app()
    except LacunerError as error:
        typer.echo(f"lacuner: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone, which is its right
        sys.exit(1)
