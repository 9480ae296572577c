"""Aligning documents with gold: by order, by text, by id, and never silently for half of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from lacuner.data import Document, Span
from lacuner.errors import CorpusError
from lacuner.evaluate.align import align, align_partial, gold_by_text


def docs(*names: str) -> list[Document]:
    return [Document(name, f"text {name}") for name in names]


def test_documents_are_aligned_by_order_then_by_text() -> None:
    assert [(a.id, b.id) for a, b in align(docs("a", "b"), docs("a", "b"))] == [("a", "a"), ("b", "b")]
    assert [(a.id, b.id) for a, b in align(docs("a", "b", "c"), docs("a", "c", "b"))] == [
        ("a", "a"),
        ("b", "b"),
        ("c", "c"),
    ]
    same_text = [Document("1", "x"), Document("2", "x")]
    assert len(list(align(same_text, [Document("7", "x"), Document("8", "x")]))) == 2


@pytest.mark.parametrize(
    ("gold", "other", "words"),
    [
        (docs("a", "b"), docs("a"), "'b' is not in the other corpus"),
        (docs("a"), docs("a", "b"), "'b' is not in gold"),
        (docs("a", "b"), docs("b", "c"), "'a' is not in the other corpus"),
        (docs("b", "a"), docs("a", "b", "c"), "'c' is not in gold"),
        (docs("a"), [Document("a", "text b")], "from character 5 on"),
    ],
)
def test_documents_on_one_side_only_are_an_error(gold: list[Document], other: list[Document], words: str) -> None:
    with pytest.raises(CorpusError, match=words):
        list(align(gold, other))


def test_differences_in_white_space_are_explained() -> None:
    gold, found = Document("1", "Mara Teel left ."), Document("1", "Mara Teel left.")
    with pytest.raises(CorpusError, match="white space in the other corpus, from character 14 on; column files"):
        list(align([gold], [found]))
    with pytest.raises(CorpusError, match="differs in text in the other corpus, from character 10 on"):
        list(align([gold], [replace(found, text="Mara Teel went.")]))


def test_ids_decide_between_equal_texts() -> None:
    gold = [Document("a", "x"), Document("b", "x"), Document("c", "y")]
    assert [(left.id, right.id) for left, right in align(gold, gold[::-1])] == [("a", "a"), ("b", "b"), ("c", "c")]


def test_documents_in_order_are_not_held_in_memory() -> None:
    read: list[str] = []

    def predicted() -> Iterator[Document]:
        for doc in docs("a", "b", "c", "d"):
            read.append(doc.id)
            yield doc

    pairs = align(docs("a", "b", "c", "d"), predicted())
    next(pairs)
    assert read == ["a", "b"]


def test_gold_for_some_documents() -> None:
    some = docs("c", "a")
    assert [gold and gold.id for gold, _ in align_partial(some, docs("a", "b", "c"))] == ["a", None, "c"]
    assert [gold and gold.id for gold, _ in align_partial(docs("a"), docs("a", "b"))] == ["a", None]
    with pytest.raises(CorpusError, match="'c' is not in the corpus"):
        list(align_partial(some, docs("a", "b")))
    with pytest.raises(CorpusError, match="differs in text in the corpus, from character 5"):
        list(align_partial([Document("b", "text c")], docs("a", "b")))


def test_texts_with_contradicting_gold_are_left_out() -> None:
    labeled = Document("1", "x", spans=(Span(0, 1, "PER", 0.5),))
    gold = [labeled, replace(labeled, id="2", spans=(Span(0, 1, "PER"),)), *docs("a")]
    assert {text: doc.id for text, doc in gold_by_text(gold).items()} == {"x": "1", "text a": "a"}
    assert list(gold_by_text([*gold, Document("3", "x")])) == ["text a"]
