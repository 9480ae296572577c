"""From what several sources say to one weak layer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from lacuner.annotate.intervals import DisjointIntervals, IntervalSet
from lacuner.annotate.matching.matcher import Overlaps
from lacuner.annotate.sources import Source, SourceOutput
from lacuner.data import Document, Span, sort_spans
from lacuner.errors import ConfigError

By = Literal["priority", "vote"]
Ambiguous = Literal["unsure", "first", "drop"]

MISFIT = "does not fit the words"
SHORTER = "overlaps a longer match"
RANKED = "overlaps a source with priority"
OUTVOTED = "outvoted"
SETTLED = "ruled out by another source"
AMBIGUOUS = "has several labels"


class Layer(NamedTuple):
    """What the sources say together, what each of them said, and what of that was not kept."""

    spans: tuple[Span, ...]
    unsure: tuple[Span, ...]
    lost: Sequence[tuple[Span, str]]
    found: Sequence[SourceOutput]


@dataclass(slots=True)
class LabelModel:
    """Combine the spans of several sources into one layer of weak labels. Call it with a document.

    `by`: where sources disagree, the earlier one wins (`priority`) or the majority does (`vote`; ties go to the longer
    span, and a span's score is the share of the sources with a span there that voted for it). A source without a span
    at a place abstains there.
    `ambiguous`: a match with several labels, or a tied vote, becomes one unsure span per label (`unsure`), gets the
    first label (`first`) or is dropped (`drop`). A later source, or the other votes, may settle it first.
    `overlaps`: of the overlapping spans of one source, keep the `longest` or `all`.
    """

    sources: Sequence[Source]
    by: By = "priority"
    ambiguous: Ambiguous = "unsure"
    overlaps: Overlaps = "longest"

    def __post_init__(self) -> None:
        for name, allowed in (("by", By), ("ambiguous", Ambiguous), ("overlaps", Overlaps)):
            if getattr(self, name) not in get_args(allowed):
                raise ConfigError(
                    f"{name} is {getattr(self, name)!r}, but can only be {' or '.join(get_args(allowed))}"
                )
        names = Counter(source.name for source in self.sources)
        if not names:
            raise ConfigError("there is no source to label with")
        if max(names.values()) > 1:
            raise ConfigError(f"two sources are called {names.most_common(1)[0][0]!r}")

    def __call__(self, doc: Document) -> Layer:
        found = [source.find(doc) for source in self.sources]
        if len(found) == 1 and found[0].flat and not found[0].choices:  # nearly always
            spans, unsure, _, misfits, *_ = found[0]
            lost = [(span, MISFIT) for span in misfits]
            return Layer(tuple(spans), sort_spans(unsure) if unsure else (), lost, found)
        draft = _Draft(self.ambiguous, self.overlaps)
        draft.lost.extend((span, MISFIT) for one in found for span in one.misfits)
        if self.by == "priority":
            _rank(found, draft)
        else:
            _vote(found, draft)
        unsure = draft.unsure + _open_questions([span for one in found for span in one.unsure], draft)
        return Layer(sort_spans(draft.spans), sort_spans(unsure), draft.lost, found)


class _Draft:
    """A layer in the making."""

    def __init__(self, ambiguous: Ambiguous, overlaps: Overlaps) -> None:
        self.ambiguous, self.overlaps = ambiguous, overlaps
        self.spans: list[Span] = []
        self.unsure: list[Span] = []
        self.lost: list[tuple[Span, str]] = []

    def settle(self, choice: Sequence[Span]) -> None:
        """One span is kept; of several, which have different labels, it depends."""
        if len(choice) == 1:
            self.spans.append(choice[0])
            return
        if self.ambiguous == "unsure":
            self.unsure.extend(choice)
            return
        kept = choice[0] if self.ambiguous == "first" else None
        if kept is not None:
            self.spans.append(kept)
        self.lost.extend((span, AMBIGUOUS) for span in choice if span is not kept)


Claim = tuple[Span, ...]
"""What a source says about a range: one span, or one a label."""


def _claims(found: SourceOutput, draft: _Draft) -> list[Claim]:
    """The claims of one source, of which, if so wanted, no two overlap."""
    by_range: dict[tuple[int, int], Claim] = {}
    for span in found.spans:
        others = by_range.get((span.start, span.end), ())
        if all(other.label != span.label for other in others):
            by_range[span.start, span.end] = (*others, span)
    by_range.update(((choice[0].start, choice[0].end), choice) for choice in found.choices)
    claims = list(by_range.values())
    if found.flat or draft.overlaps == "all":
        return claims
    return _longest(claims, draft, SHORTER)


def _longest(claims: list[Claim], draft: _Draft, reason: str) -> list[Claim]:
    claims.sort(key=lambda claim: (claim[0].start - claim[0].end, claim[0].start))
    kept: list[Claim] = []
    taken = DisjointIntervals()
    for claim in claims:
        start, end, *_ = claim[0]
        if taken.first_overlap(start, end):
            draft.lost.extend((span, reason) for span in claim)
        else:
            taken.add(start, end)
            kept.append(claim)
    return kept


def _rank(found: Sequence[SourceOutput], draft: _Draft) -> None:
    """Earlier sources go first; where one could not decide between labels, a later one may."""
    kept: dict[tuple[int, int], Claim] = {}
    taken = DisjointIntervals()
    for one in found:
        for claim in _claims(one, draft):
            place = claim[0].start, claim[0].end
            rival = taken.first_overlap(*place) if draft.overlaps == "longest" else place if place in kept else None
            if rival is None:
                kept[place] = claim
                if draft.overlaps == "longest":
                    taken.add(*place)
                continue
            shared = {span.label for span in kept[rival]} & {span.label for span in claim}
            if rival == place and shared:  # both agree, or one of them narrows down what the other said
                ruled_out = [span for span in (*kept[place], *claim) if span.label not in shared]
                draft.lost.extend((span, SETTLED) for span in ruled_out)
                kept[place] = tuple(span for span in kept[place] if span.label in shared)
            else:
                draft.lost.extend((span, RANKED) for span in claim)
    for claim in kept.values():
        draft.settle(claim)


def _vote(found: Sequence[SourceOutput], draft: _Draft) -> None:
    """Each source has one vote a range, divided between the labels it could not decide between."""
    ballots: dict[tuple[int, int], dict[str, list[tuple[float, Span]]]] = {}
    speakers: list[IntervalSet] = []
    for one in found:
        claims = _claims(one, draft)
        speakers.append(IntervalSet((claim[0].start, claim[0].end) for claim in claims))
        for claim in claims:
            ballot = ballots.setdefault((claim[0].start, claim[0].end), {})
            for span in claim:
                ballot.setdefault(span.label, []).append((1 / len(claim), span))
    results: list[tuple[float, Claim]] = []
    for place, ballot in ballots.items():
        spoke = sum(speaker.overlaps(*place) for speaker in speakers)
        votes = {label: sum(vote for vote, _ in given) for label, given in ballot.items()}
        most = max(votes.values())
        winners = [label for label in ballot if votes[label] > most - 1e-9]
        claim = tuple(
            Span(*place, label, votes[label] / spoke, "+".join(span.source or "" for _, span in ballot[label]))
            for label in winners
        )
        draft.lost.extend((span, OUTVOTED) for label in ballot if label not in winners for _, span in ballot[label])
        results.append((most, claim))
    results.sort(key=lambda result: (-result[0], result[1][0].start - result[1][0].end, result[1][0].start))
    taken = DisjointIntervals()
    for _, claim in results:
        if draft.overlaps == "longest":
            if taken.first_overlap(claim[0].start, claim[0].end):
                draft.lost.extend((span, OUTVOTED) for span in claim)
                continue
            taken.add(claim[0].start, claim[0].end)
        draft.settle(claim)


def _open_questions(candidates: list[Span], draft: _Draft) -> list[Span]:
    """The unsure spans of the sources, but those inside a span, which are answered, and repetitions."""
    known = {(span.start, span.end) for span in draft.unsure}
    answers = IntervalSet((span.start, span.end) for span in draft.spans)
    kept: dict[tuple[int, int, str], Span] = {}
    for span in candidates:
        if not answers.covers(span.start, span.end) and not (span.label == "" and (span.start, span.end) in known):
            kept.setdefault(span[:3], span)
    return list(kept.values())
