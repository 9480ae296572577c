"""`python -m benchmarks.swapped_mentions`: gold mentions as an upper bound of augmentation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import swapped_mentions
from benchmarks.swapped_mentions import SwappedMentions
from lacuner.config import load_config
from lacuner.data import Document, Lost, Span
from lacuner.models.tagger import Tagger
from lacuner.recipes import roster
from lacuner.training.dataset import weak_training_set
from lacuner.training.run_folder import Run
from lacuner.training.stage import new_model

SPEC = """
seeds = [1]
encoders = ["tiny"]
settings = ["train.epochs=1", "head.kind=entity_type", "models=1", "ablation.confident=0.0"]
[data.demo]
sentences = 40
[noise]
given = true
[recipes.roster]
recipe = "roster"
"""


def test_mentions_are_replaced_by_others_of_their_type_and_number_of_words(tmp_path: Path) -> None:
    names = [("Ann Lee", "PER"), ("Bo Ray", "PER"), ("Oslo", "LOC"), ("Rome", "LOC")]
    texts = [f"Then {name} was left" for name, _ in names]
    gold = [
        Document(str(i), text, spans=(Span(5, 5 + len(name), label),))
        for i, (text, (name, label)) in enumerate(zip(texts, names, strict=True))
    ]
    weak = [Document("0", texts[0], spans=gold[0].spans), *[Document(doc.id, doc.text) for doc in gold[1:]]]
    config = load_config(roster.Config, settings=["encoder.name=tiny", "head.kind=entity_type"])
    sentences = weak_training_set(new_model(config, weak, Run(tmp_path, {"seed": 1})), weak, Lost()).as_complete
    swapped = SwappedMentions(sentences.sentences, gold)
    torch.manual_seed(1)
    drawn = [[" ".join(words) for words in swapped.draw(0.15)] for _ in range(40)]
    people, places = {"Then Ann Lee was left", "Then Bo Ray was left"}, {"Then Oslo was left", "Then Rome was left"}
    assert [{row[i] for row in drawn} for i in range(4)] == [people, people, places, places]
    assert [" ".join(words) for words in swapped.sentences] == texts, "the sentences themselves stay"


@pytest.mark.integration
def test_self_training_starts_from_one_ensemble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text(SPEC)
    robust, taggers = [], []
    train_robust, self_train = roster.train_robust, swapped_mentions.self_train

    def count(task: roster.Task, number: int) -> None:
        robust.append(number)
        train_robust(task, number)

    def keep(*arguments: Any) -> Iterator[Tagger]:
        for tagger in self_train(*arguments):
            taggers.append(torch.cat([parameter.flatten() for parameter in tagger.model.parameters()]).detach())
            yield tagger

    monkeypatch.setattr(roster, "train_robust", count)
    monkeypatch.setattr(swapped_mentions, "self_train", keep)
    [(name, scores)] = swapped_mentions.compare_augmentations(spec, tmp_path)
    ensemble, plain, masked, gold = taggers
    assert name == "demo 1" and len(scores) == 4 and robust == [1]
    assert torch.equal(plain, masked), "an encoder from scratch has no masked language model"
    assert not torch.equal(ensemble, plain) and not torch.equal(plain, gold)
