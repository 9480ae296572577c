"""Label issues: labels that are probably missing, wrong or spurious, each with the probability that the issue is real.

The functions take plain documents: weak labels on one side, predictions with scores on the other. The predictions must
come from models that did not train on the document (`lacuner.audit.cross_fitting` makes such predictions); otherwise
the scores only show what a model has memorised. Nothing here needs torch.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from lacuner.data import Document, Lost, Span
from lacuner.errors import CorpusError
from lacuner.techniques.label_issues import find_missing, match_labels

Kind = Literal["missing", "wrong_type", "wrong_boundary", "spurious"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MIN_SCORE = 0.05
"""Issues with a lower probability are not listed."""
MOST_ISSUES = 200_000
"""Issues that are listed at most, those with the highest scores: they take about 1 KB each."""
UNLISTED = "label issue that is not among the most probable"
LABEL_PRECISION = 0.9
"""Assumed share of right labels where nothing is known about it."""
MAX_EVIDENCE = 4.0
"""A model changes the odds that a label is right by this factor at most. On 933 gazetteer labels of BC5CDR (`tiny-en`,
3 folds, seed 1), 10 % of the labels that the models predicted were wrong, 11 % of those that they did not predict, and
38 % of those where they preferred another span, whatever its score."""
_EDGE = 1e-3
"""Probabilities are kept this far away from 0 and 1 when odds are computed."""


@dataclass(frozen=True)
class LabelIssue:
    """A probable mistake in the labels of a document, and the span that would mend it."""

    id: str
    """Hash of the content: the same issue has the same id in the next round."""
    kind: Kind
    """`missing`: an entity without a label. `wrong_type` and `wrong_boundary`: the labels in `current` should be this
    span. `spurious`: the label is no entity."""
    doc_id: str
    start: int
    end: int
    label: str
    """The proposed span; for a spurious label, that label."""
    current: tuple[Span, ...]
    """The labels that the issue disputes; empty for `missing`."""
    score: float
    """Calibrated probability that the issue is real: the proposed span is an entity, or the disputed label is wrong."""
    text: str
    """The text of the proposed span."""
    sources: tuple[str, ...] = ()
    """Where the disputed labels come from, such as a gazetteer; `model` for a missing label."""
    evidence: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What else a reviewer wants to see; JSON."""

    @property
    def span(self) -> Span:
        """The proposed span with its score."""
        return Span(self.start, self.end, self.label, self.score)

    @property
    def group(self) -> tuple[str, ...]:
        """Issues with the same kind, text and labels can be decided together."""
        return (self.kind, normalise_space(self.text), self.label, *sorted(span.label for span in self.current))

    def as_json(self) -> dict[str, Any]:
        current = [{"start": s.start, "end": s.end, "label": s.label, "source": s.source} for s in self.current]
        row = {"id": self.id, "kind": self.kind, "document": self.doc_id, "start": self.start, "end": self.end}
        row |= {"label": self.label, "text": self.text, "score": self.score, "current": current}
        return row | {"sources": list(self.sources), "evidence": dict(self.evidence)}


def parse_issue(row: Mapping[str, Any]) -> LabelIssue:
    """An issue from its JSON form; raises KeyError, TypeError, ValueError or OverflowError for anything else.

    >>> issue = new_issue("missing", Document("1", "Mara left"), Span(0, 4, "PERSON"), (), 0.9)
    >>> parse_issue(json.loads(json.dumps(issue.as_json()))) == issue
    True
    """
    kind, id_, doc_id = row["kind"], row["id"], row["document"]
    strings = [id_, doc_id, row["label"], row["text"], *row["sources"]]
    score, evidence = float(row["score"]), row["evidence"]
    if kind not in KINDS or not all(isinstance(text, str) for text in strings) or not isinstance(evidence, dict):
        raise ValueError("not a label issue")
    if not math.isfinite(score):
        raise ValueError("the score is not a number")
    current = tuple(Span(int(s["start"]), int(s["end"]), str(s["label"]), None, s["source"]) for s in row["current"])
    place = int(row["start"]), int(row["end"]), row["label"]
    return LabelIssue(id_, kind, doc_id, *place, current, score, row["text"], tuple(row["sources"]), evidence)


