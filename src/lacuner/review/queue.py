"""The review queue of a run: label issues in the order of review, sentences to label, and their documents.

It is kept in `RUN/review` as JSON lines: `queue.jsonl`, `sentences.jsonl` and `documents.jsonl`; `queue.json`, which is
written last, has the labels and how the queue was made. The decisions are in `decisions.jsonl` beside them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from lacuner.atomic import read_regular_file, write_json, write_json_lines
from lacuner.audit.issues import LabelIssue, parse_issue
from lacuner.corpus import read, write
from lacuner.data import Document, Span, sort_spans
from lacuner.errors import ConfigError, CorpusError, explain_damage
from lacuner.review.decisions import Action, Decision, DecisionLog, Edit, confirmed, ruled_out, text_hash

T = TypeVar("T")

FOLDER = "review"
FORMAT = 1
MOST_DOCUMENTS = 200_000
"""Documents that a queue keeps in memory beside those that it names."""
MAX_NAMED = 500
"""Characters of the labels that an error message names."""
FACTS, ISSUES, SENTENCES, DOCUMENTS = "queue.json", "queue.jsonl", "sentences.jsonl", "documents.jsonl"
DECISIONS = "decisions.jsonl"


@dataclass(frozen=True)
class Sentence:
    """A document worth labeling completely, pre-filled with the model's spans."""

    doc_id: str
    score: float
    """How useful it is to label it: the uncertainty of the model there."""
    spans: tuple[Span, ...]
    """Labels and predictions, to start from."""
    stratum: int | None = None
    """For a random sample (`lacuner.review.sample`): the stratum that it was drawn from."""


