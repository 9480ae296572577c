"""Training dynamics for label issues: how far each label was from being the model's choice, while the model learned.

One model is trained on all weak labels, with unlabeled spans as negatives. After each epoch the margin of every span is
measured: the logit of its label (O where there is none) minus the highest other logit. The mean over the epochs is the
area under the margin (AUM; Pleiss et al., 2020; used for NER by DynClean, 2025). A label that contradicts what the
model learns from all others has a low margin for many epochs, even if the model memorises it in the end. So labels can
be judged by the model that was trained on them, which is cheaper than cross-fitting. The scores are not calibrated.

DynClean averages the first three to eight epochs; here it is all epochs of the training, six by default. DynClean also
finds a threshold, in a second training with a fake class, removes all spans below it, and trains again; here the
margins only rank label issues for a reviewer.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from lacuner.atomic import atomic_write, read_regular_file
from lacuner.audit.cross_fitting import CrossFit, CrossFitOptions, options_config
from lacuner.corpus.stored import StoredDocuments
from lacuner.data import Document, Lost, Splits
from lacuner.errors import ConfigError, ModelFileError
from lacuner.models.heads.span import SpanHead, decode_greedily
from lacuner.models.inference import budget_batches, score_corpus
from lacuner.models.model import Model
from lacuner.models.ragged import offsets_of, pad_rows
from lacuner.models.tagger import LOWEST_THRESHOLD, Tagger, assemble
from lacuner.models.types import DecodedSpans, SpanScores
from lacuner.models.windows import cut_sentences
from lacuner.trainer.train import train
from lacuner.training.dataset import TrainingSet, weak_training_set
from lacuner.training.run_folder import quiet

MARGINS = "margins.safetensors"
_BATCH_WORDS = 2048


def follow_training(
    splits: Splits, folder: Path, options: CrossFitOptions, log: Callable[[str], None] = quiet
) -> CrossFit:
    """Train one model on `splits.weak` in `folder`, and turn the margins of its training into predictions.

    A prediction is what the model preferred to the label on average, or the label itself; its score is the logistic
    function of the mean margin. The margins of a finished run are kept; a run that was interrupted starts again,
    because the margins of its first epochs are lost.
    """
    docs = splits.weak or ()
    if isinstance(docs, StoredDocuments):
        raise ConfigError(
            "--signal aum keeps the scores of all spans in memory: leave out --stream, or use --no-stream"
        )
    config = options_config(options)
    run, file = folder / "followed", folder / MARGINS
    tensors = _read_margins(file)
    log("training dynamics: one model, followed while it learns")
    callback = None if tensors else MarginCallback(docs)
    if callback is not None:
        shutil.rmtree(run, ignore_errors=True)
    weak = Splits(docs, None, splits.dev)
    tagger = train(options.recipe, weak, run, config, options.seed, log, callback=callback).tagger
    assert isinstance(tagger, Tagger)
    if callback is not None:
        tensors = callback.tensors()
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(file) as stream:
            stream.write(save_tensors(tensors))
    assert tensors is not None
    return CrossFit(_predict(tagger.model, docs, tensors), None, "nothing")


def _read_margins(file: Path) -> dict[str, Tensor] | None:
    if not file.exists():
        return None
    try:
        tensors = load_tensors(read_regular_file(file))
        return {name: tensors[name] for name in ("margin", "rival")}
    except (OSError, SafetensorError, KeyError) as error:
        raise ModelFileError("not the margins of a training: delete this file", file=file) from error


class MarginCallback:
    """Adds up, epoch by epoch, the margin of each span's label and the logits of all classes."""

    def __init__(self, docs: Sequence[Document]) -> None:
        self.docs, self.epochs = docs, 0
        self._data: TrainingSet | None = None
        self._margin = self._logits = torch.zeros(0)

    def on_negatives_sampled(
        self, epoch: int, data: TrainingSet, indices: np.ndarray, sampled: Tensor, logits: Tensor
    ) -> None:
        """Sampled negatives do not matter: every span has a margin."""

    def on_epoch_end(self, stage: str, epoch: int, model: Model) -> None:
        """Measure the margins of the last stage."""
        if stage != "train":
            return
        if not isinstance(model.head, SpanHead):
            raise ConfigError("training dynamics need the scores of spans: set head.kind=span")
        if self._data is None:
            self._data = weak_training_set(model, self.docs, Lost()).as_complete
        logits = score_corpus(model, self._data.features, lambda scores: scores.logits)
        margin = margins(logits, self._data.targets.labels.long())
        self._margin = margin if not self.epochs else self._margin + margin
        self._logits = logits if not self.epochs else self._logits + logits
        self.epochs += 1

    def tensors(self) -> dict[str, Tensor]:
        """The mean margin of each span `[words, widths]`, and the best class that is not its label."""
        if self._data is None:
            raise ConfigError("this recipe has no stage `train` with a span classifier: choose another --recipe")
        labels = self._data.targets.labels.long()
        rival = self._logits.scatter(-1, labels.unsqueeze(-1), -torch.inf).argmax(dim=-1)
        return {"margin": self._margin / max(self.epochs, 1), "rival": rival.to(torch.int16)}


def margins(logits: Tensor, labels: Tensor) -> Tensor:
    """The logit of each label minus the highest other logit.

    >>> margins(torch.tensor([[2.0, 5.0, 1.0]]), torch.tensor([0]))
    tensor([-3.])
    """
    own = logits.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return own - logits.scatter(-1, labels.unsqueeze(-1), -torch.inf).amax(dim=-1)


def _predict(model: Model, docs: Sequence[Document], tensors: dict[str, Tensor]) -> list[Document]:
    """Documents with the spans that their margins speak for, down to the lowest threshold."""
    data = weak_training_set(model, docs, Lost()).as_complete
    labels, margin, rival = data.targets.labels.long(), tensors["margin"], tensors["rival"].long()
    if margin.shape != labels.shape:
        raise ModelFileError("the margins belong to other documents: delete the folder of the models")
    kept = (labels > 0) & ((margin >= 0) | (rival == 0))  # a label that O contradicts is a doubtful label
    entity, score = torch.where(kept, labels, rival), torch.where(kept, margin, -margin)
    logits = torch.full((*labels.shape, 1 + len(model.head.labels)), -torch.inf)
    logits[..., 0] = 0.0
    logits.scatter_(-1, entity.unsqueeze(-1), score.unsqueeze(-1))
    parts = list(_decode(logits, data))
    spans = DecodedSpans._make(np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((spans.start, spans.sentence))
    spans = DecodedSpans._make(column[order] for column in spans)
    return list(assemble(docs, cut_sentences(docs, model.encoder), spans, model.head.labels))


def _decode(logits: Tensor, data: TrainingSet) -> Iterator[DecodedSpans]:
    lengths = data.features.lengths.astype(np.int64)
    offsets = offsets_of(lengths)
    for indices in budget_batches(lengths, np.argsort(lengths, kind="stable"), _BATCH_WORDS):
        positions, real = (torch.from_numpy(array) for array in pad_rows(offsets, indices))
        known = data.targets.known[positions] & real.unsqueeze(-1)
        spans = decode_greedily(SpanScores(logits[positions], known), LOWEST_THRESHOLD)
        yield spans._replace(sentence=indices[spans.sentence])
