"""Predict entities with `model.onnx`, without torch and lacuner.

    python tagger.py TEXTS.jsonl > PREDICTIONS.jsonl     # one JSON object with "text" per line

or, from Python, `Tagger(FOLDER).predict(["some text"])`: start, end, label and score of each entity of each text.
"""

import json
import os
import sys
import time
from bisect import bisect_left, bisect_right
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import regex

from lacuner.export.reference.spans import decode
from lacuner.export.reference.tiny import WordFeatures

Span = tuple[int, int, str, float]


class Tagger:
    """A tagger in an exported folder; `threads` 0 uses all cores."""

    def __init__(self, folder: str | Path, threads: int = 0) -> None:
        self.config: dict[str, Any] = json.loads(Path(folder, "config.json").read_text(encoding="utf-8"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(Path(folder, "model.onnx"), options)
        self.pattern = regex.compile(self.config["word_pattern"])
        self.features = WordFeatures(self.config["encoder"], Path(folder))

    def predict(self, texts: list[str]) -> list[list[Span]]:
        """Entities of each text, with character offsets."""
        places = [[match.span() for match in self.pattern.finditer(text)] for text in texts]
        pieces: list[tuple[int, tuple[int, int, int, int]]] = []  # text and window
        costs: list[int] = []
        for number, text in enumerate(texts):
            word_costs = self.features.count([text[start:end] for start, end in places[number]])
            for window in cut_windows(word_costs, self.config["window"], self.config["overlap"]):
                if window[0] < window[1]:
                    pieces.append((number, window))
                    costs.append(sum(word_costs[window[0] : window[1]]))
        found: list[list[Span]] = [[] for _ in texts]
        for batch in make_batches(costs, self.config["budget"]):
            sentences = [
                [texts[number][start:end] for start, end in places[number][window[0] : window[1]]]
                for number, window in (pieces[i] for i in batch)
            ]
            scores = self.session.run(None, self.features.feed(sentences))[0]
            for row, i in enumerate(batch):
                number, (first, last, own_start, own_end) = pieces[i]
                for start, end, label, score in decode(scores[row, : last - first], self.config["head"]):
                    if own_start <= first + start < own_end:
                        edges = places[number][first + start][0], places[number][first + end - 1][1]
                        found[number].append((*edges, self.config["labels"][label], round(float(score), 6)))
        return [drop_overlaps(sorted(spans)) for spans in found]


def cut_windows(costs: list[int], size: int, overlap: int) -> list[tuple[int, int, int, int]]:
    """Overlapping windows of a long text: first word, end, and the words that the window owns."""
    before = [0, *accumulate(costs)]
    if before[-1] <= size:
        return [(0, len(costs), 0, len(costs))]
    windows: list[tuple[int, int, int, int]] = []
    start = own_start = 0
    while True:
        end = max(bisect_right(before, before[start] + size) - 1, start + 1)
        if end <= own_start:
            start = own_start
            continue
        if end == len(costs):
            return [*windows, (start, end, own_start, end)]
        own_end = max(bisect_left(before, before[end] - overlap // 2), own_start + 1)
        windows.append((start, end, own_start, own_end))
        back = bisect_left(before, before[own_end] - (overlap - overlap // 2))
        start, own_start = min(max(back, start + 1), own_end), own_end


def make_batches(costs: list[int], budget: int) -> list[list[int]]:
    """Sentences of similar length in batches that fit the budget with their padding."""
    batches: list[list[int]] = []
    for i in np.argsort(costs, kind="stable").tolist():
        if batches and costs[i] * (len(batches[-1]) + 1) <= budget:
            batches[-1].append(i)
        else:
            batches.append([i])
    return batches


def drop_overlaps(spans: list[Span]) -> list[Span]:
    """Keep the more probable of two spans that neighbouring windows predict where they meet."""
    kept: list[Span] = []
    for span in spans:
        if not kept or kept[-1][1] <= span[0]:
            kept.append(span)
        elif span[3] > kept[-1][3]:
            kept[-1] = span
    return kept


def main() -> None:
    """Predict a file: JSON lines to standard output, the time to standard error."""
    tagger = Tagger(Path(__file__).parent, int(os.environ.get("OMP_NUM_THREADS", "0")))
    with open(sys.argv[1], encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    begin = time.perf_counter()
    predictions = tagger.predict([row["text"] for row in rows])
    seconds = time.perf_counter() - begin
    keys = ("start", "end", "label", "score")
    for row, spans in zip(rows, predictions, strict=True):
        found = [dict(zip(keys, span, strict=True)) for span in spans]
        sys.stdout.write(json.dumps({"id": row.get("id", ""), "text": row["text"], "spans": found}) + "\n")
    sys.stderr.write(json.dumps({"documents": len(rows), "seconds": seconds}) + "\n")


if __name__ == "__main__":
    main()
