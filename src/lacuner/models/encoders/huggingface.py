"""Any Hugging Face encoder with a fast tokenizer, as an encoder of words.

Only this module and `huggingface_mlm` import transformers. Code in a model's folder is never run: weights are
safetensors, `trust_remote_code` is False, and `huggingface_config` refuses a config that names code. A path is read
offline.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoTokenizer, PretrainedConfig
from transformers.models.auto.tokenization_auto import get_tokenizer_config
from transformers.utils.peft_utils import find_adapter_config_file

from lacuner.errors import ConfigError, ModelFileError, first_line
from lacuner.models.encoders.huggingface_config import check_config_file, check_model_config, check_settings
from lacuner.models.encoders.word_shapes import word_shape
from lacuner.models.ragged import index_words, offsets_of, pad_rows, run_positions, sum_by_sentence
from lacuner.models.types import Batch, Features

_NOT_SAVED = ("_name_or_path", "transformers_version", "architectures", "dtype", "torch_dtype")
_SUFFIXES = (".json", ".txt", ".model", ".safetensors")
"""Suffixes of the files that an encoder is read from."""
_SHAPES = 7
_MAX_PIECES = 64
_DEFAULT_LIMIT = 512


@dataclass(frozen=True)
class HuggingFaceConfig:
    """Settings of a Hugging Face encoder: those of `EncoderConfig`, and whether it has shapes."""

    pooling: Literal["first", "mean"] = "first"
    shapes: bool | None = None
    """Whether to add a learned embedding of the word's shape to its sub-words. None: if the tokenizer ignores case."""
    frozen: int = 0
    checkpointing: bool = False


