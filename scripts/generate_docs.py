"""Write the source of the documentation site: the pages of docs/, and pages generated from the code.

Usage: python scripts/generate_docs.py FOLDER

Generated are one page per recipe (from its docstring and settings), the command-line reference (from the commands) and
the Python reference (directives for mkdocstrings, one per public name). `make docs` builds the site from the result.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from typer.testing import CliRunner

from lacuner.cli.main import COMMANDS, app
from lacuner.cli.recipes import GROUPS, group_settings, parse
from lacuner.recipes import RECIPES

BLANK = "\n\n"
DOCS = Path(__file__).resolve().parent.parent / "docs"
PYTHON = {
    "lacuner.data": "The data model",
    "lacuner.api": "Functions for notebooks and programs",
    "lacuner.corpus": "Reading and writing",
    "lacuner.annotate": "Weak labels",
    "lacuner.noise": "Label noise",
    "lacuner.evaluate": "Scores",
    "lacuner.advice": "Recommending a recipe",
    "lacuner.models": "Models",
    "lacuner.losses": "Losses",
    "lacuner.sampling": "Negative sampling",
    "lacuner.training": "Training",
    "lacuner.techniques": "Techniques",
    "lacuner.pretraining": "Pre-training",
    "lacuner.audit": "Audits",
    "lacuner.demo": "Demo corpus",
}


def generate(folder: Path) -> None:
    """Copy docs/ to a folder and add the generated pages."""
    shutil.copytree(DOCS, folder, dirs_exist_ok=True)
    pages = {
        "recipes/index.md": recipe_index(),
        "reference/command_line.md": command_line(),
        "reference/python.md": python(),
    }
    pages |= {f"recipes/{name}.md": recipe_page(name) for name in RECIPES}
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def recipe_index() -> str:
    """A table of recipes per group, linked to their pages."""
    text = "# Recipes\n\nA recipe is a training method: one paper, or one baseline.\n"
    text += "[Choosing a recipe](../advice.md) explains how lacuner recommends one.\n"
    for group in GROUPS:
        rows = [
            (
                f"[`{name}`]({name}.md)",
                ", ".join(module.NEEDS),
                sections(module)["Summary"],
                getattr(module, "PAPER", ""),
            )
            for name, module in RECIPES.items()
            if getattr(module, "GROUP", "other methods") == group
        ]
        if rows:
            text += f"\n## {group.capitalize()}\n\n" + table(("recipe", "needs", "description", "paper"), rows)
    return text


def recipe_page(name: str) -> str:
    """The sections of a recipe's docstring, and its settings with their defaults."""
    module = RECIPES[name]
    summary, *rest = sections(module).items()
    text = f"# {name}\n\n{summary[1]}\n"
    text += "".join(f"\n**{heading}.** {body[:1].upper() + body[1:]}\n" for heading, body in rest)
    text += f"\n```text\nlacuner train --recipe {name} " + " ".join(f"--{role} FILE" for role in module.NEEDS)
    text += " --out RUN\n```\n\nSettings are changed with `--set NAME=VALUE`, or in a TOML file (`--config FILE`).\n"
    for title, settings in group_settings(name, module.Config()).items():
        rows = [(f"`{setting}`", f"`{default}`", description) for setting, default, description in settings]
        text += f"\n## {title}\n\n" + table(("setting", "default", "meaning"), rows)
    return text


def sections(module: ModuleType) -> dict[str, str]:
    """Sections of a recipe's docstring by heading."""
    return parse(inspect.getdoc(module) or "")


def command_line() -> str:
    """The help of every command."""
    text = (
        "# Command line\n\nEvery command that reports has `--json`. Exit status: 0 for success, 2 for wrong input, 130 "
        "after Ctrl-C, 143 after SIGTERM, 1 for anything else.\n"
    )
    for name in COMMANDS:
        shown = CliRunner().invoke(app, [*name.split(), "--help"], prog_name="lacuner", env={"COLUMNS": "100"})
        if shown.exit_code:
            raise RuntimeError(f"lacuner {name} --help failed: {shown.output}")
        text += f"\n## lacuner {name}\n\n```text\n{shown.output.strip()}\n```\n"
    return text


def python() -> str:
    """A directive for each public name, under the first package that exports it."""
    text, written = "# Python\n", set[str]()
    for package, title in PYTHON.items():
        module = importlib.import_module(package)
        text += f"\n## {title}\n\n`{package}`: {(module.__doc__ or '').partition(BLANK)[0]}\n"
        for exporter in [module] if hasattr(module, "__all__") else [module, *submodules(module)]:
            paths = [definition(exporter, name) for name in public_names(exporter)]
            text += "".join(f"\n::: {path}\n" for path in paths if path not in written)
            written |= set(paths)
    return text


def submodules(module: ModuleType) -> Iterator[ModuleType]:
    """The modules of a package; none of a plain module."""
    for info in pkgutil.iter_modules(getattr(module, "__path__", ())):
        yield importlib.import_module(f"{module.__name__}.{info.name}")


def public_names(module: ModuleType) -> list[str]:
    """The names in `__all__`, or else the classes and functions that the module defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [name for name, value in vars(module).items() if inspect.getmodule(value) is module and name[0] != "_"]


def definition(module: ModuleType, name: str) -> str:
    """The full name of a class or function where it is defined; of other values where they are exported."""
    value = getattr(module, name)
    defined = inspect.isclass(value) or inspect.isfunction(value)
    return f"{value.__module__}.{value.__qualname__}" if defined else f"{module.__name__}.{name}"


def table(header: tuple[str, ...], rows: Any) -> str:
    """A Markdown table; line breaks and bars in cells are made harmless."""
    lines = [header, ("---",) * len(header), *rows]
    cells = ([" ".join(str(cell).split()).replace("|", "\\|") for cell in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


if __name__ == "__main__":
    generate(Path(sys.argv[1]))
