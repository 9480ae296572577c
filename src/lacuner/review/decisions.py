"""Decisions of a reviewer: an append-only file, from which the state of the review follows at any time.

One JSON object per line. Each decision is on the disk before `append` returns; several processes may append to the same
file. Nothing is ever overwritten: an undo is a decision too, and of two decisions on the same issue the later one
counts. A decision contains the spans that it decides on, so `lacuner apply` needs only this file and the corpus.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

from lacuner.atomic import append_line, end_last_line
from lacuner.data import Span
from lacuner.errors import CorpusError
from lacuner.processes import lock_file

Action = Literal["accept", "reject", "change", "skip", "label_sentence", "undo"]
ACTIONS: tuple[Action, ...] = get_args(Action)
SOURCE = "review"
"""The `source` of spans that a reviewer has confirmed."""
MAX_TIME = 1e12
"""Seconds since 1970: a later time is no time."""
MAX_LINE = 64 * 2**20
"""Bytes of the longest decision that is read."""


@lru_cache(maxsize=16)
def text_hash(text: str) -> str:
    """Identifies the text that a decision is about; thousands of decisions may be about one long document.

    >>> text_hash("Mara left") == text_hash("Mara left."), len(text_hash(""))
    (False, 16)
    """
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def confirmed(span: Span) -> Span:
    """A span as an entity that a reviewer has confirmed."""
    return Span(*span.key, None, SOURCE)


def ruled_out(span: Span) -> Span:
    """A span whose place a reviewer has ruled out for every type."""
    return Span(span.start, span.end, "", None, SOURCE)


@dataclass(frozen=True)
class Edit:
    """What a decision changes in one document."""

    doc_id: str
    text_hash: str
    """Of the document's text: a decision is never applied to another text."""
    issue: str | None = None
    """The issue that is decided; None for a sentence."""
    spans: tuple[Span, ...] = ()
    """Entities."""
    rejected: tuple[Span, ...] = ()
    """Ruled out. An empty label: neither the span nor a part of it is an entity, except for those in `spans`."""
    complete: bool = False
    """Whether `spans` are all entities of the document."""

    @property
    def target(self) -> str:
        """What is decided: an issue, or a document as a whole."""
        return self.issue if self.issue is not None else sentence_target(self.doc_id)


def sentence_target(doc_id: str) -> str:
    """The key of a document as a whole, beside the ids of issues.

    >>> sentence_target("7")
    'sentence:7'
    """
    return f"sentence:{doc_id}"


@dataclass(frozen=True)
class Decision:
    """One decision. `number` and `time` are set when it is appended to a log."""

    action: Action
    edits: tuple[Edit, ...] = ()
    """One per document or issue: several if a decision holds for all equal strings."""
    undoes: int | None = None
    """For `undo`: the number of the decision that no longer counts. It may be an undo itself."""
    reviewer: str = ""
    """Who or what decided, such as a browser tab."""
    number: int = 0
    time: float = 0.0
    """Seconds since 1970."""

    def as_json(self) -> dict[str, Any]:
        row: dict[str, Any] = {"number": self.number, "action": self.action, "time": self.time}
        if self.reviewer:
            row["reviewer"] = self.reviewer
        if self.undoes is not None:
            row["undoes"] = self.undoes
        row["edits"] = [_edit_json(edit) for edit in self.edits]
        return row


def _edit_json(edit: Edit) -> dict[str, Any]:
    row: dict[str, Any] = {"document": edit.doc_id, "text_hash": edit.text_hash}
    if edit.issue is not None:
        row["issue"] = edit.issue
    for state in ("spans", "rejected"):
        row[state] = [{"start": s.start, "end": s.end, "label": s.label} for s in getattr(edit, state)]
    return row | ({"complete": True} if edit.complete else {})


