"""Scores as rows of a table."""

from __future__ import annotations

from collections.abc import Iterator

from lacuner.evaluate import Count, Evaluation


def score_rows(scores: Evaluation) -> Iterator[tuple[object, ...]]:
    """All types together, then each type, then the looser counts."""
    mark = "" if scores.final else "*"
    yield _row("all (micro)" + mark, scores.exact)
    precision, recall, f1 = (f"{100 * value:.1f}" for value in scores.macro)
    yield "all (macro)" + mark, precision, recall, f1, "", "", ""
    for label, count in scores.per_type.items():
        yield _row("  " + label, count)
    yield _row("place only", scores.boundary)
    yield _row("type only, any overlap", scores.type_only)


def _row(name: str, count: Count) -> tuple[object, ...]:
    numbers = (f"{100 * value:.1f}" for value in (count.precision, count.recall, count.f1))
    return name, *numbers, f"{count.correct:,}", f"{count.predicted:,}", f"{count.gold:,}"


def incomplete_note(scores: Evaluation) -> str:
    """What a score is worth against gold that is incomplete, or unsure."""
    low, high = scores.precision_range
    return (
        f"* not final: gold is incomplete in {scores.incomplete:,} of {scores.documents:,} documents, and says nothing "
        f"of {scores.unjudged:,} predicted spans; precision lies between {100 * low:.1f} and {100 * high:.1f}, "
        "and recall counts only what gold knows"
    )
