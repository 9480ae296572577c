"""Augmentation: a masked language model replaces some words, and labels stay where they are.

What it does: masks 15 % of the words (or sub-words) and replaces each by one of the model's five most likely
    predictions, sampled by probability, if both start with a capital or neither does, and both start a word or neither
    does. Otherwise the original stays.
Assumes: that a word which fits the context has the same entity type as the original.
Departs from the authors: their code predicts with the encoder that is being fine-tuned, and also replaces words that
    were not masked; this follows their text. Where an encoder ignores case, its prediction takes that of the original.
Reference: Meng et al. (2021), "Distantly-supervised named entity recognition with noise-robust learning and language
    model augmented self-training" (RoSTER).
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch

from lacuner.corpus.stored import StoredDocuments
from lacuner.corpus.words import word_texts, words_of
from lacuner.data import Document, Span
from lacuner.errors import ConfigError
from lacuner.models.config import EncoderConfig
from lacuner.models.encoders.shipped import SHIPPED
from lacuner.models.heads.masked import MaskedWordHead
from lacuner.models.inference import infer_batches
from lacuner.models.model import MaskedLanguageModel
from lacuner.models.ragged import offsets_of, pad_rows
from lacuner.models.windows import cut_sentences
from lacuner.pretraining.masked_lm import open_masked_model
from lacuner.pretraining.masking import UNCHANGED, Units, measure_masked_lm, prepare_units
from lacuner.training.dataset import TrainingSentences

CANDIDATES = 5
MIN_TOP5 = 0.6
"""Top-5 accuracy below which most replaced words in entities no longer fit the label: see `benchmarks.augmentation`."""
MEASURED_SENTENCES = 200
CONTINUATION, WORD_START = "##", ("Ġ", "▁")
"""How tokenizers mark sub-words that continue a word, or that start one."""


@dataclass(frozen=True)
class Augmenter:
    """Sentences prepared for augmentation, which can be drawn any number of times."""

    model: MaskedLanguageModel
    sentences: Sequence[Sequence[str]]
    units: Units
    unit_class: np.ndarray
    """For each unit of the sentences: whether it starts with a capital and whether it starts a word, as one number."""
    vocabulary_class: np.ndarray
    """The same for each entry of the head's vocabulary; -1 for entries that may not appear in a sentence."""

    def draw(self, rate: float = 0.15) -> list[list[str]]:
        """The sentences with some words replaced, drawn from torch's generator."""
        ids = self._replacements(torch.rand(len(self.units.ids)).numpy() < rate)
        changed = np.unique(self.units.word[ids >= 0])
        flat = [word for words in self.sentences for word in words]
        for position, word in zip(changed.tolist(), self._spell(ids, changed), strict=True):
            flat[position] = match_case(word, flat[position]) or flat[position]
        augmented = [flat[start:end] for start, end in pairwise(offsets_of(self.units.features.lengths).tolist())]
        return self._keep_within_limit(flat, augmented)

    def _replacements(self, selected: np.ndarray) -> np.ndarray:
        """The ids of the units to put at the selected positions, `UNCHANGED` elsewhere: `[units]`."""
        units, model = self.units, self.model
        inputs = np.where(selected, model.head.mask, UNCHANGED)
        ids = np.full(len(inputs), UNCHANGED, dtype=np.int64)
        device = next(model.parameters()).device

        def sample(indices: np.ndarray) -> None:
            positions, real = pad_rows(units.offsets, indices)
            masked = real & selected[positions] if len(selected) else real
            if masked.any():
                vectors = units.encode(model, units.collate(model, indices, inputs).to(device))
                log_probs = model.head.log_probs(vectors[:, : masked.shape[1]][torch.from_numpy(masked).to(device)])
                best = log_probs.topk(min(CANDIDATES, log_probs.shape[-1]), dim=-1)
                choice = torch.multinomial(best.values.exp(), 1)
                ids[positions[masked]] = best.indices.gather(1, choice).squeeze(1).cpu().numpy()

        for _ in infer_batches(model, units.features, sample):
            pass
        fits = selected & (self.vocabulary_class[ids] == self.unit_class) & (ids != units.ids)
        return np.where(fits, ids, UNCHANGED)

    def _spell(self, ids: np.ndarray, changed: np.ndarray) -> list[str]:
        """The changed words as strings; empty where the sub-words do not form one word."""
        if isinstance(self.model.head, MaskedWordHead):
            return [self.model.head.labels[id_] for id_ in ids[ids >= 0]]
        all_ids = np.where(ids >= 0, ids, self.units.ids)
        first = np.searchsorted(self.units.word, changed)
        last = np.searchsorted(self.units.word, changed, side="right")
        pieces = [all_ids[start:end].tolist() for start, end in zip(first, last, strict=True)]
        unknown = self.model.subword_encoder.ids["unknown"]
        words = [word.strip() for word in self.model.subword_encoder.tokenizer.decode_batch(pieces)]
        valid = [
            unknown not in word_ids and word.split() == [word] for word_ids, word in zip(pieces, words, strict=True)
        ]
        return [word if is_valid else "" for word, is_valid in zip(words, valid, strict=True)]

    def _keep_within_limit(self, flat: Sequence[str], augmented: list[list[str]]) -> list[list[str]]:
        """The augmented sentences; the original where one has become too long for the encoder."""
        limit = self.model.encoder.limit
        if limit is None:
            return augmented
        offsets = offsets_of(self.units.features.lengths)
        costs = np.diff(offsets_of(self.model.encoder.count(flat))[offsets])
        rows = zip(self.sentences, augmented, costs, strict=True)
        return [list(original) if cost > limit else new for original, new, cost in rows]