def parse_decision(row: Any) -> Decision:
    """A decision from its JSON form; ValueError, KeyError or TypeError if it is not one.

    >>> edit = Edit("1", text_hash("Mara left"), issue="ab", spans=(Span(0, 4, "PERSON", source="review"),))
    >>> parse_decision(Decision("accept", (edit,), number=3).as_json()).edits == (edit,)
    True
    """
    action, number, undoes = row["action"], row["number"], row.get("undoes")
    if action not in ACTIONS:
        raise ValueError(f"there is no action {str(action)[:40]!r}")
    is_time = type(row["time"]) in (int, float) and 0 <= row["time"] < MAX_TIME
    if type(number) is not int or not is_time or not isinstance(row["edits"], list):
        raise ValueError("`number`, `time` and `edits` are required")
    if (action == "undo") != (type(undoes) is int):
        raise ValueError("an undo needs the number of a decision in `undoes`, and nothing else has it")
    edits = tuple(_parse_edit(edit) for edit in row["edits"])
    if not edits and action not in ("undo", "skip"):
        raise ValueError(f"the action {action} needs at least one edit")
    return Decision(action, edits, undoes, str(row.get("reviewer", "")), number, float(row["time"]))


def _parse_edit(row: Any) -> Edit:
    strings = [row["document"], row["text_hash"], row.get("issue", "")]
    if not all(isinstance(text, str) for text in strings):
        raise ValueError("`document`, `text_hash` and `issue` must be strings")
    spans, rejected = (tuple(_parse_span(span, state) for span in row[state]) for state in ("spans", "rejected"))
    return Edit(
        row["document"], row["text_hash"], row.get("issue"), spans, rejected, row.get("complete", False) is True
    )


def _parse_span(row: Any, state: str) -> Span:
    start, end, label = row["start"], row["end"], row["label"]
    if type(start) is not int or type(end) is not int or not 0 <= start < end or not isinstance(label, str):
        raise ValueError("a span needs whole numbers `start` < `end` and a `label`")
    if state == "spans" and not label:
        raise ValueError("an entity needs a label")
    return Span(start, end, label, None, SOURCE)


@dataclass
class ReviewState:
    """What counts after all decisions so far."""

    decisions: dict[int, Decision] = field(default_factory=dict)
    """All decisions by number, those that were undone or superseded too."""
    undone: set[int] = field(default_factory=set)
    """Numbers of the decisions that an undo took back."""
    current: dict[str, tuple[Decision, Edit]] = field(default_factory=dict)
    """The decision that counts for each issue, or for a document (`sentence_target`). A skip counts as a decision."""

    def effective(self) -> list[Decision]:
        """The decisions that were not undone, in the order of their numbers."""
        return [self.decisions[number] for number in sorted(self.decisions) if number not in self.undone]

    def last(self, reviewer: str | None = None) -> Decision | None:
        """The latest decision that can be undone, of one reviewer if given; undos are passed over."""
        candidates = [
            decision
            for decision in self.effective()
            if decision.action != "undo" and reviewer in (None, decision.reviewer)
        ]
        return candidates[-1] if candidates else None

    def counts(self) -> dict[str, int]:
        """How many issues and sentences have each action as their current decision.

        >>> ReviewState().counts()
        {'accept': 0, 'reject': 0, 'change': 0, 'skip': 0, 'label_sentence': 0}
        """
        counts: dict[str, int] = {action: 0 for action in ACTIONS if action != "undo"}
        for decision, _ in self.current.values():
            counts[decision.action] += 1
        return counts


def replay(decisions: Iterable[Decision]) -> ReviewState:
    """The state after these decisions, in the order of the file.

    An undone decision no longer counts, and the earlier decision on the same issue counts again. An undo can be undone.

    >>> first, second = (Decision(a, (Edit("1", "", "x"),), number=n) for n, a in ((1, "accept"), (2, "reject")))
    >>> replay([first, second]).current["x"][0].action
    'reject'
    >>> replay([first, second, Decision("undo", undoes=2, number=3)]).current["x"][0].action
    'accept'
    """
    state = ReviewState({decision.number: decision for decision in decisions})
    for number in sorted(state.decisions, reverse=True):  # a later undo may take an earlier undo back
        decision = state.decisions[number]
        if decision.action == "undo" and number not in state.undone and decision.undoes is not None:
            state.undone.add(decision.undoes)
    for decision in state.effective():
        for edit in decision.edits:
            state.current[edit.target] = decision, edit
    return state


