"""What the config of a Hugging Face model may ask for: no code, and nothing that transformers would fetch.

A config names more than sizes. `auto_map` names classes in files beside it, an attention implementation can be a
repository of compiled kernels on the hub, and some model types compile or fetch kernels when they are built. So model
types and the values of such settings are allowed by name, at any depth of the config, and a setting that looks like the
name of a repository is refused wherever it stands.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lacuner.errors import ModelFileError

_MODEL_TYPES = """
    albert bert bert-generation big_bird camembert convbert data2vec-text deberta deberta-v2 distilbert electra ernie
    eurobert flaubert fnet funnel gte ibert jina_embeddings_v3 layoutlm longformer luke megatron-bert mobilebert
    modernbert mpnet nezha nomic_bert nystromformer qdqbert rembert roberta roberta-prelayernorm roc_bert roformer
    splinter squeezebert ultrabert xlm xlm-roberta xlm-roberta-xl xlnet xmod
"""
MODEL_TYPES = frozenset(_MODEL_TYPES.split())
"""Text encoders of transformers that are plain PyTorch. (`mra` and `yoso` fetch or compile kernels when they start.)"""
FORBIDDEN = (
    "auto_map",
    "trust_remote_code",
    "custom_pipelines",
    "quantization_config",
    "compression_config",
    "transformers_weights",
)
"""Settings that name code, other libraries that read the weights, or another file with weights."""
_DTYPES = (None, "auto", "float32", "float16", "bfloat16", "float64")
_ATTENTION = (None, "eager", "sdpa")
ALLOWED_VALUES: Mapping[str, tuple[str | None, ...]] = {
    "attn_implementation": _ATTENTION,
    "_attn_implementation": _ATTENTION,
    "_attn_implementation_internal": _ATTENTION,
    "experts_implementation": (None, "eager"),
    "_experts_implementation": (None, "eager"),
    "_experts_implementation_internal": (None, "eager"),
    "dtype": _DTYPES,
    "torch_dtype": _DTYPES,
}
_DESCRIPTIONS = ("_name_or_path", "name_or_path", "base_model_name_or_path", "finetuning_task", "task_specific_params")
"""Settings that may look like the name of a repository; transformers does not load what they name."""
_LABELS = ("id2label", "label2id")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+([@:]\S*)?|\w+://\S*")


def check_model_config(config: Mapping[str, Any], file: str | Path) -> None:
    """Refuse the config of a model that could run or fetch code, or that is of no known type of encoder.

    >>> check_model_config({"model_type": "bert", "attn_implementation": "sdpa"}, "config.json")
    >>> check_model_config({"model_type": "bert", "attn_implementation": "a/b"}, "config.json")
    Traceback (most recent call last):
    lacuner.errors.ModelFileError: config.json: the config has attn_implementation='a/b', which lacuner refuses: ...
    """
    check_settings(config, file)
    for key, value in _settings(config):
        if key not in _DESCRIPTIONS and isinstance(value, str) and _REPOSITORY.fullmatch(value):
            raise _refusal(key, value, "it may name code that is fetched", file)
    if config.get("is_encoder_decoder"):
        raise ModelFileError("this model has a decoder; lacuner needs an encoder", file=file)
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in MODEL_TYPES:
        problem = f"{str(kind)[:60]!r} is not a type of text encoder that lacuner loads"
        raise ModelFileError(f"{problem}; it loads {', '.join(sorted(MODEL_TYPES))}", file=file)


def check_settings(config: Mapping[str, Any], file: str | Path) -> None:
    """Refuse a config of any kind, of a tokenizer for instance, with a setting that could run or fetch code.

    >>> check_settings({"tokenizer_class": "BertTokenizer", "auto_map": None}, "tokenizer_config.json")
    """
    for key, value in _settings(config):
        if key in FORBIDDEN and value:
            raise _refusal(key, value, "it may run code", file)
        if key in ALLOWED_VALUES and value not in ALLOWED_VALUES[key]:
            known = " or ".join(repr(allowed) for allowed in ALLOWED_VALUES[key] if allowed is not None)
            raise _refusal(key, value, f"it may run code; allowed is {known}", file)


def check_config_file(path: Path) -> dict[str, Any]:
    """The JSON object in a file, {} if there is none, after `check_settings`."""
    try:
        config = json.loads(path.read_bytes()) if path.is_file() else {}
    except (ValueError, RecursionError, OSError) as error:
        raise ModelFileError(f"not readable as JSON: {error}", file=path) from error
    if not isinstance(config, dict):
        raise ModelFileError("not a JSON object", file=path)
    check_settings(config, path)
    return config


def _settings(config: object) -> Iterator[tuple[str, Any]]:
    """All keys and values of a config, at any depth; the names of labels are left out."""
    rest: list[object] = [config]  # a list instead of recursion: a config may be nested as deep as JSON is read
    while rest:
        part = rest.pop()
        if isinstance(part, list | tuple):
            rest.extend(part)
        if not isinstance(part, Mapping):
            continue
        for key, value in part.items():
            if key in _LABELS:
                continue
            yield str(key), value
            if isinstance(value, list | tuple):
                yield from ((str(key), item) for item in value)
            if key not in _DESCRIPTIONS:
                rest.append(value)


def _refusal(key: str, value: object, reason: str, file: str | Path) -> ModelFileError:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:60]}..."
    return ModelFileError(f"the config has {key}={shown}, which lacuner refuses: {reason}", file=file)
