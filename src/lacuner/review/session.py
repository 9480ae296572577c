"""The review of one queue, as the page sees it: the next issue, decisions, undo, and how far the review is.

Everything that the page sends refers to the queue by id or number, so no text from a corpus comes back. A decision
names the decision that the page knows for the same issue (`expected`). If there is a newer one, of another tab, it is
not overwritten.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from lacuner.audit.issues import KINDS, LabelIssue, normalise_space
from lacuner.corpus.intervals import DisjointIntervals, IntervalSet, SpanIndex
from lacuner.data import Document, Span
from lacuner.errors import ConfigError, LacunerError
from lacuner.review.context import CONTEXT, excerpt, labels_in, show, show_evidence, text_window
from lacuner.review.decisions import Decision, DecisionLog, Edit, ReviewState, replay, sentence_target, text_hash
from lacuner.review.progress import RECENT, is_exhausted, judged_decisions, measure_precision
from lacuner.review.queue import ReviewQueue, Sentence

Status = Literal["open", "skipped", "decided", "settled"]
"""`settled`: nothing is left to decide, because of a decision on something else in the same document."""
MAX_SENTENCE = 20_000
"""Characters of the longest document that can be labeled as a whole in the page."""
MAX_OTHERS = 5
"""Equal strings that are shown beside an issue, because a decision may hold for them as well."""


class ConflictError(LacunerError):
    """Another tab has decided the same meanwhile."""


@dataclass(frozen=True)
class Filter:
    """Which issues the reviewer wants to see; None: all."""

    status: Status = "open"
    kind: str | None = None
    label: str | None = None
    source: str | None = None
    search: str = ""


class ReviewSession:
    """A queue and the decisions on it.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from lacuner.audit.issues import new_issue
    >>> doc = Document("1", "Mara met Teel.")
    >>> queue = ReviewQueue((new_issue("missing", doc, Span(0, 4, "PER"), (), 0.9),), {"1": doc}, labels=("PER",))
    >>> session = ReviewSession(queue, DecisionLog(Path(tempfile.mkdtemp()) / "decisions.jsonl"))
    >>> session.decide(queue.decide(queue.issues[0].id, "accept"), expected=None).number
    1
    >>> session.summary()["decided"], session.find_issue(Filter())
    (1, None)
    """

    def __init__(self, queue: ReviewQueue, log: DecisionLog) -> None:
        self.queue, self.log = queue, log
        self.sources = sorted({source for issue in queue.issues for source in issue.sources})
        self.sentences = [s for s in queue.sentences if len(queue.document(s.doc_id).text) <= MAX_SENTENCE]
        self.too_long = len(queue.sentences) - len(self.sentences)
        """Documents that cannot be labeled as a whole in the page."""
        self._position = {issue.id: i for i, issue in enumerate(queue.issues)}
        self._totals = _count_facets(queue.issues)
        self.fingerprint = self._hash_numbers()
        """Identifies the numbers by which the page refers to this queue."""
        self._state, self._seen = ReviewState(), 0
        self._settled: set[str] = set()

    def _hash_numbers(self) -> str:
        sentences = [
            (sentence.doc_id, text_hash(self.queue.document(sentence.doc_id).text)) for sentence in self.sentences
        ]
        numbered = [self.queue.labels, self.sources, [issue.id for issue in self.queue.issues], sentences]
        return text_hash(json.dumps(numbered))

    def read_state(self) -> ReviewState:
        """What counts now, decisions of other processes included."""
        decisions = self.log.read()
        new, self._seen = decisions[self._seen :], len(decisions)
        touched = {edit.doc_id for decision in new for edit in decision.edits}
        if any(decision.action == "undo" for decision in new):
            touched.update(edit.doc_id for _, edit in self._state.current.values())
            self._state = replay(decisions)
            touched.update(edit.doc_id for _, edit in self._state.current.values())
        else:
            for decision in new:
                self._state.decisions[decision.number] = decision
                self._state.current.update({edit.target: (decision, edit) for edit in decision.edits})
        if touched:
            self._settle(touched)
        return self._state

    def _settle(self, doc_ids: set[str]) -> None:
        """Find the issues of these documents that are settled by a decision on something else."""
        edits: defaultdict[str, list[Edit]] = defaultdict(list)
        for _, edit in self._state.current.values():
            edits[edit.doc_id].append(edit)
        for doc_id in doc_ids:
            own_edits = _EditsOfDocument(edits[doc_id])
            for issue in self.queue.by_document.get(doc_id, ()):
                self._settled.discard(issue.id)
                if own_edits.settle(issue):
                    self._settled.add(issue.id)

    def status_of(self, target: str) -> Status:
        """Whether an issue or sentence is open, skipped, decided or settled."""
        current = self._state.current.get(target)
        if current is None:
            return "settled" if target in self._settled else "open"
        return "skipped" if current[0].action == "skip" else "decided"

    def find_issue(self, issue_filter: Filter, start: str | None = None, step: int = 1) -> LabelIssue | None:
        """The next matching issue after (or, with `step` -1, before) the issue `start`; the search wraps around."""
        self.read_state()
        issues = self.queue.issues
        needle = normalise_space(issue_filter.search).casefold()
        in_text: dict[str, bool] = {}

        def matches(issue: LabelIssue) -> bool:
            if self.status_of(issue.id) != issue_filter.status or issue_filter.kind not in (None, issue.kind):
                return False
            if issue_filter.source is not None and issue_filter.source not in issue.sources:
                return False
            if issue_filter.label is not None and issue_filter.label not in _labels_of(issue):
                return False
            if issue.doc_id not in in_text:
                text = self.queue.document(issue.doc_id).text if needle else ""
                in_text[issue.doc_id] = needle in issue.doc_id.casefold() or needle in normalise_space(text).casefold()
            return in_text[issue.doc_id]

        first = self._position.get(start, -1) if start is not None else (-1 if step > 0 else 0)
        places = ((first + step * i) % len(issues) for i in range(1, len(issues) + 1))
        return next((issues[i] for i in places if matches(issues[i])), None)

    def find_sentence(self, start: int | None = None) -> int | None:
        """The number of the next sentence that is open, after sentence `start`; the search wraps around."""
        count = len(self.sentences)
        state = self.read_state()
        first = -1 if start is None else start
        places = ((first + i) % count for i in range(1, count + 1))
        return next((i for i in places if sentence_target(self.sentences[i].doc_id) not in state.current), None)

    def decide(self, decision: Decision, expected: int | None) -> Decision:
        """Write a decision to the disk, unless another tab has decided the first of its edits since `expected`.

        A decision on all equal strings leaves out those that are decided already. A repeated request is answered like
        the first: a page cannot know whether its decision was written before the connection broke.
        """
        state = self.read_state()
        first, *others = decision.edits
        known = state.current.get(first.target)
        if (known[0].number if known else None) != expected:
            if known is not None and _is_same(known[0], decision):
                return known[0]
            raise ConflictError("another tab has decided this meanwhile")
        edits = (first, *[edit for edit in others if self.status_of(edit.target) == "open"])
        return self.log.append(replace(decision, edits=edits))

    def undo(self, number: int | None, reviewer: str) -> Decision | None:
        """Undo a decision, or the reviewer's latest, or the latest of all; None if there is nothing to undo."""
        state = self.read_state()
        last = state.last(reviewer) or state.last() if number is None else state.decisions.get(number)
        if last is not None and last.number not in state.undone:
            self.log.append(Decision("undo", undoes=last.number, reviewer=reviewer))
        return last

    def summary(self) -> dict[str, Any]:
        """Counts, precision so far, and the number of the latest decision, which changes with every decision."""
        state = self.read_state()
        closed: dict[Status, list[LabelIssue]] = {"decided": [], "skipped": [], "settled": []}
        for target in {*state.current, *self._settled}:
            if target in self.queue.by_id:
                closed[self.status_of(target)].append(self.queue.by_id[target])
        closed_counts = _count_facets(itertools.chain(*closed.values()))
        judged = judged_decisions(state)
        open_counts = {
            facet: {name: count - closed_counts[facet][name] for name, count in counts.items()}
            for facet, counts in self._totals.items()
        }
        labels = self.queue.labels
        sentences = [self.status_of(sentence_target(sentence.doc_id)) for sentence in self.sentences]
        return {
            "queue": self.fingerprint,
            "version": max(state.decisions, default=0),
            "latest": None if (latest := state.last()) is None else latest.number,
            "sample": "sample" in self.queue.facts,
            "issues": len(self.queue.issues),
            **{status: len(issues) for status, issues in closed.items()},
            "kinds": [(kind, open_counts["kind"].get(kind, 0)) for kind in KINDS if kind in self._totals["kind"]],
            "labels": [(show(label), open_counts["label"].get(label, 0)) for label in labels],
            "sources": [(show(source), open_counts["source"][source]) for source in self.sources],
            "precision": measure_precision(judged).as_json(),
            "recent": measure_precision(judged[-RECENT:]).as_json(),
            "exhausted": is_exhausted(judged),
            "sentences": len(self.sentences),
            "sentences_left_out": self.too_long,
            "sentences_labeled": sentences.count("decided"),
            "sentences_skipped": sentences.count("skipped"),
        }

    def issue_view(self, issue: LabelIssue, context: int = CONTEXT) -> dict[str, Any]:
        """An issue as the page shows it."""
        self.read_state()
        doc = self.queue.document(issue.doc_id)
        places = [issue.span, *issue.current]
        window = text_window(doc, min(s.start for s in places), max(s.end for s in places), context)
        equal = [other for other in self.queue.equal_issues(issue.id) if self.status_of(other.id) == "open"]
        others = [other for other in equal if other is not issue]
        around = [span for span in labels_in(doc, self._labels_now(doc), window) if span not in issue.current]
        return {
            "id": issue.id,
            "kind": issue.kind,
            "document": show(issue.doc_id),
            "position": self._position[issue.id] + 1,
            "span": self.span_json(issue.span),
            "current": [self.span_json(span) for span in issue.current],
            "score": issue.score,
            "sources": [show(source) for source in issue.sources],
            "evidence": show_evidence(issue.evidence, self.queue.documents, (doc.id, issue.start)),
            "window": window,
            "labels": [self.span_json(span) for span in around],
            "equal": len(others) + 1,
            "others": [excerpt(self.queue.document(o.doc_id), o.start, o.end) for o in others[:MAX_OTHERS]],
            "decision": self._decision_json(issue.id),
            "settled": self.status_of(issue.id) == "settled",
        }

    def sentence_view(self, number: int) -> dict[str, Any]:
        """A sentence as the page shows it, with the spans to start from: those decided before, or the model's."""
        sentence = self.sentences[number]
        doc = self.queue.document(sentence.doc_id)
        current = self.read_state().current.get(sentence_target(doc.id))
        if current is not None and current[0].action == "label_sentence":
            spans: Iterable[Span] = current[1].spans
        else:
            spans = _spans_to_start_from(sentence, self._edits_of(doc))
        return {
            "number": number,
            "document": show(doc.id),
            "score": sentence.score,
            "window": text_window(doc, 0, len(doc.text)),
            "spans": [self.span_json(span) for span in spans],
            "decision": self._decision_json(sentence_target(doc.id)),
        }

    def _labels_now(self, doc: Document) -> Iterator[Span]:
        """The labels of a document with the decisions on it."""
        edits = self._edits_of(doc)
        yield from (span for edit in edits for span in edit.spans)
        places = {span[:2] for edit in edits for span in (*edit.spans, *edit.rejected)}
        yield from (span for span in doc.spans if span[:2] not in places)

    def _edits_of(self, doc: Document) -> list[Edit]:
        return [edit for _, edit in self._state.current.values() if edit.doc_id == doc.id]

    def span_json(self, span: Span) -> dict[str, Any]:
        """A span; `type` is the number of its label in the queue, by which the page names it."""
        type_ = self.queue.label_numbers.get(span.label)
        row = {"start": span.start, "end": span.end, "label": show(span.label), "type": type_, "score": span.score}
        return row | {"source": None if span.source is None else show(span.source)}

    def _decision_json(self, target: str) -> dict[str, Any] | None:
        current = self._state.current.get(target)
        if current is None:
            return None
        decision, edit = current
        spans = [self.span_json(span) for span in edit.spans]
        row = {"number": decision.number, "action": decision.action, "spans": spans}
        return row | {"reviewer": show(decision.reviewer)}


