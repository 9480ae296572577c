"""A Hugging Face token classifier as a labelling source, from a folder, offline. (GLiNER is in `gliner_source.py`.)

It becomes a `Tagger`: its encoder with our windows, so that long documents are read to the end, and its
classifier as a token head.
"""

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from lacuner.atomic import read_regular_file
from lacuner.errors import ModelFileError, explain_damage, need_library
from lacuner.models.heads.token import TokenHead
from lacuner.models.model import Model
from lacuner.models.tag_sets import Scheme
from lacuner.models.tagger import Tagger

MAX_LABELS = 4096
IMPOSSIBLE = -1e4
"""Logit of a tag that the classifier does not have."""


def open_token_classifier(folder: str | PathLike[str]) -> Tagger:
    """The token classifier in a folder, as transformers' `save_pretrained` writes it, as a tagger.

    Its labels are tags: `B-PER`, `I-PER`, also with E and S or L and U, or types without a prefix. Words are classified
    by their first sub-word.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ModelFileError("there is no such folder: download the model and name its folder", file=folder)
    with need_library("a Hugging Face source needs transformers", "lacuner[transformers]", file=folder):
        from lacuner.models.encoders.huggingface import HuggingFaceConfig, open_huggingface
    tags = _tags(folder)
    with quiet_libraries():  # no report of the classifier as an unexpected part of the encoder
        encoder = open_huggingface(str(folder), HuggingFaceConfig(shapes=False))
    weight, bias = _classifier(folder, len(tags), encoder.width)
    labels, scheme = _labels_and_scheme(tags, folder)
    head = TokenHead(encoder.width, labels, scheme, dropout=0.0)
    output: Any = head.output
    with torch.no_grad():
        output.weight.zero_()
        output.bias.fill_(IMPOSSIBLE)
        for row, name in enumerate(head.tags.names):
            if name in tags:
                output.weight[row], output.bias[row] = weight[tags.index(name)], bias[tags.index(name)]
    return Tagger(Model(encoder, head))


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """No warnings of GLiNER and transformers, which are about training, or about texts that we cut."""
    loggers = [logging.getLogger(name) for name in ("gliner", "transformers")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _tags(folder: Path) -> list[str]:
    """The tags of a classifier, by number, in our spelling."""
    with explain_damage("this folder has no token classifier: its config.json names no labels", folder):
        config = json.loads(read_regular_file(folder / "config.json"))
        names = {int(number): str(label) for number, label in config["id2label"].items()}
        architectures = [str(name) for name in config.get("architectures") or []]
    if architectures and not any(name.endswith("ForTokenClassification") for name in architectures):
        raise ModelFileError(f"this is not a token classifier but {architectures[0]}", file=folder)
    if sorted(names) != list(range(len(names))) or not 2 <= len(names) <= MAX_LABELS:
        raise ModelFileError("the labels in config.json are not numbered from 0 on", file=folder)
    spelling = {"L": "E", "U": "S"}
    tags = []
    for _, name in sorted(names.items()):
        letter, dash, label = name.partition("-")
        tags.append(f"{spelling.get(letter, letter)}-{label}" if dash and letter in "BIESLU" else name)
    return tags


def _labels_and_scheme(tags: list[str], folder: Path) -> tuple[list[str], Scheme]:
    """The entity types of some tags, and the smallest scheme that has all tags; types without prefix become I tags."""
    if "O" not in tags:
        raise ModelFileError(
            f"the classifier has no tag O, only {', '.join(tags[:5])}: is this an NER model?", file=folder
        )
    if all(tag == "O" or tag[:2] not in ("B-", "I-", "E-", "S-") for tag in tags):
        tags[:] = [tag if tag == "O" else f"I-{tag}" for tag in tags]
    odd = next((tag for tag in tags if tag != "O" and tag[:2] not in ("B-", "I-", "E-", "S-")), None)
    if odd is not None:
        raise ModelFileError(f"the classifier's label {odd!r} is not a tag like B-{odd}", file=folder)
    letters = {tag[0] for tag in tags if tag != "O"}
    labels = list(dict.fromkeys(tag[2:] for tag in tags if tag != "O"))
    if len(set(tags)) < len(tags) or "" in labels:
        raise ModelFileError("the classifier has two labels of the same name, or an empty one", file=folder)
    return labels, "BIOES" if letters & set("ES") else "BIO" if "B" in letters else "IO"


def _classifier(folder: Path, classes: int, width: int) -> tuple[Tensor, Tensor]:
    """Weight `[classes, width]` and bias `[classes]` of the classification layer, from the safetensors files."""
    tensors: dict[str, Tensor] = {}
    try:
        for file in sorted(folder.glob("*.safetensors")):
            with safe_open(file, framework="pt") as opened:
                tensors |= {key: opened.get_tensor(key) for key in opened.keys() if key.startswith("classifier.")}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ModelFileError(f"cannot read the weights: {error}", file=folder) from error
    weight = tensors.pop("classifier.weight", None)
    bias = tensors.pop("classifier.bias", torch.zeros(classes))
    if weight is None or tensors or weight.shape != (classes, width) or bias.shape != (classes,):
        problem = "the classifier is not one linear layer, so lacuner cannot run it"
        raise ModelFileError(f"{problem}; predict with the model itself and convert the result", file=folder)
    return weight.float(), bias.float()
