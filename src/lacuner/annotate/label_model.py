"""Label model: combine the spans of several sources into one layer of weak labels.

By priority, by vote, or by the accuracy of the sources, which `source_accuracy` estimates from their agreement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

from lacuner.annotate.matching.matcher import Overlaps
from lacuner.annotate.matching.terms import normalise_surface
from lacuner.annotate.source_accuracy import MIN_SOURCES, ClaimCounts, SourceAccuracy, fit_accuracy
from lacuner.annotate.sources import Source, SourceOutput
from lacuner.corpus.intervals import DisjointIntervals, IntervalSet
from lacuner.data import Document, Span, sort_spans
from lacuner.errors import ConfigError

By = Literal["priority", "vote", "model"]
Ambiguous = Literal["unsure", "first", "drop"]

# Why a span of a source is not in the layer:
MISALIGNED = "does not fit the words"
SHORTER = "overlaps a longer match"
LOWER_PRIORITY = "overlaps a source with priority"
OUTVOTED = "outvoted"
RULED_OUT = "ruled out by another source"
AMBIGUOUS = "has several labels"

MIN_PROBABILITY = 0.2
"""Less probable spans are unsure, if sources are combined by model. Chosen on the training part of bc5cdr."""

_OTHER_WAYS = "combine the sources by --by vote or --by priority"


class Layer(NamedTuple):
    """The combined labels of a document, the dropped spans with their reasons, and the output of each source."""

    spans: tuple[Span, ...]
    unsure: tuple[Span, ...]
    lost: Sequence[tuple[Span, str]]
    outputs: Sequence[SourceOutput]


@dataclass(slots=True)
class LabelModel:
    """Combines the spans of several sources into one layer of weak labels. Call it with a document.

    `by`: where sources disagree, the earlier one wins (`priority`) or the majority does (`vote`; ties go to the longer
    span, and the score is the share of votes among the sources with a span there). A source without a span at a place
    abstains there. With `model`, the score is the probability that the surface is a name, given the sources that claim
    it anywhere. Less than `min_probability` makes a span unsure. Of probable spans that overlap, the one with more
    votes wins, then the longer one. The model must be fitted first (`fit`), to the documents or a part of them.
    `ambiguous`: a match with several labels, or a tied vote, becomes one unsure span per label (`unsure`), gets the
    first label (`first`) or is dropped (`drop`), unless a later source or the other votes decide.
    `overlaps`: of the overlapping spans of one source, keep the `longest` or `all`.

    >>> from lacuner.annotate import regex_source
    >>> model = LabelModel([regex_source("PER", "Mara Teel"), regex_source("LOC", "Teel|Moss")])
    >>> [span.key for span in model(Document("1", "Mara Teel in Moss")).spans]
    [(0, 9, 'PER'), (13, 17, 'LOC')]
    """

    sources: Sequence[Source]
    by: By = "priority"
    ambiguous: Ambiguous = "unsure"
    overlaps: Overlaps = "longest"
    min_probability: float = MIN_PROBABILITY
    accuracy: SourceAccuracy | None = None
    """What `fit` has estimated."""

    def __post_init__(self) -> None:
        for name, options in (("by", By), ("ambiguous", Ambiguous), ("overlaps", Overlaps)):
            value, allowed = getattr(self, name), get_args(options)
            if value not in allowed:
                raise ConfigError(f"{name} is {value!r}, but must be {' or '.join(allowed)}")
        names = Counter(source.name for source in self.sources)
        if not names:
            raise ConfigError("there is no source to label with: give a gazetteer or sources")
        if max(names.values()) > 1:
            raise ConfigError(f"two sources are called {names.most_common(1)[0][0]!r}")
        if not 0 <= self.min_probability <= 1:
            raise ConfigError(f"--min-probability is from 0 to 1, not {self.min_probability:g}")
        if self.by == "model" and len(names) < MIN_SOURCES:
            raise ConfigError(f"--by model needs at least {MIN_SOURCES} sources; {_OTHER_WAYS}")

    def __call__(self, doc: Document) -> Layer:
        return self.combine(doc, [source.find(doc) for source in self.sources])

    def fit(self, docs: Sequence[Document], outputs: Sequence[Sequence[SourceOutput]]) -> SourceAccuracy:
        """Estimate the accuracy of the sources from what they found in some documents."""
        claims = ClaimCounts(len(self.sources))
        for doc, own_outputs in zip(docs, outputs, strict=True):
            for place, ballot in self._draft().ballots(own_outputs).items():
                surface = normalise_surface(doc.text[place[0] : place[1]])
                for label, votes in ballot.items():
                    claims.add(surface, label, self._mask(votes))
        self.accuracy = fit_accuracy([source.name for source in self.sources], claims)
        if claims.names and not self.accuracy.sources:
            problem = f"--by model estimates accuracy from agreement, but no label has spans of {MIN_SOURCES} sources"
            raise ConfigError(f"{problem}: rename labels (--map), or {_OTHER_WAYS}")
        return self.accuracy

    def _mask(self, votes: Sequence[Vote]) -> tuple[bool, ...]:
        voters = {vote.source for vote in votes}
        return tuple(source in voters for source in range(len(self.sources)))

    def _draft(self) -> _Draft:
        return _Draft(self.ambiguous, self.overlaps == "longest", [], [], [])

    def label(self, docs: Sequence[Document]) -> list[Layer]:
        """The labels of several documents: models are faster on batches."""
        return [self.combine(doc, outputs) for doc, outputs in zip(docs, self.find_all(docs), strict=True)]

    def find_all(self, docs: Sequence[Document]) -> list[tuple[SourceOutput, ...]]:
        """What each source finds in each document."""
        return list(zip(*[source.find_all(docs) for source in self.sources], strict=True))

    def combine(self, doc: Document, outputs: Sequence[SourceOutput]) -> Layer:
        """One layer of labels from what the sources found in a document."""
        lost = [(span, MISALIGNED) for output in outputs for span in output.misaligned]
        if len(outputs) == 1 and outputs[0].flat and not outputs[0].ambiguous:  # nothing to combine: the usual case
            unsure = outputs[0].unsure
            return Layer(tuple(outputs[0].spans), sort_spans(unsure) if unsure else (), lost, outputs)
        draft = self._draft()
        if self.by == "priority":
            draft.combine_by_priority(outputs)
        elif self.by == "vote":
            draft.combine_by_vote(outputs)
        else:
            if self.accuracy is None:
                raise ValueError("a label model by accuracy must be fitted before it combines spans")
            draft.combine_by_model(doc, outputs, self)
        lost += draft.lost
        draft.add_unsure([span for output in outputs for span in output.unsure])
        return Layer(sort_spans(draft.spans), sort_spans(draft.unsure), lost, outputs)


Claim = tuple[Span, ...]
"""What a source says about a place: one span, or one per label if it is ambiguous."""


class Vote(NamedTuple):
    """The vote of a source for a label at a place: its number, its share of one vote, and its span."""

    source: int
    share: float
    span: Span


def _place(claim: Claim) -> tuple[int, int]:
    return claim[0].start, claim[0].end


@dataclass(slots=True)
class _Draft:
    """A layer that is being combined."""

    ambiguous: Ambiguous
    flat: bool
    spans: list[Span]
    unsure: list[Span]
    lost: list[tuple[Span, str]]
    elected: list[tuple[float, Claim]] = field(default_factory=list)
    """Rank and claim of the winner at each place."""

    def combine_by_priority(self, outputs: Sequence[SourceOutput]) -> None:
        """Earlier sources win; where one has several labels, a later one may decide between them."""
        kept: dict[tuple[int, int], Claim] = {}
        taken = DisjointIntervals()
        for output in outputs:
            for claim in self._claims(output):
                place = _place(claim)
                rival = taken.first_overlap(*place) if self.flat else place if place in kept else None
                if rival is None:
                    kept[place] = claim
                    if self.flat:
                        taken.add(*place)
                    continue
                shared = {span.label for span in kept[rival]} & {span.label for span in claim}
                if rival == place and shared:  # they agree, or one narrows down the labels of the other
                    self.lost += [(span, RULED_OUT) for span in (*kept[place], *claim) if span.label not in shared]
                    kept[place] = tuple(span for span in kept[place] if span.label in shared)
                else:
                    self.lost += [(span, LOWER_PRIORITY) for span in claim]
        for claim in kept.values():
            self._keep(claim)

    def combine_by_vote(self, outputs: Sequence[SourceOutput]) -> None:
        """Each source has one vote per place, divided among its labels if it is ambiguous."""
        voters: list[IntervalSet] = []
        ballots = self.ballots(outputs, voters)
        for place, ballot in ballots.items():
            number = sum(voter.overlaps(*place) for voter in voters)
            votes = {label: sum(vote.share for vote in cast) for label, cast in ballot.items()}
            shares = {label: number_of_votes / number for label, number_of_votes in votes.items()}
            self._elect(place, ballot, shares, rank=max(votes.values()))
        self._keep_elected()

    def combine_by_model(self, doc: Document, outputs: Sequence[SourceOutput], model: LabelModel) -> None:
        """The most probable spans, by the accuracy of the sources; improbable ones are unsure."""
        assert model.accuracy is not None
        for place, ballot in self.ballots(outputs).items():
            surface = normalise_surface(doc.text[place[0] : place[1]])
            probs = {
                label: model.accuracy.probability(surface, label, model._mask(votes)) for label, votes in ballot.items()
            }
            best = max(probs.values())
            # boundaries are not part of the model: of two probable spans, the one that more sources give is kept
            votes = max(len(ballot[label]) for label in ballot if probs[label] == best)
            self._elect(place, ballot, probs, rank=votes if best >= model.min_probability else best - 1)
        self._keep_elected(model.min_probability)

    def ballots(
        self, outputs: Sequence[SourceOutput], voters: list[IntervalSet] | None = None
    ) -> dict[tuple[int, int], dict[str, list[Vote]]]:
        """The votes by place and label; `voters` gets the places of each source."""
        ballots: dict[tuple[int, int], dict[str, list[Vote]]] = {}
        for source, output in enumerate(outputs):
            claims = self._claims(output)
            if voters is not None:
                voters.append(IntervalSet(map(_place, claims)))
            for claim in claims:
                ballot = ballots.setdefault(_place(claim), {})
                for span in claim:
                    ballot.setdefault(span.label, []).append(Vote(source, 1 / len(claim), span))
        return ballots

    def _elect(
        self, place: tuple[int, int], ballot: Mapping[str, Sequence[Vote]], scores: Mapping[str, float], rank: float
    ) -> None:
        """Choose the labels with the highest score at a place; `rank` decides between places that overlap."""
        most = max(scores.values())
        winners = [label for label in ballot if scores[label] > most - 1e-9]
        claim = tuple(
            Span(*place, label, scores[label], "+".join(vote.span.source or "" for vote in ballot[label]))
            for label in winners
        )
        self.lost += [(vote.span, OUTVOTED) for label in ballot if label not in winners for vote in ballot[label]]
        self.elected.append((rank, claim))

    def _keep_elected(self, min_probability: float = 0.0) -> None:
        """Keep the elected claims with the highest rank, without overlaps; improbable ones are unsure."""
        self.elected.sort(key=lambda result: (-result[0], *_longest_first(result[1])))
        ordered = [claim for _, claim in self.elected]
        for claim in self._drop_overlaps(ordered, OUTVOTED) if self.flat else ordered:
            if (claim[0].score or 0.0) < min_probability:
                self.unsure += claim
            else:
                self._keep(claim)

    def _claims(self, output: SourceOutput) -> list[Claim]:
        """The claims of one source: one per place and, unless all overlaps are kept, disjoint."""
        claims: dict[tuple[int, int], Claim] = {}
        for span in output.spans:
            others = claims.get((span.start, span.end), ())
            if all(other.label != span.label for other in others):
                claims[span.start, span.end] = (*others, span)
        claims.update((_place(spans), spans) for spans in output.ambiguous)
        if output.flat or not self.flat:
            return list(claims.values())
        return self._drop_overlaps(sorted(claims.values(), key=_longest_first), SHORTER)

    def _drop_overlaps(self, claims: list[Claim], reason: str) -> list[Claim]:
        """Keep each claim that overlaps no earlier one."""
        kept: list[Claim] = []
        taken = DisjointIntervals()
        for claim in claims:
            if taken.first_overlap(*_place(claim)):
                self.lost += [(span, reason) for span in claim]
            else:
                taken.add(*_place(claim))
                kept.append(claim)
        return kept

    def _keep(self, claim: Claim) -> None:
        """Add a claim to the layer; the policy `ambiguous` decides about one with several labels."""
        if len(claim) > 1 and self.ambiguous == "unsure":
            self.unsure += claim
            return
        kept = claim[:1] if len(claim) == 1 or self.ambiguous == "first" else ()
        self.spans += kept
        self.lost += [(span, AMBIGUOUS) for span in claim[len(kept) :]]

    def add_unsure(self, candidates: Sequence[Span]) -> None:
        """Add the unsure spans of the sources, except for repetitions and those inside a span of the layer."""
        places = {(span.start, span.end) for span in self.unsure}
        answered = IntervalSet((span.start, span.end) for span in self.spans)
        new: dict[tuple[int, int, str], Span] = {}
        for span in candidates:
            known = answered.covers(span.start, span.end) or (not span.label and (span.start, span.end) in places)
            if not known:
                new.setdefault(span.key, span)
        self.unsure += new.values()


def _longest_first(claim: Claim) -> tuple[int, int]:
    start, end = _place(claim)
    return start - end, start