def normalise_space(text: str) -> str:
    """A surface string with single spaces.

    >>> normalise_space("heart \\n attack")
    'heart attack'
    """
    return " ".join(text.split())


def new_issue(
    kind: Kind,
    doc: Document,
    span: Span,
    current: Sequence[Span],
    score: float,
    evidence: Mapping[str, Any] | None = None,
) -> LabelIssue:
    """A label issue of a document, with its id.

    >>> new_issue("missing", Document("1", "Mara left"), Span(0, 4, "PERSON"), (), 0.9).text
    'Mara'
    """
    text = doc.text[span.start : span.end]
    labels = tuple(Span(other.start, other.end, other.label, None, other.source) for other in current)
    content = json.dumps([kind, doc.id, span.key, text, [other.key for other in labels]])
    id_ = hashlib.blake2b(content.encode(), digest_size=8).hexdigest()
    sources = tuple(sorted({other.source for other in labels if other.source})) or (() if labels else ("model",))
    return LabelIssue(id_, kind, doc.id, *span.key, labels, round(score, 6), text, sources, evidence or {})


def label_issues(
    docs: Iterable[Document],
    predictions: Iterable[Document],
    *,
    calibrate: Callable[[np.ndarray], np.ndarray] | None = None,
    base_rate: float = 0.5,
    label_precision: float = LABEL_PRECISION,
    min_score: float = MIN_SCORE,
    lost: Lost | None = None,
) -> list[LabelIssue]:
    """Compare weak labels with the predictions of models that did not train on these documents; likely issues first.

    `predictions` are the same documents in the same order; a span without a score counts as certain. Predictions far
    below the decision threshold are welcome: a label that the model predicts with a low probability is then told apart
    from one that it does not predict at all. A prediction that overlaps two labels is ignored: models join neighbouring
    names more often than annotators split one.

    Arguments:
        docs: documents with weak labels.
        predictions: the same documents with predicted spans.
        calibrate: maps scores `[n]` to probabilities that an unlabeled prediction is an entity (default: itself).
        base_rate: the share of entities among the predictions for which `calibrate` holds.
        label_precision: the share of labels that are right, as far as it is known.
        min_score: lowest probability of a listed issue.
        lost: counts the issues above `MOST_ISSUES`, which are not listed.

    >>> weak = Document("1", "Mara met Teel.", spans=(Span(0, 4, "PLACE"),))
    >>> model = Document("1", "Mara met Teel.", spans=(Span(0, 4, "PERSON", 0.9), Span(9, 13, "PERSON", 0.8)))
    >>> [(issue.kind, issue.text, issue.label) for issue in label_issues([weak], [model])]
    [('missing', 'Teel', 'PERSON'), ('wrong_type', 'Mara', 'PERSON')]
    """
    calibrate = calibrate or (lambda scores: scores)
    issues: list[LabelIssue] = []
    seen: set[str] = set()
    for doc, prediction in zip(docs, predictions, strict=True):
        if doc.text != prediction.text:
            raise CorpusError(f"the predictions for document {doc.id!r} belong to another text")
        if doc.id in seen:
            raise CorpusError(f"two documents have the id {doc.id!r}: label issues need distinct ids")
        seen.add(doc.id)
        if doc.complete:
            continue
        missing = find_missing(doc, prediction.spans)
        scores = np.array([1.0 if span.score is None else span.score for span in missing], dtype=float)
        for span, score in zip(missing, calibrate(scores).tolist(), strict=True):
            if score >= min_score:
                issues.append(new_issue("missing", doc, span, (), score, {"probability": span.score}))
        for kind, span, label, right, probability in _judge_labels(doc, prediction.spans, calibrate):
            score = 1 - float(apply_label_prior(np.array([right]), base_rate, label_precision)[0])
            if score >= min_score:
                issues.append(new_issue(kind, doc, span, (label,), score, {"probability": probability}))
        if len(issues) > 2 * MOST_ISSUES:
            _sort_issues(issues, lost)
    _sort_issues(issues, lost)
    return issues