class HuggingFaceEncoder(nn.Module):
    """A transformer over sub-words, with one vector per word. Open one with `open_huggingface`."""

    is_transformer = True
    is_pretrained = True

    def __init__(self, model: Any, tokenizer: Tokenizer, ids: Mapping[str, int], settings: HuggingFaceConfig) -> None:
        super().__init__()
        self.model, self.settings, self.ids = model, settings, dict(ids)
        self.tokenizer = _per_word(tokenizer)
        encoding = self.tokenizer.encode("a")
        special = encoding.special_tokens_mask
        inner = [i for i, mark in enumerate(special) if not mark] or [len(special)]
        self._before, self._after = encoding.ids[: inner[0]], encoding.ids[inner[-1] + 1 :]
        self.uses_shapes = _ignores_case(self.tokenizer) if settings.shapes is None else settings.shapes
        if self.uses_shapes:
            self.shapes = nn.Embedding(_SHAPES, model.get_input_embeddings().embedding_dim)
            nn.init.zeros_(self.shapes.weight)  # the encoder starts as it was pre-trained
        self._freeze()
        if settings.checkpointing:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})

    def _freeze(self) -> None:
        if not self.settings.frozen:
            return
        layers = _layers(self.model)
        if self.settings.frozen > len(layers):
            raise ConfigError(f"cannot freeze {self.settings.frozen} layers: the model has {len(layers)}")
        for part in (self.model.get_input_embeddings(), getattr(self.model, "embeddings", None)):
            if part is not None:
                part.requires_grad_(False)
        layers[: self.settings.frozen].requires_grad_(False)

    @property
    def width(self) -> int:
        return int(self.model.config.hidden_size)

    @property
    def input_layer(self) -> nn.Module:
        """The embedding of sub-words."""
        layer: nn.Module = self.model.get_input_embeddings()
        return layer

    @property
    def limit(self) -> int | None:
        """Maximum number of sub-words per sentence, special tokens not counted."""
        most = getattr(self.model.config, "max_position_embeddings", None) or _DEFAULT_LIMIT
        positions = getattr(getattr(self.model, "embeddings", None), "position_embeddings", None)
        # RoBERTa and its relatives count positions from the padding's number on
        offset = getattr(positions, "padding_idx", None)
        return int(most) - (0 if offset is None else offset + 1) - len(self._before) - len(self._after)

    def count(self, words: Sequence[str]) -> np.ndarray:
        distinct, row, _ = index_words([words])
        pieces, _ = self._pieces(distinct)
        costs: np.ndarray = np.array([len(ids) for ids in pieces], dtype=np.int64)[row]
        return costs

    def _pieces(self, words: Sequence[str]) -> tuple[list[list[int]], int]:
        """Sub-words of each word, from one to a maximum, and the number of words that were truncated."""
        readable = [word.encode("utf-8", "replace").decode("utf-8") for word in words]
        most = min(_MAX_PIECES, self.limit or _MAX_PIECES)
        encoded = [encoding.ids for encoding in self.tokenizer.encode_batch(readable, add_special_tokens=False)]
        truncated = sum(len(ids) > most for ids in encoded)
        return [ids[:most] or [self.ids["unknown"]] for ids in encoded], truncated

    def piece_settings(self) -> dict[str, Any]:
        """How words become sub-words, as plain JSON: for a decoder outside lacuner."""
        most = min(_MAX_PIECES, self.limit or _MAX_PIECES)
        return {**self.ids, "before": self._before, "after": self._after, "max_pieces": most}

    def prepare(self, sentences: Sequence[Sequence[str]]) -> Features:
        words, row, lengths = index_words(sentences)
        pieces, truncated = self._pieces(words)
        sizes = np.array([len(ids) for ids in pieces], dtype=np.int64)
        offsets = offsets_of(lengths)
        costs = sum_by_sentence(sizes, row, offsets)
        if self.limit is not None and (costs > self.limit).any():
            worst = int(costs.argmax())
            raise ConfigError(
                f"sentence {worst} has {costs[worst]} sub-words, but the model reads {self.limit}: cut it into windows"
            )
        arrays = {
            "row": row,
            "offsets": offsets,
            "pieces": np.array([i for ids in pieces for i in ids], dtype=np.int64),
            "piece_offsets": offsets_of(sizes),
            "shape": np.array([word_shape(word) for word in words], dtype=np.int64),
        }
        return Features(lengths, costs, arrays, truncated)

    def collate(self, features: Features, indices: Sequence[int] | np.ndarray) -> Batch:
        arrays = features.arrays
        positions, mask = pad_rows(arrays["offsets"], indices)
        sentence, place = np.nonzero(mask)
        word = arrays["row"][positions[mask]].astype(np.int64)
        starts = arrays["piece_offsets"][word]
        sizes = arrays["piece_offsets"][word + 1] - starts
        ends = np.cumsum(sizes)
        totals = features.costs[np.asarray(indices, dtype=np.int64)]
        before, after = len(self._before), len(self._after)
        first = ends - sizes - np.repeat(offsets_of(totals)[:-1], mask.sum(axis=1)) + before
        length = int(totals.max(initial=0)) + before + after
        ids = np.full((len(mask), length), self.ids["pad"], dtype=np.int64)
        owner = np.full(ids.shape, mask.shape[1], dtype=np.int64)  # one past the last word: no word
        shape = np.zeros(ids.shape, dtype=np.int64)
        ids[:, :before] = self._before
        row, column = np.repeat(sentence, sizes), run_positions(first, sizes)
        ids[row, column] = arrays["pieces"][run_positions(starts, sizes)]
        owner[row, column] = np.repeat(place, sizes)
        shape[row, column] = np.repeat(arrays["shape"][word], sizes)
        for i, mark in enumerate(self._after):
            ids[np.arange(len(ids)), totals + before + i] = mark
        at = np.zeros(mask.shape, dtype=np.int64)
        at[sentence, place] = first
        attention = np.arange(length) < (totals + before + after)[:, None]
        tensors = {"ids": ids, "attention": attention.astype(np.int64), "first": at, "owner": owner, "shape": shape}
        return Batch(torch.from_numpy(mask), {name: torch.from_numpy(array) for name, array in tensors.items()})

    def pieces(self, batch: Batch) -> Tensor:
        """Vectors of all sub-words, special tokens included."""
        tensors = batch.tensors
        if self.uses_shapes:
            embedded = self.model.get_input_embeddings()(tensors["ids"]) + self.shapes(tensors["shape"])
            output = self.model(inputs_embeds=embedded, attention_mask=tensors["attention"])
        else:
            output = self.model(input_ids=tensors["ids"], attention_mask=tensors["attention"])
        hidden: Tensor = output.last_hidden_state
        return hidden

    def forward_adapted(self, batch: Batch, adapt: Callable[[Tensor], Tensor]) -> Tensor:
        """The forward pass, with `adapt` applied to the first sub-word of each word after the first layer."""
        sentence, place = batch.mask.nonzero(as_tuple=True)
        piece = batch.tensors["first"][sentence, place]

        def change(module: nn.Module, inputs: Any, output: Any) -> Any:
            hidden = output[0] if isinstance(output, tuple) else output
            first = batch.tensors["first"].unsqueeze(-1).expand(-1, -1, hidden.shape[-1])
            changed = hidden.index_put((sentence, piece), adapt(hidden.gather(1, first))[sentence, place])
            return (changed, *output[1:]) if isinstance(output, tuple) else changed

        hook = _layers(self.model)[0].register_forward_hook(change)
        try:
            return self.forward(batch)
        finally:
            hook.remove()

    def forward(self, batch: Batch) -> Tensor:
        hidden, tensors = self.pieces(batch), batch.tensors
        if self.settings.pooling == "first":
            return hidden.gather(1, tensors["first"].unsqueeze(-1).expand(-1, -1, hidden.shape[-1]))
        owner, words = tensors["owner"], batch.mask.shape[1]
        sums = hidden.new_zeros(len(hidden), words + 1, hidden.shape[-1])
        sums = sums.scatter_add(1, owner.unsqueeze(-1).expand_as(hidden), hidden)
        counts = hidden.new_zeros(len(hidden), words + 1).scatter_add(1, owner, torch.ones_like(hidden[..., 0]))
        return (sums / counts.clamp(min=1).unsqueeze(-1))[:, :words]

    def config(self) -> dict[str, Any]:
        model = json.loads(self.model.config.to_json_string(use_diff=True))
        kept = {name: value for name, value in model.items() if name not in _NOT_SAVED}
        settings = {**asdict(self.settings), "shapes": self.uses_shapes}
        return {"kind": "pretrained", "model": kept, "ids": self.ids, **settings}

    def files(self) -> dict[str, bytes]:
        return {"tokenizer.json": self.tokenizer.to_str().encode()}


