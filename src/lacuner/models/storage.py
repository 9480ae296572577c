"""A model as a folder: safetensors, JSON, the encoder's own files, hashes of all, and regression scores.

The regression scores of a few sentences are checked on load: a model that no longer scores as it did when it was saved
(because a library has changed, say) is refused. Nothing in the folder can run code. A folder that is damaged, hostile
or of another version raises `ModelFileError`.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from lacuner.annotate import load_gazetteer
from lacuner.atomic import atomic_write, read_regular_file
from lacuner.errors import ConfigError, LacunerError, ModelFileError, first_line
from lacuner.models.encoders.tiny import SPARSE_ROWS
from lacuner.models.gazetteer import TaggerGazetteer, parse_gazetteer
from lacuner.models.lookup import LookupTagger
from lacuner.models.model import AnyModel, MaskedLanguageModel
from lacuner.models.safe_build import build_model
from lacuner.models.tagger import Tagger

AnyTagger = Tagger | LookupTagger

FORMAT = 1
WEIGHTS = "model.safetensors"
NAMES = "names.json"
GAZETTEER = "gazetteer.json"
CONFIG = "config.json"
MAX_JSON_BYTES = 64 << 20
TOLERANCE = 1e-3
_SCALE = ".scale"
"""Ending of the tensor with the scales of a table that is stored in 8 bits."""
REGRESSION_SENTENCES = (
    ("Mara", "Teel", "of", "Halden", "bought", "12.5", "kg", "of", "veltazine", "."),
    ("the", "BANK", "of", "New", "Vorn", "&", "Sons", "(", "est", ".", "1897", ")"),
    ("玛", "拉", "在", "哈", "尔", "登", "买", "了", "3", "台", "机", "器"),
    ("İstanbul", "straße", "naïve", "Київ", "हिन्दी", "한국어"),
    ("x",),
)
"""Invented sentences in several scripts. Their scores are saved under the key `canaries`."""


def save(tagger: AnyTagger | AnyModel, folder: str | PathLike[str], compact: bool = False) -> dict[str, str]:
    """Write a tagger or a masked language model as a folder; returns the hash of each file.

    With `compact`, large tables are stored in 8 bits with one scale per row, and all other weights in 16 bits. The
    model itself then gets these rounded weights.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hashes = save(LookupTagger({"Halden": "LOC"}), folder)
    ...     load(folder)("She left Halden.").spans
    (Span(start=9, end=15, label='LOC', score=1.0, source=None),)
    """
    if isinstance(tagger, LookupTagger):
        contents = {NAMES: json.dumps(tagger.names, ensure_ascii=False, sort_keys=True, indent=0).encode()}
        if tagger.gazetteer is not None:
            contents[GAZETTEER] = tagger.gazetteer.to_json()
        return _write(Path(folder), contents, {})
    model = tagger.model if isinstance(tagger, Tagger) else tagger
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    if compact:
        tensors = _round(tensors)
        model.load_state_dict(_expand(tensors))
    files = {WEIGHTS: save_tensors(tensors), **{f"encoder/{n}": data for n, data in model.encoder.files().items()}}
    if isinstance(tagger, Tagger) and tagger.gazetteer is not None:
        files[GAZETTEER] = tagger.gazetteer.to_json()
    config = {"encoder": model.encoder.config(), "head": model.head.config(), "canaries": _regression_scores(model)}
    return _write(Path(folder), files, config)


def _round(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights in 16 bits, large tables in 8 bits with a scale per row."""
    rounded: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if tensor.dim() == 2 and len(tensor) >= SPARSE_ROWS:
            scale = tensor.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / 127
            rounded[name], rounded[name + _SCALE] = (tensor / scale).round().to(torch.int8), scale
        else:
            rounded[name] = tensor.half()
    return rounded


