"""Choose the rule by which a tagger merges gazetteer matches and predictions, on dev or on gold.

Which rule is best depends on the gazetteer: where its entries are usually parts of longer names, the model alone can be
better than both. With few sentences the differences are mostly chance. So another rule than the default needs to be
better in most bootstrap samples.
"""

from collections.abc import Sequence
from dataclasses import replace

from lacuner.data import Document, Span
from lacuner.evaluate.scores import Count
from lacuner.evaluate.significance import better_share, sentence_counts
from lacuner.evaluate.threshold import tune_threshold
from lacuner.models.gazetteer import TaggerGazetteer
from lacuner.models.merging import DEFAULT_RULE, MERGE_RULES, MergeRule, merge_spans
from lacuner.models.tagger import Tagger, predict_all
from lacuner.models.types import HasThreshold

MIN_BETTER = 0.9
"""Share of the bootstrap samples in which another rule must have a higher F1 than the default."""


def choose_rule(
    gold: Sequence[Document],
    matched: Sequence[Document],
    predicted: Sequence[Document],
    thresholds: dict[MergeRule, float] | None = None,
) -> MergeRule:
    """The rule with the best F1 on gold, unless it is not clearly better than the default.

    Args:
        gold: complete documents.
        matched: the same documents with the gazetteer's matches.
        predicted: the same documents with the predictions of the model alone.
        thresholds: the decision threshold for each rule; by default that of the predictions.

    >>> from lacuner.data import Span
    >>> gold = [Document(str(n), "New Halden", spans=(Span(0, 10, "LOC"),), complete=True) for n in range(20)]
    >>> matched = [replace(doc, spans=(Span(4, 10, "LOC"),), complete=None) for doc in gold]
    >>> predicted = [replace(doc, spans=(Span(0, 10, "LOC", 0.4),), complete=None) for doc in gold]
    >>> choose_rule(gold, matched, predicted)
    'model'
    """
    counts = {
        rule: sentence_counts(gold, merge_all(matched, predicted, rule, (thresholds or {}).get(rule, 0.0)))
        for rule in MERGE_RULES
    }
    f1 = {rule: Count(*own.sum(axis=0).tolist()).f1 for rule, own in counts.items()}
    best = max(MERGE_RULES, key=lambda rule: (f1[rule], rule == DEFAULT_RULE))
    if best == DEFAULT_RULE or better_share(counts[best], counts[DEFAULT_RULE]) < MIN_BETTER:
        return DEFAULT_RULE
    return best


def merge_all(
    matched: Sequence[Document], predicted: Sequence[Document], rule: MergeRule, threshold: float = 0.0
) -> list[Document]:
    """Documents with the spans of both, combined by a rule; predictions below the threshold are left out."""
    return [
        replace(doc, spans=merge_spans(match.spans, _above(doc, threshold), rule))
        for match, doc in zip(matched, predicted, strict=True)
    ]


def _above(doc: Document, threshold: float) -> tuple[Span, ...]:
    return tuple(span for span in doc.spans if span.score is None or span.score >= threshold)


def match_gazetteer(gazetteer: TaggerGazetteer, docs: Sequence[Document]) -> list[Document]:
    """Documents with the matches of a gazetteer in place of their labels."""
    return [replace(doc, spans=tuple(gazetteer.find(doc)), rejected=(), unsure=(), complete=None) for doc in docs]


def fit_to_dev(tagger: Tagger, dev: Sequence[Document], tune: bool) -> None:
    """Choose the merge rule of a tagger on dev; with `tune`, also the decision threshold of its span classifier."""
    head, gazetteer = tagger.model.head, tagger.gazetteer
    if gazetteer is None:
        return
    matched = match_gazetteer(gazetteer, dev)
    if not (tune and isinstance(head, HasThreshold)):
        tagger.gazetteer = gazetteer.with_rule(choose_rule(dev, matched, list(Tagger(tagger.model).predict(dev))))
        return
    predicted = predict_all(tagger.model, dev)
    thresholds = {rule: _tune_threshold(dev, matched, predicted, rule) for rule in MERGE_RULES}
    rule = choose_rule(dev, matched, predicted, thresholds)
    head.threshold, tagger.gazetteer = thresholds[rule], gazetteer.with_rule(rule)


def tune_with_gazetteer(tagger: Tagger, dev: Sequence[Document]) -> None:
    """Tune the decision threshold of a span model for use together with its gazetteer, whose rule stays."""
    head, gazetteer = tagger.model.head, tagger.gazetteer
    if gazetteer is None or not isinstance(head, HasThreshold):
        return
    predicted = predict_all(tagger.model, dev)
    head.threshold = _tune_threshold(dev, match_gazetteer(gazetteer, dev), predicted, gazetteer.rule)


def _tune_threshold(
    dev: Sequence[Document], matched: Sequence[Document], predicted: Sequence[Document], rule: MergeRule
) -> float:
    merged = merge_all(matched, predicted, rule)
    # a match stays whatever the model says: it must not get the model's score
    merged = [
        replace(doc, spans=tuple(span._replace(score=1.0) if span.source else span for span in doc.spans))
        for doc in merged
    ]
    return tune_threshold(dev, merged)[0]
