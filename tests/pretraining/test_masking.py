"""Masking units, and masked-LM heads that predict them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from lacuner.errors import ConfigError, ModelFileError
from lacuner.models.encoders.lstm import lstm_from_words
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.heads import build_masked_head, masked
from lacuner.models.heads.masked import MASK, MaskedPieceHead, MaskedWordHead
from lacuner.models.model import MaskedLanguageModel
from lacuner.models.storage import load, load_model, save
from lacuner.pretraining.masking import (
    UNCHANGED,
    MaskedCorpus,
    Masking,
    mask_units,
    masked_lm_step,
    measure_masked_lm,
    prepare_units,
)

SENTENCES = [["a", "cat", "sat"], [], ["the", "Cat", "unheard"], ["a", "the"]]
WORDS = ("a", "the", "cat", "Cat", "sat")


def model(kind: str = "tiny") -> MaskedLanguageModel:
    torch.manual_seed(0)
    encoder = TinyEncoder(TinyConfig(rows=512, width=32)) if kind == "tiny" else lstm_from_words([*SENTENCES, [MASK]])
    return MaskedLanguageModel(encoder, MaskedWordHead(encoder.width, WORDS)).eval()


@pytest.mark.parametrize("kind", ["tiny", "lstm"])
def test_a_unit_that_is_replaced_is_read_as_the_other_word(kind: str) -> None:
    made = model(kind)
    units = prepare_units(made, SENTENCES)
    assert units.ids.tolist() == [0, 2, 4, 1, 3, UNCHANGED, 0, 1]
    inputs = np.full(8, UNCHANGED)
    inputs[[1, 4]] = [4, made.head.mask]  # "cat" is read as "sat", "Cat" is masked
    want = [["a", "sat", "sat"], [], ["the", MASK, "unheard"], ["a", "the"]]
    indices = np.array([2, 0, 1])
    with torch.no_grad():
        got = units.encode(made, units.collate(made, indices, inputs))
        features = made.encoder.prepare(want)
        expected = made.encoder(made.encoder.collate(features, indices))
    torch.testing.assert_close(got[:2], expected[:2])


def test_the_shares_of_masked_units() -> None:
    made = model()
    units = prepare_units(made, [[WORDS[i % 5] for i in range(40)]] * 100)
    torch.manual_seed(1)
    hidden = mask_units(units, made, Masking())
    asked = hidden.targets >= 0
    assert 0.12 < asked.mean() < 0.18
    assert (hidden.targets[asked] == units.ids[asked]).all() and (hidden.inputs[~asked] == UNCHANGED).all()
    assert 0.74 < (hidden.inputs[asked] == made.head.mask).mean() < 0.86
    assert 0.05 < (hidden.inputs[asked] == UNCHANGED).mean() < 0.15


def test_a_word_outside_the_vocabulary_is_never_a_target_but_counts_as_an_error() -> None:
    made = model()
    units = prepare_units(made, [["unheard"] * 50 + ["a"]])
    assert (mask_units(units, made, Masking(0.9)).targets[:50] == UNCHANGED).all()
    assert measure_masked_lm(units, made, 0.15, False)["top5"] <= 1 / 51 + 1e-6


def test_the_measure_agrees_with_masking_one_word_at_a_time() -> None:
    made = model()
    units = prepare_units(made, SENTENCES)
    row = measure_masked_lm(units, made, 1e-3, False)  # so many rounds that no two of these words share one
    place, logs = 0, []
    for number, words in enumerate(SENTENCES):
        for i in range(len(words)):
            inputs = np.full(8, UNCHANGED)
            inputs[place] = made.head.mask
            with torch.no_grad():
                batch = units.collate(made, np.array([number]), inputs)
                logs.append(made.head.log_probs(units.encode(made, batch)[0, i]).numpy())
            place += 1
    known = [(log, number) for log, number in zip(logs, units.ids, strict=True) if number >= 0]
    assert row["top1"] == pytest.approx(sum(log.argmax() == n for log, n in known) / 8, abs=1e-5)
    assert row["perplexity"] == pytest.approx(np.exp(-np.mean([log[n] for log, n in known])), rel=1e-4)


def test_the_step_is_the_mean_over_the_targets() -> None:
    made = model()
    units = prepare_units(made, SENTENCES)
    inputs, wanted = np.full(8, UNCHANGED), np.full(8, UNCHANGED)
    inputs[0], wanted[0], wanted[7] = made.head.mask, 0, 1
    found = masked_lm_step(units, made, MaskedCorpus(inputs, wanted))(np.arange(4))
    assert (found.size, found.known, found.positions) == (2, 2, 8)
    with torch.no_grad():
        vectors = units.encode(made, units.collate(made, np.arange(4), inputs))
        want = -made.head.log_probs(vectors[0, 0])[0] - made.head.log_probs(vectors[3, 1])[1]
    torch.testing.assert_close(found.total, want)


def test_a_large_vocabulary_is_predicted_in_two_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masked, "LARGE", 30)
    monkeypatch.setattr(masked, "_FREQUENT", 20)
    torch.manual_seed(0)
    head = MaskedWordHead(16, [str(i) for i in range(50)])
    assert isinstance(head.output, torch.nn.AdaptiveLogSoftmaxWithLoss)
    vectors, wanted = torch.randn(7, 16), torch.tensor([0, 3, 19, 20, 30, 49, 5])
    logs = head.log_probs(vectors)
    torch.testing.assert_close(logs.exp().sum(-1), torch.ones(7))
    torch.testing.assert_close(head.losses(vectors, wanted), -logs[torch.arange(7), wanted])
    assert head.log_probs(vectors.view(1, 7, 16)).shape == (1, 7, 50)
    assert len(head.losses(vectors[:0], wanted[:0])) == 0


def test_a_pretrained_encoder_is_kept_with_its_head_and_finds_no_names(tmp_path) -> None:
    made = model()
    made.head.top5 = 0.25
    save(made, tmp_path)
    again = load_model(tmp_path)
    assert isinstance(again, MaskedLanguageModel) and again.head.labels == WORDS and again.head.top5 == 0.25
    assert all(torch.equal(a, b) for a, b in zip(made.state_dict().values(), again.state_dict().values(), strict=True))
    with pytest.raises(ModelFileError, match="not a tagger"):
        load(tmp_path)


@pytest.mark.parametrize(
    "change", [{"labels": ["a"]}, {"labels": ["a", "a"]}, {"top5": 7}, {"top5": "x"}, {"top5": True}, {"size": 4}]
)
def test_a_head_that_cannot_be_is_the_files_fault(change: dict[str, object]) -> None:
    with pytest.raises(ModelFileError, match="settings do not fit a head of kind 'masked_words'"):
        build_masked_head({"kind": "masked_words", "labels": ["a", "b"], **change}, 8)


def test_a_mask_outside_the_vocabulary() -> None:
    with pytest.raises(ConfigError, match="its mask is one of the sub-words"):
        MaskedPieceHead(8, (), 10, 8, 10)


def test_an_encoder_without_word_rows_cannot_be_pretrained(monkeypatch: pytest.MonkeyPatch) -> None:
    made = model()
    monkeypatch.setattr(made.encoder, "prepare", lambda sentences: replace(TinyEncoder().prepare(sentences), arrays={}))
    with pytest.raises(ConfigError, match="cannot be pre-trained"):
        prepare_units(made, SENTENCES)