def open_huggingface(name: str, settings: HuggingFaceConfig = HuggingFaceConfig()) -> HuggingFaceEncoder:  # noqa: B008 frozen
    """Open the encoder in a folder, offline, or, if there is no such folder, the one of that name on the hub."""
    local = is_local(name)
    if local:
        if not (Path(name) / "config.json").is_file():
            raise ModelFileError("the folder has no config.json", file=name)
        for file in ("config.json", "tokenizer_config.json"):
            check_config_file(Path(name) / file)
    trust = {"trust_remote_code": False, "local_files_only": local}
    try:
        _check_before_loading(name, local)
        config = AutoConfig.from_pretrained(name, **trust)
        tokenizer = AutoTokenizer.from_pretrained(name, use_fast=True, **trust)
        model, loading = AutoModel.from_pretrained(
            name, config=config, use_safetensors=True, output_loading_info=True, **trust
        )
    except ModelFileError:
        raise
    except Exception as error:  # transformers raises whatever its file readers raise
        raise _cannot_load(name, error) from error
    missing = [key for key in loading["missing_keys"] if "pooler" not in key and "position_ids" not in key]
    if missing:  # transformers would initialise them at random
        raise ModelFileError(f"the weights lack {len(missing)} of the model's tensors: {missing[0]}, ...", file=name)
    if not getattr(tokenizer, "is_fast", False):
        raise ModelFileError("this encoder has no fast tokenizer", file=name)
    ids = [tokenizer.unk_token_id, tokenizer.mask_token_id, tokenizer.sep_token_id, 0]
    unknown = next(number for number in ids if number is not None)
    numbers = {"unknown": unknown, "pad": tokenizer.pad_token_id or 0}
    return HuggingFaceEncoder(_bare(model), tokenizer.backend_tokenizer, numbers, settings)