def match_case(word: str, original: str) -> str:
    """The word, capitalised or in capitals if the original is and the encoder lost the case.

    >>> match_case("paris", "London"), match_case("usa", "UK"), match_case("Paris", "london")
    ('Paris', 'USA', 'Paris')
    """
    if word and original[:1].isupper() and not word[:1].isupper():
        return word.upper() if len(original) > 1 and original.isupper() else word[:1].upper() + word[1:]
    return word


def prepare_augmenter(model: MaskedLanguageModel, sentences: Sequence[Sequence[str]]) -> Augmenter:
    """Prepare sentences for augmentation, once."""
    units = prepare_units(model, sentences)
    if isinstance(model.head, MaskedWordHead):
        vocabulary_class = np.array([word[:1].isupper() for word in model.head.labels], dtype=np.int64)
        unit_class = np.array([word[:1].isupper() for words in sentences for word in words], dtype=np.int64)
        return Augmenter(model, sentences, units, unit_class, vocabulary_class)
    classes = subword_classes(model)
    added = json.loads(model.subword_encoder.tokenizer.to_str()).get("added_tokens") or []
    special = np.array([token["id"] for token in added if token.get("special")], dtype=np.int64)
    vocabulary_class = classes.copy()
    vocabulary_class[special[special < len(vocabulary_class)]] = -1
    return Augmenter(model, sentences, units, classes[units.ids], vocabulary_class)


def subword_classes(model: MaskedLanguageModel) -> np.ndarray:
    """For each sub-word id: 2 if it starts a word, plus 1 if its first letter is a capital; -1 if unused."""
    from tokenizers import decoders

    classes = np.full(model.head.size, -1, dtype=np.int64)
    tokenizer = model.subword_encoder.tokenizer
    vocabulary = tokenizer.get_vocab()
    decoder = json.dumps(json.loads(tokenizer.to_str()).get("decoder") or {})
    byte_level = decoders.ByteLevel() if '"ByteLevel"' in decoder else None
    marks_starts = '"WordPiece"' not in decoder and any(piece.startswith(WORD_START) for piece in vocabulary)
    for piece, id_ in vocabulary.items():
        starts_word = piece.startswith(WORD_START) if marks_starts else not piece.startswith(CONTINUATION)
        text = piece.lstrip("".join(WORD_START)) if marks_starts else piece.removeprefix(CONTINUATION)
        if byte_level is not None:  # a non-ASCII letter is several byte symbols
            text = byte_level.decode([text])
        if id_ < len(classes):
            classes[id_] = 2 * starts_word + text[:1].isupper()
    return classes


def unfit_reason(model: MaskedLanguageModel | None, sentences: Sequence[Sequence[str]], min_top5: float) -> str | None:
    """Why a model is not good enough for augmentation; None if it is."""
    if model is None:
        return "the encoder has no masked-LM head (`lacuner pretrain` trains one)"
    top5 = model.head.top5
    if top5 is None:  # not measured on held-out text: measure it here
        units = prepare_units(model, sentences[:MEASURED_SENTENCES])
        top5 = measure_masked_lm(units, model, 0.15, False)["top5"]
    if top5 < min_top5:
        return f"its top-5 accuracy on masked words is only {100 * top5:.0f} %"
    return None


