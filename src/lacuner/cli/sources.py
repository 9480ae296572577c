"""The labelling sources that the options of `lacuner annotate` name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Option

from lacuner.atomic import STANDARD_STREAM
from lacuner.cli.console import log
from lacuner.cli.options import parse_pairs
from lacuner.errors import ConfigError

if TYPE_CHECKING:
    from lacuner.annotate import Entry, Source

PROBLEMS_SHOWN = 20


@dataclass(frozen=True)
class SourceOptions:
    """Gazetteers, patterns, models and how they are matched; each field is an option of `lacuner annotate`."""

    dictionary: Annotated[
        list[Path] | None, Option(metavar="FILE", help="Gazetteer (TSV, CSV, TXT, JSON, SPARQL). Repeatable.")
    ] = None
    dictionary_format: Annotated[
        Literal["tsv", "csv", "txt", "jsonl", "json"] | None,
        Option(help="Gazetteer format. Default: from the file name."),
    ] = None
    dictionary_encoding: Annotated[str | None, Option(help="Gazetteer encoding. Default: detected.")] = None
    label: Annotated[str | None, Option(help="Label of gazetteer entries that have none.")] = None
    map: Annotated[
        list[str] | None,
        Option(metavar="CLASS=LABEL", help="Label for a class of a gazetteer, or for a label of a model. Repeatable."),
    ] = None
    case: Annotated[
        Literal["smart", "fold", "exact"], Option(help="smart: case is ignored, except in acronyms and common words.")
    ] = "smart"
    overlaps: Annotated[Literal["longest", "all"], Option(help="Overlapping matches to keep.")] = "longest"
    spacing: Annotated[
        Literal["given", "tokens"], Option(help="tokens: spaces may differ, so `5 - FU` matches the entry 5-FU.")
    ] = "given"
    stop: Annotated[
        list[Path] | None,
        Option(metavar="FILE", help="Stop list: terms that are never matched, one per line. Repeatable."),
    ] = None
    source: Annotated[
        list[str] | None,
        Option(metavar="KIND:PATH", help="Further source of labels: spacy:, hf:, gliner:, regex: or run:. Repeatable."),
    ] = None
    labels: Annotated[
        list[str] | None, Option(metavar="TEXT=LABEL", help="Entity type for GLiNER to look for. Repeatable.")
    ] = None
    gliner_threshold: Annotated[
        float | None, Option(min=0, max=1, metavar="SCORE", help="Lowest score of GLiNER's spans. Default: 0.5.")
    ] = None
    regex: Annotated[
        list[str] | None,
        Option(metavar="LABEL=PATTERN", help="Regular expression; `=PATTERN` gives unsure spans. Repeatable."),
    ] = None
    capitalised: Annotated[
        bool, Option("--capitalised", help="Mark capitalised phrases without a label as unsure.")
    ] = False

    def files(self) -> list[Path]:
        """The files and folders that the options name."""
        others = [Path(spec.partition(":")[2]) for spec in self.source or () if ":" in spec]
        return [*(self.dictionary or ()), *(self.stop or ()), *others]


def _open_spacy(path: Path, name: str, options: SourceOptions) -> Source:
    from lacuner.annotate.spacy_source import spacy_source

    return spacy_source(path, name=name)


def _open_huggingface(path: Path, name: str, options: SourceOptions) -> Source:
    from lacuner.annotate import tagger_source
    from lacuner.models.model_sources import open_token_classifier

    return tagger_source(name, open_token_classifier(path))


def _open_gliner(path: Path, name: str, options: SourceOptions) -> Source:
    from lacuner.models.gliner_source import gliner_source

    labels: dict[str, str] = {}
    for pair in options.labels or ():
        text, _, label = (part.strip() for part in pair.partition("="))
        if labels.setdefault(text, label or text) != (label or text):
            raise ConfigError(f"--labels gives {text!r} two labels: {labels[text]!r} and {label or text!r}")
    threshold = {} if options.gliner_threshold is None else {"threshold": options.gliner_threshold}
    return gliner_source(path, labels, name=name, **threshold)


def _open_patterns(path: Path, name: str, options: SourceOptions) -> Source:
    from lacuner.annotate.patterns import patterns_source, read_patterns

    return patterns_source(name, read_patterns(path))


def _open_run(path: Path, name: str, options: SourceOptions) -> Source:
    from lacuner.annotate import tagger_source
    from lacuner.models.storage import load

    return tagger_source(name, load(path))


SOURCE_KINDS: dict[str, Callable[[Path, str, SourceOptions], Source]] = {
    "spacy": _open_spacy,
    "hf": _open_huggingface,
    "gliner": _open_gliner,
    "regex": _open_patterns,
    "run": _open_run,
}
"""What may stand before the colon of `--source`. To add a kind, write a function here that opens it."""


class LabellingSources:
    """The sources that the options name, in order of priority, gazetteers first."""

    def __init__(self, options: SourceOptions, log: Callable[[str], None] = log) -> None:
        from lacuner.annotate import capitalised_source, read_stop_list

        self.sources: list[Source] = []
        self.problems: list[str] = []
        """Problems in the gazetteer files, one sentence each."""
        self.documents: dict[Path, set[str]] = {}
        """For each gazetteer file with terms for single documents: the ids of these documents."""
        self.options = options
        self.log = log
        self.entries: list[Sequence[Entry]] = []
        """The entries of each gazetteer that holds for all documents."""
        self.mapping = parse_pairs(options.map or [], "--map", "CLASS=LABEL")
        self.stop = frozenset().union(*[read_stop_list(file) for file in options.stop or []])
        self._check(options)
        for file in options.dictionary or []:
            self._add_gazetteer(file, options)
        for spec in options.source or []:
            self._add_source(spec, options)
        for rule in options.regex or []:
            self._add_rule(rule)
        if options.capitalised:  # last: these spans have no type, so every other source has priority
            self._add(capitalised_source(name=self._unique_name("capitalised")))

    def _check(self, options: SourceOptions) -> None:
        if not (options.dictionary or options.source or options.regex or options.capitalised):
            raise ConfigError("nothing to label with: give --dictionary, --source, --regex or --capitalised")
        if not any(spec.startswith("gliner:") for spec in options.source or ()):
            if options.labels:
                raise ConfigError("--labels are for GLiNER: give --source gliner:FOLDER, too")
            if options.gliner_threshold is not None:
                raise ConfigError("--gliner-threshold is for GLiNER: give --source gliner:FOLDER, too")

    def _add(self, source: Source) -> None:
        """Add a source other than a gazetteer: these apply the stop list themselves."""
        from lacuner.annotate import apply_stop_list

        self.sources.append(apply_stop_list(source, self.stop) if self.stop else source)

    def _add_source(self, spec: str, options: SourceOptions) -> None:
        from lacuner.annotate import rename_labels

        kind, colon, path = spec.partition(":")
        if kind not in SOURCE_KINDS or not colon or not path:
            kinds = ", ".join(f"{kind}:PATH" for kind in SOURCE_KINDS)
            raise ConfigError(f"--source is written {kinds}; not {spec!r}")
        name = Path(path).stem or Path(path).name
        source = SOURCE_KINDS[kind](Path(path), self._unique_name(name), options)
        self._add(rename_labels(source, self.mapping) if self.mapping else source)
        self.log(f"opened {spec}")

    def _add_rule(self, rule: str) -> None:
        from lacuner.annotate.patterns import parse_rule, regex_source

        label, pattern = parse_rule(rule)
        self._add(regex_source(label, pattern, name=self._unique_name(f"regex {label}".strip())))

    def _add_gazetteer(self, file: Path, options: SourceOptions) -> None:
        from lacuner.annotate import gazetteer_source, load_gazetteer, per_document_source

        gazetteer = load_gazetteer(
            file,
            label=options.label,
            mapping=self.mapping or None,
            format=options.dictionary_format,
            encoding=options.dictionary_encoding,
        )
        problems = [str(problem) for problem in gazetteer.problems]
        for problem in problems[:PROBLEMS_SHOWN]:
            self.log(problem)
        if len(problems) > PROBLEMS_SHOWN:
            self.log(f"{file}: {len(problems) - PROBLEMS_SHOWN:,} more problems, listed in the report (--report)")
        self.problems += problems
        matching: dict[str, Any] = {"case": options.case, "overlaps": options.overlaps, "spacing": options.spacing}
        stems = [path.stem for path in options.dictionary or []]
        name = file.stem if stems.count(file.stem) == 1 else str(file)
        sources = []
        if len(gazetteer.entries):
            self.entries.append(gazetteer.entries)
            sources.append(
                gazetteer_source(gazetteer.entries, name=self._unique_name(name), stop=self.stop, **matching)
            )
        if gazetteer.by_document:
            name = self._unique_name(f"{name}, by document")
            sources.append(per_document_source(gazetteer.by_document, name=name, stop=self.stop, **matching))
            self.documents.setdefault(file, set()).update(gazetteer.by_document)
        self.sources += sources
        self.log(f"read {file}: {gazetteer.describe_counts(len(gazetteer))}{_format_unmatched(sources)}")

    def write_gazetteer(self, out: Path) -> None:
        """Write the entries of all gazetteers beside the labels, for a tagger that is trained on them."""
        from lacuner.models.gazetteer import TaggerGazetteer
        from lacuner.models.sidecar import sidecar, sidecar_content
        from lacuner.scale.locations import write_file

        if out == STANDARD_STREAM:
            if self.entries:
                self.log("no gazetteer is written beside standard output: name it when you train (--dictionary)")
            return
        if not self.entries:
            sidecar(out).unlink(missing_ok=True)  # of earlier labels in the same file
            return
        options = self.options
        gazetteer = TaggerGazetteer(self.entries[0], case=options.case, spacing=options.spacing, stop=self.stop)
        for entries in self.entries[1:]:
            gazetteer = gazetteer.extend(entries)
        write_file(sidecar(out), sidecar_content(gazetteer, out))
        self.log(f"wrote {sidecar(out)}: the gazetteer, for `lacuner train`")

    def _unique_name(self, name: str) -> str:
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


def _format_unmatched(sources: list[Source]) -> str:
    """How many entries are never matched, and why."""
    counts = {
        "stopped": sum(source.stopped for source in sources),
        "empty after normalising": sum(source.empty for source in sources),
    }
    text = ", ".join(f"{skipped:,} {name}" for name, skipped in counts.items() if skipped)
    return text and f"; {text}"
