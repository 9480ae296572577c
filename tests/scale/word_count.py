"""A small job for the tests, which engines can send to other processes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lacuner.atomic import append_line
from lacuner.corpus import write
from lacuner.data import Document, Lost
from lacuner.scale.job import Counts, Process


@dataclass(frozen=True)
class WordCount:
    """Count the words of each document; one that contains `fail` fails, and `kill` kills its worker, once."""

    log: str
    """File with one line per opened job, with the number of the process."""
    setting: int = 1
    seconds: float = 0.0
    """Time per group of documents."""
    kills: int = 1
    workers: int = 1
    """Workers that wait for each other when they have opened the job."""
    output: str = "documents"
    ending: str = ".jsonl"
    forkable: bool = True

    def identity(self) -> dict[str, Any]:
        return {"setting": self.setting}

    def open(self) -> Process:
        append_line(self.log, b"%d" % os.getpid())
        while len(Path(self.log).read_bytes().split()) < self.workers:
            time.sleep(0.05)
        return self._count

    def _count(self, docs: list[Document]) -> tuple[list[Document], Counts]:
        for doc in docs:
            if "fail" in doc.text:
                raise ValueError(f"cannot count {doc.text!r}")
            killed = Path(f"{self.log}.killed")
            if "kill" in doc.text and (len(killed.read_bytes()) if killed.exists() else 0) < 2 * self.kills:
                append_line(killed, b"x")
                os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(self.seconds)
        counted = [replace(doc, meta={"words": len(doc.text.split())}) for doc in docs]
        return counted, {"documents": len(docs), "lengths": {str(doc.meta["words"]): 1 for doc in counted}}

    def write(self, rows: Iterable[Document], path: Path) -> Lost:
        return write(rows, path)
