"""Label issues as a job: the labels of each document against the predictions of one model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from lacuner.audit.cross_fitting import predict_candidates
from lacuner.audit.issues import LABEL_PRECISION, LabelIssue, count_kinds, label_issues
from lacuner.corpus.json_rows import write_lines
from lacuner.data import Document, Lost
from lacuner.models.storage import AnyTagger, fingerprint, load
from lacuner.scale.job import Counts, Process


@dataclass(frozen=True)
class LabelAuditJob:
    """Find label issues with the model of a run, which must not have been trained on the documents."""

    run: Path
    label_precision: float = LABEL_PRECISION
    min_score: float = 0.5
    output: str = "issues"
    ending: str = ".jsonl"
    forkable: bool = False

    def identity(self) -> dict[str, Any]:
        settings = {"label_precision": self.label_precision, "min_score": self.min_score}
        return {"command": "audit labels", "model": fingerprint(self.run), **settings}

    def open(self) -> Process:
        torch.set_num_threads(1)  # one per worker; with more, rounding could differ
        return partial(self._find_issues, load(self.run))

    def _find_issues(self, tagger: AnyTagger, docs: list[Document]) -> tuple[list[LabelIssue], Counts]:
        options: dict[str, Any] = {"label_precision": self.label_precision, "min_score": self.min_score}
        pairs = zip(docs, predict_candidates(tagger, docs), strict=True)
        issues = [issue for doc, predicted in pairs for issue in label_issues([doc], [predicted], **options)]
        labels = sum(len(doc.spans) for doc in docs)
        return issues, {"documents": len(docs), "labels": labels, "issues": count_kinds(issues)}

    def write(self, rows: Iterable[LabelIssue], path: Path) -> Lost:
        write_lines(path, (issue.as_json() for issue in rows))
        return Lost()
