"""Partial CRF: marginalise over unlabeled tokens, with frequent never-labeled words as known negatives.

What it does: maximises the likelihood of all tag sequences that agree with the labels. On its own that would label
    everything, because the model never sees an O; so words that are frequent in the corpus and never part of a label
    (mostly function words and punctuation) are known O. With a token or span head, the same words are the negatives of
    cross-entropy.
Assumes: that labels are right, and that a frequent word without a single label is not part of a name.
Needs: weak.
Costs: one training run; a CRF is slower than the other heads.
Departs from the authors: the source of known negatives is ours; the literature takes them from a second dictionary or
    from random unlabeled tokens.
Reference: Tsuboi et al. (2008), "Training conditional random fields using incomplete annotations"; Greenberg et al.
    (2018), "Marginal likelihood training of BiLSTM-CRF for biomedical named entity recognition".
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from pydantic import Field

from lacuner.corpus.words import words_of
from lacuner.data import Document, Span, Splits
from lacuner.models.config import HeadConfig
from lacuner.models.tagger import Tagger
from lacuner.training.config import RecipeConfig
from lacuner.training.run_folder import Run
from lacuner.training.stage import train_on

NEEDS = ("weak",)
GROUP = "other methods"
PAPER = "Tsuboi et al., 2008; Greenberg et al., 2018"


class Config(RecipeConfig):
    """Settings of `partial`."""

    head: HeadConfig = HeadConfig(kind="crf")
    frequent: int = Field(20, ge=1)
    """Number of occurrences from which a never-labeled word counts as a known negative."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Train on `splits.weak` with unlabeled tokens unknown."""
    weak = splits.weak or ()
    negatives = frequent_unlabeled_words(weak, config.frequent)
    run.log(f"partial: {len(negatives):,} frequent words without a label are used as negatives")
    return train_on([_reject_words(doc, negatives) for doc in weak], splits.dev, config, run)


def frequent_unlabeled_words(docs: Sequence[Document], frequent: int) -> set[str]:
    """Case-folded words that occur often and never overlap a labeled or unsure span."""
    counts: Counter[str] = Counter()
    labeled: set[str] = set()
    for doc in docs:
        spans = [*doc.spans, *doc.unsure]
        for start, end in words_of(doc):
            word = doc.text[start:end].casefold()
            counts[word] += 1
            if any(span.start < end and start < span.end for span in spans):
                labeled.add(word)
    return {word for word, count in counts.items() if count >= frequent and word not in labeled}


def _reject_words(doc: Document, negatives: set[str]) -> Document:
    """The document with every run of negative words, and so every span inside it, ruled out."""
    rejected = []
    for is_negative, run in groupby(words_of(doc), lambda word: doc.text[slice(*word)].casefold() in negatives):
        if is_negative:
            words = list(run)
            rejected.append(Span(words[0][0], words[-1][1], ""))
    return replace(doc, rejected=(*doc.rejected, *rejected))
