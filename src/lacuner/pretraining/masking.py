"""Masked language modelling on prepared sentences: masking, the training step, and held-out accuracy.

A unit is what can be masked: a word for `tiny` and `lstm`, a sub-word for Hugging Face encoders.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import exp

import numpy as np
import torch
from torch import Tensor

from lacuner.errors import ConfigError
from lacuner.models.heads.masked import MASK, MaskedWordHead
from lacuner.models.inference import infer_batches
from lacuner.models.model import MaskedLanguageModel
from lacuner.models.ragged import offsets_of, pad_rows, run_positions
from lacuner.models.types import Batch, Features
from lacuner.training.data_parallel import own_random_numbers, share_of, sum_loss
from lacuner.training.distributed import process_count, process_rank, sum_over_processes
from lacuner.training.steps import Step, StepLoss

UNCHANGED = -1
"""In inputs: the unit stays as it is. In targets and ids: nothing to predict, or not in the vocabulary."""
MASKED, RANDOM = 0.8, 0.1
"""Shares of the selected units that are masked, or replaced by a random unit; the others stay (as in BERT)."""


@dataclass(frozen=True)
class Units:
    """The units of prepared sentences in one row, `[units]`."""

    features: Features
    ids: np.ndarray
    """The id of each unit in the vocabulary of the masked-LM head, or `UNCHANGED`."""
    offsets: np.ndarray
    """Where each sentence's units start, and where the row ends: `[sentences + 1]`."""
    word: np.ndarray
    """Index of the word, counted through all sentences, that each unit belongs to."""
    rows: np.ndarray | None
    """Word encoders: the feature rows of the vocabulary and, last, of the mask. None for sub-words."""
    capitalised: np.ndarray
    """Whether the word of each unit starts with an upper-case letter."""

    def collate(self, model: MaskedLanguageModel, indices: np.ndarray, inputs: np.ndarray) -> Batch:
        """A batch of sentences in which `inputs` `[units]` replaces units by id, except where it is `UNCHANGED`."""
        features = self.features
        positions, real = pad_rows(self.offsets, indices)
        if self.rows is None:
            batch = model.encoder.collate(features, indices)
            ids, new = batch.tensors["ids"], torch.from_numpy(inputs[positions] if len(inputs) else positions)
            changed = torch.from_numpy(real) & (new >= 0)
            before = int(batch.tensors["first"][:, 0].max())  # special tokens at the start of each sentence
            row, column = changed.nonzero(as_tuple=True)
            ids[row, column + before] = new[changed]
            batch.tensors["shape"][row, column + before] = 0  # the shape would reveal the masked word
            return batch
        at = positions[real]
        rows = np.where(inputs[at] >= 0, self.rows[inputs[at]], features.arrays["row"][at])
        lengths = features.lengths[indices]
        arrays = {**features.arrays, "row": rows, "offsets": offsets_of(lengths)}
        return model.encoder.collate(Features(lengths, lengths, arrays), np.arange(len(lengths)))

    def encode(self, model: MaskedLanguageModel, batch: Batch) -> Tensor:
        """Vectors `[batch, units, width]`; those of padding are meaningless."""
        if self.rows is not None:
            return model.encoder(batch)
        pieces = model.subword_encoder.pieces(batch)
        return pieces[:, int(batch.tensors["first"][:, 0].max()) :]


def prepare_units(model: MaskedLanguageModel, sentences: Sequence[Sequence[str]]) -> Units:
    """Prepare sentences for masked language modelling, once per corpus."""
    if isinstance(model.head, MaskedWordHead):
        return _prepare_words(model, sentences)
    features = model.encoder.prepare(sentences)
    arrays = features.arrays
    sizes = np.diff(arrays["piece_offsets"])[arrays["row"]]
    ids = arrays["pieces"][run_positions(arrays["piece_offsets"][arrays["row"]], sizes)]
    word = np.repeat(np.arange(len(sizes)), sizes)
    upper = np.array([text[:1].isupper() for words in sentences for text in words], dtype=bool)[word]
    return Units(features, ids, offsets_of(features.costs), word, None, upper)


def _prepare_words(model: MaskedLanguageModel, sentences: Sequence[Sequence[str]]) -> Units:
    vocabulary = model.head.labels
    # the vocabulary is prepared as one more sentence, so that each of its words has a feature row
    features = model.encoder.prepare([*sentences, [*vocabulary, MASK]])
    if not {"row", "offsets"} <= set(features.arrays):
        raise ConfigError("this encoder cannot be pre-trained: its features have no `row` and `offsets`")
    row, offsets = features.arrays["row"], features.arrays["offsets"]
    words, vocabulary_rows = row[: offsets[-2]], row[offsets[-2] :]
    id_of_row = np.full(int(row.max()) + 1, UNCHANGED, dtype=np.int64)
    id_of_row[vocabulary_rows[:-1]] = np.arange(len(vocabulary))
    arrays = {**features.arrays, "row": words, "offsets": offsets[:-1]}
    corpus = replace(features, lengths=features.lengths[:-1], costs=features.costs[:-1], arrays=arrays)
    upper = np.array([text[:1].isupper() for words in sentences for text in words], dtype=bool)
    return Units(corpus, id_of_row[words], offsets[:-1], np.arange(len(words)), vocabulary_rows, upper)


@dataclass(frozen=True)
class MaskedCorpus:
    """What the encoder reads in place of each unit, and what it has to predict there; `UNCHANGED` for nothing."""

    inputs: np.ndarray
    targets: np.ndarray


