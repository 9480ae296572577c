"""`lacuner recipes`: what there is, what each assumes and needs."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated

import typer

from lacuner.cli import options

if TYPE_CHECKING:
    from lacuner.config import Config

HEADINGS = ("What it does", "Assumes", "Needs", "Costs", "Departs from the authors", "Reference")


def recipes(
    name: Annotated[str | None, typer.Argument(metavar="[RECIPE]", help="Show all of one, with its settings.")] = None,
    json: options.Json = False,
) -> None:
    """List the recipes, or explain one of them."""
    from lacuner.cli.show import print_json, print_table
    from lacuner.errors import ConfigError
    from lacuner.recipes import RECIPES

    if name is not None and name not in RECIPES:
        raise ConfigError(f"there is no recipe {name!r}; there are {', '.join(RECIPES)}")
    texts = {each: parse(inspect.getdoc(module) or "") for each, module in RECIPES.items()}
    if json:
        print_json({each: {**texts[each], "needs": RECIPES[each].NEEDS} for each in ([name] if name else RECIPES)})
    elif name is None:
        rows = [(each, " ".join(RECIPES[each].NEEDS), texts[each]["Summary"]) for each in RECIPES]
        print_table("", ("recipe", "needs", "in one line"), rows)
    else:
        for heading, text in texts[name].items():
            typer.echo(f"{heading}: {text}")
        typer.echo("Settings:")
        _settings(RECIPES[name].Config())


def parse(text: str) -> dict[str, str]:
    """The parts of a recipe's docstring by their headings."""
    parts = {"Summary": text.split("\n\n", maxsplit=1)[0]}
    current = ""
    for line in text.split("\n\n", 1)[-1].splitlines():
        heading, colon, rest = line.partition(":")
        if colon and heading in HEADINGS:
            current = heading
            parts[current] = rest.strip()
        elif current:
            parts[current] += " " + line.strip()
    return parts


def _settings(config: Config, prefix: str = "") -> None:
    from lacuner.config import Config

    for name, field in type(config).model_fields.items():
        value = getattr(config, name)
        if isinstance(value, Config):
            _settings(value, f"{prefix}{name}.")
        else:
            about = f"  {field.description}" if field.description else ""
            typer.echo(f"  {prefix}{name} = {value}{about}")
