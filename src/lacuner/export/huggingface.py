"""Export to Hugging Face: a folder that `pipeline("token-classification")` loads without code of lacuner.

Only token classifiers on Hugging Face encoders can be expressed there. Words are those of lacuner: a tokenizer whose
sub-words mark the inside of a word (WordPiece) gets our rule of splitting words, so the pipeline reads text. For other
tokenizers the pipeline cannot tell words from sub-words, and must be given words (`is_split_into_words=True`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import regex
import torch
from tokenizers import Regex, Tokenizer
from tokenizers.normalizers import Replace
from tokenizers.normalizers import Sequence as Normalizers
from tokenizers.pre_tokenizers import Sequence as PreTokenizers
from tokenizers.pre_tokenizers import Split
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForTokenClassification, PreTrainedTokenizerFast

from lacuner.corpus.words import WORD_CHARACTERS, word_pattern, word_texts
from lacuner.data import Document
from lacuner.errors import ConfigError
from lacuner.export.character_sets import character_ranges, oniguruma_set
from lacuner.export.options import ExportOptions
from lacuner.export.source import ExportSource
from lacuner.models.heads.token import AngleOutput, TokenHead
from lacuner.models.model import Model
from lacuner.models.types import SubwordEncoder

TOLERANCE = 1e-4
"""Largest difference of a logit between both models for the same sub-words."""


WORD = word_pattern(oniguruma_set)
"""How lacuner splits words, in the syntax of the library tokenizers (Oniguruma)."""
_ALONE, _INNER = oniguruma_set(WORD_CHARACTERS["alone"]), oniguruma_set(WORD_CHARACTERS["inner"])
_ATTACHED = oniguruma_set(WORD_CHARACTERS["attached"])
_MARK, _SPACE = oniguruma_set(r"\p{M}"), oniguruma_set(r"\s")
_TAG = oniguruma_set(r"[[\p{Cf}&&\p{GCB=Extend}]--\u200c]")
"""Format characters that belong to the symbol before them, but not to a letter."""
_PREPENDED = oniguruma_set(r"[\p{Cf}&&\p{GCB=Prepend}]")
"""Format characters that belong to the next character."""
_CONTROL = oniguruma_set(r"[[\p{Cc}\p{Cf}]--[\s\u00ad\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=Prepend}]]")
_OTHER, _UNASSIGNED = oniguruma_set(r"[\p{C}--\p{Cs}]"), oniguruma_set(r"[\p{Co}\p{Cn}]")
_SYMBOL = oniguruma_set(r"[\p{So}\p{Sk}]")
_EMOJI = rf"[{_SYMBOL}][{_MARK}]*"


def invisible_words(normalizer: Any) -> str:
    """Words that a normaliser deletes, or tears by deleting what joins them. In our encoder they are unknown."""
    marks = (chr(point) for a, b in character_ranges(r"\p{M}") for point in range(ord(a), ord(b) + 1))
    deleted = "".join(mark for mark in marks if not normalizer.normalize_str(mark).strip())
    after_letter = "".join(regex.findall(WORD_CHARACTERS["alone"], deleted))
    alone = rf"|(?<=[{_INNER}])[{after_letter}][{_MARK}]*" if after_letter else ""
    return (
        rf"[{_CONTROL}]|[{_UNASSIGNED}\ufffd][{_MARK}]*|[{_PREPENDED}]+(?=[{_SPACE}{_OTHER}]|\z)"
        rf"|(?<![{_INNER}])\u00ad|(?<=[{_ALONE}])[\u00ad\u200c]|(?<=[{_INNER}{_ALONE}])[{_TAG}]+{alone}"
        rf"|(?<![^{_SPACE}{_CONTROL}])[{deleted}{_TAG}\u200c\u200d]+(?![{_ATTACHED}])|{_EMOJI}(?:\u200d+{_EMOJI})+"
    )


_SYMBOLS = "\u2e3b\u2e0e\U0001f700\U0001f0a1"
"""Rare symbols: the first that the vocabulary lacks stands for a word that it cannot read."""


def write_huggingface(source: ExportSource, folder: Path, options: ExportOptions) -> None:
    """Write config, weights and tokenizer of a token classifier."""
    model = source.model("Hugging Face").model
    encoder, head = _check(source, model)
    names = [
        name if tag < len(head.labels) else "O" for name, tag in zip(head.tags.names, head.tags.types, strict=True)
    ]
    config = AutoConfig.for_model(**encoder.config()["model"])
    config.id2label = dict(enumerate(names))
    config.label2id = {name: names.index(name) for name in names}
    library: Any = AutoModelForTokenClassification  # its methods have no types
    classifier = library.from_config(config, trust_remote_code=False).float().eval()
    _copy_weights(source, model, classifier)
    classifier.save_pretrained(folder)
    _make_tokenizer(encoder).save_pretrained(folder)


def _check(source: ExportSource, model: Model) -> tuple[SubwordEncoder, TokenHead]:
    """Encoder and head, if a token classifier of transformers can express them."""
    encoder, head = model.encoder, model.head
    problem, advice = None, source.advise("hf:PATH", "--head token --set scheme=BIO --set encoder.shapes=false")
    if not isinstance(encoder, SubwordEncoder):
        problem = f"the encoder is {encoder.config()['kind']!r}, and only hf: encoders exist there"
    elif not isinstance(head, TokenHead):
        problem = f"the head is {head.config()['kind']!r}, and only `head.kind=token` exists there"
    elif head.options["scheme"] == "BIOES":
        problem = "the tag scheme is BIOES, and the pipeline reads BIO and IO"
    elif encoder.config()["pooling"] != "first":
        problem = "the vector of a word is the mean of its sub-words, and the pipeline takes the first"
    elif encoder.config()["shapes"]:
        problem = (
            "the encoder ignores case, so lacuner added embeddings of word shapes; `encoder.shapes=false` omits them"
        )
    if problem is not None:
        raise ConfigError(f"this tagger cannot be exported to Hugging Face: {problem}; {advice}", file=source.folder)
    assert isinstance(encoder, SubwordEncoder) and isinstance(head, TokenHead)
    return encoder, head


def _copy_weights(source: ExportSource, model: Model, classifier: Any) -> None:
    """Give a classifier of transformers our weights, and check that it computes the same."""
    assert isinstance(model.encoder, SubwordEncoder)
    base, output = getattr(classifier, classifier.base_model_prefix), getattr(classifier, "classifier", None)
    fits = False
    if isinstance(output, nn.Linear):
        try:
            base.load_state_dict(model.encoder.model.state_dict())
            with torch.no_grad():
                weight, bias = _linear(model.head)
                output.weight.copy_(weight)
                output.bias.copy_(bias)
            fits = True
        except RuntimeError:  # tensors that one of the two does not have, or of another shape
            pass
    if not fits or not _computes_the_same(model, classifier):
        kind = type(classifier).__name__
        raise ConfigError(
            f"{kind} of transformers has other layers than this tagger, so it cannot be exported to Hugging Face; "
            "--to onnx can",
            file=source.folder,
        )


def _linear(head: Any) -> tuple[Tensor, Tensor]:
    """Weight and bias of the output layer; those of an angle-based one are multiplied out."""
    output = head.output
    if isinstance(output, AngleOutput):
        return output.corners @ output.linear.weight, output.corners @ output.linear.bias
    return output.weight, output.bias


def _computes_the_same(model: Model, classifier: Any) -> bool:
    """Whether both give the same logits to the first sub-words of a sentence."""
    encoder = model.encoder
    batch = encoder.collate(encoder.prepare([["Mara", "left", "Halden"], ["x"]]), [0, 1])
    with torch.no_grad():
        own = model.eval()(batch).logits[batch.mask]
        logits = classifier(input_ids=batch.tensors["ids"], attention_mask=batch.tensors["attention"]).logits
    theirs = logits[torch.arange(2)[:, None], batch.tensors["first"]][batch.mask]
    return bool((own - theirs).abs().max() <= TOLERANCE)


def _make_tokenizer(encoder: SubwordEncoder) -> Any:
    """The tokenizer of an encoder, with our words where it marks sub-words."""
    tokenizer = Tokenizer.from_str(encoder.tokenizer.to_str())
    if _marks_subwords(json.loads(tokenizer.to_str())):
        own = Split(Regex(WORD), behavior="removed", invert=True)  # keeps the matches and removes what is between
        after = [tokenizer.pre_tokenizer] if tokenizer.pre_tokenizer is not None else []
        tokenizer.pre_tokenizer = PreTokenizers([own, *after])
        if tokenizer.normalizer is not None:
            tokenizer.normalizer = _keep_words(tokenizer, encoder.piece_settings()["unknown"])
    settings = encoder.piece_settings()
    special = len(settings["before"]) + len(settings["after"])
    make: Any = PreTrainedTokenizerFast
    return make(
        tokenizer_object=tokenizer,
        add_prefix_space=True,  # each word is read as one in the middle of a sentence
        unk_token=tokenizer.id_to_token(settings["unknown"]),
        pad_token=tokenizer.id_to_token(settings["pad"]),
        model_input_names=["input_ids", "attention_mask"],
        **({} if encoder.limit is None else {"model_max_length": encoder.limit + special}),
    )


def _keep_words(tokenizer: Tokenizer, unknown: int) -> Any:
    """The normaliser, preceded by one that replaces words it would delete by a symbol without a sub-word."""
    symbol = next(
        (mark for mark in _SYMBOLS if tokenizer.encode(mark, add_special_tokens=False).ids == [unknown]), None
    )
    if symbol is None:
        return tokenizer.normalizer
    words = Replace(Regex(invisible_words(tokenizer.normalizer)), f" {symbol} ")
    before = [Replace(Regex(r"[\x0b\x0c\x{85}]"), " "), words]
    return Normalizers([*before, tokenizer.normalizer])


def _marks_subwords(tokenizer: dict[str, Any]) -> bool:
    return bool(tokenizer.get("model", {}).get("continuing_subword_prefix"))


def reads_text(folder: Path) -> bool:
    """Whether the pipeline of an exported folder finds words by itself; otherwise it must be given words."""
    return _marks_subwords(json.loads((folder / "tokenizer.json").read_text(encoding="utf-8")))


def fits_pipeline(source: ExportSource, doc: Document) -> bool:
    """Whether the pipeline reads a document to its end: it has no windows."""
    encoder = source.model("Hugging Face").model.encoder
    return encoder.limit is None or int(encoder.count(word_texts(doc)).sum()) <= encoder.limit
