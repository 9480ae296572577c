"""Documents in, documents or their scores out: weak labels, label noise, augmentation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lacuner.annotate import LabellingStatistics, Source, gazetteer_source
from lacuner.annotate import annotate as annotate_documents
from lacuner.annotate.label_model import By
from lacuner.annotate.matching.terms import Case
from lacuner.api.inputs import Documents, Gazetteer, documents_of, entries_of, expect
from lacuner.data import Document
from lacuner.evaluate import Evaluation
from lacuner.evaluate import score as score_documents
from lacuner.noise import Measurement, Noise
from lacuner.noise import corrupt as corrupt_documents
from lacuner.noise import measure as measure_documents


def annotate(
    docs: Documents,
    gazetteer: Gazetteer | None = None,
    *,
    case: Case = "smart",
    sources: Iterable[Source] = (),
    by: By = "priority",
    statistics: LabellingStatistics | None = None,
) -> Iterator[Document]:
    """Label documents with a gazetteer and other sources (distant supervision).

    Args:
        docs: path, documents or texts; existing labels are ignored.
        gazetteer: gazetteer file, or labels by surface form.
        case: `smart` ignores case except in acronyms and common words; `fold` always does, `exact` never.
        sources: further labelling sources (`lacuner.annotate`), in order of priority, after the gazetteer.
        by: how several sources are combined: `priority`, `vote`, or `model` (by accuracy, estimated from agreement).
        statistics: filled with counts while the documents are read.

    Returns:
        The documents with weak labels, one at a time. Unlabeled text is unknown, not negative.

    >>> [doc] = annotate(["Mara left Halden."], {"Halden": "PLACE"})
    >>> doc.spans
    (Span(start=10, end=16, label='PLACE', score=None, source='dictionary'),)
    """
    own = [] if gazetteer is None else [gazetteer_source(entries_of(gazetteer), case=case)]
    return annotate_documents(documents_of(docs, "docs"), [*own, *sources], by=by, statistics=statistics)


def corrupt(docs: Documents, noise: Noise) -> Iterator[Document]:
    """Simulate label noise: remove or falsify labels of gold documents at known rates.

    Args:
        docs: path or gold documents.
        noise: rates and seed, for example `Noise(drop=0.5, seed=1)`.

    Returns:
        The documents with weak labels, one at a time.

    >>> from lacuner.data import Span
    >>> gold = [Document("1", "Mara left Halden.", spans=(Span(0, 4, "PERSON"),))]
    >>> [doc.spans for doc in corrupt(gold, Noise(drop=1.0))]
    [()]
    """
    return corrupt_documents(documents_of(docs, "docs", complete=True), expect(noise, Noise, "noise"))


def augment(
    docs: Documents, encoder: str, *, rate: float = 0.15, least_top5: float | None = None, seed: int = 1
) -> list[Document]:
    """Replace some words by predictions of a masked language model; spans stay on the same words.

    Args:
        docs: path or documents, with labels or without.
        encoder: `tiny-en`, `tiny-zh`, a run of `lacuner pretrain`, or `hf:NAME_OR_PATH` with a masked-LM head.
        rate: share of the words to replace.
        least_top5: minimum top-5 accuracy of the masked language model, 0 to 1; a poorer one is refused.
        seed: random seed.

    >>> from tempfile import TemporaryDirectory
    >>> from lacuner.config import load_config
    >>> from lacuner.pretraining.pretrain import PretrainConfig, pretrain
    >>> docs = [Document(str(i), f"Mara bought {i} apples in Halden.") for i in range(20)]
    >>> with TemporaryDirectory() as folder:
    ...     run = pretrain(docs, folder, load_config(PretrainConfig, settings=["train.epochs=1", "held_out=0.2"]))
    ...     augmented = augment(docs, folder, least_top5=0.0)
    >>> len(augmented)
    20
    """
    from lacuner.pretraining.augmentation import MIN_TOP5, open_augmentation_model
    from lacuner.pretraining.augmentation import augment as augment_documents

    originals = list(documents_of(docs, "docs"))
    model = open_augmentation_model(encoder, originals, MIN_TOP5 if least_top5 is None else least_top5)
    return augment_documents(originals, model, rate, seed)


def measure(weak: Documents, gold: Documents) -> Measurement:
    """Compare weak labels with gold: precision, recall, missing, wrong and spurious labels.

    Args:
        weak: path or documents with weak labels.
        gold: path or documents with gold annotations of the same texts.

    >>> from lacuner.data import Span
    >>> gold = [Document("1", "Mara left Halden.", spans=(Span(0, 4, "PERSON"), Span(10, 16, "PLACE")))]
    >>> weak = annotate(["Mara left Halden."], {"Halden": "PLACE"})
    >>> measure(weak, gold).total["missing"]
    1
    """
    return measure_documents(documents_of(weak, "weak", complete=False), documents_of(gold, "gold", complete=True))


def score(gold: Documents, predicted: Documents) -> Evaluation:
    """Precision, recall and F1 of predicted spans, exact in place and type.

    Args:
        gold: path or documents with gold annotations.
        predicted: path or documents with predicted spans of the same texts.

    >>> from lacuner.data import Span
    >>> gold = [Document("1", "Mara left Halden.", spans=(Span(0, 4, "PERSON"), Span(10, 16, "PLACE")))]
    >>> predicted = annotate(["Mara left Halden."], {"Halden": "PLACE"})
    >>> scores = score(gold, predicted)
    >>> scores.exact.precision, scores.exact.recall
    (1.0, 0.5)
    """
    return score_documents(documents_of(gold, "gold", complete=True), documents_of(predicted, "predicted"))
