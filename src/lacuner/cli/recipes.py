"""`lacuner recipes`: list the recipes, explain one, or recommend one for given data."""

from __future__ import annotations

import inspect
import shlex
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from typer import Argument, Option

from lacuner.cli.console import echo, print_json, print_table, read_splits
from lacuner.cli.options import Dev, Encoder, InputOptions, Json, to_arguments
from lacuner.data import Splits
from lacuner.errors import ConfigError

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from lacuner.advice import DataProfile
    from lacuner.config import Config

GROUPS = ("recommended", "other methods", "baselines", "for experiments")
HEADINGS = ("What it does", "Assumes", "Needs", "Costs", "Departs from the authors", "Reference")


def recipes(
    name: Annotated[str | None, Argument(metavar="RECIPE", help="Recipe to explain, with its settings.")] = None,
    *,
    weak: Annotated[
        list[Path] | None, Option("--for", metavar="WEAK", help="Recommend a recipe for these weak labels.")
    ] = None,
    gold: Annotated[list[Path] | None, Option(metavar="FILE", help="With --for: gold to train on.")] = None,
    dev: Dev = None,
    encoder: Encoder = None,
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """List recipes, explain one, or recommend one."""
    from lacuner.recipes import RECIPES, find_recipe

    files = {"weak": weak or [], "gold": gold or [], "dev": [dev] if dev else []}
    if any(files.values()):
        if name is not None or not (weak or gold):
            raise ConfigError("a recommendation needs --for WEAK or --gold, and no recipe name")
        arguments = [*inputs.arguments(), *to_arguments({"encoder": [encoder] if encoder else []})]
        _recommend(files, read_splits(files, inputs), encoder or "auto", arguments, json)
        return
    modules = {name: find_recipe(name)} if name is not None else RECIPES
    sections = {key: parse(inspect.getdoc(module) or "") for key, module in modules.items()}
    if json:
        facts = {key: {"needs": m.NEEDS, "group": m.GROUP, "paper": m.PAPER} for key, m in modules.items()}
        print_json({key: {**sections[key], **facts[key]} for key in modules})
    elif name is None:
        _print_list(RECIPES, sections)
    else:
        for heading, text in sections[name].items():
            echo(_wrap(f"{heading}: {text}", "    "))
        for title, settings in group_settings(name, RECIPES[name].Config()).items():
            echo(f"{title}:")
            for setting, default, description in settings:
                echo(f"  {setting} = {default}")
                if description:
                    echo(_wrap("      " + description, "      "))


def _print_list(recipes: Mapping[str, ModuleType], sections: Mapping[str, Mapping[str, str]]) -> None:
    for group in GROUPS:
        members = {name: module for name, module in recipes.items() if group == module.GROUP}
        rows = [(name, " ".join(m.NEEDS), sections[name]["Summary"], m.PAPER) for name, m in members.items()]
        print_table(f"\n{group.capitalize()}", ("recipe", "needs", "description", "paper"), rows)
    echo(
        "\n`lacuner recipes --for WEAK --dev DEV` recommends a recipe for your data; `lacuner train` uses that one by "
        "default."
    )


def _recommend(
    files: Mapping[str, Sequence[Path]], docs: Mapping[str, Any], encoder: str, arguments: list[str], json: bool
) -> None:
    """Print the recommended recipe, the reasons, and the command that trains it."""
    from lacuner.advice import advise
    from lacuner.advice import profile as profile_data
    from lacuner.recipes import RECIPES
    from lacuner.trainer.auto import names_pretrained

    profile = profile_data(**docs)
    advice = advise(profile, names_pretrained(encoder, Splits(**docs)))
    roles = [role for role in files if role in (*RECIPES[advice.recipe].NEEDS, "dev")]
    data = to_arguments({"recipe": [advice.recipe], **{role: files[role] for role in roles}})
    settings = to_arguments({"set": advice.settings, "out": ["run"]})
    command = shlex.join(["lacuner", "train", *data, *arguments, *settings])
    if json:
        print_json({**advice.model_dump(mode="json"), "command": command, "seen": profile.as_json()})
        return
    print_table("", ("data profile", ""), list(_profile_rows(profile)))
    echo(f"\n{' '.join((advice.recipe, *advice.settings))}")
    for sentence in (*advice.reasons, *advice.notes):
        echo(f"  {sentence}")
    echo(f"\n{command}")


def _profile_rows(profile: DataProfile) -> Iterator[tuple[str, str]]:
    """One row per known figure of a data profile."""
    for role, size in (("weak", profile.weak), ("gold", profile.gold), ("dev", profile.dev)):
        if size is not None:
            script = f" ({100 * size.cjk:.0f} % of the characters are Chinese or Japanese)" if size.cjk >= 0.1 else ""
            counts = f"{size.documents:,} documents, {size.words:,} words{script}, {size.entities:,} entities"
            yield role, f"{counts} of {len(size.labels):,} labels"
    if (share := profile.unlabeled_mentions) is not None:
        yield "unlabeled mentions of labeled names", f"{100 * share.value:.0f} % (from {share.of:,} labels)"
    if (share := profile.type_conflicts) is not None:
        yield "names labeled with another type elsewhere", f"{100 * share.value:.0f} % (from {share.of:,} labels)"
    if profile.precision is not None:
        yield "estimated precision of the labels", f"{100 * profile.precision:.0f} % (from {profile.reference})"
    if profile.missing_rate is not None:
        yield "estimated missing entities", f"{100 * profile.missing_rate:.0f} % (from {profile.reference})"
    if (ratio := profile.entity_ratio) is not None:
        interval = f"{100 * ratio.low:.1f} to {100 * ratio.high:.1f} %, from {ratio.source}"
        yield "estimated share of words in entities", f"{100 * ratio.value:.1f} % ({interval})"
    if profile.missing_kind is not None:
        kinds = {"names": "all mentions of some names", "mentions": "some mentions of all names"}
        yield "what is missing", kinds[profile.missing_kind]


def parse(text: str) -> dict[str, str]:
    """The sections of a recipe's docstring by heading; the first paragraph is `Summary`.

    >>> parse("Train on weak labels.\\n\\nNeeds: weak.\\nCosts: one\\n    training.")
    {'Summary': 'Train on weak labels.', 'Needs': 'weak.', 'Costs': 'one training.'}
    """
    summary, _, body = text.partition("\n\n")
    sections = {"Summary": " ".join(summary.split())}
    current = ""
    for line in body.splitlines():
        heading, colon, rest = line.partition(":")
        if colon and heading in HEADINGS:
            current = heading
            sections[current] = rest.strip()
        elif current:
            sections[current] += " " + line.strip()
    return sections


def group_settings(recipe: str, config: Config) -> dict[str, list[tuple[str, object, str]]]:
    """Name, default and description of the settings of a recipe that can have an effect, under two titles.

    What is particular to the recipe comes before what all recipes share.
    """
    from lacuner.training.config import RecipeConfig

    shared = {name: name in RecipeConfig.model_fields for name in type(config).model_fields}
    titles = {f"Settings of {recipe}": False, "Settings that all recipes share": True}
    groups = {
        title: list(_list_settings(config, [name for name in shared if shared[name] == is_shared]))
        for title, is_shared in titles.items()
    }
    return {title: settings for title, settings in groups.items() if settings}


def _list_settings(config: Config, names: Iterable[str], prefix: str = "") -> Iterator[tuple[str, object, str]]:
    from lacuner.config import Config

    for name in names:
        field, value = type(config).model_fields[name], getattr(config, name)
        if isinstance(value, Config):
            yield from _list_settings(value, type(value).model_fields, f"{prefix}{name}.")
        elif _can_take_effect(config, field):
            yield f"{prefix}{name}", value, field.description or ""


def _can_take_effect(config: Config, field: FieldInfo) -> bool:
    """False for a setting of other heads (or the like) than those that this config allows."""
    from lacuner.config import OnlyWith

    for condition in field.metadata:
        if isinstance(condition, OnlyWith):
            choices = type(config).model_fields[condition.other].annotation
            if get_origin(choices) is Literal and not set(get_args(choices)) & set(condition.values):
                return False
    return True


def _wrap(text: str, indent: str) -> str:
    first = text[: len(text) - len(text.lstrip())]
    width = min(shutil.get_terminal_size().columns, 100)
    return textwrap.fill(" ".join(text.split()), width, initial_indent=first, subsequent_indent=indent)