def _check_before_loading(name: str, local: bool) -> None:
    """Check what the folder or repository asks for, before transformers acts on it."""
    raw, _ = PretrainedConfig.get_config_dict(name, local_files_only=local)
    check_model_config(raw, name)
    check_settings(get_tokenizer_config(name, local_files_only=local), name)
    if find_adapter_config_file(name, local_files_only=local) is not None:
        # transformers would load the model that the adapter names instead of this one, and run PEFT
        raise ModelFileError(
            "this is an adapter (adapter_config.json): merge it into its model and save that", file=name
        )


def fingerprint(name: str) -> str:
    """Hash of the encoder's files or, on the hub, its commit."""
    if not is_local(name):
        try:
            commit = AutoConfig.from_pretrained(name, trust_remote_code=False)._commit_hash
        except Exception as error:  # as above
            raise _cannot_load(name, error) from error
        return str(commit or name)
    digest = hashlib.sha256()
    for path in sorted(path for path in Path(name).iterdir() if path.suffix in _SUFFIXES and path.is_file()):
        with path.open("rb") as stream:
            digest.update(path.name.encode() + b"\0" + hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def is_local(name: str) -> bool:
    """Whether a name is that of a folder; raises if it looks like a path and there is no such folder."""
    local = Path(name).is_dir()
    if not local and (name.startswith((".", "/", "~")) or "\\" in name or name.count("/") > 1):
        raise ModelFileError("there is no such folder", file=name)
    return local


def _cannot_load(name: str, error: Exception) -> ModelFileError:
    return ModelFileError(f"cannot load this encoder: {first_line(error)}", file=name)


def build_huggingface(settings: Mapping[str, Any], files: Mapping[str, bytes]) -> HuggingFaceEncoder:
    """The encoder that `HuggingFaceEncoder.config` and `files` describe, with fresh weights."""
    try:
        model_settings = dict(settings["model"])
        check_model_config(model_settings, "config.json")
        ids = {name: int(settings["ids"][name]) for name in ("unknown", "pad")}
        tokenizer = Tokenizer.from_str(files["tokenizer.json"].decode())
        library: Any = AutoModel  # its methods have no types
        model = library.from_config(AutoConfig.for_model(**model_settings), trust_remote_code=False)
        options = HuggingFaceConfig(**{field.name: settings[field.name] for field in fields(HuggingFaceConfig)})
    except ModelFileError:
        raise
    except Exception as error:  # tokenizers raises bare Exception
        raise ModelFileError(f"not a Hugging Face encoder: {type(error).__name__}: {error}") from error
    return HuggingFaceEncoder(_bare(model), tokenizer, ids, options)


def _bare(model: Any) -> Any:
    """The model in single precision, without its pooler."""
    if getattr(model, "pooler", None) is not None:
        model.pooler = None
    return model.float()


def _layers(model: nn.Module) -> nn.ModuleList:
    number = getattr(model.config, "num_hidden_layers", None)
    for module in model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == number:
            return module
    raise ConfigError("the layers of this model are not a list, so none can be frozen")


def _per_word(tokenizer: Tokenizer) -> Tokenizer:
    """A copy without padding and truncation that reads each text as a word in the middle of a sentence."""
    data = json.loads(tokenizer.to_str())
    data["padding"] = data["truncation"] = None
    outer = data.get("pre_tokenizer") or {}
    for part in [outer, *outer.get("pretokenizers", [])]:
        if part.get("type") == "ByteLevel":
            part["add_prefix_space"] = True
    return Tokenizer.from_str(json.dumps(data))


def _ignores_case(tokenizer: Tokenizer) -> bool:
    return all(tokenizer.encode(word).ids == tokenizer.encode(word.lower()).ids for word in ("Paris", "THE"))
