# ruff: noqa: E402
"""Hugging Face encoders, on tiny random models of three families built here, with the network closed."""

import json
import pickle
import re
import socket
from pathlib import Path

import numpy as np
import pytest
import torch

transformers = pytest.importorskip("transformers")

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from lacuner.errors import ConfigError, ModelFileError
from lacuner.models.encoders import build_encoder
from lacuner.models.encoders.huggingface import HuggingFaceConfig, fingerprint, open_huggingface
from lacuner.models.encoders.huggingface_config import MODEL_TYPES, check_model_config
from lacuner.models.encoders.huggingface_mlm import open_masked_head
from lacuner.models.encoders.word_shapes import word_shape
from lacuner.models.heads import build_head
from lacuner.models.model import Model
from lacuner.models.storage import CONFIG, load, save
from lacuner.models.tagger import Tagger
from tests.hostile.test_model_folders import peak_kb

TEXT = [
    "Ada Lovelace met Charles Babbage in London .",
    "The tumour responded to 5-fluorouracil ,",
    "naïve unbelievable words",
]
SENTENCES = [text.split(" ") for text in TEXT] + [["a"], ["\u200b", "Ada", "\x00"], []]
KINDS = ("bert", "bert-uncased", "roberta", "xlm-roberta", "electra", "deberta-v2")


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*_):
        raise AssertionError("the network is closed")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def wordpiece(lower):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(TEXT, trainers.WordPieceTrainer(vocab_size=120, special_tokens=special))
    marks = [(mark, tokenizer.token_to_id(mark)) for mark in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=marks)
    names = {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    }
    return tokenizer, names, transformers.PreTrainedTokenizerFast


def sentencelike(kind):
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    if kind == "roberta":
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet)
    else:
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=100, special_tokens=special, unk_token="<unk>")
    tokenizer.train_from_iterator(TEXT, trainer)
    marks = [(mark, tokenizer.token_to_id(mark)) for mark in ("<s>", "</s>")]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=marks)
    names = {
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "cls_token": "<s>",
        "sep_token": "</s>",
        "mask_token": "<mask>",
    }
    return tokenizer, names, transformers.PreTrainedTokenizerFast


