"""Train a recipe, from documents to a finished run folder."""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import ModuleType

from lacuner.config import Config, load_config
from lacuner.corpus.stored import StoredDocuments
from lacuner.data import Document, Splits, remove_labels
from lacuner.errors import ConfigError, TrainingError
from lacuner.models.encoders import parse_encoder_name
from lacuner.models.gazetteer import TaggerGazetteer
from lacuner.models.lookup import LookupTagger
from lacuner.models.merging import DEFAULT_RULE
from lacuner.models.storage import AnyTagger, load, save
from lacuner.models.tagger import Tagger
from lacuner.processes import RunRequests
from lacuner.recipes import RECIPES, find_recipe
from lacuner.techniques.hidden_entries import OperatingPoint, read_operating_point
from lacuner.techniques.label_issues import LabelIssues, find_label_issues, write_label_issues, write_missing_names
from lacuner.trainer.auto import (
    AUTO,
    auto_encoder_name,
    choose_config_encoder,
    choose_recipe,
    complete_as_gold,
    read_auto_settings,
)
from lacuner.trainer.comparison import (
    FILE,
    FOLDS,
    MAX_GOLD,
    MIN_GOLD,
    Comparison,
    compare_on_dev,
    compare_on_gold,
    read_comparison,
    write_comparison,
)
from lacuner.trainer.labels import check_labels
from lacuner.trainer.merge_rule import fit_to_dev
from lacuner.trainer.streaming import load_if_needed
from lacuner.training.callbacks import TrainingCallback
from lacuner.training.distributed import is_first, process_count, value_of_first
from lacuner.training.identity import run_identity, set_complete, sort_documents
from lacuner.training.run_folder import Run, quiet, stored_identity


@dataclass(frozen=True)
class TrainingResult:
    """A finished training run."""

    tagger: AnyTagger
    run: Run
    label_issues: LabelIssues | None
    """For a recipe that uses weak labels: what the model finds and they lack, and labels that it disagrees with."""
    comparison: Comparison | None = None
    """With a gazetteer: scores of the gazetteer, the model, and both, on dev or on gold (by `compare_on_gold`)."""
    estimate: OperatingPoint | None = None
    """Without dev, from recipes that hide names: what the model is expected to add to the labels."""


def check_needs(recipe: str, roles: Iterable[str]) -> None:
    """Raise an error if a recipe does not exist, lacks data that it needs, or gets unlabeled text that it ignores."""
    provided, module = set(roles), find_recipe(recipe)
    check_unlabeled(recipe, provided)
    options = {role: f"--{role}" for role in module.NEEDS if role not in provided}
    if uses_unlabeled(recipe) and "weak" in options:
        options["weak"] = "--weak or --unlabeled"
        if "unlabeled" in provided:
            del options["weak"]
    missing = list(options.values())
    if missing:
        raise ConfigError(f"recipe `{recipe}` needs {' and '.join(missing)}")


def uses_unlabeled(recipe: str) -> bool:
    """Whether a recipe trains on unlabeled text; one that is not chosen yet (`auto`) will not.

    >>> uses_unlabeled("sst"), uses_unlabeled("trust"), uses_unlabeled("auto")
    (True, False, False)
    """
    return recipe in RECIPES and getattr(RECIPES[recipe], "UNLABELED", False)


def check_unlabeled(recipe: str, roles: Iterable[str]) -> None:
    """Raise an error if there is unlabeled text and the recipe does not use it."""
    if "unlabeled" in roles and not uses_unlabeled(recipe):
        users = ", ".join(name for name in RECIPES if uses_unlabeled(name))
        raise ConfigError(f"recipe `{recipe}` does not use --unlabeled; these recipes do: {users}")


def check_on(recipe: str, run_requests: RunRequests | None) -> None:
    """Raise an error if `--on` is given to a recipe that trains a single model, or together with `torchrun`."""
    if run_requests is None:
        return
    members = [name for name, module in RECIPES.items() if hasattr(module, "train_member")]
    if recipe != AUTO and recipe not in members:
        raise ConfigError(f"recipe `{recipe}` trains one model: --on is for {', '.join(members)}; leave it out")
    if process_count() > 1:
        raise ConfigError("--on trains the members of an ensemble in processes of its own: start it without `torchrun`")


