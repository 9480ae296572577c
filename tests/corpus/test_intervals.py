"""Interval sets equal a naive search."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lacuner.corpus.intervals import DisjointIntervals, IntervalSet, SpanIndex

triples = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 5), st.sampled_from("XY")).map(lambda t: (t[0], t[0] + t[1], t[2])),
    max_size=8,
)


@given(triples, st.integers(0, 12), st.integers(1, 5))
def test_interval_sets(triples: list[tuple[int, int, str]], start: int, size: int) -> None:
    ranges, end = [triple[:2] for triple in triples], start + size
    assert IntervalSet(ranges).overlaps(start, end) == any(low < end and start < high for low, high in ranges)
    assert IntervalSet(ranges).covers(start, end) == any(low <= start and end <= high for low, high in ranges)
    overlapping = [triple for triple in sorted(triples) if triple[0] < end and start < triple[1]]
    index = SpanIndex(triples)
    assert index.spans == sorted(triples) and index.overlapping(start, end) == overlapping
    assert len(index.overlapping(start, end, limit=1)) == len({(b - a).bit_length() for a, b, _ in overlapping})
    for triple in triples:
        index.remove(triple)
    assert index.spans == []
    for triple in triples:
        index.add(triple)
    assert index.overlapping(start, end) == overlapping
    disjoint, kept = DisjointIntervals(), []
    for low, high in ranges:
        touched = [other for other in sorted(kept) if other[0] < high and low < other[1]]
        assert disjoint.first_overlap(low, high) == (touched[0] if touched else None)
        if not touched:
            disjoint.add(low, high)
            kept.append((low, high))