def make_model(kind, folder):
    tokenizer, names, make = (
        wordpiece("uncased" in kind) if kind not in ("roberta", "xlm-roberta") else sentencelike(kind)
    )
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    fast = make(tokenizer_object=tokenizer, **names)
    fast.save_pretrained(folder)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(
        kind.removesuffix("-uncased"),
        vocab_size=tokenizer.get_vocab_size(),
        max_position_embeddings=40,
        pad_token_id=fast.pad_token_id,
        **sizes,
        **({"embedding_size": 12} if kind == "electra" else {}),
    )
    transformers.AutoModel.from_config(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    class Folders(dict):
        def __missing__(self, kind):  # built when it is needed
            self[kind] = make_model(kind, tmp_path_factory.mktemp(kind))
            return self[kind]

    return Folders()


def encode(encoder, sentences=SENTENCES):
    encoder.eval()
    features = encoder.prepare(sentences)
    batch = encoder.collate(features, range(len(sentences)))
    with torch.no_grad():
        return features, batch, encoder(batch)


@pytest.mark.parametrize("kind", KINDS)
def test_every_word_has_a_vector_and_batches_change_nothing(kind, folders):
    encoder = open_huggingface(str(folders[kind]))
    features, batch, vectors = encode(encoder)
    lengths = [len(words) for words in SENTENCES]
    assert vectors.shape == (len(SENTENCES), max(lengths), encoder.width == 16 and 16)
    assert batch.mask.sum(1).tolist() == lengths and torch.isfinite(vectors).all()
    for i, words in enumerate(SENTENCES):
        if words:
            alone = encode(encoder, [words])[2][0]
            assert torch.allclose(alone, vectors[i, : len(words)], atol=1e-5)
    assert features.costs.tolist() == [int(encoder.count(words).sum()) if words else 0 for words in SENTENCES]


@pytest.mark.parametrize("kind", KINDS)
def test_sub_words_are_those_of_the_library_for_split_words(kind, folders):
    encoder = open_huggingface(str(folders[kind]))
    prefix = {"add_prefix_space": True} if kind == "roberta" else {}
    fast = transformers.AutoTokenizer.from_pretrained(folders[kind], **prefix)
    if kind == "roberta":
        fast.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    _, batch, _ = encode(encoder, SENTENCES[:4])
    for i, words in enumerate(SENTENCES[:4]):
        want = fast(words, is_split_into_words=True, truncation=False, padding=False)
        real = batch.tensors["attention"][i].bool()
        assert batch.tensors["ids"][i][real].tolist() == want["input_ids"]
        firsts = [want.word_ids().index(w) for w in range(len(words))]
        assert batch.tensors["first"][i, : len(words)].tolist() == firsts


@pytest.mark.parametrize("kind", KINDS)
def test_made_again_from_config_files_and_weights(kind, folders):
    encoder = open_huggingface(str(folders[kind]), HuggingFaceConfig(pooling="mean"))
    config = json.loads(json.dumps(encoder.config()))
    assert str(folders[kind]) not in json.dumps(config)
    again = build_encoder(config, encoder.files())
    again.load_state_dict(encoder.state_dict())
    assert torch.equal(encode(encoder)[2], encode(again)[2])
    assert again.config() == encoder.config() and again.limit == encoder.limit


def test_mean_pooling(folders):
    first = open_huggingface(str(folders["bert"]))
    mean = open_huggingface(str(folders["bert"]), HuggingFaceConfig(pooling="mean"))
    _, batch, vectors = encode(mean)
    with torch.no_grad():
        hidden = mean.model(batch.tensors["ids"], attention_mask=batch.tensors["attention"]).last_hidden_state
    for i, words in enumerate(SENTENCES):
        for w in range(len(words)):
            assert torch.allclose(hidden[i][batch.tensors["owner"][i] == w].mean(0), vectors[i, w], atol=1e-5)
    assert not torch.allclose(vectors, encode(first)[2])


def test_shapes_only_for_uncased_models_and_silent_at_first(folders):
    assert not open_huggingface(str(folders["bert"])).uses_shapes
    with_shapes = open_huggingface(str(folders["bert-uncased"]))
    without = open_huggingface(str(folders["bert-uncased"]), HuggingFaceConfig(shapes=False))
    assert with_shapes.uses_shapes and not without.uses_shapes
    assert torch.allclose(encode(with_shapes)[2], encode(without)[2], atol=1e-6)
    torch.nn.init.normal_(with_shapes.shapes.weight)
    assert not torch.allclose(encode(with_shapes, [["ada"]])[2], encode(with_shapes, [["Ada"]])[2])
    assert torch.equal(encode(without, [["ada"]])[2], encode(without, [["Ada"]])[2])
    roberta = [open_huggingface(str(folders["roberta"]), HuggingFaceConfig(shapes=shapes)) for shapes in (True, False)]
    assert torch.allclose(encode(roberta[0])[2], encode(roberta[1])[2], atol=1e-5)


def test_word_shapes():
    words = ["ada", "Ada", "ADA", "A", "iPhone", "B12", ",", "中"]
    assert [word_shape(word) for word in words] == [1, 2, 3, 2, 4, 5, 6, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_the_limit_is_exact(kind, folders):
    encoder = open_huggingface(str(folders[kind]))
    word = next(word for words in SENTENCES for word in [*words, "a"] if encoder.count([word]).tolist() == [1])
    assert torch.isfinite(encode(encoder, [[word] * encoder.limit])[2]).all()
    with pytest.raises(ConfigError, match=f"reads {encoder.limit}"):
        encoder.prepare([[word], [word] * (encoder.limit + 1)])


def test_a_very_long_word_is_read_as_far_as_it_fits_and_counted(folders):
    encoder = open_huggingface(str(folders["roberta"]))
    features, _, vectors = encode(encoder, [["Ada"], ["xq" * 3000]])
    assert features.truncated == 1 and features.costs[1] <= encoder.limit and torch.isfinite(vectors).all()


def test_frozen_layers_and_checkpointing(folders):
    plain = open_huggingface(str(folders["bert"]))
    saving = open_huggingface(str(folders["bert"]), HuggingFaceConfig(frozen=1, checkpointing=True)).train()
    names = {name for name, parameter in saving.named_parameters() if not parameter.requires_grad}
    assert any(name.startswith("model.embeddings") for name in names) and any("layer.0." in name for name in names)
    assert not any("layer.1." in name for name in names)
    assert all(parameter.requires_grad for parameter in plain.parameters())
    for encoder in (plain, saving):
        for module in encoder.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
    gradients = []
    for encoder in (plain.train(), saving):
        encoder(encoder.collate(encoder.prepare(SENTENCES), [0, 1])).square().sum().backward()
        gradients.append([p.grad for name, p in encoder.named_parameters() if "layer.1.output" in name])
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(*gradients, strict=True))
    with pytest.raises(ConfigError, match="model has 2"):
        open_huggingface(str(folders["bert"]), HuggingFaceConfig(frozen=3))


class Bomb:
    def __reduce__(self):
        return (Path.touch, (Path("canary"),))


def spoil(folder, tmp_path, how):
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = tmp_path / "model.safetensors"
    if how == "pickle as safetensors":
        weights.write_bytes(pickle.dumps(Bomb()))
    elif how == "pickle only":
        (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb()))
        weights.unlink()
    elif how == "no weights":
        weights.unlink()
    elif how == "weights of another model":
        from safetensors.torch import save_file

        save_file({"other.weight": torch.zeros(3)}, weights, metadata={"format": "pt"})
    elif how == "deep json":
        (tmp_path / "config.json").write_text("[" * 100_000)
    elif how.startswith("tokenizer "):
        path = tmp_path / "tokenizer_config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "auto_map": {"AutoTokenizer": ["x.T", None]}}))
    elif how == "adapter":
        (tmp_path / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "evil/model"}))
    else:
        path = tmp_path / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **BAD_SETTINGS[how]}))


