# ruff: noqa: E402
"""Pre-training Hugging Face encoders: tiny random models, with a masked-LM head of their own and without."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

transformers = pytest.importorskip("transformers")

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from lacuner.config import load_config
from lacuner.data import Document
from lacuner.errors import ConfigError
from lacuner.models.config import EncoderConfig
from lacuner.models.encoders.huggingface import open_huggingface
from lacuner.models.encoders.huggingface_mlm import open_masked_head
from lacuner.models.model import MaskedLanguageModel
from lacuner.models.storage import load_model
from lacuner.pretraining.augmentation import open_augmentation_model, prepare_augmenter, subword_classes
from lacuner.pretraining.masked_lm import open_masked_model
from lacuner.pretraining.masking import UNCHANGED, Masking, mask_units, prepare_units
from lacuner.pretraining.pretrain import PretrainConfig, pretrain
from tests.demo_corpus import demo_corpus

DOCS = demo_corpus().train[:60]


def make_model(folder: Path, kind: str = "bert", head: bool = True, mask: bool = True) -> Path:
    """A folder with a random model of this kind, with few sub-words."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(
        [doc.text for doc in DOCS], trainers.WordPieceTrainer(vocab_size=300, special_tokens=special)
    )
    marks = [(mark, tokenizer.token_to_id(mark)) for mark in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=marks)
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    names |= {"mask_token": "[MASK]"} if mask else {}
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    if kind == "distilbert":
        sizes = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24}
    if kind == "electra":
        sizes["embedding_size"] = 12
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(kind, vocab_size=tokenizer.get_vocab_size(), **sizes, pad_token_id=0)
    make: Any = transformers.AutoModelForMaskedLM if head else transformers.AutoModel
    made = make.from_config(config)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.3)  # so that no part of it is as it was at first
    made.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", ["bert", "roberta", "electra", "distilbert", "modernbert"])
def test_a_checkpoints_own_head_predicts_as_the_library_does(kind: str, tmp_path: Path) -> None:
    folder = str(make_model(tmp_path, kind))
    encoder = open_huggingface(folder)
    head, own = open_masked_head(folder, encoder)
    assert own
    model = MaskedLanguageModel(encoder, head).eval()
    units = prepare_units(model, [["Mara", "left", "Halden", "."]])
    ids = encoder.collate(units.features, [0]).tensors["ids"]
    full = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    with torch.no_grad():
        batch = units.collate(model, [0], units.ids * 0 + UNCHANGED)
        got = head.logits(units.encode(model, batch)[:, : len(units.ids)])
        want = full(input_ids=ids).logits[:, 1:-1]
    torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)


def test_a_checkpoint_without_one_gets_a_new_head_tied_to_its_embeddings(tmp_path: Path) -> None:
    folder = str(make_model(tmp_path, head=False))
    encoder = open_huggingface(folder)
    head, own = open_masked_head(folder, encoder)
    assert not own and open_masked_model(EncoderConfig(name=f"hf:{folder}")) is None
    head.losses(torch.randn(3, 16), torch.tensor([5, 6, 7])).sum().backward()
    table = encoder.model.get_input_embeddings().weight
    assert table.grad is not None and table.grad.abs().sum() > 0
    assert not any(parameter.shape == table.shape for parameter in head.parameters()), "one table, not two"


def test_a_tokenizer_without_a_mask_is_one_sentence(tmp_path: Path) -> None:
    folder = str(make_model(tmp_path, mask=False))
    with pytest.raises(ConfigError, match="has no mask"):
        open_masked_head(folder, open_huggingface(folder))
    assert open_masked_model(EncoderConfig(name=f"hf:{folder}")) is None, "then a recipe says that augmentation is off"


def test_a_long_document_is_measured_in_windows(tmp_path: Path) -> None:
    folder = make_model(tmp_path)
    long = Document("1", " ".join(doc.text for doc in DOCS))
    assert open_augmentation_model(f"hf:{folder}", [long], 0.0).head.mask == 4
    with pytest.raises(ConfigError, match=r"cannot augment with this encoder: its top-5 accuracy .* is only"):
        open_augmentation_model(f"hf:{folder}", [long], 1.0)


