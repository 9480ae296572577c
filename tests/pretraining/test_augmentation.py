"""Augmentation keeps length, places, case and word starts, and touches as many words as it should."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from lacuner.corpus.words import words_of
from lacuner.data import Document, Span
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.heads.masked import MaskedWordHead
from lacuner.models.model import MaskedLanguageModel
from lacuner.pretraining.augmentation import (
    Augmenter,
    augment,
    changed_documents,
    match_case,
    prepare_augmenter,
    unfit_reason,
)
from lacuner.pretraining.masked_lm import build_vocabulary
from tests.demo_corpus import demo_corpus

DOCS = demo_corpus().train[:100]
SENTENCES = [[doc.text[a:b] for a, b in words_of(doc)] for doc in DOCS]
COUNTS = Counter(word for words in SENTENCES for word in words)
VOCABULARY = build_vocabulary(list(COUNTS), np.array(list(COUNTS.values())), 2, 500)


@pytest.fixture(scope="module")
def model() -> MaskedLanguageModel:
    """Untrained: it predicts anything, so that only the rules limit it."""
    torch.manual_seed(0)
    encoder = TinyEncoder(TinyConfig(rows=512, width=32))
    return MaskedLanguageModel(encoder, MaskedWordHead(32, VOCABULARY))


def test_length_places_and_case_stay(model: MaskedLanguageModel) -> None:
    torch.manual_seed(1)
    made = prepare_augmenter(model, SENTENCES).draw(0.15)
    assert [len(words) for words in made] == [len(words) for words in SENTENCES]
    pairs = [(a, b) for old, new in zip(SENTENCES, made, strict=True) for a, b in zip(old, new, strict=True)]
    changed = [(a, b) for a, b in pairs if a != b]
    assert changed and all(a[:1].isupper() == b[:1].isupper() for a, b in changed)
    assert {b for _, b in changed} <= set(model.head.labels)
    assert len(changed) / len(pairs) < 0.16


def test_about_as_many_words_are_tried_as_it_says(model: MaskedLanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    maker = prepare_augmenter(model, SENTENCES)
    torch.manual_seed(1)
    asked: list[np.ndarray] = []
    guess = Augmenter._replacements
    monkeypatch.setattr(Augmenter, "_replacements", lambda self, chosen: asked.append(chosen) or guess(self, chosen))
    maker.draw(0.15)
    [chosen] = asked
    found = guess(maker, chosen)
    assert 0.13 < chosen.mean() < 0.17 and (found[~chosen] < 0).all()
    tried = found[chosen] >= 0
    assert 0.3 < tried.mean() < 1
    assert not (found[found >= 0] == maker.units.ids[found >= 0]).any()


def test_draws_differ_and_repeat_with_the_seed(model: MaskedLanguageModel) -> None:
    maker = prepare_augmenter(model, SENTENCES)
    drawn = []
    for seed in (1, 2, 1):
        torch.manual_seed(seed)
        drawn.append(maker.draw(0.15))
    assert drawn[0] == drawn[2] != drawn[1]


def test_it_draws_from_the_five_best(model: MaskedLanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = torch.arange(model.head.size, dtype=torch.float32) / 10
    monkeypatch.setattr(model.head, "log_probs", lambda vectors: scores.log_softmax(0).expand(len(vectors), -1))
    maker = prepare_augmenter(model, SENTENCES)
    found = maker._replacements(np.ones(len(maker.units.ids), dtype=bool))
    assert {number for number in found.tolist() if number >= 0} <= set(range(model.head.size - 5, model.head.size))


def test_labels_go_along_with_their_words(model: MaskedLanguageModel) -> None:
    docs = [
        Document("1", DOCS[0].text, DOCS[0].words, DOCS[0].spans, rejected=(Span(*words_of(DOCS[0])[-1], ""),)),
        *DOCS[1:],
    ]
    made = augment(docs, model, 0.5, seed=3)
    assert len(list(changed_documents(docs, made))) > 50
    for old, new in zip(docs, made, strict=True):
        assert len(words_of(old)) == len(words_of(new))
        starts = {a: i for i, (a, _) in enumerate(words_of(old))}, {a: i for i, (a, _) in enumerate(words_of(new))}
        ends = {b: i for i, (_, b) in enumerate(words_of(old))}, {b: i for i, (_, b) in enumerate(words_of(new))}
        for kind in ("spans", "rejected"):
            for one, two in zip(getattr(old, kind), getattr(new, kind), strict=True):
                assert starts[0][one.start] == starts[1][two.start] and ends[0][one.end] == ends[1][two.end]
                assert one.label == two.label


def test_a_word_in_which_a_span_ends_stays(model: MaskedLanguageModel) -> None:
    words = [word for word in model.head.labels if word.isalpha() and len(word) > 2][:8]
    text = " ".join(words)
    doc = Document("1", text, spans=(Span(0, len(words[0]) - 1, "X"), Span(len(text) - 1, len(text), "Y")))
    for seed in range(5):
        [made] = augment([doc], model, 1.0, seed)
        assert made.text[made.spans[1].start : made.spans[1].end] == text[-1]
        assert made.spans[0] == doc.spans[0]


def test_long_documents_are_rewritten_through_windows(model: MaskedLanguageModel) -> None:
    doc = Document("1", " ".join(model.head.labels[i % 50] for i in range(700)))
    [made] = augment([doc], model, 0.5)
    assert len(words_of(made)) == len(words_of(doc))
    changed = [made.text[a:b] != doc.text[c:d] for (a, b), (c, d) in zip(made.words, words_of(doc), strict=True)]
    assert sum(changed[:100]) > 10 and sum(changed[-100:]) > 10


def test_a_poor_model_is_unfit(model: MaskedLanguageModel) -> None:
    assert "no masked-LM head" in (unfit_reason(None, SENTENCES, 0.2) or "")
    assert "top-5 accuracy on masked words is only" in (unfit_reason(model, SENTENCES, 0.2) or ""), (
        "measured on these sentences, as no held-out accuracy is known"
    )
    model.head.top5 = 0.25
    assert unfit_reason(model, SENTENCES, 0.2) is None and "25 %" in (unfit_reason(model, SENTENCES, 0.3) or "")
    model.head.top5 = None


@pytest.mark.parametrize(
    ("word", "like", "want"),
    [("vorn", "Halden", "Vorn"), ("vorn", "HAL", "VORN"), ("Vorn", "Halden", "Vorn"), ("x", "y", "x"), ("", "Y", "")],
)
def test_the_case_that_an_encoder_forgot(word: str, like: str, want: str) -> None:
    assert match_case(word, like) == want
