"""Leave unlabelled words unknown, but for words that are surely none.

What it does: a partial CRF: the likelihood of all tag sequences that agree with the labels. On its own it would label
    everything, because it never sees an O; so words that are frequent in the corpus and never part of a label (mostly
    function words and punctuation) are taken for known O. With a token or span head the same words are the negatives of
    cross entropy.
Assumes: that labels are right, and that a frequent word without a single label is no name.
Needs: weak.
Costs: one training; the CRF is slower than the other heads.
Departs from the authors: where the known O come from is ours; the literature takes them from a second dictionary or
    from unlabelled tokens at random.
Reference: Tsuboi et al. (2008), "Training conditional random fields using incomplete annotations"; Greenberg et al.
    (2018), "Marginal likelihood training of BiLSTM-CRF for biomedical named entity recognition".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from pydantic import Field

from lacuner.config import Config as BaseConfig
from lacuner.corpus.words import words_of
from lacuner.data import Document, Span, Splits
from lacuner.models.config import EncoderConfig, HeadConfig
from lacuner.models.tagger import Tagger
from lacuner.training.config import TrainConfig
from lacuner.training.run_folder import Run
from lacuner.training.stage import learn

NEEDS = ("weak",)


class Config(BaseConfig):
    """Settings of `partial`."""

    encoder: EncoderConfig = EncoderConfig()
    head: HeadConfig = HeadConfig(kind="crf")
    train: TrainConfig = TrainConfig()
    frequent: int = Field(20, ge=1)
    """A word that occurs at least so often, and never in a label, is taken for no entity."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Learn from `splits.weak`, its gaps unknown."""
    weak = splits.weak or ()
    plain = plain_words(weak, config.frequent)
    run.say(f"partial: {len(plain):,} frequent words without a label are taken for no entity")
    return learn([_with_negatives(doc, plain) for doc in weak], splits.dev, config, run)


def plain_words(docs: Sequence[Document], frequent: int) -> set[str]:
    """Words, case folded, that occur often and never touch a span that is labelled or unsure."""
    seen: Counter[str] = Counter()
    labelled: set[str] = set()
    for doc in docs:
        taken = [*doc.spans, *doc.unsure]
        for start, end in words_of(doc):
            word = doc.text[start:end].casefold()
            seen[word] += 1
            if taken and any(span.start < end and start < span.end for span in taken):
                labelled.add(word)
    return {word for word, times in seen.items() if times >= frequent and word not in labelled}


def _with_negatives(doc: Document, plain: set[str]) -> Document:
    """The document with each run of plain words ruled out, and so every span inside it."""
    gone: list[Span] = []
    running = False
    for start, end in words_of(doc):
        was, running = running, doc.text[start:end].casefold() in plain
        if running and was:
            gone[-1] = gone[-1]._replace(end=end)
        elif running:
            gone.append(Span(start, end, ""))
    return replace(doc, rejected=(*doc.rejected, *gone))