def load_recipe_config(
    recipe: str, roles: Iterable[str], file: str | PathLike[str] | None = None, settings: Iterable[str] = ()
) -> Config:
    """The settings of a recipe, the encoder's name included, checked before any data is read; for `auto`, raw."""
    if recipe == AUTO:
        check_unlabeled(recipe, roles := set(roles))
        if not {"weak", "gold"} & roles:
            raise ConfigError("recipe `auto` needs --weak or --gold")
        auto = read_auto_settings(file, settings)
        parse_encoder_name(auto_encoder_name(auto))
        return auto
    check_needs(recipe, roles)
    config: Config = load_config(RECIPES[recipe].Config, file, settings)
    if (encoder := getattr(config, "encoder", None)) is not None:
        parse_encoder_name(encoder.name)
    return config


def tunes_threshold(config: Config) -> bool:
    """Whether a recipe's settings leave the decision threshold to dev."""
    return getattr(getattr(config, "head", None), "threshold", None) == "dev"


def train(  # noqa: PLR0913
    recipe: str,
    splits: Splits,
    out: str | PathLike[str],
    config: Config | None = None,
    seed: int = 1,
    log: Callable[[str], None] = quiet,
    *,
    callback: TrainingCallback | None = None,
    gazetteer: TaggerGazetteer | None = None,
    run_requests: RunRequests | None = None,
) -> TrainingResult:
    """Train a recipe into the folder `out`; an interrupted run resumes, a finished one is loaded.

    The tagger uses the `gazetteer` beside its model, and the model folder contains it. `run_requests` starts the
    processes of ensemble members on other machines.
    """
    # of all inputs: labels that differ in spelling could make `auto` choose a recipe that ignores gold
    notes = check_labels(vars(splits), gazetteer.labels if gazetteer is not None else ())
    stored = value_of_first(lambda: stored_identity(Path(out))) or {}
    why = stored.get("why")  # the reasons for a recipe are not part of what identifies the run
    if recipe == AUTO:
        with_gold = complete_as_gold(splits)
        advice, config = choose_recipe(with_gold, config, stored, log)
        recipe, why = advice.recipe, why if stored else advice.model_dump(mode="json")
        if "gold" in RECIPES[recipe].NEEDS:  # otherwise complete documents are trained on among the weak ones
            splits = with_gold
    docs_by_role = {role: docs for role, docs in vars(splits).items() if docs is not None}
    check_needs(recipe, docs_by_role)
    module = RECIPES[recipe]
    for role in [role for role in docs_by_role if role not in (*module.NEEDS, "dev", "unlabeled")]:
        log(f"recipe `{recipe}` does not use --{role}; ignoring it")
        del docs_by_role[role]  # a recipe must never see data that its users would not have
    if "weak" in docs_by_role:
        docs_by_role["weak"] = load_if_needed(recipe, docs_by_role["weak"], log)
    if "unlabeled" in docs_by_role:
        docs_by_role["unlabeled"] = list(remove_labels(docs_by_role["unlabeled"]))
    config = choose_config_encoder(config or module.Config(), Splits(**docs_by_role), log)
    data = {
        role: docs if isinstance(docs, StoredDocuments) else sort_documents(set_complete(docs, role in ("gold", "dev")))
        for role, docs in docs_by_role.items()
    }
    if getattr(getattr(config, "train", None), "patience", None) is not None and not data.get("dev"):
        log("train.patience has no effect without --dev: all epochs will run")
    for note in notes:
        log(note)
    identity = run_identity(recipe, seed, config, data)
    if gazetteer is not None:
        gazetteer = gazetteer.with_rule(DEFAULT_RULE)  # of a gazetteer from another run: the rule is chosen again
        identity["gazetteer"] = gazetteer.sha256
    run = Run(out, {**identity, "why": why} if why is not None else identity, log, callback)
    check_on(recipe, run_requests)
    run.run_requests = run_requests
    with run.locked():
        finished = run.finished
        if loadable := run.is_loadable:
            log("this run is already finished")
            tagger = load(Path(out) / "model")
        else:
            run.planned.repetitions = FOLDS if gazetteer is not None and _trains_on_parts(data, run) else 0
            tagger = _train_tagger(module, data, config, run, gazetteer)
        comparison = None
        if isinstance(tagger, Tagger) and tagger.gazetteer is not None:
            comparison = _compare(tagger, module, data, config, run)
            if comparison is not None:
                tagger.gazetteer = tagger.gazetteer.with_rule(comparison.rule)
        if not loadable:
            save(tagger, run.model_folder)
        if not is_first():
            return TrainingResult(tagger, run, None)
        issues = _list_issues(tagger, data["weak"], run) if "weak" in data else None
        if not finished:
            run.finish({"labels": list(tagger.labels)})
    return TrainingResult(tagger, run, issues, comparison, read_operating_point(run.folder))