class DecisionLog:
    """The file of decisions. Processes and threads may append at the same time.

    >>> import tempfile
    >>> log = DecisionLog(Path(tempfile.mkdtemp()) / "decisions.jsonl")
    >>> log.append(Decision("skip", (Edit("1", text_hash("Mara"), "ab"),), reviewer="tab 1")).number
    1
    >>> [decision.action for decision in log.read()]
    ['skip']
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._decisions: list[Decision] = []
        self._position = 0  # bytes of the file that are parsed; an append-only file is parsed once
        self._mutex = threading.Lock()

    def append(self, decision: Decision) -> Decision:
        """Give the decision its number and time, and write it to the disk before returning it.

        An undo of a decision that does not exist, or that is undone already, is an error.
        """
        with self._mutex, lock_file(self.path):
            end_last_line(self.path, _is_decision)
            self._read_new()
            if decision.undoes is not None:
                state = replay(self._decisions)
                if decision.undoes not in state.decisions or decision.undoes in state.undone:
                    raise CorpusError(f"there is no decision {decision.undoes} to undo", file=self.path)
            last = self._decisions[-1].number if self._decisions else 0
            decision = replace(decision, number=last + 1, time=round(time.time(), 3))
            line = json.dumps(decision.as_json(), ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")
            if len(line) > MAX_LINE:
                raise CorpusError("this decision is too long: decide fewer issues at once", file=self.path)
            append_line(self.path, line)
            self._decisions.append(decision)
            self._position += len(line) + 1
        return decision

    def read(self) -> list[Decision]:
        """All decisions in the file, those of other processes included.

        A last line that was cut off by a crash is ignored; any other damage is an error with file and line.
        """
        with self._mutex:
            self._read_new()
            return list(self._decisions)

    def state(self) -> ReviewState:
        """What counts after all decisions in the file."""
        return replay(self.read())

    def _read_new(self) -> None:
        """Parse the lines that were added since the last time."""
        try:
            if self.path.exists() and not self.path.is_file():
                raise OSError(errno.EINVAL, "not a regular file")
            with self.path.open("rb") as stream:
                stream.seek(self._position)
                data = stream.read()
        except FileNotFoundError:
            data = b""
        except OSError as error:
            raise CorpusError(f"cannot read this file: {error.strerror}", file=self.path) from error
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._add(line)
            self._position += len(line) + 1
        if rest and _is_decision(rest):  # complete, but the end of the line is missing
            self._add(rest)
            self._position += len(rest)

    def _add(self, line: bytes) -> None:
        if not line.strip():  # also the rest of a line whose end came later
            return
        try:
            decision = parse_decision(_parse_json(line))
            if self._decisions and decision.number <= self._decisions[-1].number:
                raise ValueError(f"decision {decision.number} comes after decision {self._decisions[-1].number}")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            number = self.path.read_bytes()[: self._position].count(b"\n") + 1
            problem = f"there is no {error}" if isinstance(error, KeyError) else str(error)
            raise CorpusError(f"this line is not a decision: {problem}", file=self.path, line=number) from error
        self._decisions.append(decision)


def _parse_json(line: bytes) -> Any:
    if len(line) > MAX_LINE:
        raise ValueError("it is too long")
    try:
        return json.loads(line.decode("utf-8", "surrogatepass"))
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except ValueError as error:  # more digits than Python converts
        raise ValueError("a number has too many digits") from error


def _is_decision(line: bytes) -> bool:
    try:
        parse_decision(_parse_json(line))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False
    return True
