"""Whatever the config of a model folder asks for, loading it fails fast, with one sentence and little memory."""

from __future__ import annotations

import hashlib
import json
import resource
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from lacuner.errors import ModelFileError
from lacuner.models.config import MAX_SPAN_WIDTH
from lacuner.models.encoders import build_encoder
from lacuner.models.heads import build_head
from lacuner.models.lookup import LookupTagger
from lacuner.models.model import Model
from lacuner.models.safe_build import build_model, limit_size
from lacuner.models.storage import CONFIG, NAMES, load, save
from lacuner.models.tagger import Tagger
from lacuner.training.run_folder import stored_identity

LABELS = ["LOC", "PER"]
TINY = {"kind": "tiny", "width": 16, "layers": 1, "rows": 64, "feature": 8, "heads": 2}
LSTM = {"kind": "lstm", "width": 8, "word": 4, "character": 3, "words": ["rome"], "characters": ["r"]}
MODELS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "tiny, span": (TINY, {"kind": "span", "labels": LABELS, "variant": "product", "hidden": 4, "widths": 3}),
    "lstm, crf": (LSTM, {"kind": "crf", "labels": LABELS, "angle": True}),
    "tiny, entity and type": (TINY, {"kind": "entity_type", "labels": LABELS, "angle": True}),
    "tiny, prototypes": (TINY, {"kind": "prototype", "labels": LABELS, "prototypes": 2}),
    "lstm, token": (LSTM, {"kind": "token", "labels": LABELS}),
}
HOSTILE = [0, -1, 1, 2, 10**6, 10**12, 2.5, 1e300, "x", "", None, True, [], ["x"], [1], {}, {"x": 1}]


def new_folder(encoder: dict[str, Any], head: dict[str, Any], folder: Path) -> dict[str, Any]:
    torch.manual_seed(0)
    made = build_encoder(encoder)
    save(Tagger(Model(made, build_head(head, made.width))), folder)
    config: dict[str, Any] = json.loads((folder / CONFIG).read_text())
    return config


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value, and one that is not there."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*path, key))
    if isinstance(value, dict):
        yield (*path, "trust_remote_code")


def changed(config: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(config))
    at: Any = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return copy


@pytest.mark.parametrize("name", MODELS)
def test_any_value_anywhere_in_a_config(name: str, tmp_path: Path) -> None:
    config = new_folder(*MODELS[name], tmp_path)
    tried = refused = 0
    for part in ("encoder", "head", "files", "format"):
        for path in [(part, *path) for path in places(config[part])] or [(part,)]:
            for value in HOSTILE:
                tried += 1
                (tmp_path / CONFIG).write_text(json.dumps(changed(config, path, value)))
                before = peak_kb()
                try:
                    load(tmp_path)  # another dropout, or another label's name, changes no score
                except ModelFileError as error:
                    refused += 1
                    assert str(tmp_path) in str(error) and "\n" not in str(error)
                assert peak_kb() - before < 200_000, (path, value)
    assert tried > 200 and refused > 0.8 * tried


HUGE: dict[str, tuple[str, str, Any]] = {
    "a much wider encoder": ("tiny, span", "encoder.width", 2048),
    "a hidden layer of a terabyte": ("tiny, span", "head.hidden", 10**12),
    "wide spans, which no weight shows": ("tiny, span", "head.widths", 10**9),
    "layers without end": ("lstm, crf", "encoder.layers", 4096),
    "a vocabulary": ("lstm, token", "encoder.words", [str(i) for i in range(10**5)]),
    "transitions between all tags": ("lstm, crf", "head.labels", [str(i) for i in range(10**5)]),
    "a simplex of all types": ("tiny, entity and type", "head.labels", [str(i) for i in range(10**5)]),
}


@pytest.mark.parametrize("case", HUGE)
def test_a_config_that_asks_for_too_much_allocates_nothing(case: str, tmp_path: Path) -> None:
    name, place, value = HUGE[case]
    config = new_folder(*MODELS[name], tmp_path)
    (tmp_path / CONFIG).write_text(json.dumps(changed(config, tuple(place.split(".")), value)))
    made: list[str] = []
    before, hook = peak_kb(), register_module_parameter_registration_hook(lambda _, name, __: made.append(name))
    try:
        with pytest.raises(ModelFileError):
            load(tmp_path)
    finally:
        hook.remove()
    assert len(made) < 1000, "it is refused before many parts are built"
    assert peak_kb() - before < 200_000


