"""Train with somebody watching who knows the gaps, and tell what was seen."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lacuner.audit.aligned_gold import Followed, choose, truth, unlabelled
from lacuner.audit.probes import CallbackList, MissamplingProbe, SpanProbe
from lacuner.audit.sparsity import Chances, Sparsity, bound, chances, least_words, sparsity, worst_case
from lacuner.config import Config, load_config
from lacuner.data import Document, Splits
from lacuner.errors import ConfigError
from lacuner.recipes import RECIPES
from lacuner.recipes.negative_sampling import Config as SamplingConfig
from lacuner.trainer.train import check_needs, train
from lacuner.training.run_folder import quiet


class Plan(NamedTuple):
    """A recipe with settings, under the name that the report shows."""

    name: str
    recipe: str
    config: Config


@dataclass(frozen=True)
class Watched:
    """What was seen of one training."""

    name: str
    recipe: str
    config: dict[str, Any]
    epochs: list[dict[str, Any]]
    """Of each epoch `stage`, `epoch`, `loss`, and, if there are any, `dev_f1`, `missampling`, `uncertainty`."""
    table: np.ndarray
    """The probability of each followed entity after each epoch, `[epochs, entities]`; NaN: cannot be expressed."""

    @property
    def means(self) -> tuple[float, float]:
        """The mean probability after the first and after the last epoch; 0 if nothing can be expressed."""
        seen = self.table[:, ~np.isnan(self.table).any(axis=0)]
        return (float(seen[0].mean()), float(seen[-1].mean())) if seen.size else (0.0, 0.0)

    def as_json(self) -> dict[str, Any]:
        rows = [[None if np.isnan(value) else value for value in row] for row in self.table.tolist()]
        about = {"name": self.name, "recipe": self.recipe, "config": self.config}
        return {**about, "epochs": self.epochs, "probabilities": rows}


@dataclass(frozen=True)
class Audit:
    """What `audit_sampling` found."""

    watched: list[Watched]
    followed: list[Followed]
    unlabelled: int
    """Entities of gold that weak lacks and that could have been followed."""
    sparsity: Sparsity
    chances: Chances
    rate: float
    """Negatives a word, for the probabilities."""
    seed: int

    def as_json(self) -> dict[str, Any]:
        words, rate = self.typical, self.rate
        least = bound(words, rate) if rate <= 1 else None
        return {
            "seed": self.seed,
            "sparsity": self.sparsity.as_json(),
            "rate": rate,
            "bound": {"words": words, "at_least": least, "worst_case": worst_case(words, rate)},
            "corpus": self.chances.as_json(),
            "unlabelled": self.unlabelled,
            "followed": [each.as_json() for each in self.followed],
            "recipes": [watched.as_json() for watched in self.watched],
        }

    @property
    def typical(self) -> int:
        """The words of a sentence of middle length, or as many as the bound needs. It holds for rates up to 1."""
        middle = int(np.median(self.sparsity.words)) if len(self.sparsity.words) else 0
        return max(middle, least_words(self.rate))


def plan(recipes: Sequence[str], settings: Sequence[str] = ()) -> list[Plan]:
    """Recipes with the settings that they have; only a span model can be looked into like this.

    A recipe may bring settings of its own: `negative_sampling sampler=weighted`.
    """
    found: list[Plan] = []
    names = [each.split()[0] for each in recipes if each.strip()]
    for shown in dict.fromkeys(recipes):
        name, *own = shown.split() or [""]
        check_needs(name, ("weak", "gold"))
        known = RECIPES[name].Config.model_fields
        mine = [each for each in settings if _key(each) in known or not _anywhere(each, names)]
        config = load_config(RECIPES[name].Config, settings=[*mine, *own])
        if getattr(config, "try_w", ()) or getattr(config, "try_rate", ()):
            raise ConfigError("an audit follows one training: give it one value, not several to try")
        if getattr(getattr(config, "head", None), "kind", None) != "span":
            raise ConfigError(f"the recipe {name} trains no span model here: choose another, or head.kind=span")
        found.append(Plan(shown, name, config))
    return found


def _key(setting: str) -> str:
    return setting.partition("=")[0].split(".")[0].strip()


def _anywhere(setting: str, recipes: Sequence[str]) -> bool:
    """Whether any of the recipes has such a setting; where none has, loading it says so."""
    return any(_key(setting) in RECIPES[name].Config.model_fields for name in recipes if name in RECIPES)


def audit_sampling(
    plans: Sequence[Plan],
    splits: Splits,
    names: Sequence[str] = (),
    seed: int = 1,
    most: int = 200,
    say: Callable[[str], None] = quiet,
) -> Audit:
    """Train each plan on `splits.weak`, watched by somebody who has `splits.gold`; nothing is kept but what was seen.

    `names` are unlabelled entities to follow by their text; others are drawn, `most` of them in all.
    """
    if splits.weak is None or splits.gold is None:
        raise ConfigError("what is missing can only be seen with weak labels and gold for the same texts")
    real = truth(splits.weak, splits.gold)
    gone = unlabelled(splits.weak, splits.gold)
    followed = choose(gone, names, most, seed)
    watched = []
    for each in plans:
        say(f"{each.name}: {len(followed):,} of {len(gone):,} unlabelled entities are followed")
        watched.append(_watched(each, splits, real, followed, seed, say))
    configs = [each.config for each in plans if isinstance(each.config, SamplingConfig)]
    rate = (configs[0] if configs else SamplingConfig()).rate
    widths = getattr(getattr(plans[0].config, "head", None), "width", None) if plans else None
    drawn = chances(splits.weak, splits.gold, rate, widths)
    return Audit(watched, followed, len(gone), sparsity(splits.gold), drawn, rate, seed)


def _watched(
    each: Plan,
    splits: Splits,
    real: Sequence[Document],
    followed: Sequence[Followed],
    seed: int,
    say: Callable[[str], None],
) -> Watched:
    sampling, spans = MissamplingProbe(real), SpanProbe(followed)
    needs = RECIPES[each.recipe].NEEDS
    roles: tuple[str, ...] = (*needs, "dev")
    given = Splits(**{role: getattr(splits, role) for role in roles})
    with tempfile.TemporaryDirectory(prefix="lacuner-") as folder:
        run = Path(folder) / "run"
        train(each.recipe, given, run, each.config, seed, say, CallbackList(sampling, spans))
        rows = epoch_rows(run)
    rows = [row for row in rows if row["stage"] == rows[-1]["stage"]]  # of several stages the last makes the model
    seen = {(row["stage"], row["epoch"]): row for row in sampling.rows}
    epochs = []
    for row in rows:
        found: dict[str, Any] = {name: row[name] for name in ("stage", "epoch", "loss")}
        if "dev" in row:
            found["dev_f1"] = row["dev"]["f1"]
        if drawn := seen.get((row["stage"], row["epoch"])):
            found |= {name: drawn[name] for name in ("missampling", "uncertainty")}
        epochs.append(found)
    after = [row["probabilities"] for row in spans.rows if row["stage"] == rows[-1]["stage"]]
    table = np.array(after, dtype=float).reshape(len(after), len(followed))
    return Watched(each.name, each.recipe, each.config.model_dump(mode="json"), epochs, table)


def epoch_rows(run_folder: Path) -> list[dict[str, Any]]:
    """What each epoch of each stage of a run was like; times are not in it."""
    path = run_folder / "metrics.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    for row in rows:
        if "dev" in row:
            row["dev"] = {name: round(value, 5) for name, value in row["dev"].items()}
    return rows
