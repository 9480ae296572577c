"""The masked-LM head of a Hugging Face checkpoint, if it has one.

Nearly all of them are alike: a linear layer, its activation, a norm, the input embeddings, a bias. Whether a
checkpoint's head has this form is tested by comparing the outputs; a head of any other form counts as none.
"""

import logging
from typing import Any

import torch
from torch import nn
from transformers import AutoModelForMaskedLM, AutoTokenizer
from transformers import logging as hf_logging

from lacuner.errors import ConfigError
from lacuner.models.encoders.huggingface import is_local
from lacuner.models.heads.masked import MaskedPieceHead
from lacuner.models.types import SubwordEncoder

_TOLERANCE = 1e-2


def open_masked_head(name: str, encoder: SubwordEncoder) -> tuple[MaskedPieceHead, bool]:
    """A masked-LM head for an encoder opened under this name, and whether it is the checkpoint's own (else new)."""
    trust = {"trust_remote_code": False, "local_files_only": is_local(name)}
    mask = AutoTokenizer.from_pretrained(name, use_fast=True, **trust).mask_token_id
    if mask is None:
        raise ConfigError("the tokenizer of this encoder has no mask token, so it cannot be pre-trained")
    pieces, size = encoder.model.get_input_embeddings().weight.shape
    head = MaskedPieceHead(encoder.width, (), pieces, size, mask)
    head.tie(encoder)
    return head, _copy(name, trust, encoder, head)


def _copy(name: str, trust: dict[str, Any], encoder: SubwordEncoder, head: MaskedPieceHead) -> bool:
    """Copy the checkpoint's weights into the head; returns whether that was possible."""
    verbosity = hf_logging.get_verbosity()
    hf_logging.set_verbosity(logging.ERROR)  # no warning about missing weights: they are checked here
    try:
        full, loading = AutoModelForMaskedLM.from_pretrained(
            name, use_safetensors=True, output_loading_info=True, **trust
        )
    except (ValueError, KeyError, OSError):
        return False  # no masked-LM head for this architecture
    finally:
        hf_logging.set_verbosity(verbosity)
    inner = set(full.base_model.modules())
    outer = [module for module in full.modules() if module not in inner]
    named = [(prefix, module) for prefix, module in full.named_modules() if module in outer]
    own = {f"{prefix}.{key}" for prefix, module in named for key in module._parameters}
    if own & set(loading["missing_keys"]):
        return False
    layers = [m for m in outer if isinstance(m, nn.Linear) and m.weight.shape == head.dense.weight.shape]
    norms = [m for m in outer if isinstance(m, nn.LayerNorm)]
    biases = [p for m in outer for p in m._parameters.values() if p is not None and p.shape == head.bias.shape]
    if len(layers) != 1 or len(norms) != 1 or not biases:
        return False
    for module, source in ((head.dense, layers[0]), (head.norm, norms[0])):  # some checkpoints have no bias
        module.load_state_dict({"bias": torch.zeros_like(module.bias), **source.state_dict()})
    with torch.no_grad():
        head.bias.copy_(biases[0])
        ids = torch.arange(min(16, head.size)).unsqueeze(0)
        full, vectors = full.float().eval(), encoder.model.eval()(input_ids=ids).last_hidden_state
        return bool((full(input_ids=ids).logits - head.logits(vectors)).abs().max() < _TOLERANCE)