@dataclass(frozen=True)
class Masking:
    """Which units are masked.

    >>> Masking(rate=0.2).whole_words
    False
    """

    rate: float = 0.15
    """Share of the units to predict."""
    whole_words: bool = False
    """All sub-words of a word or none."""
    names: float | None = None
    """Share of the runs of capitalised words to predict, each run as a whole; None: like all other words."""
    span: float = 1.0
    """Mean number of neighbouring words that are masked together."""


def mask_units(units: Units, model: MaskedLanguageModel, masking: Masking) -> MaskedCorpus:
    """Select a share of the units at random and mask them, with torch's generator.

    Units that are selected together form a run: a run of capitalised words, neighbouring words, or the sub-words of a
    word.
    """
    ids, head = units.ids, model.head
    run, is_name = _find_runs(units, masking)
    runs = int(run[-1]) + 1 if len(run) else 0
    chance = torch.rand(runs).numpy()[run]
    rate = masking.rate if masking.names is None else np.where(is_name, masking.names, masking.rate)
    selected = chance < rate
    if masking.names is None and masking.span == 1:
        selected &= ids >= 0  # masking a word that is no target would only remove context
    action, other = torch.rand(len(ids)).numpy(), torch.randint(head.size, (len(ids),)).numpy()
    inputs = np.where(action < MASKED, head.mask, np.where(action < MASKED + RANDOM, other, UNCHANGED))
    inputs = np.where(ids >= 0, inputs, head.mask)  # an unknown word must not betray the rest of its run
    return MaskedCorpus(np.where(selected, inputs, UNCHANGED), np.where(selected, ids, UNCHANGED))


def _find_runs(units: Units, masking: Masking) -> tuple[np.ndarray, np.ndarray]:
    """The run that each unit belongs to, and whether it is a run of capitalised words: both `[units]`."""
    if masking.names is None and masking.span == 1:
        return (units.word if masking.whole_words else np.arange(len(units.ids))), np.zeros(len(units.ids), dtype=bool)
    first = np.zeros(len(units.ids), dtype=bool)
    first[units.offsets[:-1][np.diff(units.offsets) > 0]] = True
    # the first word of a sentence is capitalised whatever it is
    name = units.capitalised & ~first if masking.names is not None else np.zeros(len(first), dtype=bool)
    before = np.roll(name, 1)
    alone = torch.rand(len(first)).numpy() < 1 / masking.span
    starts = first | (name != before) | (~name & alone)
    return np.cumsum(starts) - 1, name


def masked_lm_step(units: Units, model: MaskedLanguageModel, masked: MaskedCorpus) -> Step:
    """The training step of an epoch: the mean loss over the units to predict."""

    def step(indices: np.ndarray) -> StepLoss:
        share = share_of(indices)
        with own_random_numbers():
            vectors, targets = _at_targets(units, model, masked, share.indices)
            loss = model.head.losses(vectors, targets).sum()
        total = sum_loss(loss if share.counts else 0 * loss)
        positions, real = pad_rows(units.offsets, indices)
        count = float((masked.targets[positions[real]] != UNCHANGED).sum())
        return StepLoss(total, count, count, float(units.features.lengths[indices].sum()))

    return step


def _at_targets(
    units: Units, model: MaskedLanguageModel, masked: MaskedCorpus, indices: np.ndarray
) -> tuple[Tensor, Tensor]:
    """Vectors `[n, width]` and ids `[n]` of the units to predict in these sentences."""
    device = next(model.parameters()).device
    positions, real = pad_rows(units.offsets, indices)
    targets = np.where(real, masked.targets[positions], UNCHANGED)
    vectors = units.encode(model, units.collate(model, indices, masked.inputs).to(device))
    at = torch.from_numpy(targets != UNCHANGED).to(device)
    return vectors[:, : targets.shape[1]][at], torch.from_numpy(targets).to(device)[at]


def measure_masked_lm(units: Units, model: MaskedLanguageModel, rate: float, whole_words: bool) -> dict[str, float]:
    """Top-1 and top-5 accuracy and perplexity when every unit is masked once, a share `rate` at a time.

    Units outside the vocabulary count as errors, but do not enter the perplexity. Of several processes, each measures
    its share of the sentences.
    """
    rounds = max(round(1 / rate), 1)
    draw = np.random.default_rng(0).integers(rounds, size=len(units.ids))
    round_of = draw[units.word] if whole_words else draw
    sums, own = np.zeros(3), np.arange(process_rank(), len(units.features), process_count())
    for number in range(rounds):
        selected = round_of == number
        inputs = np.where(selected, model.head.mask, UNCHANGED)
        masked = MaskedCorpus(inputs, np.where(selected, units.ids, UNCHANGED))
        compute = partial(_count_correct, units, model, masked)
        sums += sum((counts for _, counts in infer_batches(model, units.features, compute, own)), np.zeros(3))
    top1, top5, loss = sum_over_processes(torch.from_numpy(sums)).tolist()
    known = int((units.ids >= 0).sum())
    count, perplexity = max(len(units.ids), 1), exp(min(loss / max(known, 1), 50.0))
    return {"top1": round(top1 / count, 6), "top5": round(top5 / count, 6), "perplexity": round(perplexity, 4)}


def _count_correct(units: Units, model: MaskedLanguageModel, masked: MaskedCorpus, indices: np.ndarray) -> np.ndarray:
    """Number of correct first predictions, of hits among the first five, and the summed loss."""
    vectors, targets = _at_targets(units, model, masked, indices)
    if not len(targets):
        return np.zeros(3)
    log_probs = model.head.log_probs(vectors)
    hits = log_probs.topk(min(5, log_probs.shape[-1]), dim=-1).indices == targets.unsqueeze(-1)
    loss = -log_probs.gather(1, targets.unsqueeze(-1)).double().sum()
    return np.array([float(hits[:, 0].sum()), float(hits.sum()), float(loss)])
