"""`python -m benchmarks.fixed_oracle SPEC --data DIR`: are uncertain negatives better if none of them is an entity?

The experiment behind table 2 of Li et al. (2022), "Rethinking negative sampling for handling missing entity
annotations". For each data set, masking rate and seed of a bench spec, half of the training documents train an oracle,
with uniform negative sampling. On the other half a model is trained with the negatives that the oracle is most
uncertain about, with those in the middle, with the least uncertain ones, and with uniformly sampled ones. Gold, which
no recipe sees, keeps unlabeled entities out of all of them. F1 of the last epoch on dev, argmax.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks import masked
from lacuner.audit.probes import entity_targets, gold_in_training_order
from lacuner.config import load_config
from lacuner.data import Document, Lost
from lacuner.evaluate import score
from lacuner.models.inference import score_corpus
from lacuner.models.model import Model
from lacuner.models.tagger import Tagger
from lacuner.recipes.negative_sampling import Config, sampling_step
from lacuner.sampling.span_negatives import span_entropy
from lacuner.training.callbacks import TrainingCallback
from lacuner.training.dataset import WeakTrainingSet, assign_folds, weak_training_set
from lacuner.training.run_folder import Run
from lacuner.training.stage import new_model, train_stage

NEGATIVES = ("top", "middle", "bottom", "uniform")


def compare_negatives(spec_file: Path, data_folder: Path) -> Iterator[masked.Row]:
    """Yield the dev F1 with each choice of negatives."""
    for data in masked.masked_data(spec_file, data_folder):
        with tempfile.TemporaryDirectory() as folder:
            run = Run(folder, {"seed": data.seed})
            taggers = train_with_oracle(data, run)
            scores = [score(data.dev, tagger.predict(data.dev)).exact.f1 for tagger in taggers]
        yield f"{data.data} {data.rate:g} {data.seed}", scores


def train_with_oracle(data: masked.Masked, run: Run, callback: TrainingCallback | None = None) -> Iterator[Tagger]:
    """Yield the tagger trained with each choice of negatives, on the documents that the oracle has not seen."""
    fold_of = assign_folds(data.weak, 2)
    first, second = ([doc for doc, fold in zip(data.weak, fold_of, strict=True) if fold == part] for part in (0, 1))
    settings = [*data.settings, "head.threshold=argmax"]
    uniform = load_config(Config, settings=settings)
    oracle = new_model(uniform, data.weak, run, "oracle")
    seen = weak_training_set(oracle, first, Lost())
    train_stage(seen.as_annotated, partial(sampling_step, seen, uniform), uniform.train, run, name="oracle")
    for name in NEGATIVES:
        config = load_config(Config, settings=[*settings, *([] if name == "uniform" else [f"ablation.rank={name}"])])
        weak = without_entities(new_model(config, data.weak, run), second, data.gold)
        features = weak.as_annotated.features
        entropy = score_corpus(oracle, features, lambda scores: span_entropy(scores.logits))
        by_oracle = replace(weak.as_annotated.targets, known=weak.unlabeled, weight=entropy)
        make_step = partial(sampling_step, weak, config, callback=callback, held_out=by_oracle)
        yield Tagger(train_stage(weak.as_annotated, make_step, config.train, run, name=name).model)


def without_entities(model: Model, docs: Sequence[Document], gold: Sequence[Document]) -> WeakTrainingSet:
    """Weak training data whose unlabeled spans, which negatives are taken from, contain no entity of gold."""
    weak, ids = weak_training_set(model, docs, Lost()), {doc.id for doc in docs}
    own_gold = gold_in_training_order(docs, [doc for doc in gold if doc.id in ids])
    entities = entity_targets(weak.as_annotated, own_gold)
    return replace(weak, unlabeled=weak.unlabeled & ~entities.known)


def main(arguments: Sequence[str] | None = None) -> int:
    header = ("data, masked, seed", *NEGATIVES)
    return masked.main(
        "benchmarks.fixed_oracle", __doc__, "benchmarks/fixed_oracle.toml", header, compare_negatives, arguments
    )


if __name__ == "__main__":
    sys.exit(main())
