"""The sentences below the comparison of gazetteer, model and both."""

import pytest

from lacuner.cli.train import _print_comparison
from lacuner.evaluate.scores import Count
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
    assert "(default: no other is clearly better)" in capsys.readouterr().out
