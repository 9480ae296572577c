"""Regular expressions as a labelling source, with a time limit: a careless pattern can take years on one sentence.

The `regex` library understands the patterns of Python's `re`, which has no time limit.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import regex

from lacuner.annotate.gazetteer.files import read_file
from lacuner.annotate.sources import Source, Triple, function_source
from lacuner.data import Document
from lacuner.errors import ConfigError, LacunerError

TIMEOUT = 5.0
"""Seconds that a pattern may take per document, and per million characters of a longer one."""

MAX_FILE = 16 << 20
"""Bytes of a file of patterns."""


class Pattern(NamedTuple):
    """A compiled pattern, and the label of what it matches."""

    label: str
    pattern: "regex.Pattern[str]"

    @property
    def group(self) -> str | int:
        """The group that is the entity: the one of this name, or the whole match."""
        return "entity" if "entity" in self.pattern.groupindex else 0


def regex_source(label: str, pattern: str, *, name: str | None = None, timeout: float = TIMEOUT) -> Source:
    """Label the matches of a regular expression, or of its group `entity` if it has one. No label: unsure spans.

    `timeout` is in seconds per document, and per million characters of a longer one.

    >>> source = regex_source("YEAR", r"born in (?P<entity>[0-9]{4})")
    >>> [span.key for span in source.find(Document("1", "born in 1912")).spans]
    [(8, 12, 'YEAR')]
    """
    name = f"regex {label}".strip() if name is None else name
    return patterns_source(name, [compile_pattern(label, pattern)], timeout=timeout)


def patterns_source(name: str, patterns: Iterable[Pattern], *, timeout: float = TIMEOUT) -> Source:
    """One source of several patterns. Of overlapping matches the longest is kept, as for any source.

    >>> patterns = [compile_pattern("YEAR", "[0-9]{4}"), compile_pattern("PLACE", "(?i)halden")]
    >>> source = patterns_source("patterns", patterns)
    >>> [span.key for span in source.find(Document("1", "Halden 1912")).spans]
    [(7, 11, 'YEAR'), (0, 6, 'PLACE')]
    """
    return function_source(name, partial(_find_patterns, tuple(patterns), timeout))


def compile_pattern(label: str, pattern: str) -> Pattern:
    """A pattern, or an error that says what is wrong with it.

    >>> compile_pattern("YEAR", "[0-9]{4}").group
    0
    """
    try:
        return Pattern(label, regex.compile(pattern))
    except (regex.error, RecursionError, OverflowError, MemoryError) as error:
        problem = f"the pattern {pattern!r} of {label or 'unsure'} is not a regular expression ({error})"
        raise ConfigError(problem) from error


def _find_patterns(patterns: Sequence[Pattern], timeout: float, doc: Document) -> list[Triple]:
    triples = []
    for label, pattern in patterns:
        group = Pattern(label, pattern).group
        try:
            matches = pattern.finditer(doc.text, timeout=timeout * max(1.0, len(doc.text) / 1e6))
            offsets = [match.span(group) for match in matches]
        except TimeoutError as error:
            problem = f"the pattern {pattern.pattern!r} of {label or 'unsure'} took longer than {timeout:g} s"
            hint = "repetitions inside repetitions, like (a+)+, take exponential time: simplify it"
            raise ConfigError(f"document {doc.id!r}: {problem}; {hint}") from error
        triples += [(start, end, label) for start, end in offsets if 0 <= start < end]
    return triples


def parse_rule(rule: str) -> tuple[str, str]:
    """Label and pattern of a rule that is written `LABEL=PATTERN`; the label may be empty.

    >>> parse_rule("YEAR=[0-9]{4}"), parse_rule("=Mr[.] [A-Z][a-z]+")
    (('YEAR', '[0-9]{4}'), ('', 'Mr[.] [A-Z][a-z]+'))
    """
    label, _, pattern = rule.partition("=")
    if not pattern:
        raise ConfigError(f"a pattern is written LABEL=PATTERN, not {rule!r}")
    return label.strip(), pattern


def read_patterns(path: str | PathLike[str]) -> list[Pattern]:
    """Read a file of patterns: one `LABEL=PATTERN` per line; empty lines and those that start with # are skipped.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "patterns.txt"
    >>> _ = file.write_text("# years\\nYEAR=[0-9]{4}\\n")
    >>> [pattern.label for pattern in read_patterns(file)]
    ['YEAR']
    """
    file = Path(path)
    try:
        text = read_file(file, MAX_FILE).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError("this file of patterns is not UTF-8", file=file) from error
    patterns = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        if not line.strip() or line.startswith("#"):
            continue
        try:
            patterns.append(compile_pattern(*parse_rule(line)))
        except LacunerError as error:
            raise ConfigError(error.problem, file=file, line=number) from error
    if not patterns:
        raise ConfigError("there is no pattern in this file", file=file)
    return patterns
