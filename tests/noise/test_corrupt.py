from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter

import pytest

from lacuner.config import make_config
from lacuner.data import Document, Span
from lacuner.errors import ConfigError
from lacuner.noise import Noise, corrupt
from lacuner.noise.corrupt import _hash_of


def corpus(size: int = 400) -> list[Document]:
    rng = random.Random(0)
    docs = []
    for i in range(size):
        names = rng.choices(["Mara", "Halden", "Oslo", "Teel"], k=4)
        text = f"{names[0]} met {names[1]} and {names[2]} near {names[3]} {i}"
        spans, at = [], 0
        for name in names:
            at = text.index(name, at)
            spans.append(Span(at, at + len(name), "PER" if name in ("Mara", "Teel") else "LOC"))
            at += len(name)
        docs.append(Document(str(i), text, spans=tuple(spans), complete=True))
    return docs


def fates(docs: list[Document]) -> dict[str, tuple[Span, ...]]:
    return {doc.text: doc.spans for doc in docs}


def test_the_rate_is_kept_and_the_result_is_incomplete() -> None:
    docs = corpus()
    tally: Counter[str] = Counter()
    weak = list(corrupt(docs, Noise(drop=0.3, seed=5), tally=tally))
    kept = sum(len(doc.spans) for doc in weak)
    assert tally["entities"] == 1600 and kept == 1600 - tally["dropped"]
    assert 0.27 < tally["dropped"] / 1600 < 0.33
    assert all(doc.complete is False for doc in weak)
    assert all(set(new.spans) <= set(old.spans) for new, old in zip(weak, docs, strict=True))
    assert docs[0].complete is True, "the gold documents are left alone"


def test_extremes() -> None:
    docs = corpus(20)
    assert [doc.spans for doc in corrupt(docs, Noise())] == [doc.spans for doc in docs]
    assert not any(doc.spans for doc in corrupt(docs, Noise(drop=1)))


def test_noise_does_not_depend_on_order_or_other_documents() -> None:
    docs = corpus()
    noise = Noise(drop=0.3, wrong_type=0.2, shift=0.2)
    expected = fates(list(corrupt(docs, noise)))
    shuffled = docs[:]
    random.Random(1).shuffle(shuffled)
    assert fates(list(corrupt(shuffled, noise))) == expected
    some = fates(list(corrupt(docs[100:200], noise, labels=["LOC", "PER"])))
    assert some == {text: expected[text] for text in some}
    assert fates(list(corrupt(docs, Noise(drop=0.3, wrong_type=0.2, shift=0.2, seed=2)))) != expected


def test_copies_of_a_sentence_get_different_noise() -> None:
    docs = [Document(str(i), "Mara sings", spans=(Span(0, 4, "PER"),)) for i in range(400)]
    left = sum(len(doc.spans) for doc in corrupt(docs, Noise(drop=0.5)))
    assert 150 < left < 250


def test_by_surface_drops_all_mentions_of_a_name_or_none() -> None:
    docs = corpus()
    weak = list(corrupt(docs, Noise(drop=0.5, by_surface=True, seed=3)))
    left = {doc.text[s.start : s.end] for doc in weak for s in doc.spans}
    gone = {
        doc.text[s.start : s.end] for new, doc in zip(weak, docs, strict=True) for s in set(doc.spans) - set(new.spans)
    }
    assert left and gone and not left & gone


def test_drop_rates_by_type() -> None:
    weak = list(corrupt(corpus(), Noise(drop=0.0, drop_types={"LOC": 1.0})))
    assert {span.label for doc in weak for span in doc.spans} == {"PER"}
    with pytest.raises(ConfigError, match=r"drop_types\.LOC: input should be less than or equal to 1, not 3"):
        make_config(Noise, {"drop_types": {"LOC": 3.0}})


def test_wrong_types_and_shifted_boundaries() -> None:
    docs = corpus()
    tally: Counter[str] = Counter()
    weak = list(corrupt(docs, Noise(wrong_type=0.25, shift=0.25), tally=tally))
    retyped = moved = 0
    for new, old in zip(weak, docs, strict=True):
        assert len(new.spans) == len(old.spans)
        places = {(span.start, span.end) for span in old.spans}
        for a, b in zip(new.spans, old.spans, strict=True):
            retyped += a.label != b.label
            moved += (a.start, a.end) not in places
            assert new.text[a.start : a.end].strip() == new.text[a.start : a.end]
        for a, b in zip(new.spans, new.spans[1:], strict=False):
            assert a.end <= b.start, "edges move only into free words"
    assert retyped == tally["retyped"] and 0.2 < retyped / 1600 < 0.3
    assert moved == tally["shifted"] and moved > 200


@pytest.mark.integration
def test_the_hash_seed_of_python_does_not_matter() -> None:
    code = (
        "from lacuner.noise import *; from lacuner.data import *;"
        "print([d.spans for d in corrupt([Document('1', 'a b c d', spans=tuple(Span(i, i + 1, l) for i, l in"
        " zip((0, 2, 4, 6), 'XYXY')))], Noise(drop=0.4, wrong_type=0.4, shift=0.9))])"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(runs) == 1


def test_a_wrong_type_is_any_other_type() -> None:
    """The types are not listed for each entity, which took quadratic time with thousands of types."""
    docs = corpus(200)
    labels = ["LOC", "MISC", "ORG", "PER"]
    weak = list(corrupt(docs, Noise(wrong_type=1), labels=labels))
    pairs = Counter(
        (old.label, new.label)
        for a, b in zip(docs, weak, strict=True)
        for old, new in zip(a.spans, b.spans, strict=True)
    )
    assert set(pairs) == {(old, new) for old in ("LOC", "PER") for new in labels if new != old}
    assert max(pairs.values()) < 1.6 * min(pairs.values())


def test_the_text_of_a_document_is_hashed_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was hashed several times for each entity, which took quadratic time for a long document."""
    text = "Mara Teel left " * 200
    doc = Document("1", text, spans=tuple(Span(15 * i, 15 * i + 9, "PER") for i in range(200)))
    hashed = []
    monkeypatch.setattr(
        sys.modules["lacuner.noise.corrupt"],
        "_hash_of",
        lambda *parts: hashed.append(text in parts) or _hash_of(*parts),
    )
    list(corrupt([doc], Noise(drop=0.2, wrong_type=0.3, shift=0.5, spurious=0.9), labels=["LOC", "PER"]))
    assert 0 < sum(hashed) < 10
