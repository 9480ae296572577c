"""Labelling sources from what was said on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from lacuner.annotate import (
    Gazetteer,
    Source,
    apply_stop_list,
    capitalised_source,
    gazetteer_source,
    load_gazetteer,
    per_document_source,
    read_stop_list,
    regex_source,
)
from lacuner.annotate.gazetteer.load import UNKNOWN_ENCODING, UNKNOWN_ENDING
from lacuner.annotate.sources import EMPTY, STOPPED
from lacuner.cli.console import say
from lacuner.errors import ConfigError, GazetteerError

PROBLEMS = 20
_OPTIONS = {UNKNOWN_ENDING: "--dictionary-format", UNKNOWN_ENCODING: "--dictionary-encoding"}


class Given(NamedTuple):
    """Dictionaries as sources."""

    sources: list[Source]
    problems: list[str]
    """What is wrong with their files, in sentences."""
    by_document: dict[Path, set[str]]
    """The documents for which a file has terms."""


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
    files: list[Path] | None,
    label: str | None,
    mapping: dict[str, str],
    reading: dict[str, str | None],
    matching: dict[str, Any],
) -> Given:
    """A source a dictionary; the first problems of each are said at once. `reading`: format and encoding."""
    given = Given([], [], {})
    names = [file.stem for file in files or []]
    for file in files or []:
        found = _load(file, label, mapping, reading)
        mine = [str(problem) for problem in found.problems]
        given.problems.extend(mine)
        for problem in mine[:PROBLEMS]:
            say(problem)
        if len(mine) > PROBLEMS:
            say(f"{file}: {len(mine) - PROBLEMS:,} more problems, all of them in the report (--report)")
        name = file.stem if names.count(file.stem) == 1 else str(file)
        sources = []
        if len(found.entries):
            sources.append(gazetteer_source(found.entries, name=_free(name, given.sources), **matching))
        if found.by_document:
            name = _free(f"{name}, by document", given.sources)
            sources.append(per_document_source(found.by_document, name=name, **matching))
            given.by_document.setdefault(file, set()).update(found.by_document)
        given.sources.extend(sources)
        say(f"read {file}: {len(found):,} entries, {found.skipped:,} rows skipped" + _not_looked_for(sources))
    return given


def _load(file: Path, label: str | None, mapping: dict[str, str], reading: dict[str, str | None]) -> Gazetteer:
    try:
        return load_gazetteer(
            file, label=label, mapping=mapping or None, format=reading["format"], encoding=reading["encoding"]
        )
    except GazetteerError as error:
        option = next((option for sentence, option in _OPTIONS.items() if sentence in error.problem), None)
        if option is None:
            raise
        raise GazetteerError(f"{error.problem}; the option is {option}", file=error.file, line=error.line) from error


def _not_looked_for(sources: list[Source]) -> str:
    """Of how many entries nothing is looked for, and why."""
    parts = []
    for reason, name in ((STOPPED, "stopped"), (EMPTY, "empty after normalising")):
        times = sum(source.skipped.get(reason, 0) for source in sources)
        if times:
            parts.append(f"{times:,} {name}")
    return f"; {', '.join(parts)}" if parts else ""


def _free(name: str, sources: Iterable[Source]) -> str:
    """The name, with a number if another source has it."""
    taken = {source.name for source in sources}
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name} {number}"
    return free


def rule_sources(
    regex: list[str] | None, capitalised: bool, stop: frozenset[str], others: Iterable[Source]
) -> list[Source]:
    """Patterns, and capitalised phrases last: they have no type, and any other source knows better.

    Stop lists hold for them too. Their names are not those of the others.
    """
    rules: list[Source] = []
    others = list(others)
    for each in regex or []:
        label, equals, pattern = each.partition("=")
        if not equals or not pattern:
            raise ConfigError(f"--regex is written LABEL=PATTERN, not {each!r}")
        label = label.strip()
        rules.append(regex_source(label, pattern, name=_free(f"regex {label}".strip(), [*others, *rules])))
    if capitalised:
        rules.append(capitalised_source(name=_free("capitalised", [*others, *rules])))
    return [apply_stop_list(rule, stop) if stop else rule for rule in rules]


def unused_terms(by_document: dict[Path, set[str]], unseen: set[str]) -> list[str]:
    """A sentence for each dictionary with terms for documents that the corpus does not have."""
    sentences = []
    for file, documents in by_document.items():
        missing = sorted(documents & unseen)
        if missing:
            sentence = f"{len(missing):,} of the {len(documents):,} documents it has terms for are not in the corpus"
            sentences.append(f"{file}: {sentence}, the first of them {missing[0]!r}")
    return sentences
