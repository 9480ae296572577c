"""The gazetteer beside weak labels: found by name, or by the hash of the labels; it shows whether they were changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from lacuner.annotate import Entry, load_gazetteer
from lacuner.models.gazetteer import TaggerGazetteer
from lacuner.models.sidecar import find_sidecar, has_changed, read_sidecar, read_sidecars, sidecar, write_sidecar

GAZETTEER = TaggerGazetteer([Entry("Halden", "LOC"), Entry("Moss", "LOC")], case="exact")


@pytest.fixture
def weak(tmp_path: Path) -> Path:
    path = tmp_path / "weak.jsonl"
    path.write_text('{"text": "Mara left Halden."}\n')
    write_sidecar(GAZETTEER, path)
    return path


def test_it_is_found_after_the_labels_were_renamed(weak: Path) -> None:
    assert find_sidecar(weak) == sidecar(weak)
    renamed = weak.rename(weak.with_name("better [1].jsonl"))
    assert find_sidecar(renamed) == sidecar(weak)
    found = read_sidecars([renamed, weak])
    assert found is not None and found.sha256 == GAZETTEER.sha256, "the hash of the labels is no part of the gazetteer"
    other = weak.with_name("other.jsonl")
    other.write_text('{"text": "Other labels in Halden."}\n')
    assert find_sidecar(other) is None and find_sidecar(weak.parent) is None


def test_the_working_directory_can_be_a_corpus(weak: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(weak.parent)
    assert sidecar(Path(".")) == sidecar(weak.parent) and find_sidecar(Path(".")) is None


def test_it_shows_whether_the_labels_were_changed(weak: Path) -> None:
    assert not has_changed(weak, sidecar(weak))
    with weak.open("a") as stream:
        stream.write('{"text": "Teel stayed."}\n')
    assert has_changed(weak, sidecar(weak)) and find_sidecar(weak) == sidecar(weak)


def test_a_file_of_an_earlier_version_has_no_hash(weak: Path) -> None:
    sidecar(weak).write_bytes(GAZETTEER.to_json())
    assert find_sidecar(weak) == sidecar(weak) and not has_changed(weak, sidecar(weak))
    assert find_sidecar(weak.rename(weak.with_name("better.jsonl"))) is None


def test_it_can_be_read_like_any_gazetteer(weak: Path) -> None:
    """With the entries of all its parts; matching options count only where a tagger reads it."""
    both = GAZETTEER.join(TaggerGazetteer([Entry("Vorn", "LOC")], stop=["Oslo"]))
    write_sidecar(both, weak)
    assert [entry.surface for entry in load_gazetteer(sidecar(weak)).entries] == ["Halden", "Moss", "Vorn"]
    assert read_sidecar(sidecar(weak)).sha256 == both.sha256
    sidecar(weak).write_text('{"entries": [["Halden", "LOC"]], "others": [7, {"entries": 7}]}')
    assert len(load_gazetteer(sidecar(weak))) == 1
