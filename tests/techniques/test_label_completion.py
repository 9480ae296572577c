"""Label completion: word by word, compared with tag sequences; and the files it writes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuner.corpus import read
from lacuner.corpus.words import words_of
from lacuner.data import Document, Span
from lacuner.models.lookup import LookupTagger
from lacuner.techniques.label_completion import (
    SOURCE,
    complete,
    complete_all,
    complete_weak,
    count_labels,
    write_completed,
)
from tests.growth import assert_linear

TEXT = "aa bb cc dd ee ff gg hh"


def words(*spans: tuple[int, int, str], **more: object) -> Document:
    """A document of eight words with spans in words."""
    doc = Document("1", TEXT)
    edges = words_of(doc)
    return replace(doc, spans=tuple(Span(edges[a][0], edges[b - 1][1], label) for a, b, label in spans), **more)


def in_words(doc: Document) -> list[tuple[int, int, str]]:
    return [(s.start // 3, (s.end + 1) // 3, s.label) for s in doc.spans]


def tags(doc: Document) -> list[str]:
    row = ["O"] * 8
    for first, last, label in in_words(doc):
        row[first:last] = [f"B-{label}"] + [f"I-{label}"] * (last - first - 1)
    return row


@pytest.mark.parametrize(
    ("weak", "predicted", "want", "counts"),
    [
        ([(0, 1, "X")], [(2, 4, "Y")], [(0, 1, "X"), (2, 4, "Y")], {"added": 1}),
        ([(0, 2, "X")], [(0, 2, "Y")], [(0, 2, "X")], {}),
        # the weak label stands inside: what is left before it stays, what goes on behind it begins anew
        ([(2, 3, "X")], [(1, 5, "Y")], [(1, 2, "Y"), (2, 3, "X"), (3, 5, "Y")], {"added": 2, "broken": 1}),
        # of the same type it is made longer, as its tags say
        ([(2, 3, "X")], [(2, 5, "X")], [(2, 5, "X")], {"extended": 1}),
        ([(2, 3, "X")], [(1, 3, "X")], [(1, 2, "X"), (2, 3, "X")], {"added": 1}),
        ([(2, 3, "X")], [(3, 5, "X")], [(2, 3, "X"), (3, 5, "X")], {"added": 1}),
        ([(0, 1, "X")], [], [(0, 1, "X")], {}),
    ],
)
def test_word_by_word(
    weak: list[tuple[int, int, str]],
    predicted: list[tuple[int, int, str]],
    want: list[tuple[int, int, str]],
    counts: dict[str, int],
) -> None:
    doc, found = complete(words(*weak, complete=False), words(*predicted))
    assert in_words(doc) == want and dict(found) == counts and doc.complete
    assert {s.source for s in doc.spans} <= {None, SOURCE}


SPANS = st.lists(
    st.tuples(st.integers(0, 7), st.integers(1, 3), st.sampled_from("XY")), max_size=4, unique_by=lambda span: span[0]
)


def _disjoint(spans: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    kept: list[tuple[int, int, str]] = []
    for first, size, label in sorted(spans):
        if first + size <= 8 and (not kept or first >= kept[-1][1]):
            kept.append((first, first + size, label))
    return kept


@given(SPANS, SPANS)
def test_it_is_what_the_tags_say(weak: list[tuple[int, int, str]], predicted: list[tuple[int, int, str]]) -> None:
    mine, yours = words(*_disjoint(weak), complete=False), words(*_disjoint(predicted))
    doc, found = complete(mine, yours)
    want = [a if a != "O" else b for a, b in zip(tags(mine), tags(yours), strict=True)]
    broken = 0
    for i, tag in enumerate(want):
        before = want[i - 1] if i else "O"
        if tag.startswith("I-") and before[2:] != tag[2:]:
            want[i] = "B" + tag[1:]
            broken += 1
    assert tags(doc) == want and found["broken"] == broken


def test_long_documents_are_completed_in_time() -> None:
    def pair(size: int) -> tuple[Document, Document]:
        spans = [Span(at, at + 1, "X", 0.9) for at in range(0, 8 * size, 2)]
        rejected = (*spans[1::4], *[span._replace(label="") for span in spans[2::4]])
        weak = Document("1", "w " * 4 * size, spans=tuple(spans[::4]), unsure=tuple(spans[3::4]), rejected=rejected)
        return weak, replace(weak, spans=tuple(spans))

    _, counts = complete(*pair(10))
    assert counts == {"unsure": 10, "ruled_out": 20}
    assert_linear(pair, lambda docs: complete(*docs), 1_000)


def test_what_is_unsure_stays_unknown_and_what_is_ruled_out_is_none() -> None:
    edge = words_of(words())
    weak = words((0, 1, "X"), complete=False, unsure=(Span(*edge[3], "X"),), rejected=(Span(*edge[6], ""),))
    doc, found = complete(weak, words((2, 4, "Y"), (6, 7, "X"), (7, 8, "Y")))
    assert in_words(doc) == [(0, 1, "X"), (7, 8, "Y")]
    assert dict(found) == {"unsure": 1, "ruled_out": 1, "added": 1}
    assert Span(edge[2][0], edge[3][1], "") in doc.unsure, "its other word is not known to be O either"
    other = replace(weak, rejected=(Span(*edge[6], "Y"),))
    assert (6, 7, "X") in in_words(complete(other, words((6, 7, "X")))[0]), "ruled out for another type"


def test_what_is_ruled_out_only_in_part_is_unknown() -> None:
    """A rejection says that this span is not of this type, or that nothing lies inside of it; not what else is."""
    edge = words_of(words())
    for no, span, known in (
        (Span(*edge[6], "X"), (6, 7, "X"), False),  # something else may be there
        (Span(edge[5][0], edge[7][1], ""), (6, 7, "X"), True),  # nothing is
        (Span(*edge[6], ""), (5, 8, "X"), False),
    ):
        doc, found = complete(words((0, 1, "X"), complete=False, rejected=(no,)), words(span))
        assert in_words(doc) == [(0, 1, "X")] and dict(found) == {"ruled_out": 1}
        assert doc.unsure == (() if known else (Span(edge[span[0]][0], edge[span[1] - 1][1], ""),))
    longer = words((0, 1, "X"), complete=False, rejected=(Span(*edge[6], "X"),))
    assert in_words(complete(longer, words((5, 8, "X")))[0]) == [(0, 1, "X"), (5, 8, "X")]


def test_entities_that_are_not_sure_enough_leave_their_words_unknown() -> None:
    edge = words_of(words())
    weak, found = words((3, 4, "X"), complete=False), words((0, 1, "X"), (2, 5, "Y"), (6, 8, "X"))
    scores = (0.9, 0.2, 0.89)
    guessed = replace(found, spans=tuple(s._replace(score=p) for s, p in zip(found.spans, scores, strict=True)))
    doc, counts = complete(weak, guessed, sure=0.9)
    assert in_words(doc) == [(0, 1, "X"), (3, 4, "X")] and dict(counts) == {"added": 1, "doubted": 2}
    apart = {Span(*edge[2], ""), Span(*edge[4], ""), Span(edge[6][0], edge[7][1], "")}
    assert set(doc.unsure) == apart, "what has a weak label keeps it"


def test_a_label_that_fits_no_words_is_never_covered() -> None:
    weak = replace(words((0, 1, "X"), complete=False), spans=(Span(0, 2, "X"), Span(7, 10, "X")))
    doc, found = complete(weak, words((2, 3, "Y"), (5, 6, "Y")))
    assert found == {"unsure": 1, "added": 1} and Span(7, 10, "X") in doc.spans


def test_a_document_that_is_complete_stays_as_it_is() -> None:
    weak = words((0, 1, "X"), complete=True)
    assert complete(weak, words((2, 3, "Y"))) == (weak, {})
    bare = words(complete=True)
    done = complete_weak(LookupTagger({"cc": "Y"}), [bare, words(complete=False)])
    assert done.docs == [bare] and done.labeled_share.tolist() == [1.0] and done.counts["empty"] == 1


def test_broken_sentences_can_be_left_out() -> None:
    weak = [words((2, 3, "X"), complete=False), words((0, 4, "X"), complete=False)]
    pseudo, scores = [words((1, 5, "Y")), words((5, 6, "Y"))], np.array([0.25, 0.75])
    kept = complete_all(weak, pseudo, scores)
    assert len(kept.docs) == 2 and kept.counts["broken"] == 1 and kept.labeled_share.tolist() == [1 / 8, 4 / 8]
    left = complete_all(weak, pseudo, scores, "drop")
    assert [in_words(doc) for doc in left.docs] == [[(0, 4, "X"), (5, 6, "Y")]] and left.scores.tolist() == [0.75]
    assert (
        left.weak == weak[1:]
        and left.pseudo == count_labels(pseudo[1:])
        and dict(left.counts) == {"dropped": 1, "added": 1}
    )


def test_what_it_leaves_behind(tmp_path: Path) -> None:
    weak = [words((0, 1, "X"), complete=False), words(complete=False)]
    done = complete_weak(LookupTagger({"aa": "X", "cc dd": "<Y> & co", "hh": "X"}), weak)
    gold = [words((0, 1, "X"), complete=True)]
    write_completed(tmp_path, gold, done, np.array([0.5]))
    about = json.loads((tmp_path / "labels.json").read_text(encoding="utf-8"))
    assert about["labels"]["gold"] == {"documents": 1, "words": 8, "entities": {"X": 1}}
    assert about["labels"]["weak"]["entities"] == {"X": 1}
    assert about["labels"]["completed"] == about["labels"]["pseudo"]
    assert about["labels"]["completed"]["entities"] == {"<Y> & co": 1, "X": 2}
    assert about["completion"]["added"] == 2 and about["completion"]["empty"] == 1
    [doc] = read(tmp_path / "completed.jsonl")
    assert doc.meta == {"weak": [[0, 2, "X"]], "confidence": 0.5} and doc.complete
    assert [s.source for s in doc.spans] == [None, SOURCE, SOURCE]
    write_completed(tmp_path, gold, done, np.array([0.5]), round_=2)
    assert (tmp_path / "completed-2.jsonl").read_bytes() == (tmp_path / "completed.jsonl").read_bytes()


def test_labels_are_counted() -> None:
    assert count_labels([words((0, 2, "X"), (3, 4, "X"), (5, 6, "Y")), words()]) == {
        "documents": 2,
        "words": 16,
        "entities": {"X": 2, "Y": 1},
    }