def _expand(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights in 32 bits, from those of `_round` or as they are."""
    return {
        name: tensor * tensors[name + _SCALE] if tensor.dtype == torch.int8 else _widen(tensor)
        for name, tensor in tensors.items()
        if not name.endswith(_SCALE)
    }


def _widen(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype == torch.float16 else tensor


def _write(folder: Path, files: Mapping[str, bytes], config: Mapping[str, Any]) -> dict[str, str]:
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())}
    for name, data in files.items():
        with atomic_write(folder / name) as stream:
            stream.write(data)
    with atomic_write(folder / CONFIG) as stream:  # last: a folder without it is not a model
        stream.write(json.dumps({"format": FORMAT, "files": hashes, **config}, ensure_ascii=False, indent=1).encode())
    return hashes


def load(path: str | PathLike[str]) -> AnyTagger:
    """Load the tagger of a model folder, or of the run folder that contains one. See `save` for an example."""
    model = load_model(path)
    if isinstance(model, MaskedLanguageModel):
        raise ModelFileError(f"this is a pre-trained encoder, not a tagger: train with --encoder run:{path}", file=path)
    folder = _model_folder(path)
    digest = _config(folder)["files"].get(GAZETTEER)
    gazetteer = parse_gazetteer(_file(folder, GAZETTEER, digest), folder / GAZETTEER) if digest else None
    return LookupTagger(model.names, gazetteer) if isinstance(model, LookupTagger) else Tagger(model, gazetteer)


def load_with_entries(
    path: str | PathLike[str],
    *,
    gazetteer: bool = True,
    dictionary: Sequence[str | PathLike[str]] = (),
    log: Callable[[str], None] | None = None,
) -> AnyTagger:
    """Load a tagger, and leave its gazetteer out or extend it by the entries of more files (its own have priority).

    `log` receives what could not be used of these files, and how many of their entries were added.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = save(LookupTagger({"Halden": "LOC"}), folder)
    ...     load_with_entries(folder, gazetteer=False).labels
    ('LOC',)
    """
    tagger = load(path)
    if not gazetteer and dictionary:
        raise ConfigError("give either --no-gazetteer or --dictionary, not both")
    if isinstance(tagger, LookupTagger):
        if dictionary:
            raise ConfigError("this run only looks names up: add the entries to its labels and train again")
        return tagger if gazetteer else LookupTagger(tagger.names)
    if not gazetteer:
        tagger.gazetteer = None
    for file in dictionary:
        more, own = load_gazetteer(file), tagger.gazetteer
        if own is None or own.rule == "model":  # entries that the user adds are used, even if the tagger's own are not
            tagger.gazetteer, known = TaggerGazetteer(more.entries), 0
        else:
            tagger.gazetteer, known = own.extend(more.entries), len(own)
        if log is not None:
            for sentence in more.describe_for_tagger():
                log(sentence)
            if left_out := len(more.entries) + known - len(tagger.gazetteer):
                log(f"{file}: {left_out:,} of these entries already in the tagger's gazetteer, whose labels stay")
    return tagger


def load_model(path: str | PathLike[str]) -> AnyModel | LookupTagger:
    """Load whatever a model folder contains: a tagging model, a masked language model or a lookup tagger."""
    folder = _model_folder(path)
    config = _config(folder)
    files = {name: _file(folder, name, digest) for name, digest in config["files"].items()}
    if NAMES in files:
        return _lookup(files[NAMES], folder)
    _require(config, {"encoder": dict, "head": dict, "canaries": list}, folder)
    files.pop(GAZETTEER, None)
    weights = files.pop(WEIGHTS, None)
    if weights is None:
        raise ModelFileError("the list of files has no weights", file=folder / CONFIG)
    encoder_files = {name.removeprefix("encoder/"): data for name, data in files.items()}
    try:
        model = build_model(config, encoder_files, _expand(load_tensors(weights)))
        model.eval()
        scores = _regression_scores(model)
    except LacunerError as error:
        raise ModelFileError(first_line(error.problem), file=folder / CONFIG) from error
    except SafetensorError as error:
        raise ModelFileError(f"not a safetensors file: {first_line(error)}", file=folder / WEIGHTS) from error
    except Exception as error:  # torch raises errors of many kinds when settings and weights do not fit
        problem = f"weights and settings do not fit each other: {first_line(error)}"
        raise ModelFileError(problem, file=folder) from error
    _check_regression_scores(scores, config["canaries"], folder)
    return model


def saved_encoder_config(path: str | PathLike[str]) -> dict[str, Any] | None:
    """Config of the encoder in a model folder, without its weights; None for a lookup tagger."""
    folder = _model_folder(path)
    config = _config(folder)
    if NAMES in config["files"]:
        return None
    _require(config, {"encoder": dict}, folder)
    encoder: dict[str, Any] = config["encoder"]
    return encoder


def fingerprint(path: str | PathLike[str]) -> str:
    """Hash that identifies the model in a folder: that of its config, which has the hashes of all other files."""
    folder = _model_folder(path)
    _config(folder)
    return hashlib.sha256(read_regular_file(folder / CONFIG)).hexdigest()


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
        raise ModelFileError("not a JSON object of names and labels", file=folder / NAMES) from error


def _config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise ModelFileError("too large for the config of a model", file=path)
        config = json.loads(read_regular_file(path))
    except FileNotFoundError as error:
        raise ModelFileError(_describe_lack(folder), file=folder) from error
    except OSError as error:
        raise ModelFileError(f"cannot read this file: {error.strerror}", file=path) from error
    except (ValueError, RecursionError) as error:
        raise ModelFileError("not the config of a model: this is not JSON", file=path) from error
    if not isinstance(config, dict):
        raise ModelFileError("not the config of a model: this is not a JSON object", file=path)
    if config.get("format") != FORMAT:
        raise ModelFileError(f"format {config.get('format')!r}; this version of lacuner reads {FORMAT}", file=path)
    _require(config, {"files": dict}, folder)
    return config


def _describe_lack(folder: Path) -> str:
    """Why there is no model in a folder."""
    if (folder.parent / "finished.json").exists():
        return "the model of this finished run is lost: the command that trained it rebuilds it"
    if (folder / "run.json").exists():
        return "this run is not finished, so it has no model yet: the command that started it continues it"
    return "this folder contains no model" if folder.exists() else "there is no such folder: a run or model is needed"


def _require(config: Mapping[str, Any], kinds: Mapping[str, type], folder: Path) -> None:
    if any(not isinstance(config.get(key), kind) for key, kind in kinds.items()):
        raise ModelFileError(f"not the config of a model: it needs {', '.join(kinds)}", file=folder / CONFIG)


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


def _regression_scores(model: AnyModel) -> list[list[float]]:
    """The first scores of each regression sentence."""
    was_training = model.training
    model.eval()
    with torch.inference_mode():
        features = model.encoder.prepare(REGRESSION_SENTENCES)
        scores = []
        for i in range(len(REGRESSION_SENTENCES)):
            logits = model(model.encoder.collate(features, [i]).to(next(model.parameters()).device)).logits
            scores.append([round(value, 6) for value in logits.float().flatten()[:64].tolist()])
    model.train(was_training)
    return scores


def _check_regression_scores(scores: list[list[float]], saved: list[Any], folder: Path) -> None:
    comparable = len(saved) == len(scores) and all(
        isinstance(old, list) and len(old) == len(new) and all(type(value) in (int, float) for value in old)
        for new, old in zip(scores, saved, strict=False)
    )
    if not comparable:
        raise ModelFileError("the regression scores (`canaries`) are missing or damaged", file=folder / CONFIG)
    pairs = [pair for new, old in zip(scores, saved, strict=True) for pair in zip(new, old, strict=True)]
    # written so that NaN on either side is not close to anything
    if not all(abs(new - old) <= TOLERANCE * max(1.0, abs(old)) for new, old in pairs):
        raise ModelFileError(
            "this model no longer scores as it did when it was saved (has a library changed?), so it is not used",
            file=folder,
        )