@dataclass(frozen=True)
class ReviewQueue:
    """What is to be reviewed; it never changes while decisions are made.

    >>> from lacuner.audit.issues import new_issue
    >>> doc = Document("1", "Mara met Teel.")
    >>> queue = ReviewQueue((new_issue("missing", doc, Span(0, 4, "PER"), (), 0.9),), {"1": doc}, labels=("PER",))
    >>> decision = queue.decide(queue.issues[0].id, "accept")
    >>> [span.key for span in decision.edits[0].spans]
    [(0, 4, 'PER')]
    """

    issues: tuple[LabelIssue, ...]
    """In the order of review."""
    documents: Mapping[str, Document]
    """By id, with the weak labels: those that issues and sentences name, and of the others at most `MOST_DOCUMENTS`."""
    sentences: tuple[Sentence, ...] = ()
    """The next sentences to label completely, most useful first; or a random sample."""
    labels: tuple[str, ...] = ()
    """Entity types."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """How the queue was made: number of folds, calibration, files. JSON."""

    @cached_property
    def by_id(self) -> dict[str, LabelIssue]:
        """Issues by id."""
        return {issue.id: issue for issue in self.issues}

    @cached_property
    def groups(self) -> dict[tuple[str, ...], list[LabelIssue]]:
        """Issues of the same kind, surface string and labels, by `LabelIssue.group`."""
        groups: dict[tuple[str, ...], list[LabelIssue]] = {}
        for issue in self.issues:
            groups.setdefault(issue.group, []).append(issue)
        return groups

    @cached_property
    def by_document(self) -> dict[str, list[LabelIssue]]:
        """Issues by the id of their document."""
        issues: dict[str, list[LabelIssue]] = {}
        for issue in self.issues:
            issues.setdefault(issue.doc_id, []).append(issue)
        return issues

    @cached_property
    def label_numbers(self) -> dict[str, int]:
        """Place of each label in `labels`."""
        return {label: number for number, label in enumerate(self.labels)}

    def equal_issues(self, issue_id: str) -> list[LabelIssue]:
        """The issue and all others of its group."""
        return self.groups[self.issue(issue_id).group]

    def issue(self, issue_id: str) -> LabelIssue:
        """An issue by its id."""
        try:
            return self.by_id[issue_id]
        except KeyError:
            raise ConfigError(f"there is no issue {issue_id[:40]!r} in this queue") from None

    def document(self, doc_id: str) -> Document:
        """A document by its id."""
        try:
            return self.documents[doc_id]
        except KeyError:
            raise ConfigError(f"there is no document {doc_id[:40]!r} in this queue") from None

    def decide(
        self,
        issue_id: str,
        action: Action,
        *,
        span: Span | None = None,
        everywhere: bool = False,
        reviewer: str = "",
    ) -> Decision:
        """A decision on an issue, ready for `DecisionLog.append`.

        Arguments:
            action: `accept`: the issue is real, the proposal is right. `reject`: it is not; a proposed missing span is
                no entity, nor is any part of it, and a disputed label is right. `change`: the entity is `span`.
                `skip`: no decision.
            span: for `change`: the right boundaries and label, in the issue's document; None if nothing there is an
                entity.
            everywhere: decide the same for all issues of the group. Changed boundaries are shifted accordingly.
        """
        issue = self.issue(issue_id)
        if action not in ("accept", "reject", "change", "skip"):
            raise ConfigError(f"an issue cannot be decided by {action!r}: use accept, reject, change or skip")
        if span is not None and action != "change":
            raise ConfigError(f"a new span is a change, not {action!r}")
        if span is not None:
            self.check_spans(self.document(issue.doc_id), [span])
        edits = []
        for other in self.equal_issues(issue_id) if everywhere else [issue]:
            doc = self.document(other.doc_id)
            moved = None if span is None else _shift(span, other.start - issue.start)
            if moved is not None and other is not issue and not _fits(doc, moved, self.document(issue.doc_id), span):
                continue  # the words around it differ: this mention needs a decision of its own
            spans, rejected = _outcome(other, action, moved)
            edits.append(Edit(doc.id, text_hash(doc.text), other.id, spans, rejected))
        edits.sort(key=lambda edit: edit.issue != issue_id)  # the issue that was on the screen comes first
        return Decision(action, tuple(edits), reviewer=reviewer)

    def label_sentence(self, doc_id: str, spans: Iterable[Span], reviewer: str = "") -> Decision:
        """A decision that these are all entities of a document, ready for `DecisionLog.append`."""
        doc, spans = self.document(doc_id), sort_spans(spans)
        self.check_spans(doc, spans)
        if any(a.overlaps(b) for a, b in pairwise(spans)):
            raise ConfigError("two entities of the sentence overlap")
        edit = Edit(doc_id, text_hash(doc.text), None, tuple(map(confirmed, spans)), (), True)
        return Decision("label_sentence", (edit,), reviewer=reviewer)

    def skip_sentence(self, doc_id: str, reviewer: str = "") -> Decision:
        """A decision not to label a document, ready for `DecisionLog.append`."""
        edit = Edit(doc_id, text_hash(self.document(doc_id).text))
        return Decision("skip", (edit,), reviewer=reviewer)

    def check_spans(self, doc: Document, spans: Iterable[Span]) -> None:
        """Raise an error if a span cannot be an entity of the document: its place, or a label that is unknown here."""
        for start, end, label, *_ in spans:
            if not 0 <= start < end <= len(doc.text):
                raise ConfigError(f"the span {start}-{end} is empty or outside document {doc.id!r}")
            if doc.text[start:end] != doc.text[start:end].strip():
                raise ConfigError(f"the span {start}-{end} starts or ends with white space")
            if label not in self.label_numbers:
                known = ", ".join(self.labels)
                known = known if len(known) <= MAX_NAMED else f"one of its {len(self.labels):,} labels"
                raise ConfigError(f"there is no label {label[:40]!r} in this queue: use {known}")


def _shift(span: Span, by: int) -> Span:
    return span._replace(start=span.start + by, end=span.end + by)


def _fits(doc: Document, span: Span, model_doc: Document, model: Span | None) -> bool:
    """Whether a shifted span covers the same text as the span that the reviewer has set."""
    return (
        model is not None
        and span.start >= 0
        and doc.text[span.start : span.end] == model_doc.text[model.start : model.end]
    )


def _outcome(issue: LabelIssue, action: Action, changed: Span | None) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """The entities and the ruled-out spans that follow from a decision."""
    proposed, current = (confirmed(issue.span),), tuple(map(confirmed, issue.current))
    spans: tuple[Span, ...] = ()
    wrong: tuple[Span, ...] = ()
    if action == "accept":
        spans, wrong = () if issue.kind == "spurious" else proposed, current
    elif action == "reject":
        spans, wrong = current, proposed
    elif action == "change":
        spans = () if changed is None else (confirmed(changed),)
        wrong = (*proposed, *current)
    # an empty label rules out every type; a span with the place of an entity needs no ruling out
    places = {span[:2] for span in spans}
    rejected = {span[:2]: ruled_out(span) for span in wrong}
    return spans, tuple(span for place, span in sorted(rejected.items()) if place not in places)


def decision_log(run_folder: Path) -> DecisionLog:
    """The decisions on the queue of a run."""
    return DecisionLog(run_folder / FOLDER / DECISIONS)


def named_documents(issues: Iterable[LabelIssue], sentences: Iterable[Sentence]) -> set[str]:
    """The ids of the documents that are shown: of issues, of the mentions that are their evidence, and of sentences."""
    ids = {sentence.doc_id for sentence in sentences}
    for issue in issues:
        mentions = issue.evidence.get("mentions")
        rows = mentions if isinstance(mentions, list) else []
        ids |= {issue.doc_id, *(str(row.get("document")) for row in rows if isinstance(row, dict))}
    return ids


def keep_documents(docs: Iterable[Document], named: Collection[str]) -> dict[str, Document]:
    """The documents, by id, that a queue keeps in memory."""
    return {doc.id: doc for number, doc in enumerate(docs) if number < MOST_DOCUMENTS or doc.id in named}


def save_queue(queue: ReviewQueue, run_folder: Path, docs: Iterable[Document] | None = None) -> Path:
    """Write a queue into a run folder, beside the decisions that are there; returns its folder.

    `docs` are all documents of the corpus, if the queue does not have all of them.

    >>> import tempfile
    >>> run = Path(tempfile.mkdtemp())
    >>> queue = ReviewQueue((), {"1": Document("1", "Mara left")}, (Sentence("1", 0.5, ()),), ("PER",))
    >>> folder = save_queue(queue, run)
    >>> open_queue(run).sentences == queue.sentences
    True
    """
    folder = make_review_folder(run_folder)
    (folder / FACTS).unlink(missing_ok=True)  # a queue without it is not complete
    write_json_lines(folder / ISSUES, (issue.as_json() for issue in queue.issues), private=True)
    write_json_lines(folder / SENTENCES, map(_sentence_json, queue.sentences), private=True)
    write(queue.documents.values() if docs is None else docs, folder / DOCUMENTS)
    (folder / DOCUMENTS).chmod(0o600)
    facts = {"format": FORMAT, "labels": queue.labels, "facts": dict(queue.facts)}
    write_json(folder / FACTS, facts, private=True)
    return folder


def make_review_folder(run_folder: Path) -> Path:
    """Create the folder of a review, unless it exists; only the owner can look into it."""
    folder = run_folder / FOLDER
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CorpusError(f"cannot write in this folder: {error.strerror}", file=folder) from error
    return folder


def open_queue(run_folder: Path) -> ReviewQueue:
    """The queue that `save_queue` wrote into a run folder."""
    folder = run_folder / FOLDER
    if not (folder / FACTS).is_file():
        if not run_folder.exists():
            raise ConfigError("there is no such folder: the folder of a run is needed", file=run_folder)
        advice = f"run `lacuner audit issues {run_folder} --weak WEAK_LABELS` first"
        raise ConfigError(f"there is no review queue in this run: {advice}", file=run_folder)
    with explain_damage("not a review queue: run `lacuner audit issues` again", folder / FACTS, CorpusError):
        header = json.loads(read_regular_file(folder / FACTS))
        labels, facts = tuple(header["labels"]), header["facts"]
        if header["format"] != FORMAT or not all(isinstance(label, str) for label in labels):
            raise ValueError("of another version")
    issues = tuple(_read_rows(folder / ISSUES, parse_issue))
    sentences = tuple(_read_rows(folder / SENTENCES, _parse_sentence))
    documents = keep_documents(read(folder / DOCUMENTS), named_documents(issues, sentences))
    named = {issue.doc_id for issue in issues} | {sentence.doc_id for sentence in sentences}
    unknown = named - documents.keys()
    if unknown:
        raise CorpusError(
            f"document {min(unknown)!r} is missing: run `lacuner audit issues` again", file=folder / DOCUMENTS
        )
    return ReviewQueue(issues, documents, sentences, labels, facts)


def _sentence_json(sentence: Sentence) -> dict[str, Any]:
    spans = [{key: value for key, value in span._asdict().items() if value is not None} for span in sentence.spans]
    row: dict[str, Any] = {"document": sentence.doc_id, "score": sentence.score, "spans": spans}
    return row if sentence.stratum is None else row | {"stratum": sentence.stratum}


def _parse_sentence(row: Mapping[str, Any]) -> Sentence:
    spans = tuple(
        Span(int(s["start"]), int(s["end"]), s["label"], s.get("score"), s.get("source")) for s in row["spans"]
    )
    if not all(isinstance(text, str) for text in (row["document"], *(span.label for span in spans))):
        raise ValueError("not a sentence")
    return Sentence(row["document"], float(row["score"]), spans, row.get("stratum"))


def _read_rows(path: Path, parse: Callable[[Any], T]) -> Iterator[T]:
    try:
        lines = read_regular_file(path).split(b"\n")
    except OSError as error:
        raise CorpusError(f"cannot read this file: {error.strerror}", file=path) from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            with explain_damage("this line is not part of a review queue", path, CorpusError, number):
                row = parse(json.loads(line.decode("utf-8", "surrogatepass")))
            yield row
