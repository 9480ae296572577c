"""T2: offsets stay valid: every span is kept as annotated or recorded as lost."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from lacuner.corpus.tags import SCHEMES, Chunk, decode, decode_strict, encode
from lacuner.corpus.words import find_words, flatten, join_words, split_spaces, split_words, to_words, words_of
from lacuner.data import Document, Lost
from lacuner.models.windows import cut_windows
from tests.strategies import characters, documents, labels, texts


@given(texts)
def test_words_cover_every_visible_character_once(text: str) -> None:
    for split in (split_words, split_spaces):
        words = split(text)
        covered = [i for start, end in words for i in range(start, end)]
        assert len(set(covered)) == len(covered) and covered == sorted(covered)
        assert all(text[i].isspace() for i in set(range(len(text))) - set(covered))
        assert all(start < end for start, end in words)


@given(st.lists(st.text(characters, min_size=1, max_size=5), max_size=8))
def test_offsets_of_joined_words(tokens: list[str]) -> None:
    text, words = join_words(tokens)
    assert [text[start:end] for start, end in words] == tokens


@given(texts)
def test_find_words_inverts_splitting(text: str) -> None:
    words = split_words(text)
    assert find_words(text, [text[start:end] for start, end in words]) == words


@given(documents())
def test_every_span_is_kept_or_lost(doc: Document) -> None:
    lost = Lost()
    fitting = to_words(doc, doc.spans, lost)
    words = words_of(doc)
    for first, last, span in fitting:
        assert (words[first][0], words[last - 1][1]) == (span.start, span.end)
    kept = flatten(doc, [span for _, _, span in fitting], lost)
    assert sorted((s.start, s.end, s.label) for s in (*kept, *lost.spans)) == sorted(s[:3] for s in doc.spans)
    assert all(row.text == doc.text[row.start : row.end] for row in lost.spans)
    assert len(lost) == len(lost.spans)


@given(documents())
def test_expanded_spans_cover_what_they_came_from(doc: Document) -> None:
    words = words_of(doc)
    for first, last, span in to_words(doc, doc.spans, Lost(), "expand"):
        start, end = words[first][0], words[last - 1][1]
        outside = doc.text[span.start : max(start, span.start)] + doc.text[min(end, span.end) : span.end]
        assert not outside.strip(), "every visible character of the span is covered"


@st.composite
def chunk_lists(draw: st.DrawFn) -> tuple[int, list[Chunk]]:
    length = draw(st.integers(0, 60))
    edges = sorted(draw(st.sets(st.integers(0, length), max_size=12)))
    pairs = list(itertools.pairwise(edges))
    return length, [Chunk(start, end, draw(labels)) for start, end in pairs if draw(st.booleans())]


@given(chunk_lists(), st.sampled_from(sorted(SCHEMES)))
def test_tags_decode_to_the_same_chunks(case: tuple[int, list[Chunk]], scheme: str) -> None:
    length, chunks = case
    if scheme == "IO":  # which cannot tell two chunks of one label that touch
        chunks = [
            c for i, c in enumerate(chunks) if not i or chunks[i - 1].end < c.start or chunks[i - 1].label != c.label
        ]
    tags = encode(chunks, length, scheme)
    assert len(tags) == length
    assert decode(tags) == chunks
    assert decode_strict(tags, scheme) == chunks


@settings(max_examples=400)
@given(chunk_lists(), st.integers(1, 20), st.booleans(), st.data())
def test_windows_contain_every_word_and_cut_no_chunk(
    case: tuple[int, list[Chunk]], size: int, equal: bool, data: st.DataObject
) -> None:
    length, chunks = case
    overlap = data.draw(st.integers(0, size - 1))
    costs = [1 if equal else data.draw(st.integers(1, 4)) for _ in range(length)]
    windows, too_long = cut_windows(costs, size, overlap, chunks)
    owned = [i for window in windows for i in range(window.own_start, window.own_end)]
    assert owned == list(range(length))
    for window in windows:
        assert window.start <= window.own_start <= window.own_end <= window.end
        assert sum(costs[window.start : window.end]) <= size or window.end - window.start == 1
    # each chunk, read whole by the window that owns its first word
    found = [
        chunk
        for window in windows
        for chunk in chunks
        if window.own_start <= chunk.start < window.own_end and window.start <= chunk.start and chunk.end <= window.end
    ]
    short = [chunk for chunk in chunks if chunk not in too_long]
    assert sorted(chunk for chunk in found if chunk not in too_long) == sorted(short)
    assert all(sum(costs[chunk.start : chunk.end]) > size for chunk in too_long)


@given(st.integers(1, 500))
def test_a_short_document_is_one_window(length: int) -> None:
    windows, _ = cut_windows([1] * length, 500, 50)
    assert [tuple(window) for window in windows] == [(0, length, 0, length)]
