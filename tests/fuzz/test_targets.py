"""T12: every file that may come from somebody else is read, or refused with one sentence; here with mutated seeds.

Coverage-guided fuzzing of the same targets is in `test_atheris.py` (slow).
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import SEEDS, TARGETS, attempt, seeds
from tests.hostile.test_readers import places, replaced

HOSTILE_BYTES = (
    b"\0",
    b"\xff",
    b"\xed\xa0\x80",  # half of a surrogate pair
    b"\xef\xbb\xbf",
    b"\r",
    b"\xe2\x80\xa8",
    b"[" * 3000,
    b"9" * 5000,
    b"1e400",
    b"NaN",
    b"-1",
    b'"',
    b"\\ud800",
    b"\\u0000",
    b"..//" * 80,
    b"=1+1",
    b"\x1b[2J",
)
VALUES = (
    None,
    True,
    -1,
    2.5,
    10**20,
    10**400,
    float("nan"),
    "",
    "x" * 300,
    "\ud800",
    "\0",
    [],
    [None],
    [[]],
    {},
    {"x": 1},
)
"""Values in place of any part of a JSON file."""


def test_every_target_has_seeds_that_are_read() -> None:
    assert {folder.name for folder in SEEDS.iterdir()} == set(TARGETS)
    only_refused = {"stage", "run"}  # of another run; of a stage without its tensors
    unread = [name for name in TARGETS if not any(attempt(name, data) for data in seeds(name).values())]
    assert set(unread) == only_refused


@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes(name: str) -> None:
    @settings(max_examples=20)
    @given(st.binary(max_size=100))
    def check(data: bytes) -> None:
        attempt(name, data)

    check()


def mutations(data: bytes, count: int) -> Iterator[bytes]:
    """The data with parts cut out, repeated, or replaced by something that breaks readers."""
    rng = random.Random(len(data))
    for _ in range(count):
        start, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        piece = rng.choice([rng.choice(HOSTILE_BYTES), data[start:end], b""])
        end = rng.choice([start, start + 1, end])
        yield data[:start] + piece + data[end:]


@pytest.mark.parametrize("name", TARGETS)
def test_mutated_seeds(name: str) -> None:
    count = 0
    for data in seeds(name).values():
        for mutated in mutations(data, 60):
            attempt(name, mutated)
            count += 1
    assert count >= 60


def json_rows(data: bytes) -> list[Any]:
    """The JSON values in a file: the whole, or one per line."""
    try:
        return [json.loads(data)]
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in data.splitlines()]
    except ValueError:
        return []


JSON_TARGETS = [
    name
    for name in TARGETS
    if not name.startswith("corpus-")  # tests/hostile/test_readers.py
    and name != "model-config"  # tests/hostile/test_model_folders.py
    and any(map(json_rows, seeds(name).values()))
]


def test_json_targets() -> None:
    assert {"run", "stage", "run-files", "bench-rows", "decisions", "model-gazetteer"} <= set(JSON_TARGETS)
    assert len(JSON_TARGETS) >= 14


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "bench-rows" else name for name in JSON_TARGETS]
)
def test_any_value_anywhere_in_a_json_file(name: str) -> None:
    """Rows of a bench have hundreds of places: half a minute, so only `make test-slow` tries them all."""
    count = 0
    for data in seeds(name).values():
        rows = json_rows(data)
        if not rows:
            continue
        for place in places(rows[0]):
            for value in VALUES:
                changed = [replaced(rows[0], place, value), *rows[1:3]]
                attempt(name, "\n".join(map(json.dumps, changed)).encode())
                count += 1
    assert count > 50
