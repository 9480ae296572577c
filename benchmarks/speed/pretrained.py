"""A transformer of MiniLM's size: `predict` compared with the transformers pipeline, with the same predictions.

Speed does not depend on the values of the weights, so they are random; the tokenizer is built from generated words.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.speed.row import Row
from lacuner.data import Document

LABELS = ["LOC", "PER"]


def sentences(count: int) -> list[list[str]]:
    rng = random.Random(1)
    syllables = [a + b for a in "bdfgklmnprstv" for b in "aeiou"]
    vocabulary = ["".join(rng.choices(syllables, k=rng.choice((1, 2, 2, 3, 4)))) for _ in range(5_000)]
    return [rng.choices(vocabulary, k=rng.choice((4, 8, 12, 18, 25, 40))) for _ in range(count)]


def write_encoder(folder: Path, words: list[list[str]]) -> None:
    """Write a BERT of MiniLM's size with a WordPiece tokenizer for these words."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    pieces = sorted({word[:4] for row in words for word in row} | {"##" + word[4:] for row in words for word in row})
    vocabulary = {piece: i for i, piece in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {
        "unk_token": "[UNK]",
        "pad_token": "[PAD]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    }
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    config = BertConfig(
        vocab_size=30_522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)


def pipeline_side(folder: Path, head: Any, texts: list[str]) -> Callable[[], list[set[tuple[int, int, str]]]]:
    """Build the transformers pipeline with the same weights; words get the label of their first piece."""
    import torch
    from transformers import AutoModelForTokenClassification, AutoTokenizer, pipeline

    names = head.tags.names
    model = AutoModelForTokenClassification.from_pretrained(
        folder, num_labels=len(names), id2label=dict(enumerate(names)), label2id={n: i for i, n in enumerate(names)}
    )
    with torch.no_grad():
        model.classifier.weight.copy_(head.output.weight)
        model.classifier.bias.copy_(head.output.bias)
    tagger = pipeline(
        "token-classification",
        model=model,
        tokenizer=AutoTokenizer.from_pretrained(folder),
        aggregation_strategy="first",
        batch_size=32,
        device="cpu",
    )

    def run() -> list[set[tuple[int, int, str]]]:
        return [{(e["start"], e["end"], e["entity_group"]) for e in row} for row in tagger(texts)]

    return run


def measure_pretrained(quick: bool) -> list[Row]:
    try:
        import torch
        import transformers
    except ImportError:
        return []
    from benchmarks.speed.models import in_turns, ratio
    from lacuner.models.encoders.huggingface import HuggingFaceConfig, open_huggingface
    from lacuner.models.heads import build_head
    from lacuner.models.model import Model
    from lacuner.models.tagger import Tagger

    transformers.logging.set_verbosity_error()
    torch.manual_seed(0)
    rows = sentences(150 if quick else 500)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_encoder(folder, rows)
        encoder = open_huggingface(str(folder), HuggingFaceConfig(shapes=False))
        head = build_head({"kind": "token", "labels": LABELS, "scheme": "IO", "dropout": 0.0}, encoder.width)
        with torch.no_grad():
            head.output.weight.mul_(20)
        tagger = Tagger(Model(encoder, head))
        tagger.model.eval()
        docs = [_document(words, str(i)) for i, words in enumerate(rows)]
        theirs = pipeline_side(folder, head, [doc.text for doc in docs])

        def ours() -> list[set[tuple[int, int, str]]]:
            return [{(s.start, s.end, s.label) for s in doc.spans} for doc in tagger.predict(docs)]

        same = sum(a == b for a, b in zip(ours(), theirs(), strict=True))
        if same < 0.995 * len(docs):
            raise AssertionError(f"only {same} of {len(docs)} predictions are the same")
        times = in_turns({"ours": ours, "theirs": theirs}, 2 if quick else 3)
    words = sum(map(len, rows))
    fast, slow = words / median(times["ours"]), words / median(times["theirs"])
    name = f"predict MiniLM-sized, words/s ({same} of {len(docs)} equal)"
    return [Row(name, fast, slow, "transformers pipeline", ratio(times, "ours", "theirs"), 1.4)]


def _document(words: list[str], name: str) -> Document:
    edges, at = [], 0
    for word in words:
        edges.append((at, at + len(word)))
        at += len(word) + 1
    return Document(name, " ".join(words), tuple(edges))
