"""Labelling functions: named sources of weak labels, each a function from a document to spans.

A source without a span at a place abstains there. It never votes against a span of another source.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from os import PathLike
from pathlib import Path
from typing import NamedTuple, Protocol

from lacuner.annotate.capitalised import capitalised_phrases
from lacuner.annotate.gazetteer.entries import Entry
from lacuner.annotate.gazetteer.files import read_file
from lacuner.annotate.matching.automaton import Hit
from lacuner.annotate.matching.matcher import Matcher, Overlaps
from lacuner.annotate.matching.terms import MAX_LABELS, Case, Spacing, normalise_surface
from lacuner.data import Document, Span
from lacuner.errors import ConfigError, GazetteerError

Triple = tuple[int, int, str]
"""Start, end, label; an empty label if the type is unknown."""

MAX_STOP_LIST = 1 << 26
"""Bytes of a stop list."""

LabellingFunction = Callable[[Document], Iterable[Triple | Span] | None]


class SourceOutput(NamedTuple):
    """The spans that a source finds in a document.

    >>> SourceOutput(spans=[Span(0, 4, "PER")]).unsure
    ()
    """

    spans: Sequence[Span] = ()
    unsure: Sequence[Span] = ()
    ambiguous: Sequence[tuple[Span, ...]] = ()
    """Matches of entries with several labels: one span per label, in gazetteer order."""
    misaligned: Sequence[Span] = ()
    """Spans that do not start and end with a word of the document."""
    entries: Sequence[int] = ()
    """The matched entries, as positions in `Source.entries`, once per match."""
    flat: bool = False
    """Whether `spans` and `ambiguous` are known not to overlap."""


@dataclass(frozen=True, slots=True)
class Source:
    """A named labelling function.

    >>> Source("nothing", lambda doc: SourceOutput()).find(Document("1", "a text")).spans
    ()
    """

    name: str
    find: Callable[[Document], SourceOutput]
    entries: Sequence[Entry] = ()
    """The gazetteer behind `SourceOutput.entries`."""
    starts: Sequence[int] = ()
    """If each document has its own gazetteer: where each of them starts in `entries`."""
    stopped: int = 0
    """Number of entries that are on the stop list."""
    empty: int = 0
    """Number of entries that have only white space and invisible characters."""
    find_batch: Callable[[Sequence[Document]], list[SourceOutput]] | None = None
    """`find` for several documents at once, for models that are faster on batches."""
    forkable: bool = True
    """Whether it may run in worker processes. Models with threads of their own may not."""

    def find_all(self, docs: Sequence[Document]) -> list[SourceOutput]:
        """The spans in each of some documents."""
        return [self.find(doc) for doc in docs] if self.find_batch is None else self.find_batch(docs)


def gazetteer_source(
    entries: Iterable[Entry],
    *,
    name: str = "dictionary",
    case: Case = "smart",
    overlaps: Overlaps = "longest",
    stop: Iterable[str] = (),
    spacing: Spacing = "given",
) -> Source:
    """Match gazetteer entries. The options are those of `Matcher`; `spacing` applies to documents with given words.

    Why `given` is the default: on BC5CDR (test part, 2,482 entries, exact case) it gives P/R/F1 86.1/51.4/64.4, the
    numbers that are usually quoted. Gazetteer and test part were tokenised differently (`5-FU` and `5 - FU`,
    `Parkinson 's` and `Parkinson ' s`); `tokens` ignores that and gives 86.3/52.5/65.3.

    >>> source = gazetteer_source([Entry("aspirin", "Chemical")])
    >>> [span.key for span in source.find(Document("1", "Aspirin helps.")).spans]
    [(0, 7, 'Chemical')]
    """
    entries = entries if isinstance(entries, Sequence) else list(entries)
    build = partial(Matcher, entries, case=case, overlaps=overlaps, stop=frozenset(stop))
    find = _FindEntries(name, build, spacing)
    terms = find.matcher(spacing).terms
    return Source(name, find, entries, stopped=terms.stopped, empty=terms.empty)


class _FindEntries:
    """Finds the entries of one gazetteer. A matcher for the other spacing is built when a document needs it."""

    def __init__(self, name: str, build: Callable[..., Matcher], spacing: Spacing) -> None:
        self.name, self.build, self.spacing = name, build, spacing
        self.matchers: dict[Spacing, Matcher] = {}

    def matcher(self, spacing: Spacing) -> Matcher:
        if spacing not in self.matchers:
            self.matchers[spacing] = self.build(spacing=spacing)
        return self.matchers[spacing]

    def __call__(self, doc: Document) -> SourceOutput:
        if doc.words is None:
            matcher = self.matcher("given")
            return _to_output(matcher, self.name, doc.text, matcher.hits(doc.text))
        matcher = self.matcher(self.spacing)
        hits, misaligned = matcher.hits_in_words(doc.text, doc.words)
        output = _to_output(matcher, self.name, doc.text, hits)
        if not misaligned:
            return output
        others = _to_output(matcher, self.name, doc.text, misaligned)
        return output._replace(misaligned=[*others.spans, *others.unsure, *(spans[0] for spans in others.ambiguous)])


_new = tuple.__new__
"""Creates a span in half the time of `Span(...)`, which makes a difference in `_to_output` and nowhere else."""


def _to_output(matcher: Matcher, name: str, text: str, hits: list[Hit]) -> SourceOutput:
    """Convert hits to spans."""
    terms, flat = matcher.terms, matcher.overlaps == "longest"
    entry_of, labels, weights = terms.entry_of, terms.labels, terms.weights
    entries = [entry_of[term] for term, _, _ in hits]
    if not weights and min(entries, default=0) >= 0:  # the usual case: one entry per hit
        label_of = terms.label_of
        spans = [_new(Span, (start, end, label_of[term], None, name)) for term, start, end in hits]
        return SourceOutput(spans, entries=entries, flat=flat)
    spans, entries, ambiguous, unsure = [], [], [], []
    for term, start, end in hits:
        matched = terms.entries_of(term, text[start:end])
        entries += matched[:MAX_LABELS]
        per_label = [Span(start, end, labels[entry], weights[entry] if weights else None, name) for entry in matched]
        if len(per_label) > MAX_LABELS:
            unsure.append(Span(start, end, "", None, name))
        elif len(per_label) > 1:
            ambiguous.append(tuple(per_label))
        else:
            spans += per_label
    return SourceOutput(spans, unsure=unsure, ambiguous=ambiguous, entries=entries, flat=flat)


def per_document_source(
    entries: Mapping[str, Sequence[Entry]],
    *,
    name: str = "document terms",
    case: Case = "smart",
    overlaps: Overlaps = "longest",
    stop: Iterable[str] = (),
    spacing: Spacing = "given",
) -> Source:
    """Match each document's own list of entries, given by document id. The options are those of `gazetteer_source`.

    >>> source = per_document_source({"7": [Entry("red shoe", "Product")]})
    >>> len(source.find(Document("7", "A red shoe")).spans), len(source.find(Document("8", "A red shoe")).spans)
    (1, 0)
    """
    stop = frozenset(stop)
    every = [entry for own in entries.values() for entry in own]
    starts = dict(zip(entries, accumulate(map(len, entries.values()), initial=0), strict=False))
    build = partial(Matcher, case=case, overlaps=overlaps, stop=stop)
    find = partial(_find_own_entries, name, entries, starts, build, spacing)
    stop_forms = {normalise_surface(surface, True, spacing) for surface in stop}
    forms = [normalise_surface(entry.surface, True, spacing) for entry in every]
    stopped = sum(form in stop_forms for form in forms if form)
    return Source(name, find, every, tuple(starts.values()), stopped, empty=forms.count(""))


def _find_own_entries(
    name: str,
    entries: Mapping[str, Sequence[Entry]],
    starts: Mapping[str, int],
    build: Callable[..., Matcher],
    spacing: Spacing,
    doc: Document,
) -> SourceOutput:
    own = entries.get(doc.id)
    if not own:
        return SourceOutput()
    output = _FindEntries(name, partial(build, own), spacing)(doc)
    return output._replace(entries=[starts[doc.id] + entry for entry in output.entries])


def capitalised_source(*, name: str = "capitalised") -> Source:
    """Mark capitalised phrases as unsure, except for single words at the start of a sentence.

    >>> [span[:2] for span in capitalised_source().find(Document("1", "We met Mara Teel.")).unsure]
    [(7, 16)]
    """
    return function_source(name, capitalised_phrases)


def function_source(name: str, function: LabellingFunction) -> Source:
    """Label with any function from a document to spans, or triples of start, end and label. No label: unsure spans.

    The function may return None to abstain. Other models can be sources in this way.

    >>> source = function_source("titles", lambda doc: [(4, 8, "PER")] if doc.text.startswith("Dr. ") else None)
    >>> [span.key for span in source.find(Document("1", "Dr. Teel left.")).spans]
    [(4, 8, 'PER')]
    """
    return Source(name, partial(_find_by_function, name, function))


def _find_by_function(name: str, function: LabellingFunction, doc: Document) -> SourceOutput:
    return sort_output(name, doc, function(doc) or ())


class AnyTagger(Protocol):
    """Documents in, documents with predicted spans out: the tagger of a run, or anything that has this method."""

    def predict(self, docs: Iterable[Document]) -> Iterable[Document]: ...


def tagger_source(name: str, tagger: AnyTagger) -> Source:
    """Label with a trained tagger: what it predicts is weak labels. It runs on batches, in this process.

    >>> from lacuner.models.lookup import LookupTagger
    >>> source = tagger_source("earlier run", LookupTagger({"Halden": "PLACE"}))
    >>> source.find(Document("1", "Mara left Halden.")).spans
    [Span(start=10, end=16, label='PLACE', score=1.0, source='earlier run')]
    """

    def find_batch(docs: Sequence[Document]) -> list[SourceOutput]:
        # copies without labels: a tagger splits the words of a document and keeps them there
        predicted = tagger.predict([Document(doc.id, doc.text, doc.words) for doc in docs])
        return [sort_output(name, doc, tagged.spans) for doc, tagged in zip(docs, predicted, strict=True)]

    return batch_source(name, find_batch)


def batch_source(name: str, find_batch: Callable[[Sequence[Document]], list[SourceOutput]]) -> Source:
    """A source that labels several documents at once, and only in this process: a model."""
    return Source(name, lambda doc: find_batch([doc])[0], find_batch=find_batch, forkable=False)


def sort_output(name: str, doc: Document, items: Iterable[Triple | Span]) -> SourceOutput:
    """Spans of a document by kind: with a label, without one (unsure), or not aligned with the words."""
    spans: list[Span] = []
    unsure: list[Span] = []
    misaligned: list[Span] = []
    starts, ends = {start for start, _ in doc.words or ()}, {end for _, end in doc.words or ()}
    for item in items:
        span = _check_span(name, doc, item)
        if doc.words is not None and not (span.start in starts and span.end in ends):
            misaligned.append(span)
        else:
            (spans if span.label else unsure).append(span)
    return SourceOutput(spans, unsure, misaligned=misaligned)


def _check_span(name: str, doc: Document, item: Triple | Span) -> Span:
    try:
        start, end, label = item[:3]
        valid = isinstance(start, int) and isinstance(end, int) and isinstance(label, str)
    except (TypeError, ValueError):
        valid = False
    if not valid or not 0 <= start < end <= len(doc.text):
        problem = f"the source {name!r} gave {item!r}, which is not a start, end and label in this text"
        raise ConfigError(f"document {doc.id!r}: {problem}")
    return Span(start, end, label, item.score if isinstance(item, Span) else None, name)


def apply_stop_list(source: Source, stop: Iterable[str]) -> Source:
    """The same source without the spans of these surfaces, in any case. (`gazetteer_source` has its own `stop`.)

    >>> from lacuner.annotate.patterns import regex_source
    >>> source = apply_stop_list(regex_source("PLACE", "Halden|Moss"), ["moss"])
    >>> [span.key for span in source.find(Document("1", "Halden, Moss")).spans]
    [(0, 6, 'PLACE')]
    """
    return _transform(source, partial(_drop_stopped, frozenset(map(normalise_surface, stop))))


def rename_labels(source: Source, names: Mapping[str, str]) -> Source:
    """The same source with some labels renamed; the others stay as they are.

    >>> source = rename_labels(function_source("model", lambda doc: [(0, 4, "PER")]), {"PER": "PERSON"})
    >>> source.find(Document("1", "Mara left.")).spans[0].label
    'PERSON'
    """
    return _transform(source, partial(_rename, names))


def _rename(names: Mapping[str, str], doc: Document, output: SourceOutput) -> SourceOutput:
    def rename(spans: Iterable[Span]) -> list[Span]:
        return [span._replace(label=names.get(span.label, span.label)) for span in spans]

    return output._replace(
        spans=rename(output.spans),
        unsure=rename(output.unsure),
        ambiguous=[tuple(rename(spans)) for spans in output.ambiguous],
        misaligned=rename(output.misaligned),
    )


def _transform(source: Source, change: Callable[[Document, SourceOutput], SourceOutput]) -> Source:
    """The same source with its output changed."""

    def find(doc: Document) -> SourceOutput:
        return change(doc, source.find(doc))

    def find_batch(docs: Sequence[Document]) -> list[SourceOutput]:
        return [change(doc, output) for doc, output in zip(docs, source.find_all(docs), strict=True)]

    return Source(source.name, find, find_batch=find_batch, forkable=source.forkable)


def _drop_stopped(stop: frozenset[str], doc: Document, output: SourceOutput) -> SourceOutput:
    def is_kept(span: Span) -> bool:
        return normalise_surface(doc.text[span.start : span.end]) not in stop

    return SourceOutput(
        spans=list(filter(is_kept, output.spans)),
        unsure=list(filter(is_kept, output.unsure)),
        ambiguous=[spans for spans in output.ambiguous if is_kept(spans[0])],
        misaligned=list(filter(is_kept, output.misaligned)),
        flat=output.flat,
    )


def read_stop_list(path: str | PathLike[str]) -> frozenset[str]:
    """Read a stop list: one surface per line, and everything after a tab is a comment.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "stop.txt").write_text("Will\\ta common word\\nlead\\n")
    ...     sorted(read_stop_list(Path(folder, "stop.txt")))
    ['Will', 'lead']
    """
    file = Path(path)
    try:
        text = read_file(file, MAX_STOP_LIST).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise GazetteerError("this stop list is not UTF-8", file=file) from error
    return frozenset(surface for line in text.split("\n") if (surface := line.split("\t")[0].strip()))
