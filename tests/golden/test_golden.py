"""Every recipe still ends with the weights and predictions that it had when `hashes.json` was written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.golden.write import HASHES, cases, environment, golden

pytestmark = pytest.mark.integration

RECORDED = json.loads(HASHES.read_text(encoding="utf-8"))


def test_every_case_is_recorded() -> None:
    assert set(RECORDED["hashes"]) == set(cases())


@pytest.mark.parametrize("name", cases())
def test_weights_and_predictions_are_unchanged(name: str, tmp_path: Path) -> None:
    if environment() != RECORDED["environment"]:
        pytest.skip(f"hashes were recorded elsewhere: {RECORDED['environment']}, here {environment()}")
    assert golden(*cases()[name], tmp_path) == RECORDED["hashes"][name]
