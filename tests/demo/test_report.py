"""How the demo ends: a table in the terminal and a page that says the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.integration
def test_table_and_page(tmp_path: Path) -> None:
    for number, name in enumerate(("dictionary", "trust", "lacuner", "supervised"), 1):
        scores = {"precision": number / 5, "recall": number / 6, "f1": number / 7}
        (tmp_path / f"{name}.json").write_text(json.dumps(scores), encoding="utf-8")
    run = tmp_path / "lacuner"
    run.mkdir()
    why = {"recipe": "ensemble", "reasons": ["Some <b>reason</b>."]}
    (run / "run.json").write_text(json.dumps({"identity": {"why": why}}), encoding="utf-8")
    rows = [
        {"kind": "doubtful", "label": "PLACE", "score": 0.1, "context": "[doubted]"},
        *({"kind": "missing", "label": "PLACE", "score": 0.9, "context": f"[found {n}]"} for n in range(40)),
    ]
    (run / "label_issues.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    script = ROOT / "scripts" / "demo_report.py"
    done = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True, check=True)
    table = [line.split() for line in done.stdout.splitlines()]
    assert table[0] == ["P", "R", "F1"]
    assert table[3] == ["lacuner", "60.0", "50.0", "42.9"]
    assert "finds 33 % of the names; lacuner finds 50 %" in done.stdout
    page = (tmp_path / "results.html").read_text(encoding="utf-8")
    assert "42.9" in page and page.count("<svg") >= 2 and "Some &lt;b&gt;reason&lt;/b&gt;." in page
    assert "[found 24]" in page and "[found 25]" not in page and "doubted" not in page
