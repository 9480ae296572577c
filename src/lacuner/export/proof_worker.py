"""The process that loads a run or an export afresh and predicts sample texts (see `proof`)."""

import json
import math
import os
import sys
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from lacuner.corpus import read, words_of, write
from lacuner.corpus.words import word_texts, words_touching
from lacuner.data import Document, Span, Words
from lacuner.processes import read_request

Report = dict[str, Any]
Predict = Callable[[Sequence[Document], Report], Iterable[Document]]
"""Predicts documents and adds counts to the report."""


def main() -> None:
    """Answer one request: predict the texts, write the documents, print a report as JSON."""
    request = read_request()
    predict = LOADERS[request["kind"]](Path(request["folder"]))
    docs = list(read(request["texts"]))
    report: Report = {}
    start = time.perf_counter()
    predicted = list(predict(docs, report))
    report["seconds"] = max(time.perf_counter() - start, 1e-6)
    write(predicted, request["out"])
    sys.stdout.write(json.dumps(report) + "\n")


def load_tagger(folder: Path) -> Predict:
    """The tagger of a run, with its gazetteer."""
    from lacuner.models.storage import load

    tagger = load(folder)
    return lambda docs, report: tagger.predict(docs)


def load_model_alone(folder: Path) -> Predict:
    """The tagger of a run without its gazetteer."""
    from lacuner.models.storage import load
    from lacuner.models.tagger import Tagger

    tagger = load(folder)
    assert isinstance(tagger, Tagger)
    tagger.gazetteer = None
    return lambda docs, report: tagger.predict(docs)


def load_spacy(folder: Path) -> Predict:
    """A spaCy pipeline, which finds the component by the entry point of the installed package."""
    import spacy
    from spacy.language import Language

    try:
        nlp = spacy.load(folder)
    except ValueError:
        if Language.has_factory("lacuner"):
            raise
        sys.exit("spaCy does not know the component `lacuner`: install lacuner again (pip install -e . in its sources)")

    def predict(docs: Sequence[Document], report: Report) -> Iterator[Document]:
        report |= {"expanded to whole tokens": 0, "not in doc.ents": 0}
        for doc, spacy_doc in zip(docs, nlp.pipe(doc.text for doc in docs), strict=True):
            group = spacy_doc.spans["lacuner"]
            report["expanded to whole tokens"] += group.attrs["expanded"]
            report["not in doc.ents"] += len(group) - len(spacy_doc.ents)
            columns = group.attrs["offsets"], group, group.attrs["scores"], group.attrs["sources"]
            yield replace(
                doc,
                spans=tuple(
                    Span(start, end, span.label_, None if math.isnan(value) else round(float(value), 6), source or None)
                    for (start, end), span, value, source in zip(*columns, strict=True)
                ),
            )

    return predict


def load_huggingface(folder: Path) -> Predict:
    """A pipeline of transformers, offline, with text or words as its tokenizer needs them."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    from transformers import pipeline

    from lacuner.export.huggingface import reads_text

    tagger: Any = pipeline("token-classification", model=str(folder), aggregation_strategy="first", device="cpu")
    text_mode = reads_text(folder)

    def predict(docs: Sequence[Document], report: Report) -> Iterator[Document]:
        report |= {"given as words": 0 if text_mode else len(docs), "expanded to whole words": 0}
        for doc in docs:
            words = words_of(doc)
            inputs: Any = doc.text if text_mode else word_texts(doc)
            options = {} if text_mode else {"is_split_into_words": True}
            rows = tagger(inputs, **options) if words else []
            if not text_mode:
                rows = rows[0] if rows and isinstance(rows[0], list) else rows
            spans = tuple(_span_of(row, words, text_mode) for row in rows)
            if text_mode:
                edges = zip(spans, rows, strict=True)
                report["expanded to whole words"] += sum(span[:2] != (row["start"], row["end"]) for span, row in edges)
            yield replace(doc, spans=spans)

    return predict


def _span_of(row: dict[str, Any], words: Words, text_mode: bool) -> Span:
    """An entity of the pipeline, in whole words.

    Its offsets leave out what the tokenizer deletes at the edges of a word; offsets in words joined by spaces become
    offsets in the text.
    """
    start, end = int(row["start"]), int(row["end"])
    if text_mode:
        first, last = words_touching(words, start, end)
    else:
        starts = list(accumulate((after - before + 1 for before, after in words), initial=0))
        first, last = bisect_right(starts, start) - 1, bisect_left(starts, end)
    return Span(words[first][0], words[last - 1][1], row["entity_group"], round(float(row["score"]), 6))


LOADERS: dict[str, Callable[[Path], Predict]] = {
    "tagger": load_tagger,
    "model": load_model_alone,
    "spacy": load_spacy,
    "huggingface": load_huggingface,
}
