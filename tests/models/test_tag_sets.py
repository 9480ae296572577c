"""Tags as arrays agree with tags as strings, and greedy in rounds agrees with greedy one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuner.corpus import tags as strings
from lacuner.errors import ConfigError
from lacuner.models.tag_sets import TagSet, keep_disjoint

NAMES = {"IO": "IO", "BIO": "IOB2", "BIOES": "BIOES"}
LABELS = ("LOC", "PER")


@given(st.sampled_from(sorted(NAMES)), st.lists(st.lists(st.integers(0, 8), max_size=9), min_size=1, max_size=4))
def test_any_tags_are_read_as_conlleval_reads_them(scheme, sentences):
    tag_set = TagSet(LABELS, scheme)
    longest = max(1, *map(len, sentences))
    rows = np.zeros((len(sentences), longest), dtype=np.int64)
    for row, sentence in zip(rows, sentences, strict=True):
        row[: len(sentence)] = np.array(sentence, dtype=np.int64) % len(tag_set)
    certain = np.linspace(0.1, 0.9, rows.size).reshape(rows.shape)
    found = tag_set.decode(rows, certain)
    got = [(s, a, e, LABELS[label]) for s, a, e, label in zip(*(x.tolist() for x in found[:4]), strict=True)]
    want = []
    for i, row in enumerate(rows):
        want += [(i, *chunk) for chunk in strings.decode([tag_set.names[tag] for tag in row])]
    assert got == want
    assert found.score.tolist() == [certain[s, a:e].min() for s, a, e, _ in got]


@pytest.mark.parametrize("scheme", sorted(NAMES))
def test_encoding_is_the_corpus_modules_encoding(scheme):
    chunks = [strings.Chunk(0, 1, "PER"), strings.Chunk(1, 3, "PER"), strings.Chunk(4, 8, "LOC")]
    tag_set = TagSet(LABELS, scheme)
    start, end = (np.array([chunk[i] for chunk in chunks]) for i in (0, 1))
    label = np.array([LABELS.index(chunk.label) for chunk in chunks])
    got = [tag_set.names[tag] for tag in tag_set.encode(start, end, label, 9)]
    assert got == strings.encode(chunks, 9, NAMES[scheme])


@pytest.mark.parametrize("scheme", sorted(NAMES))
def test_allowed_sequences_are_the_regular_ones(scheme):
    tag_set = TagSet(("X", "Y"), scheme)
    follows, first, last = tag_set.allowed()
    count = 0
    for number in range(len(tag_set) ** 3):
        path = [number % len(tag_set), number // len(tag_set) % len(tag_set), number // len(tag_set) ** 2]
        legal = first[path[0]] and last[path[-1]] and follows[path[0], path[1]] and follows[path[1], path[2]]
        names = [tag_set.names[tag] for tag in path]
        assert legal == (strings.encode(strings.decode(names), 3, NAMES[scheme]) == names)
        count += 1
    assert count == len(tag_set) ** 3


def test_bad_tag_sets_are_refused():
    for labels, scheme in ((("A", "A"), "BIO"), ((), "BIO"), (("A",), "IOB3")):
        with pytest.raises(ConfigError):
            TagSet(labels, scheme)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 6), st.integers(0, 3)), max_size=25))
def test_rounds_give_the_greedy_result(spans):
    start, width, score = (np.array([span[i] for span in spans], dtype=np.int64) for i in range(3))
    kept = keep_disjoint(start, start + width, (-np.arange(len(spans)), score), 30)
    taken, want = set(), [False] * len(spans)
    for i in sorted(range(len(spans)), key=lambda i: (-score[i], i)):
        words = set(range(start[i], start[i] + width[i]))
        if not words & taken:
            taken |= words
            want[i] = True
    assert kept.tolist() == want
