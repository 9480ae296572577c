"""A model as a folder: safetensors, JSON and the encoder's own files, with hashes, and canaries that must still sing.

Nothing in the folder can run code. Whatever is damaged, hostile or of another version is a `ModelFileError`.
"""

from __future__ import annotations

import hashlib
import json
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from lacuner.errors import ModelFileError
from lacuner.files import atomic_write
from lacuner.models.build import build_encoder, build_head
from lacuner.models.lookup import FILE as NAMES
from lacuner.models.lookup import LookupTagger, load_lookup
from lacuner.models.model import Model
from lacuner.models.tagger import Tagger

AnyTagger = Tagger | LookupTagger

FORMAT = 1
WEIGHTS = "model.safetensors"
CONFIG = "config.json"
MOST_JSON = 64 << 20
TOLERANCE = 1e-3
# Sentences of our own, in several scripts: a model that reads them as it did when it was saved, reads as it did.
CANARIES = (
    ("Mara", "Teel", "of", "Halden", "bought", "12.5", "kg", "of", "veltazine", "."),
    ("the", "BANK", "of", "New", "Vorn", "&", "Sons", "(", "est", ".", "1897", ")"),
    ("玛", "拉", "在", "哈", "尔", "登", "买", "了", "3", "台", "机", "器"),
    ("İstanbul", "straße", "naïve", "Київ", "हिन्दी", "한국어"),
    ("x",),
)


def save(tagger: AnyTagger, folder: str | PathLike[str]) -> None:
    """Write a tagger of any kind as a folder."""
    if isinstance(tagger, LookupTagger):
        tagger.save(folder)
    else:
        save_tagger(tagger, folder)


def load(path: str | PathLike[str]) -> AnyTagger:
    """The tagger in a model folder, or in the run folder that holds one."""
    folder = Path(path)
    if (folder / "model").is_dir():
        folder /= "model"
    return load_lookup(folder) if (folder / NAMES).exists() else load_tagger(folder)


def save_tagger(tagger: Tagger, folder: str | PathLike[str]) -> dict[str, str]:
    """Write a model folder; returns the hash of each file."""
    folder = Path(folder)
    model = tagger.model
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    files = {WEIGHTS: save_tensors(tensors), **{f"encoder/{n}": data for n, data in model.encoder.files().items()}}
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())}
    config = {
        "format": FORMAT,
        "encoder": model.encoder.config(),
        "head": model.head.config(),
        "files": hashes,
        "canaries": _sing(model),
    }
    for name, data in files.items():
        with atomic_write(folder / name) as stream:
            stream.write(data)
    with atomic_write(folder / CONFIG) as stream:  # last: a folder without it is not a model
        stream.write(json.dumps(config, ensure_ascii=False, indent=1).encode())
    return hashes


def load_tagger(folder: str | PathLike[str]) -> Tagger:
    """Read a model folder back, and see that it still says what it said."""
    folder = Path(folder)
    config = _config(folder)
    files = {name: _file(folder, name, digest) for name, digest in config["files"].items()}
    weights = files.pop(WEIGHTS, None)
    if weights is None:
        raise ModelFileError("the list of files has no weights", file=folder / CONFIG)
    inner = {name.removeprefix("encoder/"): data for name, data in files.items()}
    try:
        encoder = build_encoder(config["encoder"], inner)
        model = Model(encoder, build_head(config["head"], encoder.width))
        tensors = load_tensors(weights)
        model.load_state_dict(tensors)
    except ModelFileError as error:
        raise ModelFileError(error.problem, file=folder / CONFIG) from error
    except SafetensorError as error:
        raise ModelFileError(f"this is no safetensors file: {error}", file=folder / WEIGHTS) from error
    except (RuntimeError, ValueError, TypeError, KeyError, AttributeError, MemoryError, OverflowError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelFileError(f"weights and settings do not fit each other: {first[:200]}", file=folder) from error
    model.eval()
    _check_canaries(model, config["canaries"], folder)
    return Tagger(model)


def _config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    try:
        if path.stat().st_size > MOST_JSON:
            raise ModelFileError("this file is too large to be a config", file=path)
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelFileError("there is no model here", file=folder) from error
    except OSError as error:
        raise ModelFileError(f"cannot read this file: {error.strerror}", file=path) from error
    except (ValueError, RecursionError) as error:
        raise ModelFileError("this is not the JSON of a model", file=path) from error
    kinds = {"encoder": dict, "head": dict, "files": dict, "canaries": list}
    if not isinstance(config, dict) or any(not isinstance(config.get(key), kind) for key, kind in kinds.items()):
        raise ModelFileError(f"this is not a model's config: it needs {', '.join(kinds)}", file=path)
    if config.get("format") != FORMAT:
        raise ModelFileError(f"format {config.get('format')!r}, where this version reads {FORMAT}", file=path)
    return config


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


def _sing(model: Model) -> list[list[float]]:
    """The scores of the canary sentences, a few numbers each."""
    was_training = model.training
    model.eval()
    with torch.inference_mode():
        features = model.encoder.prepare([list(words) for words in CANARIES])
        songs = []
        for i in range(len(CANARIES)):
            logits = model(model.encoder.collate(features, [i]).to(next(model.parameters()).device)).logits
            songs.append([round(value, 6) for value in logits.float().flatten()[:64].tolist()])
    model.train(was_training)
    return songs


def _check_canaries(model: Model, expected: list[Any], folder: Path) -> None:
    for now, then in zip(_sing(model), expected, strict=False):
        if not isinstance(then, list) or len(then) != len(now) or not all(type(b) in (int, float) for b in then):
            raise ModelFileError("the canary sentences' scores are not there", file=folder / CONFIG)
        # said so that NaN, on either side, is not close to anything
        if not all(abs(a - b) <= TOLERANCE * max(1.0, abs(b)) for a, b in zip(now, then, strict=True)):
            raise ModelFileError(
                "this model no longer scores as it did when it was saved (has a library changed?), so it is not used",
                file=folder,
            )
    if len(expected) != len(CANARIES):
        raise ModelFileError("the canary sentences' scores are not there", file=folder / CONFIG)
