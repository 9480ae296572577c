"""Prediction as a job: a tagger, loaded once per worker, predicts the documents of one shard after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from lacuner.corpus import words_of, write
from lacuner.data import Document, Lost
from lacuner.models.storage import AnyTagger, fingerprint, load_with_entries
from lacuner.scale.job import Counts, Process, hash_files
from lacuner.scale.shards import ending_of


@dataclass(frozen=True)
class PredictJob:
    """Predict with the tagger of a run; the arguments are those of `load_with_entries` and `Tagger.predict`."""

    run: Path
    format: str
    threshold: float | None = None
    on_long: str = "window"
    gazetteer: bool = True
    dictionary: tuple[Path, ...] = ()
    output: str = "documents"
    forkable: bool = False

    @property
    def ending(self) -> str:
        return ending_of(self.format)

    def identity(self) -> dict[str, Any]:
        options = {"threshold": self.threshold, "on_long": self.on_long, "gazetteer": self.gazetteer}
        facts = {"command": "predict", "model": fingerprint(self.run), "files": hash_files(self.dictionary)}
        return {**facts, **options, "format": self.format}

    def open(self) -> Process:
        torch.set_num_threads(1)  # one per worker; with more, rounding could differ
        return partial(self._predict, load_with_entries(self.run, gazetteer=self.gazetteer, dictionary=self.dictionary))

    def _predict(self, tagger: AnyTagger, docs: list[Document]) -> tuple[list[Document], Counts]:
        before = tagger.words_truncated, tagger.words_unread
        predicted = list(tagger.predict(docs, on_long=self.on_long, threshold=self.threshold))
        spans = Counter(span.label for doc in predicted for span in doc.spans)
        words = {"words": sum(len(words_of(doc)) for doc in predicted)}
        words |= {
            "words_truncated": tagger.words_truncated - before[0],
            "words_unread": tagger.words_unread - before[1],
        }
        return predicted, {"documents": len(predicted), **words, "spans": dict(spans)}

    def write(self, rows: Iterable[Document], path: Path) -> Lost:
        return write(rows, path, format=self.format)
