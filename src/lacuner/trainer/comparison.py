"""Is the model better than the gazetteer it was trained from? Scores of the gazetteer, the model, and both."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lacuner.data import Document
from lacuner.evaluate.scores import Count
from lacuner.evaluate.significance import f1_interval, sentence_counts
from lacuner.evaluate.threshold import tune_threshold
from lacuner.models.gazetteer import TaggerGazetteer, merge_spans
from lacuner.models.tagger import Tagger, predict_all
from lacuner.models.types import HasThreshold


@dataclass(frozen=True)
class SystemScore:
    """Counts of one system on dev, and the 95 % interval of its F1 (bootstrap over documents)."""

    system: str
    count: Count
    low: float
    high: float


def compare_with_gazetteer(tagger: Tagger, dev: Sequence[Document]) -> list[SystemScore]:
    """Scores of the tagger's gazetteer alone, its model alone, and both, on dev."""
    assert tagger.gazetteer is not None
    matched = match_gazetteer(tagger.gazetteer, dev)
    model = list(Tagger(tagger.model).predict(dev))
    both = list(tagger.predict(dev))
    return [
        _score(name, dev, docs)
        for name, docs in {"gazetteer alone": matched, "model alone": model, "both": both}.items()
    ]


def match_gazetteer(gazetteer: TaggerGazetteer, docs: Sequence[Document]) -> list[Document]:
    """Documents with the matches of a gazetteer in place of their labels."""
    return [replace(doc, spans=tuple(gazetteer.find(doc)), rejected=(), unsure=(), complete=None) for doc in docs]


def tune_with_gazetteer(tagger: Tagger, dev: Sequence[Document]) -> None:
    """Tune the decision threshold of a span model for use together with its gazetteer."""
    head, gazetteer = tagger.model.head, tagger.gazetteer
    if gazetteer is None or not isinstance(head, HasThreshold):
        return
    matched = match_gazetteer(gazetteer, dev)
    merged = [
        replace(doc, spans=merge_spans([span._replace(score=1.0) for span in match.spans], doc.spans))
        for match, doc in zip(matched, predict_all(tagger.model, dev), strict=True)
    ]
    # a match stays whatever the model says: it must not get the model's score
    merged = [
        replace(doc, spans=tuple(span._replace(score=1.0) if span.source else span for span in doc.spans))
        for doc in merged
    ]
    head.threshold = tune_threshold(dev, merged)[0]


def _score(system: str, dev: Sequence[Document], predicted: Sequence[Document]) -> SystemScore:
    counts = sentence_counts(dev, predicted)
    correct, spans, gold = counts.sum(axis=0).tolist()
    return SystemScore(system, Count(correct, spans, gold), *f1_interval(counts))
