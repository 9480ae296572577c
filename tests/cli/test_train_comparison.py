"""Which gazetteer a training uses, and the sentences below the comparison of gazetteer, model and both."""

from pathlib import Path

import pytest

from lacuner.annotate import Entry
from lacuner.cli.train import _find_gazetteer, _print_comparison, _print_estimate
from lacuner.evaluate.scores import Count
from lacuner.models.gazetteer import TaggerGazetteer
from lacuner.models.sidecar import write_sidecar
from lacuner.techniques.hidden_entries import OperatingPoint
from lacuner.trainer.comparison import Comparison, SystemScore


@pytest.mark.parametrize(
    ("gazetteer", "model", "both", "sentence"),
    [
        (40, 30, 40, "The model does not improve on the gazetteer."),
        (20, 60, 50, "The model alone is better than both"),
        (20, 60, 60, None),
    ],
)
def test_it_says_which_system_to_use(
    gazetteer: int, model: int, both: int, sentence: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = {"gazetteer alone": gazetteer, "model alone": model, "both": both}
    rows = [SystemScore(name, Count(n, 100, 100), 0.0, 1.0) for name, n in counts.items()]
    _print_comparison(Comparison(rows, "longer", "gold"))
    printed = " ".join(capsys.readouterr().out.split())
    assert sentence in printed if sentence else "The model" not in printed
    assert "Merge rule of the tagger (chosen on gold): a match of the gazetteer wins, except over" in printed
    _print_comparison(Comparison(rows, "extension", "dev"))
    assert "(the default: no other is clearly better)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("f1", "sentence"), [(0.6, "does not improve on the gazetteer."), (0.705, "adds little."), (0.8, None)]
)
def test_without_gold_it_says_whether_the_model_helps(
    f1: float, sentence: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    _print_estimate(OperatingPoint(threshold=0.5, missing=100, new=100, recall=0.4, f1=f1, labels_f1=0.7), True)
    printed = capsys.readouterr().out
    assert f"F1 70 for the gazetteer alone, {round(100 * f1)} with the model" in printed
    assert f"So the model {sentence} What would help most: about 60" in printed if sentence else "So" not in printed


def test_it_says_which_gazetteer_is_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weak, alone = tmp_path / "weak.jsonl", tmp_path / "alone.jsonl"
    weak.write_text('{"text": "Mara left Halden."}\n')
    alone.write_text('{"text": "Teel stayed."}\n')
    file = write_sidecar(TaggerGazetteer([Entry("Halden", "LOC")], case="exact"), weak)
    _find_gazetteer(None, [weak, alone], {}, set())
    said = capsys.readouterr().err
    assert f"gazetteer: {file}\n" in said and "(1 entry)" in said and "has changed" not in said
    assert f"{alone}: no gazetteer beside these labels" in said

    weak.write_text(alone.read_text())
    _find_gazetteer(None, [weak], {}, set())
    assert f"{weak} has changed since this gazetteer labeled it" in capsys.readouterr().err
    assert _find_gazetteer(None, [alone], {}, set()) is None

    more = tmp_path / "more.tsv"
    more.write_text("Moss\tLOC\nVorn\n")
    gazetteer = _find_gazetteer([file, more], [alone], {}, set())
    said = capsys.readouterr().err
    assert f"{more}:2: " in said and f"read {more}: 1 entry, 1 row skipped" in said
    assert gazetteer is not None and [part.case for part in gazetteer.parts] == ["exact", "smart"]
