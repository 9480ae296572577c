"""Augmentation for recipes and for people: is the masked language model good enough, and what becomes of documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch

from lacuner.corpus.words import words_of
from lacuner.data import Document, Span
from lacuner.errors import ConfigError
from lacuner.models.config import EncoderConfig
from lacuner.models.model import MaskedLanguageModel
from lacuner.models.windows import cut_sentences
from lacuner.pretraining.augmentation import Augmenter, augmenter
from lacuner.pretraining.masked_lm import open_masked_model
from lacuner.pretraining.masking import measure
from lacuner.pretraining.units import prepare_units

LEAST_TOP5 = 0.5
"""Below this most words that are put into entities are no longer what the label says: see `benchmarks.augmentation`."""
_MEASURED = 200


def too_poor(model: MaskedLanguageModel | None, sentences: Sequence[Sequence[str]], least: float) -> str | None:
    """Why a model cannot say sentences otherwise, in words; None if it can."""
    if model is None:
        return "the encoder has no masked-word head (`lacuner pretrain` makes one)"
    top5 = model.head.top5
    if top5 is None:  # nobody held anything out: see how it does here
        top5 = measure(prepare_units(model, sentences[:_MEASURED]), model, 0.15, False).row["top5"]
    if top5 < least:
        return f"a hidden word is among the encoder's five best guesses in {100 * top5:.0f} % of the cases only"
    return None


def augmenter_for(
    config: EncoderConfig, sentences: Sequence[Sequence[str]], least: float, say: Callable[[str], None]
) -> Augmenter | None:
    """What says sentences otherwise with the encoder of a config, as it was pre-trained; if it cannot, why is said."""
    model = open_masked_model(config)
    reason = too_poor(model, sentences, least)
    if model is None or reason is not None:
        say(f"augmentation is off: {reason}")
        return None
    return augmenter(model, sentences)


def masked_model_for(encoder: str, docs: Sequence[Document], least: float = LEAST_TOP5) -> MaskedLanguageModel:
    """The masked language model of a pre-training run or of `hf:NAME_OR_PATH`; refused if it is too poor for them."""
    model = open_masked_model(EncoderConfig(name=encoder if ":" in encoder else f"run:{encoder}"))
    sentences = [] if model is None else cut_sentences(docs[:_MEASURED], model.encoder).words
    reason = too_poor(model, sentences, least)
    if model is None or reason is not None:
        raise ConfigError(f"nothing is rewritten: {reason}")
    return model


def augment(docs: Sequence[Document], model: MaskedLanguageModel, rate: float = 0.15, seed: int = 1) -> list[Document]:
    """The documents with other words in some places, their spans on the same words.

    A word in the middle of which a span begins or ends stays as it is.
    """
    sentences = cut_sentences(docs, model.encoder)
    torch.manual_seed(seed)
    drawn = augmenter(model, sentences.words).draw(rate)
    new = [[doc.text[start:end] for start, end in words_of(doc)] for doc in docs]
    for number, window, words in zip(sentences.document.tolist(), sentences.windows, drawn, strict=True):
        own = slice(window.own_start, window.own_end)
        new[number][own] = words[window.own_start - window.start : window.own_end - window.start]
    return [_rewritten(doc, words) for doc, words in zip(docs, new, strict=True)]


def _rewritten(doc: Document, words: Sequence[str]) -> Document:
    """A document with other words. Every place in it that is not within a word moves along."""
    edges = np.array(words_of(doc), dtype=np.int64).reshape(-1, 2)
    marks = {place for span in (*doc.spans, *doc.rejected, *doc.unsure) for place in (span.start, span.end)}
    old = [(doc.text[a:b], any(a < place < b for place in marks)) for a, b in edges.tolist()]
    chosen = [before if fixed else word for (before, fixed), word in zip(old, words, strict=True)]
    grown = np.array([len(word) for word in chosen], dtype=np.int64) - (edges[:, 1] - edges[:, 0])
    shift = np.concatenate([[0], np.cumsum(grown)])

    def moved(spans: Sequence[Span]) -> tuple[Span, ...]:
        return tuple(span._replace(start=_move(span.start), end=_move(span.end)) for span in spans)

    def _move(place: int) -> int:
        return place + int(shift[np.searchsorted(edges[:, 1], place, side="right")])

    pieces, at = [], 0
    for (a, b), word in zip(edges.tolist(), chosen, strict=True):
        pieces += [doc.text[at:a], word]
        at = b
    text = "".join([*pieces, doc.text[at:]])
    ranges = tuple((int(a + shift[i]), int(b + shift[i + 1])) for i, (a, b) in enumerate(edges.tolist()))
    spans, rejected, unsure = moved(doc.spans), moved(doc.rejected), moved(doc.unsure)
    return replace(doc, text=text, words=ranges, spans=spans, rejected=rejected, unsure=unsure)


def changes(old: Sequence[Document], new: Sequence[Document]) -> Iterator[tuple[Document, Document, int]]:
    """Pairs of documents that differ, with the number of words that do."""
    for before, after in zip(old, new, strict=True):
        pairs = zip(words_of(before), words_of(after), strict=True)
        count = sum(before.text[a:b] != after.text[c:d] for (a, b), (c, d) in pairs)
        if count:
            yield before, after, count
