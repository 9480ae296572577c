"""Labelling sources: named functions that look at a document and say what they see.

A source that says nothing about a place abstains there; silence is never a vote against anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from lacuner.annotate.capitalised import capitalised_phrases
from lacuner.annotate.gazetteer.entries import Entry
from lacuner.annotate.matching.matcher import Hit, Matcher, Overlaps
from lacuner.annotate.matching.terms import Case, Spacing, normalise_surface
from lacuner.data import Document, Span
from lacuner.errors import ConfigError, GazetteerError

Triple = tuple[int, int, str]
"""Start, end, label; an empty label if nobody knows of which type it is."""

STOPPED, EMPTY = "on the stop list", "of invisible characters"
"""Why an entry is not looked for."""


class SourceOutput(NamedTuple):
    """What a source has to say about a document."""

    spans: Sequence[Span] = ()
    unsure: Sequence[Span] = ()
    choices: Sequence[tuple[Span, ...]] = ()
    """Where an entry has several labels: a span a label, in the order of the dictionary."""
    misfits: Sequence[Span] = ()
    """What does not fit the words of the document."""
    entries: Sequence[int] = ()
    """The entries of the source's dictionary behind spans and choices, each as often as it was found."""
    flat: bool = False
    """Whether it is certain that no two of the spans and choices overlap."""


@dataclass(frozen=True, slots=True)
class Source:
    """A named labelling function."""

    name: str
    find: Callable[[Document], SourceOutput]
    entries: Sequence[Entry] = ()
    """The dictionary that `SourceOutput.entries` speaks of."""
    starts: Sequence[int] = ()
    """Where the lists of the documents begin in `entries`, if each has its own."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """How many of its entries are not looked for, and why."""


def gazetteer_source(
    entries: Iterable[Entry],
    *,
    name: str = "dictionary",
    case: Case = "smart",
    overlaps: Overlaps = "longest",
    stop: Iterable[str] = (),
    spacing: Spacing = "given",
) -> Source:
    """What a dictionary knows. The settings are those of `Matcher`; `spacing` is only for documents with given words.

    Why `given` is the default: on BC5CDR (test part, 2,482 entries, exact case) it gives P/R/F1 86.1/51.4/64.4, the
    numbers that are usually quoted. Dictionary and test part were tokenised in different ways, `5-FU` here and `5 - FU`
    there, `Parkinson 's` here and `Parkinson ' s` there; `tokens` sees through that, and gives 86.3/52.5/65.3.
    """
    entries = entries if isinstance(entries, Sequence) else list(entries)
    find = _InDictionary(name, partial(Matcher, entries, case=case, overlaps=overlaps, stop=frozenset(stop)), spacing)
    terms = find.matcher(spacing).terms
    return Source(name, find, entries, skipped=_skipped(len(terms.stopped), len(terms.empty)))


def _skipped(stopped: int, empty: int) -> dict[str, int]:
    skipped = {STOPPED: stopped, EMPTY: empty}
    return {reason: times for reason, times in skipped.items() if times}


class _InDictionary:
    """Looks into one dictionary. A second matcher, for documents of the other kind, is made if there are such."""

    def __init__(self, name: str, make: Callable[..., Matcher], spacing: Spacing) -> None:
        self.name, self.make, self.spacing = name, make, spacing
        self.matchers: dict[Spacing, Matcher] = {}

    def matcher(self, spacing: Spacing) -> Matcher:
        if spacing not in self.matchers:
            self.matchers[spacing] = self.make(spacing=spacing)
        return self.matchers[spacing]

    def __call__(self, doc: Document) -> SourceOutput:
        if doc.words is None:
            matcher = self.matcher("given")
            return _found(matcher, self.name, doc.text, matcher.hits(doc.text))
        matcher = self.matcher(self.spacing)
        hits, misfits = matcher.hits_in_words(doc.text, doc.words)
        found = _found(matcher, self.name, doc.text, hits)
        if not misfits:
            return found
        others = _found(matcher, self.name, doc.text, misfits)
        return found._replace(misfits=[*others.spans, *(choice[0] for choice in others.choices)])


def _found(matcher: Matcher, name: str, text: str, hits: list[Hit]) -> SourceOutput:
    """Hits as spans."""
    terms = matcher.terms
    entry_of, labels, weights = terms.entry_of, terms.labels, terms.weights
    flat = matcher.overlaps == "longest"
    entries = [entry_of[term] for term, _, _ in hits]
    if not weights and (terms.all_single or min(entries, default=0) >= 0):  # nearly always
        # Span(...) itself takes twice as long, and this is the one place where that can be felt
        label_of = terms.label_of
        spans = [_new(Span, (start, end, label_of[term], None, name)) for term, start, end in hits]
        return SourceOutput(spans, (), (), (), entries, flat)
    spans, entries = [], []
    choices: list[tuple[Span, ...]] = []
    for term, start, end in hits:
        several = terms.entries_of(term, text[start:end])
        entries += several
        made = [Span(start, end, labels[entry], weights[entry] if weights else None, name) for entry in several]
        if len(made) > 1:
            choices.append(tuple(made))
        else:
            spans += made
    return SourceOutput(spans, (), choices, (), entries, flat)


_new = tuple.__new__


def per_document_source(
    terms: Mapping[str, Sequence[Entry]],
    *,
    name: str = "document terms",
    case: Case = "smart",
    overlaps: Overlaps = "longest",
    stop: Iterable[str] = (),
    spacing: Spacing = "given",
) -> Source:
    """What a document's own list of terms knows; documents without a list have none."""
    everything = [entry for entries in terms.values() for entry in entries]
    starts = dict(zip(terms, accumulate(map(len, terms.values()), initial=0), strict=False))
    find = _InOwnTerms(name, terms, starts, case, overlaps, frozenset(stop), spacing)
    stopped = {normalise_surface(term, True, spacing) for term in find.stop}
    forms = [normalise_surface(entry.surface, True, spacing) for entry in everything]
    skipped = _skipped(sum(form in stopped for form in forms if form), sum(not form for form in forms))
    return Source(name, find, everything, tuple(starts.values()), skipped)


