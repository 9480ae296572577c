"""Predict entities with `model.onnx`, without torch and lacuner.

    python tagger.py TEXTS.jsonl > PREDICTIONS.jsonl     # one JSON object with "text" per line

or, from Python, `Tagger(FOLDER).predict(["some text"])`: start, end, label and score of each entity of each text.
"""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate
from operator import itemgetter
from pathlib import Path

import onnxruntime

from lacuner.export.reference.spans import decode
from lacuner.export.reference.subwords import WordFeatures

Span = tuple[int, int, str, float]


class Tagger:
    """A tagger in an exported folder; `threads` 0 uses all cores."""

    def __init__(self, folder: str | Path, threads: int = 0) -> None:
        self.config = json.loads(Path(folder, "config.json").read_text(encoding="utf-8"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(Path(folder, "model.onnx"), options)
        self.word = re.compile(self.config["word_pattern"])
        self.features = WordFeatures(self.config["encoder"], Path(folder))

    def predict(self, texts: list[str]) -> list[list[Span]]:
        """Entities of each text, with character offsets."""
        config, windows = self.config, []
        for number, text in enumerate(texts):
            places = [match.span() for match in self.word.finditer(text)]
            costs = self.features.count([text[start:end] for start, end in places])
            for first, last, own, stop in cut_windows(costs, config["window"], config["overlap"]):
                windows.append((sum(costs[first:last]), number, places[first:last], own - first, stop - first))
        windows.sort(key=itemgetter(0))
        found: list[list[Span]] = [[] for _ in texts]
        while windows:
            size = max(1, config["budget"] // windows[-1][0])  # windows that fit with their padding
            batch = windows[-size:]
            del windows[-size:]
            sentences = [[texts[number][start:end] for start, end in places] for _, number, places, _, _ in batch]
            scores = self.session.run(None, self.features.feed(sentences))[0]
            for (_, number, places, own, stop), rows in zip(batch, scores, strict=True):
                for first, last, label, score in decode(rows[: len(places)], config["head"]):
                    if own <= first < stop:
                        edges = places[first][0], places[last - 1][1]
                        found[number].append((*edges, config["labels"][label], round(float(score), 6)))
        return [drop_overlaps(spans) for spans in found]


def cut_windows(costs: list[int], size: int, overlap: int) -> Iterator[tuple[int, int, int, int]]:
    """Overlapping windows of a long text: first word, end, and the words whose entities the window owns."""
    before, start, own = [0, *accumulate(costs)], 0, 0
    while own < len(costs):
        if before[own + 1] > before[start] + size:  # the overlap leaves no room for the next word
            start = own
        end = max(bisect_right(before, before[start] + size) - 1, start + 1)
        stop = max(bisect_left(before, before[end] - overlap // 2), own + 1) if end < len(costs) else end
        yield start, end, own, stop
        back = bisect_left(before, before[stop] - (overlap - overlap // 2))
        start, own = min(max(back, start + 1), stop), stop


def drop_overlaps(spans: list[Span]) -> list[Span]:
    """Keep the more probable of two spans that neighbouring windows predict where they meet."""
    kept: list[Span] = []
    for span in sorted(spans):
        if kept and span[0] < kept[-1][1]:
            kept[-1] = max(kept[-1], span, key=itemgetter(3))
        else:
            kept.append(span)
    return kept
