"""Train one model in one resumable stage: the building block of every recipe."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from lacuner.data import Document, Lost, labels_of
from lacuner.errors import TrainingError
from lacuner.evaluate.scores import Count, count_exact
from lacuner.evaluate.threshold import tune_threshold
from lacuner.mapped import Parts
from lacuner.models.config import MAX_SPAN_WIDTH
from lacuner.models.encoders import open_encoder
from lacuner.models.heads import build_head
from lacuner.models.model import Model
from lacuner.models.tagger import LOWEST_THRESHOLD, Tagger, assemble
from lacuner.models.targets import choose_span_width
from lacuner.models.types import HasThreshold
from lacuner.models.windows import cut_sentences
from lacuner.training.config import RecipeConfig, TrainConfig
from lacuner.training.dataset import TrainingSet, cut_parts, keep_rows, training_set
from lacuner.training.loop import Keep, fit, load_weights
from lacuner.training.run_folder import Row, Run
from lacuner.training.steps import MakeStep, loss_step


def new_model(config: RecipeConfig, docs: Sequence[Document], run: Run, name: str = "model") -> Model:
    """A model with fresh weights for the labels of these documents.

    The weights depend on the run's seed and on `name` only, so two models of a run differ if their names do.
    """
    labels = labels_of(docs)
    if not labels:
        raise TrainingError("there is no labeled span in the training data: nothing can be learned from it")
    torch.manual_seed(run.seed_for("weights", name))
    encoder, head = open_encoder(config.encoder, docs), config.head
    settings: dict[str, Any] = {"kind": head.kind, "labels": labels, "dropout": head.dropout}
    if head.kind == "span":
        annotations = (annotation for part in cut_parts(docs, encoder, Lost()) for annotation in part.annotations)
        width = head.width or min(choose_span_width(annotations), MAX_SPAN_WIDTH)
        settings |= {"widths": width, "variant": head.variant}
        settings |= {} if head.hidden is None else {"hidden": head.hidden}
    elif head.kind == "prototype":
        settings |= {"prototypes": head.prototypes, "scale": head.scale}
    elif head.kind in ("token", "crf"):
        settings |= {"scheme": head.scheme, "angle": head.angle}
    return Model(encoder, build_head(settings, encoder.width))


@dataclass(frozen=True)
class Selection:
    """How the weights, and the decision threshold of a span head, are selected."""

    dev: Sequence[Document] | None = None
    """With dev documents the epoch with the best dev F1 is kept, without them the last one."""
    threshold: float | Literal["argmax", "dev"] = "argmax"
    """Decision threshold of a span head: a number, or `dev` to tune it on dev after every epoch."""
    keep: Keep = "best"
    """With dev: the best epoch, the initial weights if no epoch beats them, or the last epoch regardless."""
    scored: Model | None = None
    """The model that is scored on dev; None: the one that is trained."""


class StageResult(NamedTuple):
    """A trained model and one row of metrics per epoch."""

    model: Model
    rows: list[Row]

    @property
    def dev_f1(self) -> float:
        """F1 of the best epoch on dev; 0 without dev."""
        return max((row["dev"]["f1"] for row in self.rows if "dev" in row), default=0.0)


def train_stage(
    data: TrainingSet,
    make_step: MakeStep,
    train: TrainConfig,
    run: Run,
    selection: Selection = Selection(),  # noqa: B008 frozen
    name: str = "train",
) -> StageResult:
    """Train `data.model` in the stage `name` of the run; a finished stage is loaded, an interrupted one resumes."""
    model, scored = data.model, selection.scored or data.model
    head = scored.head
    if isinstance(head, HasThreshold) and isinstance(selection.threshold, float):
        head.threshold = selection.threshold
    tune = isinstance(head, HasThreshold) and selection.threshold == "dev"
    dev_score = DevScorer(scored, selection.dev, tune) if selection.dev else None
    settings = train.resolve(model, data.features)
    rows = fit(model, data.features, make_step, settings, run.stage(name), dev_score, selection.keep)
    if tune and dev_score is not None:
        dev_score()  # sets the threshold of the weights that were kept
        run.log(f"{name}: best decision threshold on dev: {dev_score.threshold:.3f}")
    return StageResult(model, rows)


def load_stage(run: Run, name: str, model: Model) -> list[Row] | None:
    """Give a model the weights of a finished stage and return its metrics; None if the stage is not finished."""
    stage = run.stage(name)
    return load_weights(model, stage) if stage.finished else None


def train_on(docs: Sequence[Document], dev: Sequence[Document] | None, config: RecipeConfig, run: Run) -> Tagger:
    """Train one model on everything that the documents state, with the supervised loss."""
    lost = Lost()
    data = training_set(new_model(config, docs, run), docs, lost)
    run.plan({"train": config.train.epochs})
    run.log(f"training on {len(docs):,} documents: {lost}")
    selection = Selection(dev, config.head.threshold)
    return Tagger(train_stage(data, lambda _: loss_step(data), config.train, run, selection).model)


def cached_tensors(run: Run, name: str, compute: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
    """Compute tensors once per run and keep them as a finished stage.

    What an epoch trains on is stored before the epoch starts: a resumed run must not recompute it with a model that is
    half-way through the epoch.
    """
    if not (stage := run.stage(name)).finished:
        stage.finish(compute(), {})
    return run.stage(name).tensors


def cached_rows(run: Run, data: TrainingSet, name: str, compute: Callable[[], Parts]) -> dict[str, Tensor]:
    """`cached_tensors` with one row per word of a training set; of one on disk, the rows are kept beside its arrays."""
    if data.folder is None:
        return cached_tensors(run, name, lambda: keep_rows(data, [name], compute()))
    return keep_rows(data, [run.identity, name], compute())


def name_stages(values: Sequence[float], setting: str) -> list[str]:
    """The stages in which `best_on_dev` tries the values of a setting.

    >>> name_stages([0.1, 0.3, 0.1], "rate")
    ['rate0.1', 'rate0.3']
    """
    return [f"{setting}{value:g}" for value in dict.fromkeys(values)]


def best_on_dev(
    values: Sequence[float],
    default: float,
    train: Callable[[float, str], StageResult],
    setting: str,
    dev: Sequence[Document] | None,
    run: Run,
) -> Tagger:
    """Train once per value of a setting, each in its own stage, and keep the model with the best dev F1.

    Without values, or without dev to choose by, the model is trained once with the default.
    """
    if not values or dev is None:
        if values:
            run.log(f"try_{setting} needs --dev to choose by: {setting}={default:g} is used")
        return Tagger(train(default, "train").model)
    names = name_stages(values, setting)
    results = {value: train(value, name) for value, name in zip(dict.fromkeys(values), names, strict=True)}
    scores = ", ".join(f"{result.dev_f1:.3f} with {setting} = {value:g}" for value, result in results.items())
    run.log(f"dev F1 {scores}")
    return Tagger(max(results.values(), key=lambda result: result.dev_f1).model)


class DevScorer:
    """Scores a model on dev documents, which are prepared once; can also tune the threshold of a span head."""

    def __init__(self, model: Model, docs: Sequence[Document], tune: bool = False) -> None:
        self.tagger, self.docs, self.tune = Tagger(model), docs, tune
        self.sentences = cut_sentences(docs, model.encoder)
        self.features = model.encoder.prepare(self.sentences.words)
        self.threshold: float | None = None
        """The threshold with the best F1 in the last call, if it is tuned."""

    def __call__(self) -> Count:
        """Exact-match counts of the model as it is now; sets the head's threshold if that is to be tuned."""
        spans = self.tagger.decode(self.features, LOWEST_THRESHOLD if self.tune else None)
        predicted = list(assemble(self.docs, self.sentences, spans, self.tagger.labels))
        if not self.tune:
            return count_exact(self.docs, predicted)
        head = self.tagger.model.head
        assert isinstance(head, HasThreshold)
        self.threshold, count = tune_threshold(self.docs, predicted)
        head.threshold = self.threshold
        return count
