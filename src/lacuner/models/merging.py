"""How gazetteer matches and predictions combine where they overlap: the merge rules."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Literal, get_args

from lacuner.data import Span

MergeRule = Literal["match", "extension", "longer", "prediction", "model"]
MERGE_RULES: tuple[MergeRule, ...] = get_args(MergeRule)
DEFAULT_RULE: MergeRule = "extension"
"""The rule where nothing is known about model and gazetteer."""
RULE_SENTENCES: dict[MergeRule, str] = {
    "match": "a match of the gazetteer wins over every prediction that overlaps it",
    "extension": "a match of the gazetteer wins, except over a probable prediction that extends this match alone",
    "longer": "a match of the gazetteer wins, except over a probable prediction that contains it in a longer name",
    "prediction": "a probable prediction wins over the matches of the gazetteer that it overlaps",
    "model": "the matches of the gazetteer are not used, only the predictions of the model",
}
MIN_PROBABILITY = 0.5
"""Probability above which a prediction can replace a match."""


def merge_spans(matches: Sequence[Span], predicted: Sequence[Span], rule: MergeRule = DEFAULT_RULE) -> tuple[Span, ...]:
    """Combine gazetteer matches and predictions; neither overlap among themselves, and nor does the result.

    The rule decides which predictions with a probability above `MIN_PROBABILITY` replace the matches that they
    overlap. A prediction with the place and label of a match gives the match its score.

    >>> matches, longer = [Span(0, 4, "PER"), Span(5, 8, "LOC")], Span(0, 8, "ORG", 0.7)
    >>> [span.key for span in merge_spans(matches, [longer])]
    [(0, 4, 'PER'), (5, 8, 'LOC')]
    >>> [span.key for span in merge_spans(matches, [longer], "longer")]
    [(0, 8, 'ORG')]
    """
    if rule == "model":
        return tuple(predicted)
    matches = sorted(matches)
    starts, ends = [match.start for match in matches], [match.end for match in matches]
    overlapped = [range(bisect_right(ends, span.start), bisect_left(starts, span.end)) for span in predicted]
    scores = {span.key: span.score for span in predicted}
    replaced = {
        number
        for span, numbers in zip(predicted, overlapped, strict=True)
        if numbers and _replaces(span, [matches[number] for number in numbers], rule)
        for number in numbers
    }
    kept = [
        match._replace(score=scores.get(match.key, match.score))
        for number, match in enumerate(matches)
        if number not in replaced
    ]
    free = [
        span
        for span, numbers in zip(predicted, overlapped, strict=True)
        if all(number in replaced for number in numbers)
    ]
    return tuple(sorted([*kept, *free]))


def _replaces(span: Span, matches: Sequence[Span], rule: MergeRule) -> bool:
    """Whether a prediction replaces all matches that it overlaps."""
    if rule == "match" or (span.score or 0.0) <= MIN_PROBABILITY or span.key == matches[0].key:
        return False
    if rule == "prediction":
        return True
    contains = span.start <= matches[0].start and matches[-1].end <= span.end and span[:2] != matches[0][:2]
    return contains and (rule == "longer" or len(matches) == 1)