@dataclass(frozen=True, slots=True)
class _InOwnTerms:
    name: str
    terms: Mapping[str, Sequence[Entry]]
    starts: Mapping[str, int]
    case: Case
    overlaps: Overlaps
    stop: frozenset[str]
    spacing: Spacing

    def __call__(self, doc: Document) -> SourceOutput:
        entries = self.terms.get(doc.id)
        if not entries:
            return SourceOutput()
        make = partial(Matcher, entries, case=self.case, overlaps=self.overlaps, stop=self.stop)
        found = _InDictionary(self.name, make, self.spacing)(doc)
        first = self.starts[doc.id]
        return found._replace(entries=[first + entry for entry in found.entries])


def regex_source(label: str, pattern: str | re.Pattern[str], *, name: str | None = None) -> Source:
    """Whatever a regular expression matches; if it has a group called `entity`, only that. An empty label: unsure."""
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ConfigError(
            f"the pattern {pattern!r} of {label or 'unsure'} is not a regular expression ({error})"
        ) from error
    group = "entity" if "entity" in compiled.groupindex else 0
    name = f"regex {label}".strip() if name is None else name
    return Source(name, _Outside(name, _Regex(label, compiled, group)))


@dataclass(frozen=True, slots=True)
class _Regex:
    label: str
    pattern: re.Pattern[str]
    group: str | int

    def __call__(self, doc: Document) -> list[Triple]:
        places = (match.span(self.group) for match in self.pattern.finditer(doc.text))
        return [(start, end, self.label) for start, end in places if start < end]


def function_source(name: str, function: Callable[[Document], Iterable[Triple | Span] | None]) -> Source:
    """Whatever a function finds: spans, or triples of start, end and label; an empty label: unsure. None: abstains."""
    return Source(name, _Outside(name, function))


def capitalised_source(*, name: str = "capitalised") -> Source:
    """Capitalised phrases, of which nobody knows the type. A single word at the start of a sentence is none."""
    return Source(name, _Outside(name, capitalised_phrases))


@dataclass(frozen=True, slots=True)
class _Outside:
    """Checks what a function of somebody else's gives."""

    name: str
    function: Callable[[Document], Iterable[Triple | Span] | None]

    def __call__(self, doc: Document) -> SourceOutput:
        spans: list[Span] = []
        unsure: list[Span] = []
        misfits: list[Span] = []
        starts = None if doc.words is None else {start for start, _ in doc.words}
        ends = None if doc.words is None else {end for _, end in doc.words}
        for item in self.function(doc) or ():
            span = self._span(doc, item)
            if starts is not None and ends is not None and not (span.start in starts and span.end in ends):
                misfits.append(span)
            else:
                (spans if span.label else unsure).append(span)
        return SourceOutput(spans, unsure, (), misfits)

    def _span(self, doc: Document, item: Triple | Span) -> Span:
        try:
            start, end, label = item[:3]
            good = isinstance(start, int) and isinstance(end, int) and isinstance(label, str)
        except (TypeError, ValueError):
            good = False
        if not good or not 0 <= start < end <= len(doc.text):
            raise ConfigError(
                f"the source {self.name!r} gave {item!r}, which is no start, end and label in this text",
                document=doc.id,
            )
        return Span(start, end, label, item.score if isinstance(item, Span) else None, self.name)


def apply_stop_list(source: Source, stop: Iterable[str]) -> Source:
    """The same source, deaf to the terms of a stop list (whatever their case). Dictionaries have their own `stop`."""
    return Source(
        source.name, _Without(source.find, frozenset(normalise_surface(term, True, "given") for term in stop))
    )


@dataclass(frozen=True, slots=True)
class _Without:
    find: Callable[[Document], SourceOutput]
    stop: frozenset[str]

    def __call__(self, doc: Document) -> SourceOutput:
        found = self.find(doc)
        lists = [
            [span for span in spans if self._stays(doc, span)] for spans in (found.spans, found.unsure, found.misfits)
        ]
        choices = [choice for choice in found.choices if self._stays(doc, choice[0])]
        return SourceOutput(lists[0], lists[1], choices, lists[2], (), found.flat)

    def _stays(self, doc: Document, span: Span) -> bool:
        return normalise_surface(doc.text[span.start : span.end], True, "given") not in self.stop


def read_stop_list(path: str | PathLike[str]) -> frozenset[str]:
    """A term a line; what follows a tab is a remark."""
    try:
        text = Path(path).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror or str(error)
        raise GazetteerError(f"cannot read this stop list: {reason}", file=path) from error
    return frozenset(term for line in text.split("\n") if (term := line.split("\t")[0].strip()))