def _list_issues(tagger: AnyTagger, weak: Sequence[Document], run: Run) -> LabelIssues:
    """Compare the model, without its gazetteer, with the weak labels; the issues are written into the run folder."""
    point = read_operating_point(run.folder)
    length_odds = point.length_odds if point is not None else ()
    issues = find_label_issues(Tagger(tagger.model) if isinstance(tagger, Tagger) else tagger, weak, length_odds)
    if not run.read_only:
        write_label_issues((*issues.missing, *issues.doubtful), run.folder / "label_issues.jsonl")
        write_missing_names(issues, run.folder / "label_issues.tsv")
    return issues


def _train_tagger(
    module: ModuleType,
    data: Mapping[str, Sequence[Document]],
    config: Config,
    run: Run,
    gazetteer: TaggerGazetteer | None,
) -> AnyTagger:
    """Train a recipe, and add the gazetteer to its tagger."""
    tagger: AnyTagger = module.train(Splits(**data), config, run)
    if isinstance(tagger, Tagger) and gazetteer is not None:
        tagger.gazetteer = gazetteer
        if data.get("dev"):
            fit_to_dev(tagger, data["dev"], tunes_threshold(config))
    if isinstance(tagger, LookupTagger) and gazetteer is not None:
        tagger = LookupTagger(tagger.names, gazetteer)
        run.log(f"dictionary: its tagger matches the {len(gazetteer):,} gazetteer entries, not the labeled names")
    return tagger


def _trains_on_parts(data: Mapping[str, Sequence[Document]], run: Run) -> bool:
    """Whether model and gazetteer are compared by models that are trained on parts of gold, and have not been yet."""
    if data.get("dev") or not MIN_GOLD <= len(data.get("gold", ())) <= MAX_GOLD:
        return False
    return not run.finished and not value_of_first((run.folder / FILE).exists)


def _compare(
    tagger: Tagger, module: ModuleType, data: Mapping[str, Sequence[Document]], config: Config, run: Run
) -> Comparison | None:
    """Compare gazetteer, model and both on dev; without dev on gold, by models trained on parts of it."""
    if data.get("dev"):
        return compare_on_dev(tagger, data["dev"])
    if not _trains_on_parts(data, run):
        comparison = read_comparison(run.folder)
        if comparison is None and data.get("gold") and not run.finished:
            run.log(f"to compare model and gazetteer, give --dev, or {MIN_GOLD} to {MAX_GOLD} documents as --gold")
        return comparison
    run.log(f"comparing model and gazetteer: {FOLDS} more models, each trained without a part of gold")

    def train_part(fold: int, docs: list[Document]) -> Tagger:
        part, name = {**data, "gold": docs}, f"model {fold + 1} of {FOLDS}"
        identity = run_identity(run.identity["recipe"], run.seed, config, part)
        fold_run = Run(run.folder / "comparison" / str(fold), identity, lambda line: run.log(f"{name}: {line}"))
        fold_run.planned.repetitions = FOLDS - 1 - fold
        with fold_run.locked():
            trained = _train_tagger(module, part, config, fold_run, tagger.gazetteer)
        assert isinstance(trained, Tagger)
        return trained

    try:
        comparison = compare_on_gold(train_part, data["gold"])
    except TrainingError as error:
        run.log(f"no comparison of model and gazetteer: without a part of gold, {error}")
        return None
    write_comparison(comparison, run.folder)
    shutil.rmtree(run.folder / "comparison", ignore_errors=True)
    return comparison
