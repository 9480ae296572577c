"""Unknown stays unknown: what the builders call known, against the rules spelt out word by word and span by span."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuner.data import Lost
from lacuner.errors import CorpusError
from lacuner.models.tag_sets import TagSet
from lacuner.models.targets import choose_span_width, span_targets, token_targets
from lacuner.models.types import Annotation

LABELS = ("LOC", "PER")


@st.composite
def annotations(draw):
    length = draw(st.integers(0, 8))
    span = st.tuples(st.integers(0, 7), st.integers(1, 5), st.sampled_from(["LOC", "PER", "MISC"]))

    def some(spans):
        return [(a, a + w, label) for a, w, label in spans if a + w <= length]

    rejected = [(a, e, draw(st.sampled_from(["", "LOC"]))) for a, e, _ in some(draw(st.lists(span, max_size=2)))]
    unsure = [(a, e, "") for a, e, _ in some(draw(st.lists(span, max_size=2)))]
    spans = list({(a, e): (a, e, x) for a, e, x in some(draw(st.lists(span, max_size=3)))}.values())
    return Annotation(length, spans, rejected, unsure, draw(st.booleans()))


@given(st.lists(annotations(), min_size=1, max_size=4))
def test_spans_one_by_one(corpus):
    widths, lost = 4, Lost()
    targets = span_targets(corpus, LABELS, widths, lost)
    batch = targets.collate(range(len(corpus)))
    for b, a in enumerate(corpus):
        labeled = {(s, e): label for s, e, label in a.spans}
        for i in range(batch.labels.shape[1]):
            for w in range(widths):
                s, e = i, i + w + 1
                known, label = bool(batch.known[b, i, w]), int(batch.labels[b, i, w])
                if e > a.length:
                    assert not known
                elif labeled.get((s, e)) in LABELS:
                    assert known and label == 1 + LABELS.index(labeled[s, e])
                elif (s, e) in labeled or any(s < y and x < e for x, y, _ in a.unsure):
                    assert not known
                else:
                    inside = any(x <= s and e <= y and not label for x, y, label in a.rejected)
                    assert known == (a.complete or inside)
                    assert not known or label == 0
    wide = sum(e - s > widths and label in LABELS for a in corpus for s, e, label in a.spans)
    assert lost.counts["span wider than the model's limit"] == wide
    strange = sum(label == "MISC" for a in corpus for *_, label in a.spans)
    assert lost.counts["span with a label that the model does not have"] == strange


@given(st.lists(annotations(), min_size=1, max_size=4), st.sampled_from(["IO", "BIO", "BIOES"]))
def test_words_one_by_one(corpus, scheme):
    tag_set, lost = TagSet(LABELS, scheme), Lost()
    batch = token_targets(corpus, tag_set, lost).collate(range(len(corpus)))
    overlapping = 0
    for b, a in enumerate(corpus):
        kept = []
        order = sorted((s for s in a.spans if s[2] in LABELS), key=lambda s: (s[0] - s[1], s[0], s[2]))
        for s, e, label in order:
            if all(e <= x or y <= s for x, y, _ in kept):
                kept.append((s, e, label))
            else:
                overlapping += 1
        types = {i: label for s, e, label in kept for i in range(s, e)}
        for i in range(batch.labels.shape[1]):
            known, tag = bool(batch.known[b, i]), tag_set.names[int(batch.labels[b, i])]
            if i >= a.length:
                assert not known
            elif i in types:
                assert known and tag[2:] == types[i]
            elif any(s <= i < e for s, e, _ in (*a.spans, *a.unsure)):
                assert not known
            else:
                assert known == (a.complete or any(s <= i < e and not label for s, e, label in a.rejected))
                assert not known or tag == "O"
    assert lost.counts["span overlaps a longer one"] == overlapping


def test_an_unlabeled_corpus_is_unknown_and_a_complete_one_is_not():
    corpus = [Annotation(3), Annotation(3, complete=True)]
    for targets in (token_targets(corpus, TagSet(LABELS, "BIO"), Lost()), span_targets(corpus, LABELS, 2, Lost())):
        known = targets.collate([0, 1]).known
        assert not known[0].any() and known[1].any()


def test_collate_pads_and_keeps_weights():
    targets = token_targets(
        [Annotation(2, complete=True), Annotation(4, [(1, 3, "PER")])], TagSet(LABELS, "BIO"), Lost()
    )
    targets.weight = targets.known.float() * 0.5
    batch = targets.collate(np.array([1, 0]))
    assert batch.labels.tolist() == [[0, 3, 4, 0], [0, 0, 0, 0]]
    assert batch.known.tolist() == [[False, True, True, False], [True, True, False, False]]
    assert batch.weight[0].tolist() == [0, 0.5, 0.5, 0]


def test_io_says_which_spans_it_merges():
    lost = Lost()
    token_targets([Annotation(4, [(0, 1, "PER"), (1, 3, "PER"), (3, 4, "LOC")])], TagSet(LABELS, "IO"), lost)
    assert lost.counts == {"span merges with its neighbour in the scheme IO": 1}


def test_one_span_two_labels_is_unknown():
    lost = Lost()
    batch = span_targets([Annotation(3, [(0, 2, "PER"), (0, 2, "LOC")], complete=True)], LABELS, 2, lost).collate([0])
    assert not batch.known[0, 0, 1] and batch.known[0, 1, 1]
    assert lost.counts == {"span with two labels": 1}


def test_spans_outside_the_sentence_are_refused():
    with pytest.raises(CorpusError, match="sentence 0 has no words 1 to 3"):
        span_targets([Annotation(2, [(1, 3, "PER")])], LABELS, 4, Lost())


def test_width_is_the_quantile_and_at_least_ten():
    assert choose_span_width([Annotation(5, [(0, 4, "PER")])]) == 10
    assert choose_span_width([]) == 10
    spans = [(0, 1, "PER")] * 985 + [(0, 20, "PER")] * 10 + [(0, 50, "PER")] * 5
    assert choose_span_width([Annotation(50, spans)]) == 20