def peak_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def test_the_sentence_says_what_does_not_fit(tmp_path: Path) -> None:
    config = new_folder(*MODELS["tiny, span"], tmp_path)
    (tmp_path / CONFIG).write_text(json.dumps(changed(config, ("head", "hidden"), 5)))
    with pytest.raises(
        ModelFileError, match=r"ask for head\.end\.weight of size \[5, 16\], the weights have \[4, 16\]"
    ):
        load(tmp_path)
    (tmp_path / CONFIG).write_text(json.dumps(changed(config, ("head", "variant"), "width")))
    with pytest.raises(ModelFileError, match=r"head\.by_width of size \[3, 4\], the weights have None"):
        load(tmp_path)
    (tmp_path / CONFIG).write_text(json.dumps(changed(config, ("head", "widths"), MAX_SPAN_WIDTH + 1)))
    with pytest.raises(ModelFileError, match="a number of words, at most 1,024"):
        load(tmp_path)


def test_tables_beside_the_weights_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_folder(*MODELS["lstm, crf"], tmp_path)
    monkeypatch.setattr("lacuner.models.safe_build.MAX_BUFFER_BYTES", 10)
    with pytest.raises(ModelFileError, match=r"ask for [\d,]+ bytes beside the weights"):
        load(tmp_path)


def test_loading_one_model_does_not_disturb_the_building_of_another() -> None:
    encoder, head = MODELS["tiny, span"]
    config = {"encoder": encoder, "head": head}
    weights = Model(build_encoder(encoder), build_head(head, 16)).state_dict()
    with limit_size(weights):
        other = threading.Thread(target=lambda: [nn.Linear(2048, 2048) for _ in range(3)])
        other.start()
        other.join()
        with pytest.raises(ModelFileError, match="far larger"):
            nn.Linear(2048, 2048)
    nn.Linear(2048, 2048)
    assert build_model(config, {}, weights).head.labels == ("LOC", "PER")


NAMES_FILES: dict[str, object] = {
    "a list": ["Rome"],
    "a number": {"Rome": 1},
    "no label": {"Rome": ""},
    "nested": {"Rome": {"x": "LOC"}},
}


@pytest.mark.parametrize("how", [*NAMES_FILES, "changed", "no config", "format", "not JSON", "link"])
def test_a_list_of_names_is_protected_like_any_model(how: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    save(LookupTagger({"Rome": "LOC"}), folder)
    assert load(tmp_path).labels == ("LOC",)
    names, config = folder / NAMES, folder / CONFIG
    if how == "no config":
        config.unlink()
    elif how == "format":
        config.write_text(config.read_text().replace('"format": 1', '"format": 2'))
    elif how == "changed":
        names.write_text(names.read_text().replace("Rome", "Oslo"))
    elif how == "link":
        names.rename(tmp_path / "elsewhere")
        names.symlink_to(tmp_path / "elsewhere")
    else:  # a careful attacker signs what he has changed
        names.write_text("[" * 100_000 if how == "not JSON" else json.dumps(NAMES_FILES[how]))
        digest = hashlib.sha256(names.read_bytes()).hexdigest()
        config.write_text(json.dumps({"format": 1, "files": {NAMES: digest}}))
    with pytest.raises(ModelFileError) as caught:
        load(tmp_path)
    assert str(folder) in str(caught.value)


def test_issue_29_a_config_without_an_end_is_refused(tmp_path: Path) -> None:
    new_folder(*MODELS["tiny, span"], tmp_path / "model")
    (tmp_path / "model" / CONFIG).unlink()
    (tmp_path / "model" / CONFIG).symlink_to("/dev/zero")
    with pytest.raises(ModelFileError, match="not a regular file"):
        load(tmp_path / "model")
    (tmp_path / "run.json").symlink_to("/dev/zero")
    assert stored_identity(tmp_path) is None