BAD_SETTINGS = {
    "auto_map": {"auto_map": {"AutoModel": "evil.Model"}},
    "trust_remote_code": {"trust_remote_code": True},
    "is_encoder_decoder": {"is_encoder_decoder": True},
    "a kernel repository": {"attn_implementation": "evil/kernel"},
    "a kernel repository, as transformers keeps it": {"_attn_implementation": "evil/kernel@main:attention"},
    "a kernel repository, as it is kept inside": {"_attn_implementation_internal": "evil/kernel"},
    "flash attention, which is fetched if it is not installed": {"attn_implementation": "flash_attention_2"},
    "a kernel in an inner config": {"text_config": {"layers": [{"attn_implementation": {"": "evil/kernel"}}]}},
    "experts from the hub": {"experts_implementation": "evil/experts"},
    "a repository under any key": {"activation_kernel": "evil/kernel"},
    "a repository in a list": {"activation_kernels": ["gelu", "evil/kernel"]},
    "an address": {"vocabulary": "https://evil.example/vocab"},
    "a quantiser": {"quantization_config": {"quant_method": "awq"}},
    "another weights file": {"transformers_weights": "../other.safetensors"},
    "a type that compiles kernels": {"model_type": "yoso"},
    "a type that fetches kernels": {"model_type": "mamba"},
    "no type": {"model_type": None},
    "a type of data that is none": {"dtype": "load"},
}
HOSTILE = ["pickle as safetensors", "pickle only", "no weights", "weights of another model", "deep json"]
HOSTILE += ["tokenizer auto_map", "adapter", *BAD_SETTINGS]


def test_all_bad_folders_ran():
    assert len(HOSTILE) == 25


@pytest.mark.parametrize("how", HOSTILE)
def test_bad_folders_are_refused_by_name_and_run_nothing(how, folders, tmp_path, monkeypatch):
    folder = tmp_path / "model"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    spoil(folders["bert"], folder, how)
    with pytest.raises(ModelFileError) as error:
        open_huggingface(str(folder))
    assert "model" in str(error.value.file) and "Traceback" not in str(error.value)
    if how in BAD_SETTINGS or how in ("adapter", "tokenizer auto_map"):  # refused here, before transformers reads it
        ours = "which lacuner refuses|is not a type of text encoder|has a decoder|this is an adapter"
        assert re.search(ours, str(error.value))
    assert not (tmp_path / "canary").exists()


def test_a_path_that_is_not_there_is_not_looked_up_on_the_hub(tmp_path):
    with pytest.raises(ModelFileError, match="no such folder"):
        open_huggingface(str(tmp_path / "nothing"))


def spy(monkeypatch):
    """The arguments of all calls of `from_pretrained`."""
    calls = []

    def record(cls):
        real = cls.from_pretrained

        def from_pretrained(*args, **kwargs):
            calls.append((cls.__name__, kwargs))
            return real(*args, **kwargs)

        monkeypatch.setattr(cls, "from_pretrained", from_pretrained)

    names = ("AutoConfig", "AutoTokenizer", "AutoModel", "AutoModelForMaskedLM")
    for name in names:
        record(getattr(transformers, name))
    return calls


def test_every_call_that_loads_a_path_is_offline_and_trusts_nothing(folders, monkeypatch):
    calls = spy(monkeypatch)
    open_masked_head(str(folders["bert"]), open_huggingface(str(folders["bert"])))
    own = [kwargs for _, kwargs in calls if "trust_remote_code" in kwargs]  # the others are calls inside transformers
    assert len(own) >= 5 and {name for name, _ in calls} >= {"AutoModel", "AutoModelForMaskedLM", "AutoTokenizer"}
    assert all(kwargs["trust_remote_code"] is False and kwargs["local_files_only"] is True for kwargs in own)
    weights = [kwargs for name, kwargs in calls if "Model" in name]
    assert len(weights) == 2 and all(kwargs["use_safetensors"] is True for kwargs in weights)


