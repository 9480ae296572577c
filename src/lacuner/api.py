"""lacuner from Python: plain functions on documents or file paths, for notebooks and programs.

Where documents are taken, a path (str or Path) is read, and plain texts may stand in a list instead of documents.

>>> docs = list(annotate(["Take aspirin daily.", "No aspirin."], {"aspirin": "DRUG"}))
>>> [doc.text[span.start : span.end] for doc in docs for span in doc.spans]
['aspirin', 'aspirin']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from errno import ENAMETOOLONG
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lacuner import load
from lacuner.annotate import Entry, LabellingStatistics, Source, gazetteer_source, load_gazetteer
from lacuner.annotate import annotate as annotate_documents
from lacuner.annotate.label_model import By
from lacuner.annotate.matching.terms import Case
from lacuner.config import Config, load_config, make_config
from lacuner.corpus import read, write
from lacuner.data import Document, Lost, Span, Splits
from lacuner.errors import ConfigError, CorpusError
from lacuner.evaluate import Evaluation
from lacuner.evaluate import score as score_documents
from lacuner.export.options import ExportOptions
from lacuner.noise import Measurement, Noise
from lacuner.noise import corrupt as corrupt_documents
from lacuner.noise import measure as measure_documents

if TYPE_CHECKING:
    from lacuner.export.distil import Distilled
    from lacuner.export.export import Exported
    from lacuner.models.gazetteer import TaggerGazetteer
    from lacuner.models.storage import AnyTagger

__all__ = [
    "Document",
    "ExportOptions",
    "Lost",
    "Noise",
    "Span",
    "annotate",
    "augment",
    "config_for",
    "corrupt",
    "distil",
    "export",
    "load",
    "measure",
    "predict",
    "read",
    "score",
    "train",
    "write",
]

Documents = str | PathLike[str] | Iterable[Document | str]
"""A path, documents, or plain texts, which get their number as id."""
Progress = bool | Callable[[str], Any] | None
"""True: print messages to standard error. None: only in a terminal or notebook. A function gets each message."""


def annotate(
    docs: Documents,
    gazetteer: str | PathLike[str] | Mapping[str, str] | None = None,
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
    own = [] if gazetteer is None else [gazetteer_source(_entries(gazetteer), case=case)]
    return annotate_documents(_documents(docs, "docs"), [*own, *sources], by=by, statistics=statistics)


def _entries(gazetteer: str | PathLike[str] | Mapping[str, str]) -> Sequence[Entry]:
    if isinstance(gazetteer, Mapping):
        return [Entry(*item) for item in gazetteer.items()]
    _expect(gazetteer, (str, PathLike), "gazetteer", "labels by surface form go in a dictionary")
    return load_gazetteer(gazetteer).entries


def corrupt(docs: Documents, noise: Noise) -> Iterator[Document]:
    """Simulate label noise: remove or falsify labels of gold documents at known rates.

    Args:
        docs: path or gold documents.
        noise: rates and seed, for example `Noise(drop=0.5, seed=1)`.

    Returns:
        The documents with weak labels, one at a time.

    >>> gold = [Document("1", "Mara left Halden.", spans=(Span(0, 4, "PERSON"),))]
    >>> [doc.spans for doc in corrupt(gold, Noise(drop=1.0))]
    [()]
    """
    return corrupt_documents(_documents(docs, "docs", complete=True), _expect(noise, Noise, "noise"))


def measure(weak: Documents, gold: Documents) -> Measurement:
    """Compare weak labels with gold: precision, recall, missing, wrong and spurious labels.

    Args:
        weak: path or documents with weak labels.
        gold: path or documents with gold annotations of the same texts.

    >>> gold = [Document("1", "Mara left Halden.", spans=(Span(0, 4, "PERSON"), Span(10, 16, "PLACE")))]
    >>> weak = annotate(["Mara left Halden."], {"Halden": "PLACE"})
    >>> measure(weak, gold).total["missing"]
    1
    """
    return measure_documents(_documents(weak, "weak", complete=False), _documents(gold, "gold", complete=True))


def score(gold: Documents, predicted: Documents) -> Evaluation:
    """Precision, recall and F1 of predicted spans, exact in place and type.

    Args:
        gold: path or documents with gold annotations.
        predicted: path or documents with predicted spans of the same texts.

    >>> gold = [Document("1", "Mara left Halden.", spans=(Span(0, 4, "PERSON"), Span(10, 16, "PLACE")))]
    >>> predicted = annotate(["Mara left Halden."], {"Halden": "PLACE"})
    >>> scores = score(gold, predicted)
    >>> scores.exact.precision, scores.exact.recall
    (1.0, 0.5)
    """
    return score_documents(_documents(gold, "gold", complete=True), _documents(predicted, "predicted"))


def config_for(recipe: str, **settings: Any) -> Config:
    """The config of a recipe: its defaults with the given settings, tables of settings as dictionaries.

    Args:
        recipe: a name that `lacuner recipes` lists; `lacuner recipes NAME` lists its settings.
        settings: settings that differ from the recipe's defaults.

    Returns:
        An object of the recipe's class `Config`, for example `lacuner.recipes.roster.Config`.

    >>> config = config_for("partial", frequent=5, train={"epochs": 3})
    >>> config.frequent, config.train.epochs, config.head.kind
    (5, 3, 'crf')
    """
    from lacuner.recipes import find_recipe

    config: Config = make_config(find_recipe(recipe).Config, settings)
    return config


def train(  # noqa: PLR0913
    recipe: str = "auto",
    *,
    weak: Documents | None = None,
    gold: Documents | None = None,
    dev: Documents | None = None,
    unlabeled: Documents | None = None,
    gazetteer: str | PathLike[str] | Mapping[str, str] | None = None,
    out: str | PathLike[str] = "run",
    config: Config | None = None,
    settings: Iterable[str] = (),
    seed: int = 1,
    progress: Progress = None,
) -> AnyTagger:
    """Train a tagger by a recipe. The same call resumes an unfinished run and loads a finished one.

    Args:
        recipe: training method; `auto` chooses one from the data.
        weak: path or documents with weak labels (incomplete).
        gold: path or documents with gold annotations (complete).
        dev: gold annotations for early stopping and tuning.
        unlabeled: path, documents or texts for the recipes that use more text (`sst`, ...); labels are ignored.
        gazetteer: gazetteer file, or labels by surface form, that the tagger uses beside its model. By default the one
            beside a weak file that `lacuner annotate` wrote.
        out: run folder.
        config: the recipe's config, see `config_for`.
        settings: instead of a config, settings as after `--set`: `["train.epochs=5", "encoder.name=lstm"]`.
        seed: random seed.
        progress: see `Progress`.

    Returns:
        The trained tagger: `tagger("some text")` tags a string, `predict` documents.

    >>> from tempfile import TemporaryDirectory
    >>> weak = list(annotate(["Mara left Halden.", "Mara is in Halden."], {"Mara": "PERSON", "Halden": "PLACE"}))
    >>> with TemporaryDirectory() as folder:
    ...     config = config_for("trust", train={"epochs": 1})
    ...     tagger = train("trust", weak=weak, out=folder, config=config, progress=False)
    >>> tagger.labels
    ('PERSON', 'PLACE')
    """
    from lacuner.recipes import find_recipe
    from lacuner.trainer.train import load_recipe_config
    from lacuner.trainer.train import train as train_splits

    settings = list(settings)
    data = {"weak": weak, "gold": gold, "dev": dev, "unlabeled": unlabeled}
    roles = [role for role, docs in data.items() if docs is not None]
    if config is None:
        config = load_recipe_config(recipe, roles, settings=settings)
    elif settings:
        raise ConfigError("give either config or settings, not both")
    elif recipe == "auto":
        raise ConfigError("recipe `auto` takes settings, not a config: its recipe is not known yet")
    else:
        _expect(config, find_recipe(recipe).Config, "config", f"use config_for({recipe!r}, ...)")
    splits = {role: list(_documents(data[role], role, complete=role in ("gold", "dev"))) for role in roles}
    own = _tagger_gazetteer(gazetteer, weak)
    log = _message_printer(progress)
    return train_splits(recipe, Splits(**splits), out, config, seed, log, gazetteer=own).tagger


def _tagger_gazetteer(
    gazetteer: str | PathLike[str] | Mapping[str, str] | None, weak: Documents | None
) -> TaggerGazetteer | None:
    from lacuner.models.gazetteer import TaggerGazetteer, read_sidecars

    if gazetteer is not None:
        return TaggerGazetteer(_entries(gazetteer))
    return read_sidecars([Path(weak)]) if isinstance(weak, str | PathLike) else None


def predict(
    tagger: AnyTagger | str | PathLike[str], docs: Documents, *, threshold: float | None = None
) -> Iterator[Document]:
    """Tag entities in documents, with a score per span.

    Args:
        tagger: a tagger, or the folder of a run or model.
        docs: path, documents or texts; existing labels are ignored.
        threshold: minimum probability of a predicted span, 0 to 1; by default the model's own threshold.

    Returns:
        The documents with the predicted spans, one at a time.

    >>> from lacuner.models.lookup import LookupTagger
    >>> [doc] = predict(LookupTagger({"Halden": "PLACE"}), ["Mara left Halden."])
    >>> doc.spans
    (Span(start=10, end=16, label='PLACE', score=1.0, source=None),)
    """
    if isinstance(tagger, str | PathLike):
        tagger = load(tagger)
    elif not hasattr(tagger, "predict"):
        raise TypeError(f"tagger: expected a tagger or the folder of a run, got {type(tagger).__name__}")
    return tagger.predict(_documents(docs, "docs"), threshold=threshold)


def export(
    run: str | PathLike[str],
    to: str,
    out: str | PathLike[str],
    *,
    dev: Documents | None = None,
    text: Documents | None = None,
    max_changed: float | None = None,
    options: ExportOptions = ExportOptions(),  # noqa: B008 frozen
) -> Exported:
    """Export a tagger to another library, with a proof that it predicts the same.

    Args:
        run: run folder or model folder.
        to: `spacy`, `huggingface` or `onnx`.
        out: folder to write; it must not exist or be empty.
        dev: path or gold documents: the export is compared on all of them, and F1 is stated.
        text: path, documents or texts: the export is compared on the first 200. By default texts of the run.
        max_changed: share of the spans that may differ, 0 to 1, instead of the default of the target.
        options: name, version and licence of the model, and options of the target.

    Returns:
        The folder and its proof, which is also in `proof.json`.

    >>> from tempfile import TemporaryDirectory
    >>> from lacuner.models.lookup import LookupTagger
    >>> from lacuner.models.storage import save
    >>> with TemporaryDirectory() as folder:
    ...     _ = save(LookupTagger({"Halden": "PLACE"}), folder)
    ...     export(folder, "onnx", f"{folder}/onnx", text=["Mara left Halden."])
    Traceback (most recent call last):
    lacuner.errors.ConfigError: ...this run only looks names up: it has no model for ONNX; --to spacy exports it
    """
    from lacuner.export.export import export as export_run

    if dev is not None and text is not None:
        raise ConfigError("give either dev or text, not both")
    name, given = ("text", text) if dev is None else ("dev", dev)
    docs = None if given is None else list(_documents(given, name, complete=True if dev is not None else None))
    return export_run(run, to, out, docs, is_dev=dev is not None, max_changed=max_changed, options=options)


def distil(  # noqa: PLR0913
    run: str | PathLike[str],
    to: str,
    text: Documents,
    out: str | PathLike[str],
    *,
    dev: Documents | None = None,
    settings: Iterable[str] = (),
    seed: int = 1,
    progress: Progress = None,
) -> Distilled:
    """Distil a tagger into another encoder: a student learns its predictions on unlabeled text.

    Args:
        run: run folder or model folder of the teacher.
        to: encoder of the student, as after `--encoder`.
        text: path, documents or texts, whose labels are ignored; a tenth, at most 500, is held out.
        out: run folder of the student.
        dev: path or gold documents that select epoch and threshold; by default held-out predictions of the teacher.
        settings: settings such as `train.epochs=8` or `head=token`, as after `--set`.
        seed: random seed.
        progress: as for `train`.

    Returns:
        The student's `tagger`, its `run`, and its `agreement` with the teacher on held-out text.

    >>> from tempfile import TemporaryDirectory
    >>> from lacuner.models.lookup import LookupTagger
    >>> from lacuner.models.storage import save
    >>> with TemporaryDirectory() as folder:
    ...     _ = save(LookupTagger({"Halden": "PLACE"}), folder)
    ...     distil(folder, "tiny", ["Mara left Halden.", "She left."], f"{folder}/student")
    Traceback (most recent call last):
    lacuner.errors.ConfigError: ...this run only looks names up: it has no model to learn from
    """
    from lacuner.export.distil import DistilConfig
    from lacuner.export.distil import distil as distil_run

    config = load_config(DistilConfig, settings=[*settings, f'encoder.name="{to}"'])
    gold = None if dev is None else list(_documents(dev, "dev", complete=True))
    docs = list(_documents(text, "text"))
    return distil_run(run, docs, out, config, dev=gold, seed=seed, log=_message_printer(progress))


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

    originals = list(_documents(docs, "docs"))
    model = open_augmentation_model(encoder, originals, MIN_TOP5 if least_top5 is None else least_top5)
    return augment_documents(originals, model, rate, seed)


def _documents(docs: object, name: str, complete: bool | None = None) -> Iterator[Document]:
    """Documents from what a caller passed as argument `name`; `complete` applies to files that do not say."""
    if isinstance(docs, str | PathLike):
        try:
            return read(docs, complete=complete)
        except CorpusError as error:
            if getattr(error.__cause__, "errno", None) != ENAMETOOLONG:
                raise
            raise CorpusError(f"{name}: a path or a list is expected; put a single text in a list") from error
    if not isinstance(docs, Iterable) or isinstance(docs, Mapping | bytes):
        raise TypeError(f"{name}: expected a path or a list of documents, got {type(docs).__name__}")
    return (
        Document(str(number), doc) if isinstance(doc, str) else _expect(doc, Document, f"{name}[{number - 1}]")
        for number, doc in enumerate(docs, 1)
    )


def _expect(value: Any, types: type[Any] | tuple[type[Any], ...], name: str, hint: str = "") -> Any:
    """The value, if it is of an expected type; otherwise a TypeError that says what was expected."""
    if isinstance(value, types):
        return value
    types = types if isinstance(types, tuple) else (types,)
    *expected, actual = (
        f"{kind.__module__}.{kind.__name__}".removeprefix("builtins.") for kind in (*types, type(value))
    )
    raise TypeError(f"{name}: expected {' or '.join(expected)}, got {actual}{hint and f'; {hint}'}")


def _message_printer(progress: Progress) -> Callable[[str], Any]:
    """The function that gets progress messages."""
    from rich.console import Console

    if callable(progress):
        return progress
    console = Console(stderr=True, markup=False, highlight=False, soft_wrap=True)
    if progress or (progress is None and (console.is_terminal or console.is_jupyter)):
        return console.print
    return lambda _: None
