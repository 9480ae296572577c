"""Other people's models as labelling sources: a Hugging Face token classifier, GLiNER. From folders, offline.

A token classifier becomes a `Tagger`: its encoder with our windows, so that long documents are read to the end, and its
classifier as a token head.
"""

import json
import logging
import os
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from lacuner.annotate.sources import Source, SourceOutput, batch_source, sort_output
from lacuner.corpus.words import split_words
from lacuner.data import Document, Span
from lacuner.errors import ConfigError, ModelFileError
from lacuner.models.encoders.huggingface_config import check_config_file
from lacuner.models.heads.token import TokenHead
from lacuner.models.model import Model
from lacuner.models.tag_sets import Scheme
from lacuner.models.tagger import Tagger
from lacuner.models.windows import cut_windows

MAX_LABELS = 4096
IMPOSSIBLE = -1e4
"""Logit of a tag that the classifier does not have."""
GLINER_BATCH = 8


def open_token_classifier(folder: str | PathLike[str]) -> Tagger:
    """The token classifier in a folder, as transformers' `save_pretrained` writes it, as a tagger.

    Its labels are tags: `B-PER`, `I-PER`, also with E and S or L and U, or types without a prefix. Words are classified
    by their first sub-word.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ModelFileError("there is no such folder: download the model and name its folder", file=folder)
    try:
        from lacuner.models.encoders.huggingface import HuggingFaceConfig, open_huggingface
    except ImportError as error:
        problem = "a Hugging Face source needs transformers: pip install 'lacuner[transformers]'"
        raise ConfigError(problem, file=folder) from error
    tags = _tags(folder)
    logger = logging.getLogger("transformers")
    level = logger.level
    logger.setLevel(logging.ERROR)  # no report of the classifier as an unexpected part of the encoder
    try:
        encoder = open_huggingface(str(folder), HuggingFaceConfig(shapes=False))
    finally:
        logger.setLevel(level)
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


def _tags(folder: Path) -> list[str]:
    """The tags of a classifier, by number, in our spelling."""
    try:
        config = json.loads((folder / "config.json").read_bytes())
        names = {int(number): str(label) for number, label in config["id2label"].items()}
        architectures = [str(name) for name in config.get("architectures") or []]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelFileError(
            "this folder has no token classifier: its config.json names no labels", file=folder
        ) from error
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


def gliner_source(
    folder: str | PathLike[str], labels: Mapping[str, str], *, name: str | None = None, threshold: float = 0.5
) -> Source:
    """Label with GLiNER, a zero-shot model: `labels` gives our label for each description of an entity type.

    GLiNER truncates long texts; here they are read in overlapping windows.
    """
    folder = Path(folder)
    name = folder.name if name is None else name
    if not labels:
        raise ConfigError("a GLiNER source needs the entity types to look for: --labels 'drug name=DRUG'", file=folder)
    model = _load_gliner(folder)
    words = max(int(getattr(model.config, "max_len", 384) or 384) // 2, 1)
    # half of what it reads: its word splitter may make more words of a text than ours

    def find_batch(docs: Sequence[Document]) -> list[SourceOutput]:
        pieces = [(number, *piece) for number, doc in enumerate(docs) for piece in _pieces(doc, words)]
        texts = [docs[number].text[start:end] for number, start, end, _, _ in pieces]
        entities = model.inference(texts, list(labels), threshold=threshold, batch_size=GLINER_BATCH) if texts else []
        spans: list[list[Span]] = [[] for _ in docs]
        for (number, offset, _, own_start, own_end), found in zip(pieces, entities, strict=True):
            for entity in found:
                start, end = entity["start"] + offset, entity["end"] + offset
                if own_start <= start < own_end:
                    label = labels.get(entity["label"], entity["label"])
                    spans[number].append(Span(start, end, label, round(float(entity["score"]), 6)))
        return [sort_output(name, doc, own) for doc, own in zip(docs, spans, strict=True)]

    return batch_source(name, find_batch)


def _pieces(doc: Document, size: int) -> list[tuple[int, int, int, int]]:
    """Windows of a text in characters: start and end, and where the spans that count may begin."""
    words = doc.words if doc.words is not None else split_words(doc.text)
    if not words:
        return []
    windows, _ = cut_windows([1] * len(words), size, size // 4)
    ends = [words[window.own_end][0] if window.own_end < len(words) else len(doc.text) for window in windows]
    return [
        (words[window.start][0], words[window.end - 1][1], words[window.own_start][0], end)
        for window, end in zip(windows, ends, strict=True)
    ]


def _load_gliner(folder: Path) -> Any:
    _check_gliner_folder(folder)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when huggingface_hub is imported: the encoder is not fetched
    try:
        from gliner import GLiNER
    except ImportError as error:
        raise ConfigError("a GLiNER source needs GLiNER: pip install gliner", file=folder) from error
    try:
        return GLiNER.from_pretrained(str(folder), local_files_only=True, map_location="cpu")
    except Exception as error:  # GLiNER raises whatever its libraries raise
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelFileError(f"cannot load this GLiNER model: {reason}", file=folder) from error


def _check_gliner_folder(folder: Path) -> None:
    """Refuse a folder that could run code: GLiNER trusts the code of encoders, and reads other kinds of weights."""
    if not folder.is_dir():
        raise ModelFileError("there is no such folder: download the model and name its folder", file=folder)
    if not (folder / "model.safetensors").is_file():
        problem = "there is no model.safetensors in this folder; other weights may run code, so they are not read"
        hint = "save the model with GLiNER's save_pretrained(FOLDER, safe_serialization=True)"
        raise ModelFileError(f"{problem}: {hint}", file=folder)
    for file in sorted(folder.glob("*config.json")):
        config = check_config_file(file)
        encoder = config.get("model_name")
        if isinstance(encoder, str) and (os.path.isabs(encoder) or Path(encoder).exists()):
            raise ModelFileError("the config names an encoder in another folder, which may run code", file=file)
