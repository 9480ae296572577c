"""Virtual adversarial perturbation: the small change of the word vectors that changes the predictions most."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from lacuner.errors import ConfigError
from lacuner.losses.kl_divergence import kl_divergence
from lacuner.models.inference import probabilities
from lacuner.models.model import Model
from lacuner.models.types import Batch, Encoder, HasInputLayer, Targets


def virtual_adversarial_loss(
    model: Model, batch: Batch, known: Tensor, epsilon: float, xi: float, iterations: int
) -> Tensor:
    """The summed KL divergence of the predictions for perturbed word vectors from those for the vectors themselves.

    All passes of a call use the same dropout, so only the perturbation changes the predictions.

    Args:
        model: the model, whose encoder has an `input_layer`.
        batch: sentences.
        known: positions that count, in the shape of the targets.
        epsilon: size of the perturbation relative to the word vectors.
        xi: size of the step with which the power iteration looks for the direction, relative to the word vectors.
        iterations: steps of the power iteration.
    """
    layer = input_layer(model.encoder)
    seed = int(torch.randint(1 << 62, ()))  # of the dropout, and of the first direction

    def score(perturbation: Tensor | None = None, record: Callable[[Tensor], None] = lambda _: None) -> Any:
        with _fork(seed), _perturb(layer, perturbation, record):
            return model(batch)

    vectors: list[Tensor] = []
    with torch.no_grad():
        probs = probabilities(score(record=vectors.append))
    targets = Targets(known.long(), known, torch.ones(known.shape, device=known.device), probs)
    length = vectors[0].norm(dim=-1).mean() * batch.mask.sum(dim=1).sqrt()  # of the vectors of a whole sentence
    with _fork(seed):
        direction = torch.randn_like(vectors[0])
    for _ in range(iterations):
        step = scale_to(direction, xi * length).requires_grad_()
        (direction,) = torch.autograd.grad(kl_divergence(score(step), targets).sum(), step)
    loss: Tensor = kl_divergence(score(scale_to(direction, epsilon * length)), targets).sum()
    return loss


def scale_to(direction: Tensor, length: Tensor) -> Tensor:
    """Scale `direction` `[sentences, words, width]` so that each sentence has this length; zeros stay zeros.

    >>> scale_to(torch.tensor([[[3.0, 4.0]], [[0.0, 0.0]]]), torch.tensor([10.0, 1.0])).tolist()
    [[[6.0, 8.0]], [[0.0, 0.0]]]
    """
    norm = direction.norm(dim=(1, 2)).clamp(min=1e-30)
    scaled: Tensor = direction * (length / norm).view(-1, 1, 1)
    return scaled.detach()


def input_layer(encoder: Encoder) -> nn.Module:
    """The encoder's module that returns vectors of words, or sub-words, before any context; an error if it has none."""
    if not isinstance(encoder, HasInputLayer):
        kind = encoder.config()["kind"]
        raise ConfigError(
            f"the word vectors of an encoder of kind {kind!r} cannot be perturbed: choose --encoder tiny, tiny-en, "
            "tiny-zh, lstm or hf:NAME_OR_PATH"
        )
    return encoder.input_layer


@contextmanager
def _perturb(layer: nn.Module, perturbation: Tensor | None, record: Callable[[Tensor], None]) -> Iterator[None]:
    """Add a perturbation to the output of a layer; `record` is called with the output without it."""

    def add(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        record(output.detach())
        return output if perturbation is None else output + perturbation

    handle = layer.register_forward_hook(add)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def _fork(seed: int) -> Iterator[None]:
    """Draw random numbers from this seed, and leave the generators as they were."""
    with torch.random.fork_rng([torch.cuda.current_device()] if torch.cuda.is_available() else []):
        torch.manual_seed(seed)
        yield