def test_kinds_of_sub_words_that_are_bytes() -> None:
    """Letters that are not ASCII look like capitals in a byte-level vocabulary; stray marks mean nothing elsewhere."""
    made = Tokenizer(models.BPE())
    made.decoder = decoders.ByteLevel()
    pieces = ["Ġété", "ĠÉté", "Ġparis", "Paris", "Ġмосква"]
    letters = [pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(p.replace("Ġ", " ")) for p in pieces]
    made.add_tokens(["".join(part for part, _ in each) for each in letters])
    model: Any = SimpleNamespace(head=SimpleNamespace(size=5), subword_encoder=SimpleNamespace(tokenizer=made))
    assert subword_classes(model).tolist() == [2, 3, 2, 1, 2]
    words = Tokenizer(models.WordPiece({"[UNK]": 0, "the": 1, "##s": 2, "Ġ": 3, "Mara": 4}, unk_token="[UNK]"))
    words.decoder = decoders.WordPiece()
    model.subword_encoder.tokenizer = words
    assert subword_classes(model).tolist() == [2, 2, 0, 3, 3], "that letter is a capital"


def test_whole_word_masking(tmp_path: Path) -> None:
    folder = str(make_model(tmp_path))
    encoder = open_huggingface(folder)
    model = MaskedLanguageModel(encoder, open_masked_head(folder, encoder)[0])
    units = prepare_units(model, [[doc.text[a:b] for a, b in doc.words or ()] for doc in DOCS])
    assert len(units.ids) > len(set(units.word.tolist())), "some words have several sub-words"
    torch.manual_seed(0)
    for whole in (True, False):
        asked = mask_units(units, model, Masking(whole_words=whole)).targets >= 0
        some = {word for word, mine in zip(units.word.tolist(), asked, strict=True) if mine}
        split = {word for word, mine in zip(units.word.tolist(), asked, strict=True) if not mine} & some
        assert 0.1 < asked.mean() < 0.2 and bool(split) != whole


@pytest.mark.integration
@pytest.mark.parametrize("head", [True, False])
def test_pretraining_learns_and_is_kept(head: bool, tmp_path: Path) -> None:
    folder = make_model(tmp_path / "model", head=head)
    config = load_config(
        PretrainConfig,
        settings=[
            f'encoder.name="hf:{folder}"',
            "train.epochs=5",
            "train.learning_rate=1e-2",
            "whole_words=true",
            "held_out=0.2",
        ],
    )
    lines: list[str] = []
    done = pretrain(DOCS, tmp_path / "run", config, log=lines.append)
    assert ("its own head" in lines[0]) == head
    rows = [json.loads(line)["dev"] for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert done.held_out["perplexity"] == min(row["perplexity"] for row in rows) < 0.9 * rows[0]["perplexity"]
    kept = load_model(tmp_path / "run")
    assert isinstance(kept, MaskedLanguageModel) and kept.head.top5 == done.held_out["top5"]
    found = open_masked_model(EncoderConfig(name=f"run:{tmp_path / 'run'}"))
    assert found is not None and found.head.mask == 4


def test_sub_words_are_replaced_by_their_like(tmp_path: Path) -> None:
    folder = str(make_model(tmp_path))
    encoder = open_huggingface(folder)
    model = MaskedLanguageModel(encoder, open_masked_head(folder, encoder)[0])
    sentences = [[doc.text[a:b] for a, b in doc.words or ()] for doc in DOCS]
    maker = prepare_augmenter(model, sentences)
    torch.manual_seed(0)
    numbers = maker._replacements(torch.rand(len(maker.units.ids)).numpy() < 0.5)
    pieces = {number: piece for piece, number in encoder.tokenizer.get_vocab().items()}
    changed = [(pieces[maker.units.ids[i]], pieces[numbers[i]]) for i in (numbers >= 0).nonzero()[0]]
    assert changed and all(a.startswith("##") == b.startswith("##") for a, b in changed)
    assert all(a.removeprefix("##")[:1].isupper() == b.removeprefix("##")[:1].isupper() for a, b in changed)
    assert not any(b.startswith("[") and len(b) > 1 for _, b in changed), "no mark becomes a word"
    made = maker.draw(0.5)
    assert [len(words) for words in made] == [len(words) for words in sentences] and made != sentences
