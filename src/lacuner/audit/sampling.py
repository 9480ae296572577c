"""Train recipes while probes with gold labels track what the models learn about unlabeled entities."""

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lacuner.atomic import read_regular_file, temporary_folder
from lacuner.audit.probes import (
    CallbackList,
    MissamplingProbe,
    SpanProbe,
    UnlabeledEntity,
    find_unlabeled,
    gold_in_training_order,
    select_entities,
)
from lacuner.audit.sparsity import SamplingOdds, Sparsity, clean_bound, min_words, sampling_odds, sparsity, worst_case
from lacuner.config import Config, load_config
from lacuner.data import Splits
from lacuner.errors import ConfigError, explain_damage
from lacuner.processes import lock_folder
from lacuner.recipes import RECIPES
from lacuner.recipes.negative_sampling import Config as SamplingConfig
from lacuner.trainer.train import check_needs, train
from lacuner.training.run_folder import quiet


class Plan(NamedTuple):
    """A recipe with its settings, under the name that the report shows."""

    name: str
    recipe: str
    config: Config


@dataclass(frozen=True)
class ProbedTraining:
    """What the probes recorded of one training."""

    name: str
    recipe: str
    config: dict[str, Any]
    epochs: list[dict[str, Any]]
    """Per epoch `stage`, `epoch`, `loss`, and if available `dev_f1`, `missampling`, `uncertainty`."""
    probs: np.ndarray
    """Probability of each tracked entity, `[epochs, entities]`; NaN where the model cannot express it."""

    @property
    def mean_probs(self) -> tuple[float, float]:
        """Mean probability of the tracked entities after the first and after the last epoch."""
        expressible = self.probs[:, ~np.isnan(self.probs).any(axis=0)]
        return (float(expressible[0].mean()), float(expressible[-1].mean())) if expressible.size else (0.0, 0.0)

    def as_json(self) -> dict[str, Any]:
        probs = [[None if np.isnan(value) else value for value in row] for row in self.probs.tolist()]
        names = {"name": self.name, "recipe": self.recipe, "config": self.config}
        return {**names, "epochs": self.epochs, "probabilities": probs}


@dataclass(frozen=True)
class SamplingAudit:
    """Result of `audit_sampling`."""

    trainings: list[ProbedTraining]
    tracked: list[UnlabeledEntity]
    unlabeled: int
    """Number of unlabeled entities from which the tracked ones were selected."""
    sparsity: Sparsity
    odds: SamplingOdds
    rate: float
    """Negatives per word, for `odds` and the bound."""
    seed: int

    def as_json(self) -> dict[str, Any]:
        rate = self.rate
        # the median sentence length, or the shortest length for which the bound holds if that is longer
        words = max(int(np.median(self.sparsity.words)) if len(self.sparsity.words) else 0, min_words(rate))
        at_least = clean_bound(words, rate) if rate <= 1 else None
        return {
            "seed": self.seed,
            "sparsity": self.sparsity.as_json(),
            "rate": rate,
            "bound": {"words": words, "at_least": at_least, "worst_case": worst_case(words, rate)},
            "corpus": self.odds.as_json(),
            "unlabelled": self.unlabeled,
            "followed": [entity.as_json() for entity in self.tracked],
            "recipes": [training.as_json() for training in self.trainings],
        }


def plan_trainings(recipes: Sequence[str], settings: Sequence[str] = ()) -> list[Plan]:
    """Check recipes and settings before anything is trained; only span classifiers can be audited.

    A recipe may bring settings of its own: `negative_sampling sampler=weighted`. The common `settings` apply to the
    recipes that have them.
    """
    requested = {text: text.split() or [""] for text in recipes}
    fields: dict[str, set[str]] = {}
    for recipe, *_ in requested.values():
        check_needs(recipe, ("weak", "gold"))
        fields[recipe] = set(RECIPES[recipe].Config.model_fields)
    plans = []
    for text, (recipe, *own_settings) in requested.items():
        # a setting that no recipe has is passed on, so that loading it reports the mistake
        others = set().union(*fields.values()) - fields[recipe]
        common = [setting for setting in settings if setting.partition("=")[0].split(".")[0].strip() not in others]
        config = load_config(RECIPES[recipe].Config, settings=[*common, *own_settings])
        if getattr(config, "try_w", ()) or getattr(config, "try_rate", ()):
            raise ConfigError("an audit tracks one training: set one value instead of several to try")
        if getattr(getattr(config, "head", None), "kind", None) != "span":
            raise ConfigError(f"recipe {recipe} trains no span classifier here: choose another, or head.kind=span")
        plans.append(Plan(text, recipe, config))
    return plans


