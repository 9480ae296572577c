"""A model as a folder: safetensors, JSON and the encoder's own files, with hashes, and canaries that must still sing.

Nothing in the folder can run code. Whatever is damaged, hostile or of another version is a `ModelFileError`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from lacuner.atomic import atomic_write
from lacuner.errors import LacunerError, ModelFileError
from lacuner.models.lookup import LookupTagger
from lacuner.models.model import AnyModel, MaskedLanguageModel
from lacuner.models.safe_build import build_model
from lacuner.models.tagger import Tagger

AnyTagger = Tagger | LookupTagger

FORMAT = 1
WEIGHTS = "model.safetensors"
NAMES = "names.json"
CONFIG = "config.json"
MAX_JSON_BYTES = 64 << 20
TOLERANCE = 1e-3
# what torch and our own code raise when a file asks for what cannot be
_MISFITS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)
# Sentences of our own, in several scripts: a model that reads them as it did when it was saved, reads as it did.
REGRESSION_SENTENCES = (
    ("Mara", "Teel", "of", "Halden", "bought", "12.5", "kg", "of", "veltazine", "."),
    ("the", "BANK", "of", "New", "Vorn", "&", "Sons", "(", "est", ".", "1897", ")"),
    ("玛", "拉", "在", "哈", "尔", "登", "买", "了", "3", "台", "机", "器"),
    ("İstanbul", "straße", "naïve", "Київ", "हिन्दी", "한국어"),
    ("x",),
)


def save(tagger: AnyTagger | AnyModel, folder: str | PathLike[str]) -> dict[str, str]:
    """Write a tagger, or a pre-trained encoder with its head, as a folder; returns the hash of each file."""
    if isinstance(tagger, LookupTagger):
        names = json.dumps(tagger.names, ensure_ascii=False, sort_keys=True, indent=0)
        return _write(Path(folder), {NAMES: names.encode()}, {})
    model = tagger.model if isinstance(tagger, Tagger) else tagger
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    files = {WEIGHTS: save_tensors(tensors), **{f"encoder/{n}": data for n, data in model.encoder.files().items()}}
    config = {"encoder": model.encoder.config(), "head": model.head.config(), "canaries": _sing(model)}
    return _write(Path(folder), files, config)


def _write(folder: Path, files: Mapping[str, bytes], config: Mapping[str, Any]) -> dict[str, str]:
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())}
    for name, data in files.items():
        with atomic_write(folder / name) as stream:
            stream.write(data)
    with atomic_write(folder / CONFIG) as stream:  # last: a folder without it is not a model
        about = {"format": FORMAT, "files": hashes, **config}
        stream.write(json.dumps(about, ensure_ascii=False, indent=1).encode())
    return hashes


def load(path: str | PathLike[str]) -> AnyTagger:
    """The tagger in a model folder, or in the run folder that holds one."""
    found = load_model(path)
    if isinstance(found, LookupTagger):
        return found
    if isinstance(found, MaskedLanguageModel):
        raise ModelFileError("this is a pre-trained encoder, which finds no names: train with --encoder", file=path)
    return Tagger(found)


def load_model(path: str | PathLike[str]) -> AnyModel | LookupTagger:
    """What is in a model folder, whether it finds names or is only pre-trained."""
    folder = _model_folder(path)
    config = _config(folder)
    files = {name: _file(folder, name, digest) for name, digest in config["files"].items()}
    if NAMES in files:
        return _lookup(files[NAMES], folder)
    _need(config, {"encoder": dict, "head": dict, "canaries": list}, folder)
    weights = files.pop(WEIGHTS, None)
    if weights is None:
        raise ModelFileError("the list of files has no weights", file=folder / CONFIG)
    inner = {name.removeprefix("encoder/"): data for name, data in files.items()}
    try:
        model = build_model(config, inner, load_tensors(weights))
        model.eval()
        songs = _sing(model)
    except LacunerError as error:
        raise ModelFileError(_first_line(error.problem), file=folder / CONFIG) from error
    except SafetensorError as error:
        raise ModelFileError(f"this is no safetensors file: {_first_line(error)}", file=folder / WEIGHTS) from error
    except _MISFITS as error:
        problem = f"weights and settings do not fit each other: {_first_line(error) or type(error).__name__}"
        raise ModelFileError(problem, file=folder) from error
    _check_canaries(songs, config["canaries"], folder)
    return model


def _first_line(message: object) -> str:
    """Libraries explain at length; a sentence is enough."""
    return next(iter(str(message).strip().splitlines()), "")[:300]


def saved_encoder_kind(path: str | PathLike[str]) -> str | None:
    """The kind of encoder in a model folder, read from its config alone; None if the tagger in it has no encoder."""
    folder = _model_folder(path)
    config = _config(folder)
    if NAMES in config["files"]:
        return None
    _need(config, {"encoder": dict}, folder)
    return str(config["encoder"].get("kind"))


def fingerprint(path: str | PathLike[str]) -> str:
    """A hash that tells the model in a folder from any other: its config names all other files with their hashes."""
    folder = _model_folder(path)
    _config(folder)
    return hashlib.sha256((folder / CONFIG).read_bytes()).hexdigest()


def _model_folder(path: str | PathLike[str]) -> Path:
    folder = Path(path)
    return folder / "model" if (folder / "model").is_dir() else folder


def _lookup(data: bytes, folder: Path) -> LookupTagger:
    try:
        names = json.loads(data)
        if not isinstance(names, dict) or not all(isinstance(label, str) and label for label in names.values()):
            raise ValueError("a name has no label")
        return LookupTagger(names)
    except (LacunerError, ValueError, RecursionError) as error:
        raise ModelFileError("this is not a list of names", file=folder / NAMES) from error


def _config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise ModelFileError("this file is too large to be a config", file=path)
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelFileError("there is no model here", file=folder) from error
    except OSError as error:
        raise ModelFileError(f"cannot read this file: {error.strerror}", file=path) from error
    except (ValueError, RecursionError) as error:
        raise ModelFileError("this is not the JSON of a model", file=path) from error
    if not isinstance(config, dict):
        raise ModelFileError("this is not the config of a model", file=path)
    if config.get("format") != FORMAT:
        raise ModelFileError(f"format {config.get('format')!r}, where this version reads {FORMAT}", file=path)
    _need(config, {"files": dict}, folder)
    return config


def _need(config: Mapping[str, Any], kinds: Mapping[str, type], folder: Path) -> None:
    if any(not isinstance(config.get(key), kind) for key, kind in kinds.items()):
        raise ModelFileError(f"this is not a model's config: it needs {', '.join(kinds)}", file=folder / CONFIG)


def _file(folder: Path, name: str, digest: object) -> bytes:
    parts = Path(name).parts
    if not parts or Path(name).is_absolute() or ".." in parts or len(parts) > 2 or "\\" in name:
        raise ModelFileError(f"the file name {name!r} leaves the folder", file=folder / CONFIG)
    path = folder / name
    try:
        if "\0" in name or not path.is_file():
            raise ModelFileError(f"there is no file {name!r} in the folder", file=folder)
        if path.is_symlink() or not path.resolve().is_relative_to(folder.resolve()):
            raise ModelFileError("a file of a model may not be a link to elsewhere", file=path)
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        raise ModelFileError("a file of the model cannot be read", file=folder) from error
    if hashlib.sha256(data).hexdigest() != digest:
        raise ModelFileError("this file has changed since the model was saved", file=path)
    return data


def _sing(model: AnyModel) -> list[list[float]]:
    """The scores of the canary sentences, a few numbers each."""
    was_training = model.training
    model.eval()
    with torch.inference_mode():
        features = model.encoder.prepare([list(words) for words in REGRESSION_SENTENCES])
        songs = []
        for i in range(len(REGRESSION_SENTENCES)):
            logits = model(model.encoder.collate(features, [i]).to(next(model.parameters()).device)).logits
            songs.append([round(value, 6) for value in logits.float().flatten()[:64].tolist()])
    model.train(was_training)
    return songs


def _check_canaries(songs: list[list[float]], expected: list[Any], folder: Path) -> None:
    for now, then in zip(songs, expected, strict=False):
        if not isinstance(then, list) or len(then) != len(now) or not all(type(b) in (int, float) for b in then):
            raise ModelFileError("the canary sentences' scores are not there", file=folder / CONFIG)
        # said so that NaN, on either side, is not close to anything
        if not all(abs(a - b) <= TOLERANCE * max(1.0, abs(b)) for a, b in zip(now, then, strict=True)):
            raise ModelFileError(
                "this model no longer scores as it did when it was saved (has a library changed?), so it is not used",
                file=folder,
            )
    if len(expected) != len(REGRESSION_SENTENCES):
        raise ModelFileError("the canary sentences' scores are not there", file=folder / CONFIG)
