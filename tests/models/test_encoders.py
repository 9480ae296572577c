"""Encoders: conformance tests of every row of the table (Hugging Face: `test_huggingface.py`), and each by itself."""

import hashlib
import json
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lacuner.cli.options import Encoder as EncoderOption
from lacuner.config import load_config
from lacuner.data import Splits
from lacuner.demo import build
from lacuner.errors import ConfigError, CorpusError, ModelFileError
from lacuner.models.config import EncoderConfig
from lacuner.models.encoders import (
    ENCODERS,
    EncoderRow,
    build_encoder,
    encoder_fingerprint,
    is_transformer,
    open_encoder,
    parse_encoder_name,
)
from lacuner.models.encoders.hashing import GROUPS, word_features
from lacuner.models.encoders.lexicon import Lexicon
from lacuner.models.encoders.lexicon_encoder import LexiconConfig, LexiconEncoder
from lacuner.models.encoders.lexicon_fusion import FUSIONS
from lacuner.models.encoders.lstm import LSTMConfig, lstm_from_words
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.heads import build_head
from lacuner.models.model import Model
from lacuner.models.ragged import index_words, offsets_of, pad_rows
from lacuner.models.storage import load, save
from lacuner.models.tagger import Tagger
from lacuner.models.types import Batch, Features
from lacuner.recipes import RECIPES
from lacuner.trainer.train import train

ROOT = Path(__file__).resolve().parents[2]
SENTENCES = [
    ["Ada", "met", "Charles", "Babbage", "in", "London", "."],
    ["阿", "达", "在", "伦", "敦"],
    ["x" * 500, "５-ＦＵ", "naïve", "\u200b", "e\u0301", "👩\u200d🔬", "\ud800", ""],
    [],
    ["ADA"],
]


def tiny():
    torch.manual_seed(0)
    encoder = TinyEncoder(TinyConfig(width=16, layers=2, rows=512, feature=8, heads=2))
    torch.nn.init.normal_(encoder.attention.output.weight)  # zero at first, and then nothing would be seen of it
    return encoder


def lstm():
    torch.manual_seed(0)
    return lstm_from_words(SENTENCES[:2], LSTMConfig(width=12, word=6, character=4))


def with_lexicon(fusion):
    lexicon = Lexicon(["伦敦", "在伦敦", "阿", "Charles Babbage", "ADA"], [2, 1, 1, 0, 0], embedded=4)
    encoder = LexiconEncoder(tiny(), lexicon, LexiconConfig(fusion=fusion, size=6, embedded=4))
    torch.nn.init.normal_(encoder.entries.weight)
    return encoder


MAKERS = {
    "tiny": tiny,
    "lstm": lstm,
    "lexicon": partial(with_lexicon, "soft"),
    **{f"lexicon, {fusion}": partial(with_lexicon, fusion) for fusion in FUSIONS if fusion != "soft"},
}
"""Rows of `lacuner.models.encoders.ENCODERS` -> an encoder to run the conformance tests on."""
ELSEWHERE = {
    "hf": "tests/models/test_huggingface.py",
    "run": "below, and tests/pretraining",
    **dict.fromkeys(("auto", "tiny-en", "tiny-zh"), "tests/models/test_shipped.py"),
}

conformance = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def test_every_row_of_the_table_is_tested():
    assert set(ENCODERS) == {name.partition(",")[0] for name in (*MAKERS, *ELSEWHERE)}


def test_every_row_of_the_table_is_in_the_help_texts():
    option = get_args(EncoderOption)[1].help
    setting = EncoderConfig.model_fields["name"].description
    page = (ROOT / "docs/quickstart.md").read_text(encoding="utf-8").partition("## Choose an encoder")[2]
    for row in ENCODERS.values():
        named = re.compile(rf"(?<![\w-]){re.escape(row.form)}(?![\w-])")
        assert named.search(option), f"the help text of --encoder (cli/options.py) lacks {row.form}"
        assert named.search(setting), f"the description of EncoderConfig.name (models/config.py) lacks {row.form}"
        assert named.search(page), f"the section Choose an encoder of docs/quickstart.md lacks {row.form}"


