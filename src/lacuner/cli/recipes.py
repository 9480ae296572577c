"""`lacuner recipes`: what there is, what each assumes and needs, and which one suits some data."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lacuner.cli import options

if TYPE_CHECKING:
    from lacuner.advice import Seen, Size
    from lacuner.config import Config

HEADINGS = ("What it does", "Assumes", "Needs", "Costs", "Departs from the authors", "Reference")


def recipes(
    name: Annotated[str | None, typer.Argument(metavar="[RECIPE]", help="Show all of one, with its settings.")] = None,
    weak: Annotated[
        list[Path] | None, typer.Option("--for", metavar="WEAK", help="Which one suits these labels? May be repeated.")
    ] = None,
    gold: Annotated[
        list[Path] | None, typer.Option("--gold", help="With --for: complete labels to learn from.")
    ] = None,
    dev: Annotated[Path | None, typer.Option("--dev", help="With --for: complete labels to choose by.")] = None,
    encoder: Annotated[
        str | None, typer.Option("--encoder", help="With --for: tiny, lstm, hf:NAME_OR_PATH, or run:PATH.")
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
    """List the recipes, or explain one of them, or say which one suits the data."""
    from lacuner.cli.console import print_json, print_table, read_roles
    from lacuner.errors import ConfigError
    from lacuner.recipes import RECIPES

    files = {"weak": weak or [], "gold": gold or [], "dev": [dev] if dev else []}
    if any(files.values()):
        if name is not None or not (weak or gold):
            raise ConfigError("advice is for labels to learn from: give --for WEAK or --gold, and no recipe")
        reading = options.read_options(encoding, scheme, words, (separator, token_column, tag_column))
        how: dict[str, object] = {
            "--format": format,
            "--encoding": encoding,
            "--words": words,
            "--separator": separator,
        }
        how |= {"--token-column": token_column, "--tag-column": tag_column, "--scheme": scheme, "--encoder": encoder}
        _advise(files, read_roles(files, format, reading), encoder or "tiny", _unusual(how), json)
        return
    if name is not None and name not in RECIPES:
        raise ConfigError(f"there is no recipe {name!r}; there are {', '.join(RECIPES)}")
    texts = {each: parse(inspect.getdoc(module) or "") for each, module in RECIPES.items()}
    if json:
        print_json({each: {**texts[each], "needs": RECIPES[each].NEEDS} for each in ([name] if name else RECIPES)})
    elif name is None:
        rows = [(each, " ".join(RECIPES[each].NEEDS), texts[each]["Summary"]) for each in RECIPES]
        print_table("", ("recipe", "needs", "in one line"), rows)
        typer.echo(
            "\n`lacuner recipes --for WEAK --dev DEV` says which one suits the data; `lacuner train` takes that one"
        )
    else:
        for heading, text in texts[name].items():
            typer.echo(f"{heading}: {text}")
        typer.echo("Settings:")
        _settings(RECIPES[name].Config())


def _unusual(options: Mapping[str, object]) -> list[str]:
    """What was said about the input, for `lacuner train` to be told too."""
    usual = {None, "utf-8", "unicode"}
    places = {"--token-column": 0, "--tag-column": -1}
    said = {name: value for name, value in options.items() if value not in usual and value != places.get(name)}
    return [part for name, value in said.items() for part in (name, str(value))]


def _advise(
    files: Mapping[str, Sequence[Path]], docs: Mapping[str, Any], encoder: str, how: list[str], json: bool
) -> None:
    from lacuner.advice import advise, look
    from lacuner.cli.console import print_json, print_table
    from lacuner.recipes import RECIPES

    seen = look(**docs)
    advice = advise(seen, encoder)
    module = RECIPES[advice.recipe]
    roles = [role for role in files if role in (*module.NEEDS, "dev")]
    given = [part for role in roles for path in files[role] for part in (f"--{role}", str(path))]
    chosen = [part for each in advice.settings for part in ("--set", each)]
    command = shlex.join(["lacuner", "train", "--recipe", advice.recipe, *given, *how, *chosen, "--out", "run"])
    if json:
        print_json({**advice.model_dump(mode="json"), "command": command, "seen": seen.as_json()})
        return
    print_table("", ("what was seen", ""), list(_rows(seen)))
    typer.echo(f"\n{' '.join((advice.recipe, *advice.settings))}")
    for sentence in (*advice.reasons, *advice.notes):
        typer.echo(f"  {sentence}")
    typer.echo(f"\n{command}")


def _rows(seen: Seen) -> Iterator[tuple[str, str]]:
    """What was seen, a row each; what nobody can tell has none."""
    for role, size in (("weak", seen.weak), ("gold", seen.gold), ("dev", seen.dev)):
        if size is not None:
            yield role, _size(size)
    if seen.forgotten is not None:
        share, of = seen.forgotten
        yield "other mentions of labelled names without a label", f"{100 * share:.0f} % (by {of:,} labels)"
    if seen.contradicting is not None:
        share, of = seen.contradicting
        yield "other labels of the same name of another type", f"{100 * share:.0f} % (by {of:,} labels)"
    if seen.right is not None:
        yield "labels that are right, about", f"{100 * seen.right:.0f} % (by {seen.judge})"
    if seen.missing is not None:
        yield "entities without a right label, about", f"{100 * seen.missing:.0f} % (by {seen.judge})"
    if seen.gaps is not None:
        yield "what is missing", {"names": "names as a whole", "mentions": "mentions of all names"}[seen.gaps]


def _size(size: Size) -> str:
    script = f" ({100 * size.cjk:.0f} % of the characters are Chinese or Japanese)" if size.cjk >= 0.1 else ""
    counts = f"{size.documents:,} documents, {size.words:,} words{script}, {size.entities:,} entities"
    return f"{counts} of {len(size.labels):,} labels"


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
