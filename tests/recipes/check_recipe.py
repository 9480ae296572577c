"""The conformance suite: what every recipe must do, whatever its paper says.

Trains on twenty documents; gives the same bytes again, whatever the order of the documents and the hash seed; resumes
after a kill (tests/training/test_kill.py); learns nothing from an unsure span, whatever is said of it; never sees gold
it does not need; survives documents and batches without entities; says in one sentence when nothing can be learned.

Usage: python -m tests.recipes.check_recipe FOLDER RECIPE=HEAD...
Prints the hash of each recipe's weights as JSON: another process has another hash seed.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from lacuner.config import load_config
from lacuner.corpus.words import words_of
from lacuner.data import Document, Span, Splits
from lacuner.errors import TrainingError
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.heads import build_head
from lacuner.models.heads.entity_type import EntityTypeHead
from lacuner.models.heads.prototype import PrototypeHead
from lacuner.models.heads.span import SpanHead
from lacuner.models.heads.tie_or_break import TieOrBreakHead
from lacuner.models.heads.token import TokenHead
from lacuner.models.model import Model
from lacuner.models.storage import save
from lacuner.models.targets import CorpusTargets
from lacuner.recipes import RECIPES
from lacuner.trainer.train import TrainingResult, train
from tests.demo_corpus import demo_corpus

SETTINGS = ["train.epochs=2", "train.budget=256"]
TINY = "encoder.name=tiny"
DOUBTING = ["noise_aware=true", "parts=2", "rounds=2"]
"""Has `needle` go through all of its stages; with a small encoder it would not calibrate."""


class Poisoned(Sequence[Document]):
    """Gold that no recipe may look at; the trainer compares only the names of its labels."""

    labels: Sequence[str] = ()

    def __len__(self) -> int:
        raise AssertionError("a recipe looked at gold that it does not need")

    def __getitem__(self, at: Any) -> Any:
        raise AssertionError("a recipe looked at gold that it does not need")


class Case:
    """One recipe with a head, on twenty documents."""

    def __init__(self, recipe: str, head: str) -> None:
        has_head = "head" in RECIPES[recipe].Config.model_fields
        # BOND, which `then_gold` begins with, has a token head
        self.recipe, self.head = recipe, head if has_head else "token" if recipe == "then_gold" else ""
        demo = demo_corpus()
        self.gold = demo.train[:20]
        self.weak = [replace(doc, spans=doc.spans[:1], complete=False) for doc in self.gold]
        self.dev = demo.dev[:10]
        settings = [*(SETTINGS if recipe != "dictionary" else []), *([f"head.kind={head}"] if has_head else [])]
        settings += [TINY] if "encoder" in RECIPES[recipe].Config.model_fields else []
        settings += DOUBTING if recipe == "needle" else []
        self.config = load_config(RECIPES[recipe].Config, settings=settings)

    def run(self, folder: Path, seed: int = 1, **data: Any) -> TrainingResult:
        torch.set_num_threads(1)
        needs = RECIPES[self.recipe].NEEDS
        given: dict[str, Any] = {"weak": self.weak, "gold": self.gold if "gold" in needs else Poisoned()}
        given = {**given, "dev": self.dev, **data}
        if "weak" not in needs:
            given["weak"] = None
        config = self.config
        if "start" in type(config).model_fields:
            config = config.model_copy(update={"start": start(folder.parent / "start")})
            given["dev"] = data.get("dev")  # with dev it may keep what it began with, whatever the seed
        return train(self.recipe, Splits(**given), folder, config, seed)


def start(folder: Path) -> Path:
    """A run to go on from: a CRF with random weights for the labels of the demo corpus, the same wherever it lies."""
    if not folder.exists():
        torch.manual_seed(1)
        labels = sorted({span.label for doc in demo_corpus().train for span in doc.spans})
        encoder = TinyEncoder(TinyConfig())
        save(Model(encoder, build_head({"kind": "crf", "labels": labels}, encoder.width)), folder)
    return folder


def weights(folder: Path) -> str:
    files = [file for file in sorted((folder / "model").rglob("*")) if file.is_file()]
    assert files
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def check_recipe(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of the above."""
    trained = case.run(folder / "a")
    assert trained.tagger.labels
    assert (folder / "a" / "label_issues.jsonl").exists() == ("weak" in RECIPES[case.recipe].NEEDS)
    found = list(trained.tagger.predict(case.dev))
    assert [doc.text for doc in found] == [doc.text for doc in case.dev]
    again = case.run(folder / "a")
    assert [doc.spans for doc in again.tagger.predict(case.dev)] == [doc.spans for doc in found], (
        "a finished run is loaded"
    )

    shuffled = {
        name: random.Random(3).sample(docs, len(docs)) for name, docs in (("weak", case.weak), ("gold", case.gold))
    }
    if "gold" not in RECIPES[case.recipe].NEEDS:
        shuffled["gold"] = Poisoned()  # type: ignore[assignment]
    case.run(folder / "b", **shuffled)
    assert weights(folder / "a") == weights(folder / "b"), "the order of documents decides nothing"
    if case.recipe != "dictionary":
        case.run(folder / "c", seed=2)
        assert weights(folder / "a") != weights(folder / "c"), "another seed, other weights"
    _check_empty(case, folder)
    _check_unsure(case, folder, monkeypatch)


