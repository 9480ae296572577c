"""Encoders with a lexicon: matches, the four fusions against slow references, and files of word lists."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lacuner.config import load_config
from lacuner.data import Document, Splits
from lacuner.demo import build
from lacuner.errors import ConfigError, CorpusError, GazetteerError, LacunerError, ModelFileError
from lacuner.models.config import EncoderConfig
from lacuner.models.encoders import build_encoder, is_pretrained, is_transformer, open_encoder
from lacuner.models.encoders.huggingface import open_huggingface
from lacuner.models.encoders.lexicon import BEGIN, END, MIDDLE, SINGLE, Lexicon, collate_matches, read_entries
from lacuner.models.encoders.lexicon_encoder import LexiconConfig, LexiconEncoder, lexicon_encoder
from lacuner.models.encoders.lexicon_fusion import FUSIONS, EntryAttention, Lattice, SoftLexicon
from lacuner.models.encoders.lstm import LSTMConfig, lstm_from_words
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.heads import build_head
from lacuner.models.model import Model
from lacuner.models.storage import load
from lacuner.pretraining.pretrain import PretrainConfig, pretrain
from lacuner.recipes import RECIPES
from lacuner.trainer.train import train
from lacuner.training.optimizer import make_optimizers
from tests.models.test_huggingface import make_model

ENTRIES = ["长江", "长江大桥", "大桥", "江", "market town"]
SENTENCES = [list("南京长江大桥"), ["the", "market", "town"], [], list("长江"), ["\ud800", "江", ""]]


def make(fusion="soft", inner=None):
    torch.manual_seed(0)
    inner = inner or TinyEncoder(TinyConfig(width=16, layers=2, rows=512, feature=8, heads=2))
    lexicon = Lexicon(ENTRIES, [3, 1, 2, 5, 0], embedded=4)
    encoder = LexiconEncoder(inner, lexicon, LexiconConfig(fusion=fusion, size=6, embedded=4))
    for parameter in encoder.fusion.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return encoder


def batch_of(lexicon, sentences):
    matches = lexicon.match(sentences)
    words = max(map(len, sentences))
    arrays = collate_matches(matches._asdict(), range(len(sentences)), words)
    mask = torch.tensor([[i < len(sentence) for i in range(words)] for sentence in sentences])
    return {name: torch.from_numpy(array) for name, array in arrays.items()}, mask


def test_matches_begin_and_end_with_words():
    matches = Lexicon(ENTRIES, [3, 1, 2, 5, 0], embedded=4).match(SENTENCES)
    assert matches.offsets.tolist() == [0, 4, 5, 5, 7, 8]
    assert list(zip(matches.first.tolist(), matches.last.tolist(), matches.number.tolist(), strict=True)) == [
        *[(2, 3, 1), (2, 5, 2), (3, 3, 4), (4, 5, 3)],
        (1, 2, 0),  # no vector of its own
        *[(0, 1, 1), (1, 1, 4)],
        (1, 1, 4),
    ]
    assert not len(Lexicon(["arket"], [0], 0).match(SENTENCES).first), "not a whole word"


@settings(max_examples=50)
@given(
    st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=5, unique=True),
    st.lists(st.lists(st.sampled_from("ab"), max_size=6), min_size=1, max_size=3),
)
def test_matches_equal_those_of_a_slow_search(entries, sentences):
    # "ab" is no CJK text, so words are joined with spaces: entries of single letters only
    entries = list(dict.fromkeys(" ".join(entry) for entry in entries))
    matches = Lexicon(entries, [0] * len(entries), len(entries)).match(sentences)
    slow = [
        (k, i, j, entries.index(" ".join(words[i : j + 1])) + 1)
        for k, words in enumerate(sentences)
        for i in range(len(words))
        for j in range(i, len(words))
        if " ".join(words[i : j + 1]) in entries
    ]
    sentence = np.repeat(np.arange(len(sentences)), np.diff(matches.offsets))
    assert list(zip(sentence, matches.first, matches.last, matches.number, strict=True)) == slow


def test_positions_of_words_in_entries():
    arrays, _ = batch_of(Lexicon(ENTRIES, [0] * 5, 5), [list("长江大桥"), list("江")])
    entry = arrays["number"][arrays["pair_match"]].tolist()
    rows = list(zip(entry, arrays["pair_word"].tolist(), arrays["pair_position"].tolist(), strict=True))
    assert [row[1:] for row in rows if row[0] == 2] == [(0, BEGIN), (1, MIDDLE), (2, MIDDLE), (3, END)]
    assert [row[1:] for row in rows if row[0] == 4] == [(1, SINGLE), (4, SINGLE)]


def test_soft_lexicon_equals_the_formula_of_the_paper(monkeypatch):
    lexicon = Lexicon(ENTRIES, [3, 1, 2, 5, 0], 4)
    matches, mask = batch_of(lexicon, SENTENCES[:2])
    vectors, entries = torch.randn(2, 6, 4), torch.randn(len(matches["number"]), 5)
    inputs = []
    monkeypatch.setattr(
        "lacuner.models.encoders.lexicon_fusion.run_lstm", lambda lstm, vectors, mask: inputs.append(vectors)
    )
    SoftLexicon(4, 5)(vectors, entries, matches, mask)
    expected = np.zeros((2, 6, 4, 5))
    totals = np.zeros((2, 6))
    number = 0
    for k, words in enumerate(SENTENCES[:2]):
        for first, last, frequency in [(2, 3, 3), (2, 5, 1), (3, 3, 5), (4, 5, 2)] if k == 0 else [(1, 2, 0)]:
            for i in range(first, last + 1):
                position = SINGLE if first == last else BEGIN if i == first else END if i == last else MIDDLE
                expected[k, i, position] += (frequency + 1) * entries[number].numpy()
                totals[k, i] += frequency + 1
            number += 1
        assert len(words) <= 6
    expected = 4 * expected / np.maximum(totals, 1)[:, :, None, None]
    assert np.allclose(inputs[0][:, :, 4:].numpy(), expected.reshape(2, 6, -1), atol=1e-5)
    assert torch.equal(inputs[0][:, :, :4], vectors)


def test_attention_equals_a_softmax_per_word():
    matches, _ = batch_of(Lexicon(ENTRIES, [0] * 5, 5), SENTENCES[:2])
    attention = EntryAttention(4, 3)
    vectors, entries = torch.randn(2, 6, 4), torch.randn(len(matches["number"]), 3)
    means = attention(vectors, entries, matches)
    for word in range(12):
        containing = matches["pair_match"][matches["pair_word"] == word]
        query = attention.query(vectors.flatten(0, 1)[word])
        weights = (entries[containing] @ query).softmax(dim=0)
        assert torch.allclose(means.flatten(0, 1)[word], weights @ entries[containing], atol=1e-5)
    vectors = torch.randn(2, 6, 4, dtype=torch.double, requires_grad=True)
    entries = entries.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda *xs: attention.double()(*xs, matches), (vectors, entries))


def test_lattice_attention_equals_the_formula_of_the_paper():
    lattice = Lattice(4, 3).eval()
    torch.nn.init.normal_(lattice.content_bias)
    torch.nn.init.normal_(lattice.relation_bias)
    inputs, head, tail = torch.randn(1, 3, 64), torch.tensor([[0, 1, 0]]), torch.tensor([[0, 1, 1]])
    context = lattice._attend(inputs, head, tail, torch.tensor([[True, True, True]]))
    relation = torch.zeros(3, 3, 64)
    for i in range(3):
        for j in range(3):
            ends = [
                (head[0, i], head[0, j]),
                (head[0, i], tail[0, j]),
                (tail[0, i], head[0, j]),
                (tail[0, i], tail[0, j]),
            ]
            waves = [lattice.waves[256 + int(a - b)] for a, b in ends]
            relation[i, j] = sum(layer(wave) for layer, wave in zip(lattice.distances, waves, strict=True)).relu()
    query, key, value = (layer(inputs[0]) for layer in (lattice.query, lattice.key, lattice.value))
    for h in range(4):
        part = slice(16 * h, 16 * h + 16)
        far = lattice.relation(relation)[:, :, part]
        scores = (query[:, part] + lattice.content_bias[h]) @ key[:, part].T
        scores = scores + torch.einsum("nd,nmd->nm", query[:, part] + lattice.relation_bias[h], far)
        expected = (scores / 4).softmax(dim=1) @ value[:, part]
        assert torch.allclose(context[0, :, part], expected, atol=1e-4)


@pytest.mark.parametrize("fusion", FUSIONS)
def test_entries_change_the_words_that_they_contain(fusion):
    encoder = make(fusion).eval()
    before = encoder(encoder.collate(encoder.prepare(SENTENCES[:1]), [0]))
    with torch.no_grad():
        encoder.entries.weight[2] += 1  # 长江大桥
    after = encoder(encoder.collate(encoder.prepare(SENTENCES[:1]), [0]))
    assert ((before - after).abs().amax(-1)[0, 2:] > 1e-6).all()
    again = build_encoder(encoder.config(), encoder.files()).eval()
    again.load_state_dict(encoder.state_dict())
    assert torch.equal(again(again.collate(again.prepare(SENTENCES[:1]), [0])), after)


def test_what_starts_from_scratch_has_the_rate_of_the_head():
    encoder = make()
    model = Model(encoder, build_head({"kind": "span", "labels": ["LOC"]}, encoder.width))
    rates = {id(p): g["rate"] for g in make_optimizers(model, 0.1, 0.5, 0.0).groups for p in g["params"]}
    assert len(rates) == len(list(model.parameters()))
    assert {rates[id(p)] for p in encoder.inner.parameters()} == {0.1}
    assert {rates[id(p)] for m in encoder.fresh_modules() for p in m.parameters()} == {0.5}


def test_word_lists(tmp_path):
    file = tmp_path / "words.txt"
    file.write_text("\ufeff长江大桥 12 ns\n\n大桥 3\n长江\tx\nmarket town\n大桥\n", encoding="utf-8")
    assert read_entries(file) == ["长江大桥", "大桥", "长江", "market town"]
    for content, problem in ((b"\n\n", "not 0"), (b"\xff\xfe\x00", "not UTF-8")):
        file.write_bytes(content)
        with pytest.raises(ConfigError, match=problem):
            read_entries(file)
    with pytest.raises(GazetteerError, match="cannot read"):
        read_entries(tmp_path / "missing.txt")


def test_it_opens_by_its_name(tmp_path):
    words, vectors = tmp_path / "words.txt", tmp_path / "vectors.txt"
    words.write_text("\n".join(ENTRIES), encoding="utf-8")
    vectors.write_text("长江 1 2\n大桥 3 4\n", encoding="utf-8")
    settings = [f"lexicon={words}", f"vectors={vectors}", "name=lexicon:tiny", "fusion=lattice"]
    encoder = open_encoder(load_config(EncoderConfig, settings=settings), [])
    assert encoder.lexicon.entries[:2] == ("大桥", "长江") and encoder.lexicon.embedded == 2
    assert encoder.entries.weight[1].tolist() == [3, 4] and encoder.width == 128
    assert is_pretrained(EncoderConfig(name="lexicon:tiny-zh")) and not is_transformer(
        EncoderConfig(name="lexicon:tiny")
    )
    for name in ("lexicon:auto", "lexicon:lexicon:tiny"):
        with pytest.raises(ConfigError, match="name the encoder after"):
            open_encoder(EncoderConfig(name=name, lexicon=words), [])
    with pytest.raises(ConfigError, match=r"encoder\.lexicon=FILE"):
        open_encoder(EncoderConfig(name="lexicon:tiny"), [])
    with pytest.raises(ConfigError, match="has no effect"):
        load_config(EncoderConfig, settings=["name=tiny", f"lexicon={words}"])
    vectors.write_text("长江 1 x\n", encoding="utf-8")
    with pytest.raises(CorpusError):
        open_encoder(load_config(EncoderConfig, settings=settings), [])


@pytest.mark.parametrize("fusion", ["adapter", "soft"])
def test_a_transformer_with_a_lexicon(fusion, tmp_path):
    encoder = make(fusion, open_huggingface(str(make_model("roberta", tmp_path)))).eval()
    sentences = [["Ada", "江"], ["长江"], [], list("长江大桥")]
    features = encoder.prepare(sentences)
    vectors = encoder(encoder.collate(features, range(4)))
    alone = encoder(encoder.collate(features, [3]))
    assert torch.allclose(vectors[3], alone[0], atol=1e-6) and encoder.is_transformer
    with torch.no_grad():
        encoder.entries.weight[1] += 1  # 长江
    changed = (encoder(encoder.collate(features, range(4))) - vectors).abs().amax(-1) > 1e-6
    assert changed[1, 0] and not changed[0, :2].any()


def test_an_adapter_needs_layers():
    inner = lstm_from_words(SENTENCES[:1], LSTMConfig(width=12, word=6, character=4))
    with pytest.raises(ConfigError, match="tiny-zh"):
        make("adapter", inner)
    assert make("soft", inner).width == 12


def test_entries_of_the_training_text_have_vectors(tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("\n".join(ENTRIES), encoding="utf-8")
    encoder = lexicon_encoder(TinyEncoder(), SENTENCES, words)
    known = dict(zip(encoder.lexicon.entries, encoder.lexicon.counts.tolist(), strict=True))
    assert known == {"长江大桥": 1, "长江": 1, "江": 1, "market town": 1, "大桥": 0}
    assert encoder.lexicon.embedded == 4 and encoder.lexicon.entries[4] == "大桥"


def test_damaged_model_files_are_refused():
    encoder = make()
    good, files = encoder.config(), encoder.files()
    for config in ({**good, "inner": good}, {**good, "inner": None}, {**good, "fusion": "x"}, {**good, "embedded": 9}):
        with pytest.raises(ModelFileError):
            build_encoder(config, files)
    for data in (b"", b"a", b"a\tx\n", b"\t1\n", b"\xff\t1\n"):
        with pytest.raises(ModelFileError):
            build_encoder(good, {**files, "lexicon.tsv": data})
    with pytest.raises(ModelFileError):
        build_encoder(good, {})


def test_a_lexicon_is_not_pretrained(tmp_path):
    docs = [Document(str(i), f"长江大桥{i}") for i in range(30)]
    config = load_config(PretrainConfig, settings=["encoder.name=lexicon:tiny", "train.epochs=1"])
    with pytest.raises(ConfigError, match="pre-train tiny, then train with --encoder lexicon:run:RUN"):
        pretrain(docs, tmp_path / "run", config)


@pytest.mark.integration
def test_train_and_load(tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("Halden\nNew Vorn\nthe\n", encoding="utf-8")
    settings = ["encoder.name=lexicon:tiny", f"encoder.lexicon={words}", "encoder.fusion=adapter", "train.epochs=1"]
    config = load_config(RECIPES["trust"].Config, settings=settings)
    docs = build().train[:20]
    tagger = train("trust", Splits(weak=docs), tmp_path / "run", config).tagger
    assert (tmp_path / "run/model/encoder/lexicon.tsv").exists()
    assert [doc.spans for doc in load(tmp_path / "run").predict(docs)] == [doc.spans for doc in tagger.predict(docs)]
    words.write_text("Halden\n", encoding="utf-8")
    with pytest.raises(LacunerError, match=r"encoder\.lexicon"):
        train("trust", Splits(weak=docs), tmp_path / "run", config)
