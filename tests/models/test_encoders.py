"""Encoders without transformers: the same in every process, in every batch, and for every script."""

import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lacuner.errors import ConfigError, CorpusError, ModelFileError
from lacuner.models.encoders import build_encoder
from lacuner.models.encoders.hashing import GROUPS, word_features
from lacuner.models.encoders.lstm import LSTMConfig, lstm_from_words
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder

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


def encode(encoder, sentences, indices=None):
    features = encoder.prepare(sentences)
    batch = encoder.collate(features, range(len(sentences)) if indices is None else indices)
    return batch, encoder(batch)


@pytest.mark.parametrize("make", [tiny, lstm])
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


@pytest.mark.parametrize("make", [tiny, lstm])
def test_no_gradient_comes_from_padding(make):
    encoder = make().eval()
    batch, vectors = encode(encoder, SENTENCES)
    vectors[~batch.mask].sum().backward(retain_graph=True)
    table = encoder.table if hasattr(encoder, "table") else encoder.words.weight
    lone = [words for words in SENTENCES if words]
    encoder.zero_grad()
    _, again = encode(encoder, lone)
    vectors[batch.mask].square().sum().backward()
    first = table.grad.clone()
    encoder.zero_grad()
    mask = encoder.collate(encoder.prepare(lone), range(len(lone))).mask
    again[mask].square().sum().backward()
    assert torch.allclose(first, table.grad, atol=1e-5)


@pytest.mark.parametrize("make", [tiny, lstm])
def test_made_again_from_its_config(make):
    encoder = make().eval()
    again = build_encoder(json.loads(json.dumps(encoder.config())), encoder.files()).eval()
    again.load_state_dict(encoder.state_dict())
    assert torch.equal(encode(encoder, SENTENCES)[1], encode(again, SENTENCES)[1])
    assert again.config() == encoder.config()


@pytest.mark.parametrize("make", [tiny, lstm])
def test_nothing_to_read(make):
    encoder = make()
    assert torch.isfinite(encode(encoder, [[], []])[1]).all()
    assert len(encoder.prepare([])) == 0
    assert encoder.count(["a", "b"]).tolist() == [1, 1] and encoder.limit is None


@pytest.mark.parametrize("make", [tiny, lstm])
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
