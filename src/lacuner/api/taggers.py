"""Train a tagger, predict with it, export it and distil it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lacuner import load
from lacuner.api.inputs import Documents, Gazetteer, Progress, documents_of, entries_of, expect, message_printer
from lacuner.config import Config, load_config, make_config, string_setting
from lacuner.data import Document, Splits
from lacuner.errors import ConfigError
from lacuner.export.options import ExportOptions

if TYPE_CHECKING:
    from lacuner.export.distil import Distilled
    from lacuner.export.export import Exported
    from lacuner.models.gazetteer import TaggerGazetteer
    from lacuner.models.storage import AnyTagger


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

    if recipe == "auto":
        raise ConfigError("recipe `auto` takes settings, not a config: train(settings=['train.epochs=5'], ...)")
    config: Config = make_config(find_recipe(recipe).Config, settings)
    return config


def train(  # noqa: PLR0913
    recipe: str = "auto",
    *,
    weak: Documents | None = None,
    gold: Documents | None = None,
    dev: Documents | None = None,
    unlabeled: Documents | None = None,
    gazetteer: Gazetteer | None = None,
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
    >>> from lacuner.api import annotate
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
    expect(out, (str, PathLike), "out")
    expect(seed, int, "seed")
    data = {"weak": weak, "gold": gold, "dev": dev, "unlabeled": unlabeled}
    roles = [role for role, docs in data.items() if docs is not None]
    if config is None:
        config = load_recipe_config(recipe, roles, settings=settings)
    elif settings:
        raise ConfigError("give either config or settings, not both")
    elif recipe == "auto":
        raise ConfigError("recipe `auto` takes settings, not a config: its recipe is not known yet")
    else:
        expect(config, find_recipe(recipe).Config, "config", f"use config_for({recipe!r}, ...)")
    splits = {role: list(documents_of(data[role], role, complete=role in ("gold", "dev"))) for role in roles}
    own = _tagger_gazetteer(gazetteer, weak)
    log = message_printer(progress)
    return train_splits(recipe, Splits(**splits), out, config, seed, log, gazetteer=own).tagger


def _tagger_gazetteer(gazetteer: Gazetteer | None, weak: Documents | None) -> TaggerGazetteer | None:
    from lacuner.models.gazetteer import TaggerGazetteer
    from lacuner.models.sidecar import read_sidecars

    if gazetteer is not None:
        return TaggerGazetteer(entries_of(gazetteer))
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
    return tagger.predict(documents_of(docs, "docs"), threshold=threshold)


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
        dev: path or gold documents: export and tagger are compared on all of them, with F1.
        text: path, documents or texts: they are compared on the first 200. By default texts of the run.
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
    docs = None
    if dev is not None:
        docs = list(documents_of(dev, "dev", complete=True))
    elif text is not None:
        docs = list(documents_of(text, "text"))
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

    config = load_config(DistilConfig, settings=[*settings, *string_setting("encoder.name", to)])
    gold = None if dev is None else list(documents_of(dev, "dev", complete=True))
    docs = list(documents_of(text, "text"))
    return distil_run(run, docs, out, config, dev=gold, seed=seed, log=message_printer(progress))