def _labels_of(issue: LabelIssue) -> set[str]:
    return {issue.label, *(span.label for span in issue.current)}


def _count_facets(issues: Iterable[LabelIssue]) -> dict[str, Counter[str]]:
    """Number of issues with each kind, label and source."""
    issues = list(issues)
    return {
        "kind": Counter(str(issue.kind) for issue in issues),
        "label": Counter(label for issue in issues for label in _labels_of(issue)),
        "source": Counter(source for issue in issues for source in issue.sources),
    }


def _is_same(known: Decision, decision: Decision) -> bool:
    """Whether a decision is in the log already, sent by the same tab."""
    first: tuple[Edit, ...] = known.edits[:1]
    return (known.action, known.reviewer, first) == (decision.action, decision.reviewer, decision.edits[:1])


class _EditsOfDocument:
    """The edits of one document that count, indexed by place: there may be thousands."""

    def __init__(self, edits: list[Edit]) -> None:
        self._complete = {edit.target for edit in edits if edit.complete}
        self._spans = SpanIndex((*span.key, edit.target) for edit in edits for span in edit.spans)
        self._rejected = SpanIndex((*span.key, edit.target) for edit in edits for span in edit.rejected)

    def settle(self, issue: LabelIssue) -> bool:
        """Whether a decision on something else leaves nothing to decide about an issue."""
        around, ruled_out = (index.overlapping(issue.start, issue.end) for index in (self._spans, self._rejected))
        if issue.kind == "missing":
            around += [row for row in ruled_out if row[0] <= issue.start and issue.end <= row[1]]
        return bool(self._complete - {issue.id}) or any(target != issue.id for *_, target in around)