def audit_sampling(
    plans: Sequence[Plan],
    splits: Splits,
    texts: Sequence[str] = (),
    seed: int = 1,
    limit: int = 200,
    log: Callable[[str], None] = quiet,
    folder: Path | None = None,
) -> SamplingAudit:
    """Train each plan on `splits.weak` with probes that see `splits.gold`; the models are not kept.

    Args:
        plans: from `plan_trainings`.
        splits: weak and gold for the same texts, and dev if there is any.
        texts: unlabeled entities to track, by their text; others are selected at random.
        seed: of the trainings and of the selection.
        limit: number of entities to track.
        log: receives progress messages.
        folder: where the trainings write while they run; by default a folder of the system for temporary files. What a
            killed audit has left there is removed by the next one with the same folder.
    """
    if splits.weak is None or splits.gold is None:
        raise ConfigError("an audit needs weak labels and gold for the same texts (--weak, --gold)")
    gold = gold_in_training_order(splits.weak, splits.gold)
    unlabeled = find_unlabeled(splits.weak, splits.gold)
    tracked = select_entities(unlabeled, texts, limit, seed)
    trainings = []
    with _working_folder(folder) as place:
        for number, plan in enumerate(plans):
            log(f"{plan.name}: tracking {len(tracked):,} of {len(unlabeled):,} unlabeled entities")
            probes = MissamplingProbe(gold), SpanProbe(tracked)
            trainings.append(_train_with_probes(plan, splits, probes, place / str(number), seed, log))
    configs = [plan.config for plan in plans if isinstance(plan.config, SamplingConfig)]
    rate = (configs[0] if configs else SamplingConfig()).rate
    max_width = getattr(getattr(plans[0].config, "head", None), "width", None) if plans else None
    odds = sampling_odds(splits.weak, splits.gold, rate, max_width)
    return SamplingAudit(trainings, tracked, len(unlabeled), sparsity(splits.gold), odds, rate, seed)


@contextmanager
def _working_folder(folder: Path | None) -> Iterator[Path]:
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="lacuner-") as place:
            yield Path(place)
    else:
        with lock_folder(folder), temporary_folder(folder) as inside:
            yield inside


def _train_with_probes(
    plan: Plan,
    splits: Splits,
    probes: tuple[MissamplingProbe, SpanProbe],
    run: Path,
    seed: int,
    log: Callable[[str], None],
) -> ProbedTraining:
    missampling, spans = probes
    roles: tuple[str, ...] = (*RECIPES[plan.recipe].NEEDS, "dev")
    needed = Splits(**{role: getattr(splits, role) for role in roles})
    train(plan.recipe, needed, run, plan.config, seed, log, callback=CallbackList(missampling, spans))
    rows = read_metrics(run)
    last_stage = rows[-1]["stage"]  # which trains the final model
    sampled = {(row["stage"], row["epoch"]): row for row in missampling.rows}
    epochs = []
    for row in rows:
        if row["stage"] == last_stage:
            epoch: dict[str, Any] = {name: row[name] for name in ("stage", "epoch", "loss")}
            if "dev" in row:
                epoch["dev_f1"] = row["dev"]["f1"]
            if counts := sampled.get((row["stage"], row["epoch"])):
                epoch |= {name: counts[name] for name in ("missampling", "uncertainty")}
            epochs.append(epoch)
    by_epoch = [row["probabilities"] for row in spans.rows if row["stage"] == last_stage]
    probs = np.array(by_epoch, dtype=float).reshape(len(by_epoch), len(spans.entities))
    return ProbedTraining(plan.name, plan.recipe, plan.config.model_dump(mode="json"), epochs, probs)


def read_metrics(run_folder: Path) -> list[dict[str, Any]]:
    """Read the metrics of all epochs and stages of a run, dev scores rounded."""
    path = run_folder / "metrics.jsonl"
    with explain_damage("these are not the metrics of a run", path):
        rows = [json.loads(line) for line in read_regular_file(path).splitlines()] if path.exists() else []
        for row in rows:
            if "dev" in row:
                row["dev"] = {name: round(value, 5) for name, value in row["dev"].items()}
    return rows