def _check_empty(case: Case, folder: Path) -> None:
    """Documents without entities, without words, and nothing but those."""
    bare = [Document(f"bare{i}", f"nothing to see here {i}", complete=doc.complete) for i, doc in enumerate(case.weak)]
    bare += [Document("empty", ""), Document("space", "  ")]
    case.run(folder / "d", weak=[*case.weak, *bare], gold=[*case.gold, *[replace(doc, complete=True) for doc in bare]])
    with pytest.raises(TrainingError, match="no labeled span"):
        case.run(folder / "e", weak=bare, gold=[replace(doc, complete=True) for doc in bare])


def _check_unsure(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second word of every document is unsure: nothing that touches it is ever known, or teaches anything."""
    gold = [doc for doc in demo_corpus().train[:200] if doc.spans and _second_word_is_free(doc)][:20]
    assert len(gold) == 20
    known, gradients = _spy(monkeypatch)
    _run_unsure(case, folder / "f", [replace(doc, unsure=(Span(*words_of(doc)[1], ""),)) for doc in gold])
    monkeypatch.undo()
    assert bool(known) == (case.recipe != "dictionary")
    assert bool(gradients) == (case.head not in ("", "crf")), "in a CRF unknown words take part in the sum"
    assert all(seen.any() for seen in known) and (not gradients or any(seen.any() for seen in gradients))
    for seen in (*known, *gradients):
        assert not seen[:, 1].any()
        if case.head == "span":  # those from the first word that reach the second, too
            assert not seen[:, 0, 1:].any()
    # what is said of an unsure word beyond that makes no difference
    label = next(span.label for doc in gold for span in doc.spans)
    said = [
        replace(doc, unsure=(Span(*words_of(doc)[1], label, 0.9, "x"),), rejected=(Span(*words_of(doc)[1], ""),))
        for doc in gold
    ]
    _run_unsure(case, folder / "g", said)
    assert weights(folder / "f") == weights(folder / "g"), "what is unsure has no influence"


def _run_unsure(case: Case, folder: Path, gold: list[Document]) -> None:
    weak = [replace(doc, spans=doc.spans[:1], complete=False) for doc in gold]
    case.run(folder, weak=weak, gold=gold if "gold" in RECIPES[case.recipe].NEEDS else Poisoned())


def _spy(monkeypatch: pytest.MonkeyPatch) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """What is known in each batch, and what the loss tells each output: a recipe may draw negatives of its own."""
    known: list[torch.Tensor] = []
    gradients: list[torch.Tensor] = []
    collate = CorpusTargets.collate

    def collated(self: CorpusTargets, indices: Any) -> Any:
        targets = collate(self, indices)
        known.append(targets.known)
        return targets

    monkeypatch.setattr(CorpusTargets, "collate", collated)
    outputs: dict[Any, tuple[str, ...]] = dict.fromkeys((TokenHead, SpanHead, TieOrBreakHead), ("logits",))
    outputs |= {EntityTypeHead: ("entity", "types"), PrototypeHead: ("similarities",)}
    for head, names in outputs.items():

        def forward(self: Any, *args: Any, whole: Any = head.forward, names: Any = names) -> Any:
            scores = whole(self, *args)
            for output in [getattr(scores, name) for name in names]:
                if output.requires_grad:
                    output.register_hook(lambda gradient: gradients.append(gradient != 0))
            return scores

        monkeypatch.setattr(head, "forward", forward)
    return known, gradients


def _second_word_is_free(doc: Document) -> bool:
    words = words_of(doc)
    return len(words) > 1 and not any(span.start < words[1][1] and words[1][0] < span.end for span in doc.spans)


def main() -> None:
    folder, *cases = sys.argv[1:]
    hashes = {}
    for recipe, head in (case.split("=") for case in cases):
        Case(recipe, head).run(Path(folder) / recipe)
        hashes[recipe] = weights(Path(folder) / recipe)
    sys.stdout.write(json.dumps(hashes))


if __name__ == "__main__":
    main()
