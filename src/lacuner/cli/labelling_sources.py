"""The options of `lacuner annotate` that say where labels come from, and the labelling sources made from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain, count
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
        for rule in self.regex or []:
            label, _, pattern = rule.partition("=")
            if not pattern:
                raise ConfigError(f"--regex is written LABEL=PATTERN, not {rule!r}")
            name = loaded.unique_name(f"regex {label.strip()}".strip())
            loaded.sources.append(regex_source(label.strip(), pattern, name=name))
        if self.capitalised:  # last: these spans have no type, so every other source has priority
            loaded.sources.append(capitalised_source(name=loaded.unique_name("capitalised")))
        if stop:  # gazetteers have applied it themselves
            loaded.sources = [source if source.entries else apply_stop_list(source, stop) for source in loaded.sources]
        return loaded

    def _load_gazetteer(self, file: Path, stop: frozenset[str], loaded: LabellingSources) -> None:
        from lacuner.annotate import gazetteer_source, load_gazetteer, per_document_source

        gazetteer = load_gazetteer(
            file,
            label=self.label,
            mapping=self._mapping() or None,
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
            sources.append(gazetteer_source(gazetteer.entries, name=loaded.unique_name(name), **matching))
        if gazetteer.by_document:
            name = loaded.unique_name(f"{name}, by document")
            sources.append(per_document_source(gazetteer.by_document, name=name, **matching))
            loaded.documents.setdefault(file, set()).update(gazetteer.by_document)
        loaded.sources += sources
        log(f"read {file}: {len(gazetteer):,} entries, {gazetteer.skipped:,} rows skipped{_unmatched(sources)}")

    def _mapping(self) -> dict[str, str]:
        """Labels by gazetteer class."""
        mapping = {}
        for pair in self.map or []:
            name, _, label = pair.partition("=")
            if not name or not label:
                raise ConfigError(f"--map is written CLASS=LABEL, not {pair!r}")
            mapping[name] = label
        return mapping


@dataclass
class LabellingSources:
    """Labelling sources in order of priority."""

    sources: list[Source] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Problems in the gazetteer files, one sentence each."""
    documents: dict[Path, set[str]] = field(default_factory=dict)
    """For each gazetteer file with terms for single documents: the ids of these documents."""

    def unique_name(self, name: str) -> str:
        """The name, with a number if another source has it."""
        taken = {source.name for source in self.sources}
        return next(unique for unique in chain([name], (f"{name} {n}" for n in count(2))) if unique not in taken)

    def missing_documents(self, unseen: set[str]) -> list[str]:
        """One sentence per gazetteer with terms for documents that did not occur in the corpus."""
        sentences = []
        for file, documents in self.documents.items():
            if missing := sorted(documents & unseen):
                share = f"{len(missing):,} of the {len(documents):,} documents it has terms for"
                sentences.append(f"{file}: {share} are not in the corpus, the first is {missing[0]!r}")
        return sentences


def _unmatched(sources: list[Source]) -> str:
    """How many entries are never matched, and why."""
    from lacuner.annotate.sources import EMPTY, STOPPED

    text = ""
    for reason, name in ((STOPPED, "stopped"), (EMPTY, "empty after normalising")):
        if skipped := sum(source.skipped.get(reason, 0) for source in sources):
            text += f"{', ' if text else '; '}{skipped:,} {name}"
    return text