def encode(encoder, sentences, indices=None):
    features = encoder.prepare(sentences)
    batch = encoder.collate(features, range(len(sentences)) if indices is None else indices)
    return batch, encoder(batch)


@conformance
def test_batches_and_order_change_nothing(make):
    encoder = make().eval()
    batch, vectors = encode(encoder, SENTENCES)
    lengths = [len(words) for words in SENTENCES]
    assert vectors.shape == (5, 8, encoder.width) and torch.isfinite(vectors).all()
    assert batch.mask.sum(1).tolist() == lengths
    _, shuffled = encode(encoder, SENTENCES, np.array([4, 2, 0, 3, 1]))
    for i, words in enumerate(SENTENCES):
        _, alone = encode(encoder, [words])
        assert torch.allclose(alone[0, : len(words)], vectors[i, : len(words)], atol=1e-6)
        assert torch.allclose(shuffled[[4, 2, 0, 3, 1].index(i), : len(words)], vectors[i, : len(words)], atol=1e-6)


@conformance
def test_no_gradient_comes_from_padding(make):
    encoder = make().eval()
    batch, vectors = encode(encoder, SENTENCES)
    vectors[~batch.mask].sum().backward(retain_graph=True)
    table = next(encoder.parameters())
    lone = [words for words in SENTENCES if words]
    encoder.zero_grad()
    _, again = encode(encoder, lone)
    vectors[batch.mask].square().sum().backward()
    first = table.grad.clone()
    encoder.zero_grad()
    mask = encoder.collate(encoder.prepare(lone), range(len(lone))).mask
    again[mask].square().sum().backward()
    assert torch.allclose(first, table.grad, atol=1e-5)


@conformance
def test_it_is_rebuilt_from_its_config(make):
    encoder = make().eval()
    assert encoder.config()["kind"] in {row.kind for row in ENCODERS.values()}
    again = build_encoder(json.loads(json.dumps(encoder.config())), encoder.files()).eval()
    again.load_state_dict(encoder.state_dict())
    assert torch.equal(encode(encoder, SENTENCES)[1], encode(again, SENTENCES)[1])
    assert again.config() == encoder.config()


@conformance
def test_empty_sentences_and_an_empty_corpus(make):
    encoder = make()
    assert torch.isfinite(encode(encoder, [[], []])[1]).all()
    assert len(encoder.prepare([])) == 0
    costs = encoder.prepare([["a", "b"]]).costs
    assert encoder.count(["a", "b"]).sum() == costs.sum() and (encoder.limit is None or costs.max() <= encoder.limit)


@conformance
def test_dropout_only_in_training_and_by_the_seed(make):
    encoder = make().train()
    torch.manual_seed(1)
    first = encode(encoder, SENTENCES)[1]
    torch.manual_seed(1)
    assert torch.equal(first, encode(encoder, SENTENCES)[1])
    assert not torch.equal(first, encode(encoder, SENTENCES)[1])


def test_context_reaches_as_far_as_the_layers_and_not_into_other_sentences():
    words = ["a", "b", "c", "d", "e", "f", "g", "h"]
    for heads, reach in ((0, 3), (2, 8)):
        encoder = TinyEncoder(TinyConfig(width=16, layers=2, rows=512, feature=8, heads=heads)).eval()
        if heads:
            torch.nn.init.normal_(encoder.attention.output.weight)
        first, second = (encode(encoder, [words, [*words[:7], last]])[1] for last in ("x", "y"))
        changed = (first - second).abs().amax(-1)[1] > 1e-6
        assert changed.tolist() == [False] * (8 - reach) + [True] * reach
        assert torch.allclose(first[0], second[0], atol=1e-6)


HASH = """
import hashlib, json, sys
from lacuner.models.encoders.hashing import word_features
bags = word_features(json.loads(sys.argv[1]))
print(hashlib.sha256(bags.ids.tobytes() + bags.offsets.tobytes()).hexdigest())
"""