def make_augmenter(
    config: EncoderConfig, sentences: Sequence[Sequence[str]], min_top5: float, log: Callable[[str], None]
) -> Augmenter | None:
    """An augmenter from the configured encoder's masked-LM head, or None after logging why there is none."""
    model = open_masked_model(config)
    reason = unfit_reason(model, sentences, min_top5)
    if model is None or reason is not None:
        log(f"augmentation is off: {reason}")
        return None
    return prepare_augmenter(model, sentences)


def open_augmentation_model(encoder: str, docs: Sequence[Document], min_top5: float = MIN_TOP5) -> MaskedLanguageModel:
    """The masked language model of a pre-training run or of `hf:NAME_OR_PATH`; an error if it is not good enough."""
    model = open_masked_model(EncoderConfig(name=encoder if ":" in encoder or encoder in SHIPPED else f"run:{encoder}"))
    sentences = [] if model is None else cut_sentences(docs[:MEASURED_SENTENCES], model.encoder).words
    reason = unfit_reason(model, sentences, min_top5)
    if model is None or reason is not None:
        raise ConfigError(f"cannot augment with this encoder: {reason}")
    return model


def augment(docs: Sequence[Document], model: MaskedLanguageModel, rate: float = 0.15, seed: int = 1) -> list[Document]:
    """The documents with some words replaced and their spans on the same words.

    A word in the middle of which a span starts or ends is kept.
    """
    sentences = cut_sentences(docs, model.encoder)
    torch.manual_seed(seed)
    augmented = prepare_augmenter(model, sentences.words).draw(rate)
    new_words = [word_texts(doc) for doc in docs]
    for number, window, words in zip(sentences.document.tolist(), sentences.windows, augmented, strict=True):
        own = slice(window.own_start, window.own_end)
        new_words[number][own] = words[window.own_start - window.start : window.own_end - window.start]
    return [_replace_words(doc, words) for doc, words in zip(docs, new_words, strict=True)]


def _replace_words(doc: Document, words: Sequence[str]) -> Document:
    """The document with other words; spans move along."""
    edges = np.array(words_of(doc), dtype=np.int64).reshape(-1, 2)
    boundaries = {place for span in (*doc.spans, *doc.rejected, *doc.unsure) for place in (span.start, span.end)}
    is_cut = [any(start < place < end for place in boundaries) for start, end in edges.tolist()]
    chosen = [old if cut else new for old, cut, new in zip(word_texts(doc), is_cut, words, strict=True)]
    growth = np.array([len(word) for word in chosen], dtype=np.int64) - (edges[:, 1] - edges[:, 0])
    shift = np.concatenate([[0], np.cumsum(growth)])

    def move(place: int) -> int:
        return place + int(shift[np.searchsorted(edges[:, 1], place, side="right")])

    def move_spans(spans: Sequence[Span]) -> tuple[Span, ...]:
        return tuple(span._replace(start=move(span.start), end=move(span.end)) for span in spans)

    pieces, position = [], 0
    for (start, end), word in zip(edges.tolist(), chosen, strict=True):
        pieces += [doc.text[position:start], word]
        position = end
    text = "".join([*pieces, doc.text[position:]])
    ranges = tuple((int(a + shift[i]), int(b + shift[i + 1])) for i, (a, b) in enumerate(edges.tolist()))
    spans, rejected, unsure = move_spans(doc.spans), move_spans(doc.rejected), move_spans(doc.unsure)
    return replace(doc, text=text, words=ranges, spans=spans, rejected=rejected, unsure=unsure)


def changed_documents(
    docs: Sequence[Document], augmented: Sequence[Document]
) -> Iterator[tuple[Document, Document, int]]:
    """Pairs of documents that differ, with the number of replaced words."""
    for before, after in zip(docs, augmented, strict=True):
        count = sum(old != new for old, new in zip(word_texts(before), word_texts(after), strict=True))
        if count:
            yield before, after, count


def augment_sentences(
    encoder: EncoderConfig, sentences: TrainingSentences, least_top5: float, log: Callable[[str], None]
) -> Augmenter | None:
    """`make_augmenter` for the sentences of a training set, which must be in memory if they are to be augmented."""
    docs, is_stored = sentences.docs, isinstance(sentences.docs, StoredDocuments)
    words = cut_sentences(docs[:MEASURED_SENTENCES], sentences.encoder).words if is_stored else sentences.words()
    augmenter = make_augmenter(encoder, words, least_top5, log)
    if is_stored and augmenter is not None:
        raise ConfigError(
            "sentences are augmented in memory: add --no-stream, or --set ablation.augmentation=false to train without"
        )
    return augmenter
