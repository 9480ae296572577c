"""The options of `lacuner annotate` that say where labels come from, and the labelling sources made from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Option

from lacuner.cli.console import log
from lacuner.errors import ConfigError

if TYPE_CHECKING:
    from lacuner.annotate import Source

PROBLEMS_SHOWN = 20


@dataclass(frozen=True)
class SourceOptions:
    """Gazetteers, patterns and how they are matched; each field is an option of `lacuner annotate`."""

    dictionary: Annotated[
        list[Path] | None, Option(metavar="FILE", help="Gazetteer (TSV, CSV, TXT, JSON, SPARQL). Repeatable.")
    ] = None
    dictionary_format: Annotated[
        Literal["tsv", "csv", "txt", "jsonl", "json"] | None, Option(help="Default: from the file name.")
    ] = None
    dictionary_encoding: Annotated[str | None, Option(help="Gazetteer encoding. Default: detected.")] = None
    label: Annotated[str | None, Option(help="Label of entries that have none.")] = None
    map: Annotated[list[str] | None, Option(metavar="CLASS=LABEL", help="Label of a gazetteer class. Repeatable.")] = (
        None
    )
    case: Annotated[
        Literal["smart", "fold", "exact"], Option(help="smart: fold all but acronyms and common words.")
    ] = "smart"
    overlaps: Annotated[Literal["longest", "all"], Option(help="Overlapping matches to keep.")] = "longest"
    spacing: Annotated[Literal["given", "tokens"], Option(help="tokens: `5 - FU` matches 5-FU.")] = "given"
    stop: Annotated[list[Path] | None, Option(metavar="FILE", help="Stop list: one term per line. Repeatable.")] = None
    regex: Annotated[
        list[str] | None, Option(metavar="LABEL=PATTERN", help="Pattern; no label: unsure. Repeatable.")
    ] = None
    capitalised: Annotated[bool, Option("--capitalised", help="Mark other capitalised phrases as unsure.")] = False

    def load(self) -> LabellingSources:
        """Load gazetteers and patterns, gazetteers first; their problems are logged."""
        from lacuner.annotate import apply_stop_list, capitalised_source, read_stop_list, regex_source

        if not (self.dictionary or self.regex or self.capitalised):
            raise ConfigError("nothing to label with: give --dictionary, --regex or --capitalised")
        stop = frozenset().union(*[read_stop_list(file) for file in self.stop or []])
        loaded = LabellingSources()
        for file in self.dictionary or []:
            self._load_gazetteer(file, stop, loaded)
        rules: list[Source] = []
        for rule in self.regex or []:
            label, equals, pattern = rule.partition("=")
            if not equals or not pattern:
                raise ConfigError(f"--regex is written LABEL=PATTERN, not {rule!r}")
            name = _unique_name(f"regex {label.strip()}".strip(), [*loaded.sources, *rules])
            rules.append(regex_source(label.strip(), pattern, name=name))
        if self.capitalised:  # last: these spans have no type, so every other source has priority
            rules.append(capitalised_source(name=_unique_name("capitalised", [*loaded.sources, *rules])))
        loaded.sources += [apply_stop_list(rule, stop) if stop else rule for rule in rules]
        return loaded

    def _load_gazetteer(self, file: Path, stop: frozenset[str], loaded: LabellingSources) -> None:
        from lacuner.annotate import gazetteer_source, load_gazetteer, per_document_source

        gazetteer = load_gazetteer(
            file,
            label=self.label,
            mapping=_parse_pairs(self.map, "--map") or None,
            format=self.dictionary_format,
            encoding=self.dictionary_encoding,
        )
        problems = [str(problem) for problem in gazetteer.problems]
        for problem in problems[:PROBLEMS_SHOWN]:
            log(problem)
        if len(problems) > PROBLEMS_SHOWN:
            log(f"{file}: {len(problems) - PROBLEMS_SHOWN:,} more problems, listed in the report (--report)")
        loaded.problems += problems
        matching: dict[str, Any] = {"case": self.case, "overlaps": self.overlaps, "spacing": self.spacing, "stop": stop}
        stems = [path.stem for path in self.dictionary or []]
        name = file.stem if stems.count(file.stem) == 1 else str(file)
        sources = []
        if len(gazetteer.entries):
            unique = _unique_name(name, loaded.sources)
            sources.append(gazetteer_source(gazetteer.entries, name=unique, **matching))
        if gazetteer.by_document:
            unique = _unique_name(f"{name}, by document", loaded.sources)
            sources.append(per_document_source(gazetteer.by_document, name=unique, **matching))
            loaded.documents.setdefault(file, set()).update(gazetteer.by_document)
        loaded.sources += sources
        log(f"read {file}: {len(gazetteer):,} entries, {gazetteer.skipped:,} rows skipped{_unmatched(sources)}")


@dataclass
class LabellingSources:
    """Labelling sources in order of priority."""

    sources: list[Source] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Problems in the gazetteer files, one sentence each."""
    documents: dict[Path, set[str]] = field(default_factory=dict)
    """For each gazetteer file with terms for single documents: the ids of these documents."""

    def missing_documents(self, unseen: set[str]) -> list[str]:
        """One sentence per gazetteer with terms for documents that did not occur in the corpus."""
        sentences = []
        for file, documents in self.documents.items():
            if missing := sorted(documents & unseen):
                count = f"{len(missing):,} of the {len(documents):,} documents it has terms for"
                sentences.append(f"{file}: {count} are not in the corpus, the first is {missing[0]!r}")
        return sentences


def _parse_pairs(arguments: list[str] | None, option: str) -> dict[str, str]:
    """NAME=VALUE arguments as a dictionary."""
    pairs = {}
    for argument in arguments or []:
        name, _, value = argument.partition("=")
        if not name or not value:
            raise ConfigError(f"{option} is written NAME=VALUE, not {argument!r}")
        pairs[name] = value
    return pairs


def _unmatched(sources: list[Source]) -> str:
    """How many entries are never matched, and why."""
    from lacuner.annotate.sources import EMPTY, STOPPED

    counts = {
        name: sum(source.skipped.get(reason, 0) for source in sources)
        for reason, name in ((STOPPED, "stopped"), (EMPTY, "empty after normalising"))
    }
    parts = [f"{count:,} {name}" for name, count in counts.items() if count]
    return f"; {', '.join(parts)}" if parts else ""


def _unique_name(name: str, sources: Iterable[Source]) -> str:
    """The name, with a number if another source has it."""
    taken = {source.name for source in sources}
    number, unique = 1, name
    while unique in taken:
        number += 1
        unique = f"{name} {number}"
    return unique