@pytest.mark.integration
def test_hashes_do_not_depend_on_the_process():
    words = ["Ada", "Babbage", "5-FU", "伦", "naïve", "x" * 300]
    bags = word_features(words)
    here = hashlib.sha256(bags.ids.tobytes() + bags.offsets.tobytes()).hexdigest()
    for seed in ("0", "77"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        out = subprocess.run([sys.executable, "-c", HASH, json.dumps(words)], env=env, capture_output=True, check=True)
        assert out.stdout.decode().strip() == here


def groups_of(words):
    bags = word_features(words)
    count = len(GROUPS)
    return [
        {
            g: bags.ids[bags.offsets[u * count + i] : bags.offsets[u * count + i + 1]].tolist()
            for i, g in enumerate(GROUPS)
        }
        for u in range(len(words))
    ]


@settings(max_examples=60)
@given(st.lists(st.text(max_size=12), unique=True, min_size=1, max_size=8))
def test_a_word_has_the_same_features_among_any_others(words):
    assert groups_of(words) == [groups_of([word])[0] for word in words]


def test_what_the_features_say():
    upper, lower, other, wide, plain = groups_of(["PARIS", "paris", "Pariser", "５ＦＵ", "5FU"])
    assert upper["norm"] == lower["norm"] != other["norm"]
    assert upper["shape"] != lower["shape"]
    assert lower["prefix"] == other["prefix"] and lower["suffix"] != other["suffix"]
    assert set(lower["ngrams"]) & set(other["ngrams"]) and not set(lower["prefix"]) & set(lower["suffix"])
    assert wide["norm"] == plain["norm"]
    assert len(lower["prefix"]) == 4 and len(lower["ngrams"]) == 6 + 5 + 4
    assert groups_of(["aaaaaaaa"])[0]["shape"] == groups_of(["bbbb"])[0]["shape"] != groups_of(["bbb"])[0]["shape"]


def test_hashes_spread():
    ids = word_features([f"word{i}" for i in range(5000)]).ids
    counts = np.bincount((np.unique(ids) % np.uint64(64)).astype(np.int64), minlength=64)
    assert counts.min() > 0.7 * counts.mean() and counts.max() < 1.3 * counts.mean()


def test_vectors_from_a_file(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("3 2\nada 1 2\nlondon 3 4\nparis 5 6\n", encoding="utf-8")
    encoder = lstm_from_words(SENTENCES[:1], LSTMConfig(), path)
    place = encoder.settings.words.index("ada") + 1
    assert encoder.words.weight[place].tolist() == [1, 2] and "paris" in encoder.settings.words
    assert encoder.settings.word == 2
    encode(encoder, SENTENCES)


@pytest.mark.parametrize(("text", "line"), [("ada 1 2\nb 1\n", 2), ("ada 1 x\n", 1)])
def test_bad_vectors_are_refused_with_their_line(text, line, tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text(text)
    with pytest.raises(CorpusError) as error:
        lstm_from_words(SENTENCES[:1], LSTMConfig(), path)
    assert error.value.line == line
    with pytest.raises(CorpusError):
        lstm_from_words(SENTENCES[:1], LSTMConfig(), tmp_path / "missing.txt")


def test_unknown_words_of_an_lstm_differ_by_their_spelling():
    _, vectors = encode(lstm().eval(), [["Bada"], ["Londra"]])
    assert not torch.allclose(vectors[0], vectors[1])


def test_bad_configs_are_refused():
    good = tiny().config()
    for bad in ({}, {"kind": "huge"}, {**good, "colour": 1}, {"kind": "lstm", "words": "abc", "characters": []}):
        with pytest.raises(ModelFileError):
            build_encoder(bad)
    wrong = [{"width": 0}, {"width": 10**9}, {"dropout": 1.0}, {"word_dropout": "a"}, {"heads": 3}, {"layers": 0}]
    for change in wrong:
        with pytest.raises(ModelFileError):
            build_encoder({**good, **change})
    with pytest.raises(ConfigError):
        LSTMConfig(layers=10**6)


@pytest.mark.parametrize("name", ["huge", "tiny:x", "hf", "hf:", "run:", ":x", ""])
def test_an_unknown_encoder_is_refused_with_the_rows_of_the_table(name):
    forms = ", ".join(row.form for row in ENCODERS.values())
    assert {"tiny", "lstm", "hf:NAME_OR_PATH"} <= set(forms.split(", "))
    for ask in (parse_encoder_name, encoder_fingerprint, lambda name: is_transformer(EncoderConfig(name=name))):
        with pytest.raises(ConfigError, match=f"choose one of {re.escape(forms)}$"):
            ask(name)


def save_tagger(encoder, folder):
    tagger = Tagger(Model(encoder, build_head({"kind": "span", "labels": ["LOC"]}, encoder.width)))
    save(tagger, folder)
    return tagger


def test_whether_a_run_has_a_transformer_is_read_from_its_config_alone(tmp_path):
    save_tagger(tiny(), tmp_path)
    (tmp_path / "model.safetensors").unlink()
    config = EncoderConfig(name=f"run:{tmp_path}")
    assert not is_transformer(config), "tiny has the settings of training from scratch, even if it was pre-trained"
    text = (tmp_path / "config.json").read_text().replace('"kind": "tiny"', '"kind": "pretrained"')
    (tmp_path / "config.json").write_text(text)
    assert is_transformer(config)
    with pytest.raises(ModelFileError):
        open_encoder(config, ())


class LengthEncoder(torch.nn.Module):
    """The smallest encoder: an embedding of the word's length."""

    is_transformer, is_pretrained, limit, width = False, False, None, 4

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(10, self.width)

    def count(self, words):
        return np.ones(len(words), dtype=np.int64)

    def prepare(self, sentences):
        words, row, lengths = index_words(sentences)
        sizes = np.array([min(len(word), 9) for word in words], dtype=np.int64)
        return Features(lengths, lengths, {"sizes": sizes[row], "offsets": offsets_of(lengths)})

    def collate(self, features, indices):
        positions, mask = pad_rows(features.arrays["offsets"], indices)
        sizes = np.zeros(mask.shape, dtype=np.int64)
        sizes[mask] = features.arrays["sizes"][positions[mask]]
        return Batch(torch.from_numpy(mask), {"sizes": torch.from_numpy(sizes)})

    def forward(self, batch):
        return self.table(batch.tensors["sizes"])

    def config(self):
        return {"kind": "length"}

    def files(self):
        return {}


def test_an_encoder_is_a_module_and_a_row(tmp_path, monkeypatch):
    """What CONTRIBUTING.md says: with its row it can be named, trained, saved and loaded."""
    row = EncoderRow(
        "length",
        lambda config, place, docs: LengthEncoder(),
        kind="length",
        build=lambda settings, files: LengthEncoder(**settings),
    )
    monkeypatch.setitem(ENCODERS, "length", row)
    monkeypatch.setitem(MAKERS, "length", LengthEncoder)
    test_every_row_of_the_table_is_tested()
    test_batches_and_order_change_nothing(LengthEncoder)
    test_it_is_rebuilt_from_its_config(LengthEncoder)
    test_no_gradient_comes_from_padding(LengthEncoder)
    test_empty_sentences_and_an_empty_corpus(LengthEncoder)
    torch.manual_seed(1)
    tagger = save_tagger(open_encoder(EncoderConfig(name="length"), ()), tmp_path / "model")
    text = "Ada met Charles Babbage in London ."
    again = Tagger(Model(open_encoder(EncoderConfig(name=f"run:{tmp_path}"), ()), tagger.model.head))
    assert load(tmp_path)(text).spans == tagger(text).spans == again(text).spans
    config = load_config(RECIPES["trust"].Config, settings=["encoder.name=length", "train.epochs=1"])
    train("trust", Splits(weak=build().train[:20]), tmp_path / "run", config)
    assert load(tmp_path / "run").model.encoder.config() == {"kind": "length"}
