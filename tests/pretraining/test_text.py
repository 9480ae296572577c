"""Text to pre-train on: streamed from compressed files, prepared once, divided into shards that resume anywhere."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path

import numpy as np
import pytest

from lacuner.config import load_config
from lacuner.corpus import read, write
from lacuner.corpus.words import split_words
from lacuner.data import Document
from lacuner.errors import ConfigError, CorpusError, TrainingError
from lacuner.pretraining.pretrain import PretrainConfig, pretrain
from lacuner.pretraining.text import TextSource, cut_passages, plan_shards, prepare_text
from tests.demo_corpus import demo_corpus
from tests.recipes.check_recipe import weights

TEXTS = [doc.text for doc in demo_corpus().train[:200]]
QUICK = ["train.epochs=1", "train.budget=256", "held_out=0.2", "encoder.name=tiny"]


def source(texts: list[str], name: str = "texts") -> TextSource:
    return TextSource(name, lambda: (Document(str(i), text) for i, text in enumerate(texts)), str(hash(tuple(texts))))


def seed(*parts: object) -> int:
    return sum(map(ord, repr(parts)))


def test_every_word_is_in_one_passage() -> None:
    words = [word for text in TEXTS for word in text.split()] + ["x"] * 300
    for target in (1, 5, 24):
        pieces = list(cut_passages(words, target))
        assert [position for start, end in pieces for position in range(start, end)] == list(range(len(words)))
        assert max(end - start for start, end in pieces) <= 128


def test_the_words_come_back(tmp_path: Path) -> None:
    text = prepare_text([source(TEXTS)], tmp_path, 0.2)
    passages = text.passages(np.arange(len(text.source)))
    assert [word for words in passages for word in words] == [text[a:b] for text in TEXTS for a, b in split_words(text)]
    assert int(text.counts().sum()) == len(text.ids) and 0 < text.held_out.mean() < 0.5
    before = {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    again = prepare_text([source(TEXTS)], tmp_path, 0.2)
    assert again.words == text.words and before == {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    assert prepare_text([source(TEXTS[:50])], tmp_path, 0.2).words != text.words, "other text is prepared anew"


def test_compound_words_stay_together_in_a_share_of_the_documents(tmp_path: Path) -> None:
    texts = [f"A non-small U.S. case {i}." for i in range(200)]
    share = {}
    for compounds in (0.0, 0.5, 1.0):
        text = prepare_text([source(texts)], tmp_path / str(compounds), 0.2, compounds)
        counts = dict(zip(text.words, text.counts().tolist(), strict=True))
        share[compounds] = counts.get("non-small", 0) / 200
        assert counts.get("non-small", 0) == counts.get("U.S", 0)
    assert share[0.0] == 0 and 0.3 < share[0.5] < 0.7 and share[1.0] == 1


def test_shards_cover_each_pass_and_follow_the_mix(tmp_path: Path) -> None:
    text = prepare_text([source(TEXTS[:150]), source(TEXTS[150:])], tmp_path, 0.2)
    lengths = np.diff(text.offsets)
    size = int(lengths[~text.held_out].sum())
    shards = plan_shards(text, 2 * size, (), 500, seed)
    assert shards.count > 2
    read_passages = np.concatenate([shards[k] for k in range(shards.count)])
    assert (np.bincount(read_passages, minlength=len(lengths)) == np.where(text.held_out, 0, 2)).all()
    assert max(lengths[shards[k]].sum() for k in range(shards.count)) < 700
    assert np.array_equal(shards[1], plan_shards(text, 2 * size, (), 500, seed)[1])
    mixed = plan_shards(text, 4 * size, (0.25, 0.75), 500, seed)
    for k in range(mixed.count):
        words = np.bincount(text.source[mixed[k]], weights=lengths[mixed[k]])
        assert 0.6 < words[1] / words.sum() < 0.9
    one = plan_shards(text, 3 * size, (), 10**6, seed)
    assert one.count == 3, "a small text has one shard per pass"


@pytest.mark.parametrize("ending", [".gz", ".xz"])
def test_compressed_text_gives_the_same_encoder(ending: str, tmp_path: Path) -> None:
    opener = {".gz": gzip.open, ".xz": lzma.open}[ending]
    plain, packed = tmp_path / "texts.txt", tmp_path / f"texts.txt{ending}"
    plain.write_text("\n".join(TEXTS), encoding="utf-8")
    with opener(packed, "wt", encoding="utf-8") as stream:
        stream.write("\n".join(TEXTS))
    bytes_read = []
    docs = list(read(packed, on_bytes=bytes_read.append))
    assert [doc.text for doc in docs] == [doc.text for doc in read(plain)]
    assert sum(bytes_read) == packed.stat().st_size, "progress counts the bytes of the file, not of its content"
    packed.write_bytes(packed.read_bytes()[:-40])
    with pytest.raises(CorpusError, match="cannot read this file"):
        list(read(packed))
    write(docs, tmp_path / f"out.jsonl{ending}")
    assert [doc.text for doc in read(tmp_path / f"out.jsonl{ending}")] == [doc.text for doc in docs]


@pytest.mark.integration
def test_shards_change_the_order_only_and_several_sources_are_measured_apart(tmp_path: Path) -> None:
    config = load_config(PretrainConfig, settings=[*QUICK, "shard=1000", "mix=[0.3,0.7]", "words=4000"])
    sources = [source(TEXTS[:100], "a"), source(TEXTS[100:], "b")]
    result = pretrain(sources, tmp_path / "one", config)
    rows = [json.loads(line) for line in (tmp_path / "one" / "metrics.jsonl").read_text().splitlines()]
    assert len(rows) == 4 and {"top1 a", "perplexity b", "top5"} <= set(result.held_out)
    low, high = sorted((result.held_out["perplexity a"], result.held_out["perplexity b"]))
    assert low <= result.held_out["perplexity"] <= high
    pretrain(sources, tmp_path / "two", config)
    assert weights(tmp_path / "one") == weights(tmp_path / "two")


def test_a_mix_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    config = load_config(PretrainConfig, settings=[*QUICK, "mix=[1.0]"])
    with pytest.raises(ConfigError, match="mix has 1 shares for 2 corpora"):
        pretrain([source(TEXTS), source(TEXTS)], tmp_path, config)
    with pytest.raises(TrainingError, match=r"at least two different texts in each corpus, .*: short has fewer"):
        pretrain([source(TEXTS), source(TEXTS[:1], "short")], tmp_path, load_config(PretrainConfig, settings=QUICK))
