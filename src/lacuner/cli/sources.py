"""Labelling sources from what was said on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lacuner.annotate import (
    Source,
    capitalised_source,
    dictionary_source,
    load_dictionary,
    per_document_source,
    read_stop_list,
    regex_source,
)
from lacuner.cli.show import say
from lacuner.errors import ConfigError

PROBLEMS = 20


def named_pairs(given: list[str] | None, option: str) -> dict[str, str]:
    """NAME=VALUE, several times."""
    found = {}
    for each in given or []:
        left, _, right = each.partition("=")
        if not left or not right:
            raise ConfigError(f"{option} is written NAME=VALUE, not {each!r}")
        found[left] = right
    return found


def stop_terms(files: list[Path] | None) -> frozenset[str]:
    """The terms of all stop lists."""
    return frozenset().union(*[read_stop_list(file) for file in files or []])


def dictionary_sources(
    files: list[Path] | None, label: str | None, mapping: dict[str, str], encoding: str | None, matching: dict[str, Any]
) -> tuple[list[Source], list[str]]:
    """A source a dictionary, and what is wrong with their files, in sentences; the first of these are said at once."""
    sources: list[Source] = []
    problems: list[str] = []
    names = [file.stem for file in files or []]
    for file in files or []:
        found = load_dictionary(file, label=label, mapping=mapping or None, encoding=encoding)
        mine = [str(problem) for problem in found.problems]
        problems += mine
        for problem in mine[:PROBLEMS]:
            say(problem)
        if len(mine) > PROBLEMS:
            say(f"{file}: {len(mine) - PROBLEMS:,} more problems, all of them in the report")
        say(f"read {file}: {len(found):,} entries, {found.skipped:,} rows skipped")
        name = file.stem if names.count(file.stem) == 1 else str(file)
        if len(found.entries):
            sources.append(dictionary_source(found.entries, name=name, **matching))
        if found.by_document:
            sources.append(per_document_source(found.by_document, name=f"{name}, by document", **matching))
    return sources, problems


def rule_sources(regex: list[str] | None, capitalised: bool) -> list[Source]:
    """Patterns, and capitalised phrases last: they have no type, and any other source knows better."""
    rules = []
    for each in regex or []:
        label, equals, pattern = each.partition("=")
        if not equals or not pattern:
            raise ConfigError(f"--regex is written LABEL=PATTERN, not {each!r}")
        rules.append(regex_source(label, pattern))
    return [*rules, *([capitalised_source()] if capitalised else [])]