def _sort_issues(issues: list[LabelIssue], lost: Lost | None) -> None:
    """Sort issues by score, in place, and drop those above `MOST_ISSUES`."""

    def rank(issue: LabelIssue) -> tuple[float, float, str, int, str]:  # equal scores: the model's probability decides
        probability = float(issue.evidence["probability"] or 0.0)
        return -issue.score, -probability, issue.doc_id, issue.start, issue.id

    issues.sort(key=rank)
    if lost is not None:
        lost.count(UNLISTED, max(len(issues) - MOST_ISSUES, 0))
    del issues[MOST_ISSUES:]


class _Judgement(NamedTuple):
    """What the predictions say about one label."""

    kind: Kind
    span: Span
    """The proposal: the prediction that conflicts with the label, or the label itself."""
    label: Span
    right: float
    """Probability that the label is right, before the prior that most labels are."""
    probability: float | None
    """The model's probability of the proposal."""


def _judge_labels(
    doc: Document, predicted: Sequence[Span], calibrate: Callable[[np.ndarray], np.ndarray]
) -> Iterator[_Judgement]:
    """One judgement for each label that a reviewer has not confirmed."""
    for label, prediction in match_labels(doc.spans, predicted):
        if label.source == "review":
            continue
        score = 0.0 if prediction is None else prediction.score
        prob = 1.0 if score is None else float(calibrate(np.array([score]))[0])
        if prediction is None or prediction.key == label.key:
            yield _Judgement("spurious", label, label, prob, score)
        else:
            kind: Kind = "wrong_type" if prediction[:2] == label[:2] else "wrong_boundary"
            yield _Judgement(kind, prediction, label, 1 - prob, score)


def apply_label_prior(right: np.ndarray, base_rate: float, label_precision: float) -> np.ndarray:
    """Probabilities that labels are right, given that labels are more often right than predictions.

    `right` `[labels]` holds among predictions, of which a share `base_rate` is right; a share `label_precision` of the
    labels is right. `MAX_EVIDENCE` limits what the model can contribute.

    >>> apply_label_prior(np.array([0.5, 0.3, 0.0]), base_rate=0.5, label_precision=0.9).round(2).tolist()
    [0.9, 0.79, 0.69]
    """
    right = np.clip(right, _EDGE, 1 - _EDGE)
    base_rate, label_precision = (float(np.clip(share, _EDGE, 1 - _EDGE)) for share in (base_rate, label_precision))
    evidence = np.clip(right / (1 - right) * (1 - base_rate) / base_rate, 1 / MAX_EVIDENCE, MAX_EVIDENCE)
    odds = evidence * label_precision / (1 - label_precision)
    return np.asarray(odds / (1 + odds))


@dataclass(frozen=True)
class IssueGroup:
    """Issues of the same kind, surface string and labels, most probable first."""

    kind: Kind
    text: str
    label: str
    issues: tuple[LabelIssue, ...]

    @property
    def expected(self) -> float:
        """Expected number of real issues."""
        return sum(issue.score for issue in self.issues)


def group_issues(issues: Iterable[LabelIssue]) -> list[IssueGroup]:
    """Group issues by kind, surface string and labels; the group with the most probable issue comes first.

    >>> doc = Document("1", "Teel saw Teel.")
    >>> issues = [new_issue("missing", doc, span, (), 0.5) for span in (Span(0, 4, "PER"), Span(9, 13, "PER"))]
    >>> [(group.text, len(group.issues)) for group in group_issues(issues)]
    [('Teel', 2)]
    """
    members: defaultdict[tuple[str, ...], list[LabelIssue]] = defaultdict(list)
    for issue in issues:
        members[issue.group].append(issue)
    groups = []
    for own in members.values():
        own.sort(key=lambda issue: -issue.score)
        groups.append(IssueGroup(own[0].kind, normalise_space(own[0].text), own[0].label, tuple(own)))
    return sorted(groups, key=lambda group: -group.issues[0].score)


def count_kinds(issues: Iterable[LabelIssue]) -> dict[str, int]:
    """Number of issues of each kind.

    >>> count_kinds([])
    {'missing': 0, 'wrong_type': 0, 'wrong_boundary': 0, 'spurious': 0}
    """
    counts = Counter(issue.kind for issue in issues)
    return {kind: counts[kind] for kind in KINDS}
