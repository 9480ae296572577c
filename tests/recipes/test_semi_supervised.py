"""Mean teacher and virtual adversarial training: the average, the worst perturbation, the shares of gold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from lacuner.config import load_config
from lacuner.data import Lost, Splits
from lacuner.errors import ConfigError
from lacuner.losses.kl_divergence import kl_divergence
from lacuner.models.encoders.lstm import LSTMConfig, lstm_from_words
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.heads import build_head
from lacuner.models.inference import probabilities
from lacuner.models.model import Model
from lacuner.models.types import Encoder, Targets
from lacuner.recipes import mean_teacher, vat
from lacuner.recipes.mean_teacher import StudentAndTeacher
from lacuner.techniques.semi_supervised import semi_supervised_set
from lacuner.techniques.virtual_adversarial import input_layer, scale_to, virtual_adversarial_loss
from lacuner.trainer.train import train
from tests.demo_corpus import demo_corpus
from tests.models.test_encoders import LengthEncoder

GOLD, TEXTS = demo_corpus().train[:4], [replace(doc, spans=(), complete=False) for doc in demo_corpus().train[4:40]]
WORDS = [["Mara", "left", "Halden", "."], ["She", "left"]]


def make_model(encoder: Encoder | None = None) -> Model:
    torch.manual_seed(1)
    encoder = encoder or TinyEncoder(TinyConfig(width=16, layers=1, rows=256, feature=8, heads=0))
    return Model(encoder, build_head({"kind": "token", "labels": ["LOC", "PERSON"]}, encoder.width))


def test_the_teacher_is_the_moving_average_of_the_student() -> None:
    model = StudentAndTeacher(make_model(), decay=0.8)
    weights = [model.head.output.weight.detach().clone()]
    for _ in range(8):
        with torch.no_grad():
            model.head.output.weight.add_(torch.randn_like(model.head.output.weight))
        weights.append(model.head.output.weight.detach().clone())
        model.after_step()
    want = weights[0]
    for number, value in enumerate(weights[1:], 1):
        kept = min(1 - 1 / (number + 1), 0.8)
        want = kept * want + (1 - kept) * value
    torch.testing.assert_close(model.teacher.head.output.weight, want)
    assert torch.equal(model.teacher.encoder.mix.weight, model.encoder.mix.weight), "what does not change stays equal"
    assert not any(parameter.requires_grad for parameter in model.teacher.parameters())
    assert int(model.steps) == 8 and "teacher.head.output.weight" in model.state_dict(), "checkpoints contain both"


def test_gold_has_its_share_of_an_epoch_and_texts_have_no_label() -> None:
    lost = Lost()
    semi = semi_supervised_set(make_model(), GOLD, TEXTS, 0.25, lost)
    lengths = semi.data.features.lengths
    share = lengths[semi.is_gold].sum() / lengths.sum()
    assert 0.15 < share < 0.35 and semi.factor == pytest.approx(1 / share)
    assert len(semi.is_gold) == len(lengths) and (~semi.is_gold).sum() >= len(TEXTS)
    one = np.flatnonzero(~semi.is_gold)[:3]
    targets = semi.data.targets_of(one)
    scores = semi.data.model(semi.data.model.encoder.collate(semi.data.features, one))
    assert targets.known.any() and float(semi.supervised_loss(scores, targets, one).detach()) == 0


def perturbed_divergence(model: Model, perturbation: torch.Tensor, targets: Targets) -> float:
    layer = input_layer(model.encoder)
    handle = layer.register_forward_hook(lambda _, __, output: output + perturbation)
    features = model.encoder.prepare(WORDS)
    scores = model(model.encoder.collate(features, [0, 1]))
    handle.remove()
    return float(kl_divergence(scores, targets).sum())


@pytest.mark.parametrize("kind", ["tiny", "lstm"])
def test_the_perturbation_is_worse_than_random_ones_of_the_same_size(kind: str) -> None:
    settings = LSTMConfig(width=12, layers=1, word=8, character=6)
    model = make_model(lstm_from_words(WORDS, settings) if kind == "lstm" else None).eval()
    with torch.no_grad():
        model.head.output.weight.mul_(4)
    features = model.encoder.prepare(WORDS)
    batch = model.encoder.collate(features, [0, 1])
    known = batch.mask.clone()
    vectors: list[torch.Tensor] = []
    handle = input_layer(model.encoder).register_forward_hook(lambda _, __, output: vectors.append(output.detach()))
    with torch.no_grad():
        probs = probabilities(model(batch))
    handle.remove()
    targets = Targets(known.long(), known, torch.ones(known.shape), probs)
    length = 0.1 * vectors[0].norm(dim=-1).mean() * batch.mask.sum(dim=1).sqrt()
    worst = float(virtual_adversarial_loss(model, batch, known, 0.1, 0.01, iterations=3))
    torch.manual_seed(2)
    others = [perturbed_divergence(model, scale_to(torch.randn_like(vectors[0]), length), targets) for _ in range(30)]
    assert worst > 1.5 * max(others) > 0


def test_unknown_words_do_not_steer_the_perturbation_and_random_numbers_stay_as_they_were() -> None:
    model = make_model().train()
    batch = model.encoder.collate(model.encoder.prepare(WORDS), [0, 1])
    nothing = torch.zeros_like(batch.mask)
    loss = virtual_adversarial_loss(model, batch, nothing, 0.1, 0.01, 1)
    loss.backward()
    assert float(loss) == 0 and all(p.grad is None or not p.grad.any() for p in model.parameters())
    torch.manual_seed(3)
    virtual_adversarial_loss(model, batch, batch.mask, 0.1, 0.01, 2)
    state = torch.get_rng_state()
    torch.manual_seed(3)
    torch.randint(1 << 62, ())
    assert torch.equal(state, torch.get_rng_state()), "one number is drawn, whatever the size of the batch"


def test_an_encoder_without_word_vectors_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be perturbed: choose --encoder tiny"):
        input_layer(LengthEncoder())


@pytest.mark.parametrize("recipe", [mean_teacher, vat])
def test_the_consistency_loss_changes_the_model_and_weight_zero_is_gold_alone(recipe: object, tmp_path: Path) -> None:
    name = recipe.__name__.rpartition(".")[2]  # type: ignore[attr-defined]
    settings = ["train.epochs=2", "train.budget=256", "encoder.name=tiny", "rampup=0"]
    results = {}
    for weight in (0, 5):
        config = load_config(recipe.Config, settings=[*settings, f"weight={weight}"])  # type: ignore[attr-defined]
        tagger = train(name, Splits(gold=GOLD, unlabeled=TEXTS[:10]), tmp_path / f"{weight}", config).tagger
        results[weight] = tagger.model.head.output.weight.detach()
    assert not torch.equal(results[0], results[5])
