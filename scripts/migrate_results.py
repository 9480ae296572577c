"""`python scripts/migrate_results.py [FOLDER]`: rewrite renamed settings in the specs and result rows of `benchmarks/`.

The table of new names is `RENAMED` of each recipe's config. Keys are hashes of the settings, so they are computed
again. A second run changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lacuner.atomic import atomic_write
from lacuner.bench.grid import Row, cell_from_json, row_line
from lacuner.recipes import RECIPES

RANKS = ("top", "middle", "bottom")
"""Values of `sampler` that became `ablation.rank`."""
COMMANDS = {"lacuner.bench.little": "lacuner.bench.gold_subset"}


def rename_setting(recipe: str, setting: str) -> str | None:
    """Return a setting under its new name; None if it no longer exists."""
    name, equals, value = setting.partition("=")
    if (recipe, name.strip()) == ("negative_sampling", "sampler") and value.strip() in RANKS:
        return f"ablation.rank={value}"
    new = RECIPES[recipe].Config.RENAMED.get(name.strip(), name)
    return None if " " in new.strip() else f"{new}{equals}{value}"


def rename_settings(recipe: str, settings: Sequence[str]) -> list[str]:
    """Return settings under their new names.

    A span head of `roster` had its decision threshold at `argmax` unless it was set; the preset now tunes it on dev.
    """
    renamed = [new for setting in settings if (new := rename_setting(recipe, setting)) is not None]
    if recipe == "roster" and "head.kind=span" in renamed and "head.threshold" not in " ".join(renamed):
        renamed.insert(renamed.index("head.kind=span") + 1, "head.threshold=argmax")
    return renamed


def migrate_row(row: Row) -> Row:
    """Rename the settings of a row in its cell, config and commands, and compute its key again."""
    recipe = row["cell"]["recipe"]
    settings = rename_settings(recipe, row["cell"]["settings"])
    commands = [_rename_in_command(recipe, command) for command in row["commands"]]
    if settings == row["cell"]["settings"] and commands == row["commands"] and recipe != "roster":
        return row
    cell = {**row["cell"], "settings": settings}
    config, key = _config_and_key(cell)
    return {**row, "key": key, "cell": cell, "config": _overlay(recipe, row["config"], config), "commands": commands}


def _config_and_key(cell_json: Row) -> tuple[dict[str, Any], str]:
    """Return config and key of a cell, also if its encoder is a run that does not exist here (a pre-trained `tiny`)."""
    encoder = next((text for text in cell_json["settings"] if text.startswith('encoder.name="run:')), None)
    settings = ['encoder.name="tiny"' if text == encoder else text for text in cell_json["settings"]]
    cell = cell_from_json({**cell_json, "settings": settings})
    config, identity = cell.config, cell.identity
    if encoder is not None:
        config["encoder"]["name"] = identity["settings"]["encoder"]["name"] = encoder.split('"')[1]
    text = json.dumps(identity, sort_keys=True, ensure_ascii=True)
    return config, hashlib.sha256(text.encode()).hexdigest()[:20]


def _overlay(recipe: str, old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return the new config with the values of the old one, so that a changed default still makes a row outdated."""
    renamed = {**old, "ablation": old.get("ablation") or dict(old)}
    if old.get("sampler") in RANKS:
        renamed |= {"ablation": {**old, "rank": old["sampler"]}, "sampler": "uniform"}
    preset_fields = getattr(RECIPES[recipe].Config, "PRESET_FIELDS", ())

    def merge(old_part: dict[str, Any], new_part: dict[str, Any]) -> dict[str, Any]:
        merged = dict(new_part)
        for name, value in new_part.items():
            if isinstance(value, dict) and isinstance(old_part.get(name), dict):
                merged[name] = merge(old_part[name], value)
            elif name in old_part and (old_part[name] is not None or name not in preset_fields):
                merged[name] = old_part[name]
        return merged

    return merge(renamed, new)


def _rename_in_command(recipe: str, command: str) -> str:
    for old, new in COMMANDS.items():
        command = command.replace(old, new)
    parts = shlex.split(command)
    if "--set" not in parts:
        return command
    pairs = [(at, parts[at + 1]) for at, part in enumerate(parts) if part == "--set"]
    renamed = rename_settings(recipe, [setting for _, setting in pairs])
    if renamed == [setting for _, setting in pairs]:
        return command
    before, after = parts[: pairs[0][0]], parts[pairs[-1][0] + 2 :]
    return shlex.join([*before, *[part for setting in renamed for part in ("--set", setting)], *after])


def migrate_spec(text: str) -> str:
    """Rename the settings in the text of a spec, section by section; comments and layout stay."""
    recipes = {name: recipe["recipe"] for name, recipe in tomllib.loads(text)["recipes"].items()}

    def rename(section: str, settings: str) -> Iterator[str]:
        header = re.match(r'\[recipes\.(?:"([^"]+)"|(\S+))\]', section)
        owners = [recipes[header[1] or header[2]]] if header else list(dict.fromkeys(recipes.values()))
        for setting in re.findall(r'"((?:[^"\\]|\\.)*)"', settings):
            renamed = [rename_setting(owner, setting) for owner in owners]
            yield next((new for new in renamed if new != setting), setting) or ""

    def migrate_section(section: str) -> str:
        def replace(match: re.Match[str]) -> str:
            old = re.findall(r'"((?:[^"\\]|\\.)*)"', match[0])
            result = match[0]
            for setting, new in zip(old, rename(section, match[0]), strict=True):
                line = rf'\s*"{re.escape(setting)}",?' if not new else f'"{re.escape(setting)}"'
                result = re.sub(line, lambda _, new=new: f'"{new}"' if new else "", result, count=1)
            return result

        return re.sub(r"^settings = \[[^\]]*\]", replace, section, count=1, flags=re.M)

    return "".join(map(migrate_section, re.split(r"^(?=\[)", text, flags=re.M)))


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "benchmarks")
    texts = {path: migrate_spec(path.read_text(encoding="utf-8")) for path in folder.rglob("*.toml")}
    for path in folder.glob("results/*/results.jsonl"):
        rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        texts[path] = "".join(row_line(migrate_row(row)) for row in rows)
    for path, text in sorted(texts.items()):
        if text != path.read_text(encoding="utf-8"):
            with atomic_write(path) as stream:
                stream.write(text.encode())
            sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
