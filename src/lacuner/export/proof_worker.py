"""The process that loads a run or an export afresh and predicts sample texts (see `proof`)."""

import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lacuner.corpus import read, write
from lacuner.data import Document, Span
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


LOADERS: dict[str, Callable[[Path], Predict]] = {
    "tagger": load_tagger,
    "model": load_model_alone,
    "spacy": load_spacy,
}
