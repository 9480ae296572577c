"""lacuner from Python: plain functions on documents, for notebooks and programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any

from lacuner import load
from lacuner.annotate import LabellingStatistics, Source, gazetteer_source, load_gazetteer
from lacuner.annotate import annotate as annotate_by
from lacuner.annotate.matching.terms import Case
from lacuner.corpus import read, write
from lacuner.data import Document, Lost, Span
from lacuner.evaluate import score
from lacuner.noise import Noise, corrupt, measure

if TYPE_CHECKING:
    from lacuner.models.storage import AnyTagger

__all__ = [
    "Document",
    "Lost",
    "Noise",
    "Span",
    "annotate",
    "augment",
    "corrupt",
    "load",
    "measure",
    "predict",
    "read",
    "score",
    "train",
    "write",
]


def annotate(
    docs: Iterable[Document | str],
    dictionary: str | PathLike[str] | None = None,
    *,
    case: Case = "smart",
    sources: Iterable[Source] = (),
    statistics: LabellingStatistics | None = None,
) -> Iterator[Document]:
    """Documents, or plain texts, with weak labels from a dictionary file and from other sources, which come after it in
    priority."""
    first = [] if dictionary is None else [gazetteer_source(load_gazetteer(dictionary).entries, case=case)]
    return annotate_by(_documents(docs), [*first, *sources], statistics=statistics)


def train(
    recipe: str = "auto",
    out: str | PathLike[str] = "run",
    *,
    settings: Iterable[str] = (),
    seed: int = 1,
    say: Callable[[str], Any] | None = None,
    **data: Iterable[Document] | None,
) -> AnyTagger:
    """Train by a recipe into the folder `out`; the same call continues, or loads, what is there.

    `auto` chooses the recipe that suits the data, and `say=print` shows which one and how it goes. `data` are `weak=`,
    `gold=`, `dev=` and `unlabeled=`, as the recipe needs them; `settings` are written as after `--set`, for example
    `["train.epochs=5", "encoder.name=lstm"]`.
    """
    from lacuner.data import Splits
    from lacuner.trainer.train import settings_for
    from lacuner.trainer.train import train as train_splits
    from lacuner.training.run_folder import quiet

    config = settings_for(recipe, [role for role, docs in data.items() if docs is not None], settings=settings)
    splits = Splits(**{role: None if docs is None else list(docs) for role, docs in data.items()})
    return train_splits(recipe, splits, out, config, seed, say or quiet).tagger


def augment(docs: Iterable[Document], encoder: str, *, rate: float = 0.15, seed: int = 1) -> list[Document]:
    """The documents with other words in some places, their spans on the same words.

    `encoder` is a run of `lacuner pretrain`, or `hf:NAME_OR_PATH` with a masked-word head of its own; it is refused if
    its guesses are too poor for labels to stay right.
    """
    from lacuner.pretraining.augmenting import augment as augment_by
    from lacuner.pretraining.augmenting import masked_model_for

    given = list(docs)
    return augment_by(given, masked_model_for(encoder, given), rate, seed)


def predict(tagger: AnyTagger | str | PathLike[str], docs: Iterable[Document | str]) -> Iterator[Document]:
    """The documents, or plain texts, with the spans that a tagger, or the one in a folder, finds in them."""
    return (load(tagger) if isinstance(tagger, str | PathLike) else tagger).predict(_documents(docs))


def _documents(docs: Iterable[Document | str]) -> Iterator[Document]:
    """Documents as they are, and texts as documents that are called by their number; one text is a list of one."""
    for number, doc in enumerate([docs] if isinstance(docs, str) else docs, 1):
        yield Document(str(number), doc) if isinstance(doc, str) else doc