def test_configs_that_are_in_use_are_allowed():
    """Settings of published models: strings that name nothing that is loaded."""
    common = {"_name_or_path": "owner/model", "architectures": ["BertModel"], "torch_dtype": "float32"}
    labels = {"id2label": {"0": "I/O", "1": "https://x"}, "label2id": {"I/O": 0}}
    for kind, more in (
        ("bert", {"hidden_act": "gelu", "position_embedding_type": "absolute", "attn_implementation": "sdpa"}),
        ("deberta-v2", {"pos_att_type": "p2c|c2p", "norm_rel_ebd": "layer_norm", "_attn_implementation": "eager"}),
        ("xlm-roberta", {"bos_token": "<s>", "eos_token": "</s>", "auto_map": None, "quantization_config": None}),
        ("modernbert", {"classifier_pooling": "mean", "layer_types": ["full_attention", "sliding_attention"]}),
        ("electra", {"task_specific_params": {"ner": {"prefix": "input/output"}}, "summary_activation": "gelu"}),
    ):
        check_model_config({"model_type": kind, **common, **labels, **more}, "config.json")


def test_all_types_of_models_here_are_known():
    known = transformers.models.auto.configuration_auto.CONFIG_MAPPING_NAMES
    former = {"nezha", "qdqbert"}  # in the oldest version that we support
    assert MODEL_TYPES - former <= set(known)


def test_a_bad_saved_encoder_is_refused(folders):
    encoder = open_huggingface(str(folders["bert"]))
    config, files = encoder.config(), encoder.files()
    bad = [
        ({**config, "model": {**config["model"], "auto_map": {"AutoModel": "x"}}}, files),
        ({**config, "model": {**config["model"], "model_type": "nothing"}}, files),
        ({**config, "model": {**config["model"], "attn_implementation": "evil/kernel"}}, files),
        ({**config, "model": {**config["model"], "_attn_implementation": "flash_attention_2"}}, files),
        ({**config, "ids": {}}, files),
        (config, {}),
        (config, {"tokenizer.json": b"{}"}),
    ]
    for broken, its_files in bad:
        with pytest.raises(ModelFileError):
            build_encoder(broken, its_files)


def test_half_precision_weights_are_used_in_single_precision(folders, tmp_path):
    transformers.AutoModel.from_pretrained(folders["bert"]).half().save_pretrained(tmp_path)
    for file in folders["bert"].glob("tokenizer*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    encoder = open_huggingface(str(tmp_path))
    assert {parameter.dtype for parameter in encoder.parameters()} == {torch.float32}
    assert np.allclose(encode(encoder)[2], encode(open_huggingface(str(folders["bert"])))[2], atol=0.05)


@pytest.mark.parametrize("kind", ["bert", "electra", "deberta-v2"])
def test_a_saved_encoder_that_asks_for_too_much_allocates_nothing(kind, folders, tmp_path):
    encoder = open_huggingface(str(folders[kind]))
    save(Tagger(Model(encoder, build_head({"kind": "token", "labels": ["LOC"]}, encoder.width))), tmp_path)
    config = json.loads((tmp_path / CONFIG).read_text())
    assert load(tmp_path).labels == ("LOC",)
    tried = set()
    for part, values in (("model", config["encoder"]["model"]), ("ids", config["encoder"]["ids"])):
        for name in [name for name, value in values.items() if type(value) is int]:
            greedy = {**config["encoder"], part: {**values, name: 10**9}}
            (tmp_path / CONFIG).write_text(json.dumps({**config, "encoder": greedy}))
            before = peak_kb()
            try:
                load(tmp_path)  # some numbers mean nothing to an encoder
            except ModelFileError as error:
                assert "\n" not in str(error)
                tried.add(name)
            assert peak_kb() - before < 200_000, name
    sizes = {"vocab_size", "hidden_size", "num_hidden_layers", "intermediate_size", "max_position_embeddings"}
    assert sizes - {"max_position_embeddings" if kind == "deberta-v2" else ""} <= tried


def test_a_fingerprint_is_of_what_is_read(folders, tmp_path, monkeypatch):
    for file in folders["bert"].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    before = fingerprint(str(tmp_path))
    assert before == fingerprint(str(folders["bert"])) != fingerprint(str(folders["electra"]))
    (tmp_path / "README.md").write_text("nobody reads this")
    assert fingerprint(str(tmp_path)) == before
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    assert fingerprint(str(tmp_path)) != before
    with pytest.raises(ModelFileError, match="no such folder"):
        fingerprint(str(tmp_path / "nothing"))

    class FromTheHub:
        _commit_hash = "0123abcd"

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", lambda *_, **__: FromTheHub)
    assert fingerprint("some/model") == "0123abcd"
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match="cannot load this encoder"):
        monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", lambda *_, **__: 1 / 0)
        fingerprint("some/model")
