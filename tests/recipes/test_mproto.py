"""MProto: prototypes follow the words, unlabeled entities leave the loss, and the head survives saving and export."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lacuner.advice.entity_ratio import entity_ratio
from lacuner.config import load_config
from lacuner.data import Lost, Splits, labels_of
from lacuner.errors import ConfigError
from lacuner.models.heads.prototype import PrototypeHead
from lacuner.models.storage import load, save
from lacuner.models.tagger import Tagger
from lacuner.noise import Noise, corrupt
from lacuner.recipes import mproto
from lacuner.training.dataset import weak_training_set
from lacuner.training.run_folder import Run
from lacuner.training.stage import new_model
from tests.demo_corpus import demo_corpus

QUICK = ["encoder.name=tiny", "train.budget=256"]


def test_prototypes_move_towards_their_words_and_only_theirs() -> None:
    head = PrototypeHead(4, ["PER"], prototypes=1)
    before = head.prototypes.detach().clone()
    words = torch.nn.functional.normalize(torch.randn(3, 4), dim=-1)
    head.move_prototypes(words, torch.ones(3).long(), momentum=0.5)
    mean = torch.nn.functional.normalize(words.mean(dim=0), dim=-1)
    assert torch.equal(head.prototypes[0], before[0])
    assert torch.allclose(head.prototypes[1], torch.nn.functional.normalize(before[1] + mean, dim=-1), atol=1e-6)
    head.move_prototypes(words[:0], torch.zeros(0).long(), momentum=0.5)
    assert torch.equal(head.prototypes[0], before[0])


def test_the_preset_of_the_paper_gives_way_to_explicit_settings() -> None:
    config = load_config(mproto.Config, settings=["preset=paper", "train.epochs=4"])
    assert (config.head.scale, config.train.learning_rate, config.train.epochs) == (1.0, 1e-5, 4)
    assert (config.entropy, config.train.batch_size, config.head.dropout) == (0.001, 32, 0.1)
    assert (config.momentum, load_config(mproto.Config, settings=[]).momentum) == (0.5, 0.99)
    assert load_config(mproto.Config, settings=[]).head.scale == 10.0


def test_the_share_is_set_in_one_way() -> None:
    with pytest.raises(ConfigError, match="set either missing or entity_ratio"):
        load_config(mproto.Config, settings=["missing=0.1", "entity_ratio=0.2"])


@pytest.mark.parametrize("wrong", [{"prototypes": 0}, {"prototypes": 2.5}, {"prototypes": 10**9}, {"scale": 0.0}])
def test_wrong_settings_of_a_head_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="prototypes"):
        PrototypeHead(4, ["PER"], **wrong)  # type: ignore[arg-type]


@pytest.mark.integration
def test_unlabeled_entities_leave_the_loss_and_the_tagger_is_saved(tmp_path: Path) -> None:
    weak = list(corrupt(demo_corpus().train[:60], Noise(drop=0.5)))
    config = load_config(mproto.Config, settings=[*QUICK, "missing=0.1", "train.epochs=2"])
    log: list[str] = []
    tagger = mproto.train(Splits(weak=weak), config, Run(tmp_path / "run", {"seed": 1}, log=log.append))
    assert any("10.0 % of unlabeled words left out" in line for line in log)
    head = tagger.model.head
    assert isinstance(head, PrototypeHead)
    assert torch.allclose(head.prototypes.norm(dim=-1), torch.ones(len(head.prototypes)), atol=1e-5)
    save(tagger, tmp_path / "model")
    again, docs = load(tmp_path / "model"), demo_corpus().dev[:20]
    assert isinstance(again, Tagger)
    assert [doc.spans for doc in again.predict(docs)] == [doc.spans for doc in tagger.predict(docs)]
    data = weak_training_set(tagger.model, weak, Lost())
    plain = config.model_copy(update={"transport": False})
    assert mproto.find_missing_share(data, Splits(weak=weak), plain, Run(tmp_path, {})) == 0.0


@pytest.mark.integration
def test_the_entity_ratio_tells_the_share_of_unlabeled_words_that_belong_to_entities(tmp_path: Path) -> None:
    gold = demo_corpus().train[:60]
    weak, labels = list(corrupt(gold, Noise(drop=0.5))), labels_of(gold)
    ratio = entity_ratio(gold, labels)
    config = load_config(mproto.Config, settings=[*QUICK, f"entity_ratio={ratio}"])
    log: list[str] = []
    run = Run(tmp_path, {"seed": 1}, log=log.append)
    data = weak_training_set(new_model(config, weak, run), weak, Lost())
    share = mproto.find_missing_share(data, Splits(weak=weak), config, run)
    words = int(data.own_lengths.sum())
    assert share == pytest.approx(words * (ratio - entity_ratio(weak, labels)) / int(data.unlabeled.sum()))
    assert not (tmp_path / "stages").exists(), "nothing has to be trained"
    assert any("of the words belong to entities (given)" in line for line in log)