def _spans_to_start_from(sentence: Sentence, edits: list[Edit]) -> list[Span]:
    """The entities that were decided, and the labels and predictions beside them; of two that overlap the likelier."""
    kept = [span for edit in edits for span in edit.spans]
    decided = IntervalSet(span[:2] for span in kept)
    rejected = IntervalSet(span[:2] for edit in edits for span in edit.rejected)
    taken = DisjointIntervals()
    for span in sorted(sentence.spans, key=lambda span: (-(1.0 if span.score is None else span.score), span)):
        place = span[:2]
        if not rejected.covers(*place) and not decided.overlaps(*place) and not taken.first_overlap(*place):
            kept.append(span)
            taken.add(*place)
    return sorted(kept, key=lambda span: span[:2])


def parse_filter(row: Any, session: ReviewSession) -> Filter:
    """The filter that a page sends: labels and sources by number.

    Raises `ConfigError` for anything that is not a filter.
    """
    if not isinstance(row, Mapping):
        raise ConfigError("a filter must be an object")
    status, kind, search = row.get("status", "open"), row.get("kind"), row.get("search", "")
    if status not in get_args(Status) or kind not in (None, *KINDS) or not isinstance(search, str):
        raise ConfigError("this filter is unknown")
    label = _pick(session.queue.labels, row.get("label"))
    return Filter(status, kind, label, _pick(session.sources, row.get("source")), search[:200])


def _pick(names: tuple[str, ...] | list[str], number: Any) -> str | None:
    if number is None:
        return None
    if type(number) is not int or not 0 <= number < len(names):
        raise ConfigError("this filter is unknown")
    return names[number]
