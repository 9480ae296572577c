"""What the last model learns: what the others think, but for what somebody has said."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lacuner.config import load_config
from lacuner.demo import build
from lacuner.noise import Noise, corrupt
from lacuner.recipes import ensemble, side_by_side
from lacuner.recipes.o_values import believed_set
from lacuner.recipes.parts import Splits, new_model
from lacuner.training.run import Run
from lacuner.types import Document, Lost, Span

TEXT = "Ada met Bo in Cork"
FAST = ("train.epochs=2", "train.budget=256", "models=2")


def run_ensemble(folder: Path, *settings: str) -> tuple[ensemble.Tagger, list[str]]:
    said: list[str] = []
    weak = list(corrupt(build().train[:60], Noise(drop=0.5)))
    config = load_config(ensemble.Config, settings=[*FAST, *settings])
    return ensemble.train(Splits(weak=weak), config, Run(folder, {"seed": 1}, said.append)), said


def test_what_was_said_is_not_overruled(tmp_path: Path) -> None:
    weak = Document("1", TEXT, spans=(Span(0, 3, "P"),), unsure=(Span(8, 10, ""),), rejected=(Span(14, 18, ""),))
    whole = Document("2", TEXT, spans=(Span(0, 3, "P"),), complete=True)
    config = load_config(ensemble.Config)
    model = new_model(config.encoder, config.head, [weak, whole], Run(tmp_path, {"seed": 1}))
    data = believed_set(model, [weak, whole], Lost())
    known = data.data.targets.known
    mean = torch.full((*known.shape, 2), 0.5)
    probs = ensemble.believed(data, mean, None)
    assert probs[0, 0].tolist() == [0.0, 1.0], "a label stays a label"
    assert probs[1, 0].tolist() == [0.5, 0.5], "of a gap the models say what it is"
    assert probs[4, 0].tolist() == [1.0, 0.0], "what was ruled out stays ruled out"
    assert not known[2, 0], "nothing is learned of what is unsure"
    assert probs[6, 0].tolist() == [1.0, 0.0], "a complete document has no gaps"
    fewer = ensemble.believed(data, mean, 0.2)
    assert fewer[0, 0].tolist() == [0.0, 1.0] and 0 < fewer[1, 0, 1] < 0.2, "as if a fifth of an entity were missing"


def test_a_model_never_learns_from_the_part_that_it_judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learned: list[set[str]] = []
    judged: list[set[str]] = []
    asked: list[torch.Tensor] = []
    taught: list[torch.Tensor] = []
    make, predict, of_words, soft_set = ensemble.span_set, ensemble.Tagger.predict, ensemble.of_words, ensemble.soft_set

    def made(model, docs, lost):  # type: ignore[no-untyped-def]
        learned.append({doc.text for doc in docs})
        return make(model, docs, lost)

    def predicted(self, docs, **more):  # type: ignore[no-untyped-def]
        judged.append({doc.text for doc in docs})
        return predict(self, docs, **more)

    def spied(*given):  # type: ignore[no-untyped-def]
        asked.append(of_words(*given))
        return asked[-1]

    def watched(data, model, probs, **more):  # type: ignore[no-untyped-def]
        taught.append(probs)
        return soft_set(data, model, probs, **more)

    for name, spy in (("span_set", made), ("of_words", spied), ("soft_set", watched)):
        monkeypatch.setattr(ensemble, name, spy)
    monkeypatch.setattr(ensemble.Tagger, "predict", predicted)
    run_ensemble(tmp_path / "run", "models=3", "scale=false")
    assert len(learned) == len(judged) == len(asked) == 3
    assert not any(mine & yours for mine, yours in zip(learned, judged, strict=True))
    assert set().union(*judged) == set().union(*learned)
    gaps = ((taught[0] > 0).all(dim=-1)).nonzero(as_tuple=True)
    assert len(gaps[0]) > 100
    torch.testing.assert_close(taught[0][gaps], (asked[0] + asked[1] + asked[2])[gaps] / 3, msg="their mean is taught")


def test_side_by_side_is_the_same_as_one_after_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {}
    for count in (1, 2):
        monkeypatch.setattr(side_by_side.torch, "get_num_threads", lambda count=count: count)
        said[count] = run_ensemble(tmp_path / str(count))[1]
        monkeypatch.undo()
    assert any("2 models, 2 at a time" in line for line in said[2]) and not any("at a time" in line for line in said[1])
    one, two = (
        {p.relative_to(f): p.read_bytes() for p in sorted(f.rglob("*.safetensors"))}
        for f in (tmp_path / "1", tmp_path / "2")
    )
    assert one == two and len(one) >= 3


def test_the_last_model_has_twice_as_many_epochs(tmp_path: Path) -> None:
    for settings, epochs in (((), 4), (("last_epochs=1",), 1)):
        said = run_ensemble(tmp_path / str(epochs), *settings)[1]
        assert any(f"train: epoch {epochs}/{epochs}" in line for line in said), said
