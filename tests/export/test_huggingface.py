# ruff: noqa: E402
"""Hugging Face: the pipeline of transformers gives the same entities, offline, and other taggers are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import regex
import torch
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

transformers = pytest.importorskip("transformers")

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from lacuner.corpus.words import split_words
from lacuner.data import Document, Span
from lacuner.errors import ConfigError
from lacuner.export.export import export
from lacuner.export.huggingface import fits_pipeline, write_huggingface
from lacuner.export.onnx_graph import SubwordGraph
from lacuner.export.options import ExportOptions
from lacuner.export.proof_worker import load_huggingface
from lacuner.export.reference import subwords
from lacuner.export.source import ExportSource
from lacuner.models.encoders.huggingface import HuggingFaceConfig, open_huggingface
from lacuner.models.heads import build_head
from lacuner.models.model import Model
from lacuner.models.storage import save
from lacuner.models.tagger import Tagger
from tests.export.conftest import GAZETTEER, LABELS, make_tagger

WORDS = [
    "Mara",
    "Teel",
    "left",
    "Halden",
    "naïve",
    "ship",
    "ROSE",
    "sailed",
    "unbelievably",
    "玛",
    "拉",
    *"125%().,!?-\"'°",
]
TEXTS = [
    "Mara Teel left Halden.",
    "",
    'The ship ROSE (of "Halden") sailed: 20°C, 5% naïve - unbelievably!',
    "玛拉 left 玛拉.",
    "won't sail; U.S.",
]
JOINING = [
    "\u0301",
    "\u200b",
    "\u200c",
    "\u200d",
    "\u00ad",
    "\u2028",
    "\ufeff",
    "\ufffd",
    "👩\u200d🔬",
    "e\u0301",
    "\x85",
    "\x1c",
]
SPECIAL = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}


unicode_texts = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join),
    st.lists(
        st.one_of(st.sampled_from([*WORDS, *JOINING, " "]), st.characters(exclude_categories=["Cs"])), max_size=25
    ).map("".join),
)
"""Known words with any characters between them."""


def is_regular(word: str, tokenizer: Tokenizer) -> bool:
    """Whether the pipeline of transformers can see a word as one.

    It compares the length of each sub-word with that of its text. So a word must not be split, nor change its length
    between its first and its last visible character. Left out are also prepended format characters, tags behind
    marks, and soft hyphens that follow no letter.
    """
    if regex.search(r"\p{GCB=Prepend}|\p{M}[\U000e0001-\U000e007f]|(?<![\p{L}\p{N}])\u00ad|\u00ad[\u200c\u200d]", word):
        return False
    sizes = [len(tokenizer.normalizer.normalize_str(character).strip()) for character in word]
    visible = [place for place, size in enumerate(sizes) if size]
    same_length = not visible or set(sizes[visible[0] : visible[-1] + 1]) == {1}
    return same_length and len(tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(word))) <= 1


def make_tokenizer(kind: str, lowercase: bool = False) -> Tokenizer:
    """WordPiece with all letters, or byte-level BPE."""
    special = [*SPECIAL.values()]
    if kind == "roberta":
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=special, initial_alphabet=alphabet)
        tokenizer.train_from_iterator([*WORDS, "The", "U", "S", "of", "won", "t", "sail", ":", ";"] * 3, trainer)
    else:
        letters = sorted({letter for text in [*TEXTS, *WORDS] for letter in text.strip()})
        pieces = [*special, *letters, *(f"##{letter}" for letter in letters), "Hal", "##den", "sail"]
        tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    marks = [(mark, tokenizer.token_to_id(mark)) for mark in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=marks)
    return tokenizer


def make_encoder(folder: Path, kind: str, lowercase: bool = False, **options: Any) -> Any:
    tokenizer = make_tokenizer(kind, lowercase)
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    config = transformers.AutoConfig.for_model(
        kind, vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=150, pad_token_id=0, **sizes
    )
    transformers.AutoModel.from_config(config).save_pretrained(folder)
    return open_huggingface(str(folder), HuggingFaceConfig(**options))


def make_token_tagger(folder: Path, kind: str, head: str = "token", lowercase: bool = False, **settings: Any) -> Tagger:
    encoder = make_encoder(folder, kind, lowercase, shapes=False)
    model = Model(encoder, build_head({"kind": head, "labels": LABELS, **settings}, encoder.width))
    with torch.no_grad():
        for parameter in model.head.parameters():
            parameter.normal_(std=0.7)
    return Tagger(model.eval())


@pytest.mark.integration
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("bert", {"angle": True, "non_entity": True}),
        pytest.param("roberta", {}, marks=pytest.mark.slow),
    ],
)
def test_export_with_proof(kind: str, settings: dict[str, Any], tmp_path: Path) -> None:
    tagger = make_token_tagger(tmp_path / "encoder", kind, **settings)
    save(Tagger(tagger.model, GAZETTEER), tmp_path / "run")
    docs = [Document(str(i), text) for i, text in enumerate([*TEXTS, "Mara " * 400])]
    gold = [Document(doc.id, doc.text, spans=(Span(0, 4, "PER"),) if doc.text else (), complete=True) for doc in docs]
    proof = export(
        tmp_path / "run", "huggingface", tmp_path / "out", gold, is_dev=True, options=ExportOptions(license="mit")
    ).proof
    assert proof.equal == proof.spans > 10
    assert proof.score_difference < 1e-4 and proof.scores_compared > 5
    assert proof.notes == {
        "given as words": 0 if kind == "bert" else len(TEXTS),
        "expanded to whole words": 0,
        "documents too long to be compared": 1,
    }
    assert not proof.gazetteer and proof.f1 is not None and proof.f1["lacuner"] == proof.f1["huggingface"]
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert 'license: "mit"' in card and "gazetteer of the tagger is **not** part" in card
    assert ("is_split_into_words=True" in card) == (kind == "roberta")


@pytest.mark.parametrize("lowercase", [False, True])
def test_texts_give_the_same_entities(tmp_path: Path, lowercase: bool) -> None:
    """Any Unicode, although the tokenizer's normaliser deletes controls, joiners and, with lower case, accents.

    The libraries have different versions of Unicode.
    """
    tagger = make_token_tagger(tmp_path / "encoder", "bert", lowercase=lowercase)
    write_huggingface(ExportSource(tmp_path, tagger), tmp_path / "out", ExportOptions())
    predict = load_huggingface(tmp_path / "out")
    tokenizer = make_tokenizer("bert", lowercase)
    found = []

    @given(unicode_texts)
    @example("Mara\u088fleft Hal\u1acfden \U0001e6c0Mara \u0cdcTeel")  # letters and a mark of Unicode 17
    @example("!\u0301 Mara \u0300 left")
    @settings(max_examples=80, suppress_health_check=[HealthCheck.filter_too_much])
    def check(text: str) -> None:
        assume(all(is_regular(text[start:end], tokenizer) for start, end in split_words(text)))
        [doc] = predict([Document("1", text)], {})
        assert [span.key for span in doc.spans] == [span.key for span in tagger(text).spans]
        found.extend(doc.spans)

    check()
    assert len(found) > 50


def test_fifty_thousand_words_are_read_up_to_the_limit(tmp_path: Path) -> None:
    """The pipeline has no windows: it predicts what the tagger predicts for the first sub-words, and nothing after."""
    tagger = make_token_tagger(tmp_path / "encoder", "bert")
    write_huggingface(ExportSource(tmp_path, tagger), tmp_path / "out", ExportOptions())
    long = Document("1", "Mara Teel left Halden . ROSE sailed ! " * 6_300)
    words = split_words(long.text)
    assert len(words) > 50_000 and not fits_pipeline(ExportSource(tmp_path, tagger), long)
    [predicted] = load_huggingface(tmp_path / "out")([long], {})
    encoder = tagger.model.encoder
    read = int(
        encoder.count([long.text[start:end] for start, end in words]).cumsum().searchsorted(encoder.limit, "right")
    )
    short = tagger(long.text[: words[read - 1][1]])
    assert [span.key for span in predicted.spans if span.end <= words[read - 1][1]] == [
        span.key for span in short.spans
    ]
    assert len(short.spans) > 3 and max(span.end for span in predicted.spans) <= words[read][1]


@pytest.mark.parametrize(("kind", "options"), [("bert", {"shapes": True, "pooling": "mean"}), ("roberta", {})])
def test_the_reference_decoder_prepares_the_same_sub_words(kind: str, options: dict[str, Any], tmp_path: Path) -> None:
    encoder = make_encoder(tmp_path, kind, **options)
    (tmp_path / "tokenizer.json").write_bytes(encoder.files()["tokenizer.json"])
    names = ["ids", "sizes", *(["shapes"] if encoder.uses_shapes else [])]
    words = subwords.WordFeatures({**encoder.piece_settings(), "inputs": names}, tmp_path)
    sentences = [["Mara", "Teel", "left", "unbelievably", "\u200b", "x" * 300], ["ROSE"], ["12", "\ud800", "玛"]]
    assert [words.count(sentence) for sentence in sentences] == [encoder.count(s).tolist() for s in sentences]
    feed = words.feed(sentences)
    assert list(feed) == names
    model = Model(encoder, build_head({"kind": "token", "labels": LABELS}, encoder.width))
    batch = SubwordGraph(model, encoder).complete(**{name: torch.tensor(array) for name, array in feed.items()})
    expected = encoder.collate(encoder.prepare(sentences), range(3))
    assert torch.equal(batch.mask, expected.mask)
    for name, tensor in batch.tensors.items():
        assert tensor.tolist() == expected.tensors[name].tolist(), name


@pytest.mark.parametrize(
    ("kind", "options", "head"),
    [
        pytest.param(
            "bert", {"shapes": True, "pooling": "mean"}, {"kind": "span", "widths": 3}, marks=pytest.mark.integration
        ),
        pytest.param("roberta", {"shapes": False}, {"kind": "token"}, marks=pytest.mark.slow),
    ],
)
def test_onnx_of_a_transformer(kind: str, options: dict[str, Any], head: dict[str, Any], tmp_path: Path) -> None:
    """Both ways of pooling, in text that needs several windows."""
    pytest.importorskip("onnxscript")
    encoder = make_encoder(tmp_path / "encoder", kind, **options)
    model = Model(encoder, build_head({"labels": LABELS, **head}, encoder.width))
    with torch.no_grad():
        if encoder.uses_shapes:
            encoder.shapes.weight.normal_()
        for parameter in model.head.parameters():
            parameter.normal_(std=0.7)
    save(Tagger(model.eval()), tmp_path / "run")
    docs = [Document(str(i), text) for i, text in enumerate([*TEXTS, "".join(JOINING), "Mara left Halden. " * 60])]
    proof = export(tmp_path / "run", "onnx", tmp_path / "out", docs).proof
    assert proof.equal == proof.spans > 20 and proof.score_difference < 1e-4


def test_other_taggers_are_refused_with_the_way_out(tmp_path: Path) -> None:
    def refuse(tagger: Tagger, problem: str) -> None:
        with pytest.raises(
            ConfigError, match=rf"{problem}.*`lacuner distil .* --to hf:PATH .* --head token --set"
        ) as error:
            write_huggingface(ExportSource(tmp_path / "run", tagger), tmp_path / "out", ExportOptions())
        assert str(tmp_path / "run") in str(error.value)

    refuse(make_tagger("token"), "the encoder is 'tiny', and only hf: encoders")
    refuse(make_token_tagger(tmp_path / "a", "bert", "span"), "the head is 'span'")
    refuse(make_token_tagger(tmp_path / "b", "bert", scheme="BIOES"), "the tag scheme is BIOES")
    head = build_head({"kind": "token", "labels": LABELS}, 16)
    mean = Tagger(Model(make_encoder(tmp_path / "c", "bert", pooling="mean", shapes=False), head))
    refuse(mean, "the vector of a word is the mean")
    refuse(Tagger(Model(make_encoder(tmp_path / "d", "bert", shapes=True), head)), "encoder.shapes=false")
    assert not (tmp_path / "out").exists()
