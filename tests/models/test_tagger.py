"""Taggers read every word; model folders check regression scores, and refuse damaged or hostile files."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lacuner.annotate.gazetteer.entries import Entry
from lacuner.corpus.tags import Chunk
from lacuner.data import Document, Lost, Span
from lacuner.errors import ConfigError, ModelFileError
from lacuner.models import inference
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.gazetteer import TaggerGazetteer
from lacuner.models.heads import build_head
from lacuner.models.inference import budget_batches
from lacuner.models.model import Model
from lacuner.models.storage import CONFIG, WEIGHTS, load, save
from lacuner.models.tagger import Tagger, assemble
from lacuner.models.types import DecodedSpans
from lacuner.models.windows import cut_sentences, cut_windows
from tests.growth import assert_linear

LABELS = ["LOC", "PER"]


def new_tagger(kind: str = "token", limit: int | None = None) -> Tagger:
    torch.manual_seed(0)
    encoder = TinyEncoder(TinyConfig())
    encoder.limit = limit
    tagger = Tagger(Model(encoder, build_head({"kind": kind, "labels": LABELS}, encoder.width)))
    with torch.no_grad():  # a fresh model sees nothing: make it see something
        for name, parameter in tagger.model.head.named_parameters():
            if "output" in name:
                parameter.mul_(8).add_(torch.randn_like(parameter) * 0.5)
    tagger.model.eval()
    return tagger


def encoder_with_limit(limit: int) -> TinyEncoder:
    encoder = TinyEncoder(TinyConfig(width=8, heads=0))
    encoder.limit = limit
    return encoder


def words(count: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list("abcdeABC北京"), rng.integers(1, 8))) for _ in range(count)]


def document(tokens: list[str], name: str = "1") -> Document:
    text = " ".join(tokens)
    edges, at = [], 0
    for token in tokens:
        edges.append((at, at + len(token)))
        at += len(token) + 1
    return Document(name, text, tuple(edges))


@pytest.mark.parametrize("kind", ["token", "span", "crf"])
def test_a_short_document_is_the_same_with_windows_and_without(kind: str) -> None:
    docs = [document(words(n, n), str(n)) for n in (1, 2, 17, 60)]
    whole = list(new_tagger(kind).predict(docs))
    assert list(new_tagger(kind, limit=64).predict(docs)) == whole
    assert any(doc.spans for doc in whole)
    assert all(0 <= span.score <= 1 for doc in whole for span in doc.spans if span.score is not None)


@pytest.mark.parametrize("length", [1, 63, 64, 65, 200, 1000, 50_000])
def test_every_word_is_owned_once(length: int) -> None:
    sentences = cut_sentences([document(["w"] * length)], encoder_with_limit(64))
    owned = [i for window in sentences.windows for i in range(window.own_start, window.own_end)]
    assert owned == list(range(length))
    assert sentences.words_read == length


def test_the_windows_of_a_long_document_take_linear_time() -> None:
    """Each window must look at its own labels only, not at those of the whole document."""

    def chunks(words_: int) -> list[Chunk]:
        return [Chunk(i, i + 2, "LOC") for i in range(0, words_ - 2, 4)]

    assert_linear(lambda size: (size, chunks(size)), lambda data: cut_windows([1] * data[0], 64, 16, data[1]), 20_000)


def test_cutting_a_long_annotated_document_takes_linear_time() -> None:
    def labeled(size: int) -> Document:
        doc = document(["w"] * size)
        return replace(doc, spans=tuple(Span(*word, "LOC") for word in (doc.words or ())[::3]))

    assert_linear(labeled, lambda doc: cut_sentences([doc], encoder_with_limit(64), Lost()), 8_000)


@pytest.mark.parametrize("length", [1, 64, 65, 200, 1000])
def test_every_word_that_a_window_predicts_is_kept_once(length: int) -> None:
    """All windows predict all of their words: of each word, one prediction stays, also of the first one of a window."""
    docs = [document(words(length, 3), "long"), document(words(5, 4), "short"), document(words(90, 5), "last")]
    sentences = cut_sentences(docs, encoder_with_limit(64))
    sizes = [len(window) for window in sentences.words]
    sentence, start = np.repeat(np.arange(len(sizes)), sizes), np.concatenate([np.arange(size) for size in sizes])
    windows = np.array(sentences.windows)[sentence]
    place = start + windows[:, 0]
    is_foreign = (place < windows[:, 2]) | (
        place >= windows[:, 3]
    )  # owned by another window: more probable, but ignored
    score = np.where(is_foreign, 0.9, 0.5).astype(np.float32)
    spans = DecodedSpans(sentence, start, start + 1, is_foreign.astype(np.int64), score)
    for doc, prediction in zip(docs, assemble(docs, sentences, spans, LABELS), strict=True):
        assert [(*span.key, span.score) for span in prediction.spans] == [
            (*word, "LOC", 0.5) for word in doc.words or ()
        ]


def test_words_that_are_read_and_unread_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    tagger = new_tagger(limit=64)
    list(tagger.predict([document(words(300)), document(words(20))]))
    assert tagger.words_unread == tagger.words_truncated == 0
    prepare = tagger.model.encoder.prepare
    monkeypatch.setattr(tagger.model.encoder, "prepare", lambda words: replace(prepare(words), truncated=2))
    list(tagger.predict([document(words(20))]))
    assert tagger.words_unread == tagger.words_truncated == 2
    windows = cut_sentences([document(words(300))], encoder_with_limit(64)).windows
    assert len(windows) > 4 and sum(window.end - window.start for window in windows) > 300


def test_far_from_the_seam_a_document_reads_as_by_itself() -> None:
    tagger = new_tagger(limit=64)
    left, right = words(150, 1), words(150, 2)
    joined = document([*left, *["|"] * 80, *right])
    alone = next(iter(tagger.predict([document(left)])))
    both = next(iter(tagger.predict([joined])))
    seam = len(" ".join(left[:-20]))
    assert [s[:3] for s in both.spans if s.end < seam] == [s[:3] for s in alone.spans if s.end < seam]
    assert sum(s.end < seam for s in alone.spans) > 5


def test_long_documents_can_be_refused() -> None:
    tagger = new_tagger(limit=64)
    with pytest.raises(ConfigError, match="'long' has 300 words"):
        list(tagger.predict([document(words(300), "long")], on_long="error"))


def known_places(doc: Document, window: int, kind: str, widths: int, lost: Lost) -> tuple[Counter[Any], int]:
    """How often each word or span of a document is known, with its class; and the windows that it was read through."""
    head = build_head({"kind": kind, "labels": LABELS, **({"widths": widths} if kind == "span" else {})}, 8)
    sentences = cut_sentences([doc], encoder_with_limit(window), lost)
    targets = head.targets(sentences.annotations, lost)
    begin = np.concatenate([np.arange(each.start, each.end) for each in sentences.windows])
    at = targets.known.numpy().nonzero()
    first = begin[at[0]]
    last = first + at[1] + 1 if kind == "span" else first + 1
    return Counter(zip(first, last, targets.labels.numpy()[at], strict=True)), len(sentences.windows)


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["token", "span"])
def test_what_is_known_of_a_document_is_known_once_in_its_windows(kind: str, seed: int, complete: bool) -> None:
    rng = np.random.default_rng(seed)
    doc = document(words(300, seed))
    edges = doc.words or ()

    def somewhere(step: int, label: str) -> tuple[Span, ...]:
        starts = range(int(rng.integers(1, step)), 290, step)
        return tuple(Span(edges[i][0], edges[i + int(rng.integers(0, 4))][1], label) for i in starts)

    doc = replace(doc, spans=somewhere(7, "PER"), rejected=somewhere(11, ""), unsure=somewhere(29, ""))
    doc = replace(doc, complete=complete)
    lost = Lost()
    whole, one = known_places(doc, 10_000, kind, 6, lost)
    for window in (48, 64, 100):  # the owner sees at least six words beyond the seam
        cut, several = known_places(doc, window, kind, 6, lost)
        assert (one, several > 3) == (1, True)
        assert cut == whole, "each once, and nothing else"
    assert set(whole.values()) == {1} and not len(lost)


def test_a_span_across_a_seam_that_its_owner_does_not_see_is_known_in_no_window() -> None:
    doc = replace(document(words(200)), complete=True)
    whole, _ = known_places(doc, 10_000, "span", 12, Lost())
    cut, _ = known_places(doc, 32, "span", 12, Lost())  # windows of 32 words, four of them beyond the seam
    assert not cut - whole and set(cut.values()) == {1}
    assert all(last - first > 4 for first, last, _ in whole - cut)


def test_batches_of_any_size_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    tagger = new_tagger("span")
    docs = [document(words(n % 40 + 1, n), str(n)) for n in range(60)]
    results = []
    for budget in (1, 100, 4096):
        monkeypatch.setattr(inference, "BUDGET", budget)
        results.append(list(tagger.predict(docs)))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert [s[:3] for s in a.spans] == [s[:3] for s in b.spans]
            assert np.allclose([s.score for s in a.spans], [s.score for s in b.spans], atol=1e-5)


def test_batches_fit_the_budget_and_drop_no_sentence() -> None:
    costs = np.random.default_rng(1).integers(0, 50, 300)
    for budget in (1, 60, 500):
        batches = budget_batches(costs, np.argsort(costs), budget)
        assert sorted(np.concatenate(batches).tolist()) == list(range(300))
        assert all(len(batch) == 1 or len(batch) * costs[batch].max() <= budget for batch in batches)


def test_a_saved_model_is_one_folder_that_may_move(tmp_path: Path) -> None:
    tagger = new_tagger("crf")
    save(tagger, tmp_path / "a" / "model")
    shutil.move(tmp_path / "a", tmp_path / "b")
    again = load(tmp_path / "b")
    docs = [document(words(20, n), str(n)) for n in range(10)]
    assert list(again.predict(docs)) == list(tagger.predict(docs))
    assert again.labels == ("LOC", "PER")
    assert again("Mara in Oslo").text == "Mara in Oslo"


def test_a_model_that_scores_otherwise_is_refused(tmp_path: Path) -> None:
    save(new_tagger(), tmp_path)
    config = json.loads((tmp_path / CONFIG).read_text())
    config["canaries"][2][5] += 0.05
    (tmp_path / CONFIG).write_text(json.dumps(config))
    with pytest.raises(ModelFileError, match="no longer scores as it did"):
        load(tmp_path)
    config["canaries"][2][5] = float("nan")
    (tmp_path / CONFIG).write_text(json.dumps(config))
    with pytest.raises(ModelFileError, match="no longer scores as it did"):
        load(tmp_path)


# a pickle that, if anybody loaded it, would run `touch x`
BOMB = b"\x80\x04\x95#\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93"
BOMB += b"\x94\x8c\x08touch x\x94\x85\x94R\x94."


def sign(folder: Path, name: str) -> None:
    """A careful attacker signs what he has changed."""
    import hashlib

    config = json.loads((folder / CONFIG).read_text())
    config["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / CONFIG).write_text(json.dumps(config))


def edit(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps({**config, **changes}))


def damage(folder: Path, how: str) -> None:
    weights = folder / WEIGHTS
    if how == "pickle":
        weights.write_bytes(BOMB)
        sign(folder, WEIGHTS)
    elif how == "zip":
        with zipfile.ZipFile(weights, "w") as archive:
            archive.writestr("data.pkl", BOMB)
        sign(folder, WEIGHTS)
    elif how == "header":
        weights.write_bytes((200 << 20).to_bytes(8, "little") + b"{" + b" " * 1000)
        sign(folder, WEIGHTS)
    elif how == "overlap":
        tensors = {n: {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} for n in ("a", "b")}
        header = json.dumps(tensors).encode()
        weights.write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 8)
        sign(folder, WEIGHTS)
    elif how == "truncated":
        weights.write_bytes(weights.read_bytes()[:1000])
    elif how == "gone":
        weights.unlink()
    elif how == "no config":
        (folder / CONFIG).unlink()
    elif how == "deep":
        (folder / CONFIG).write_text("[" * 100_000)
    elif how == "link":
        shutil.copy(weights, folder.parent / "elsewhere")
        weights.unlink()
        weights.symlink_to(folder.parent / "elsewhere")
    elif how == "outside":
        edit(folder, files={"../x": "0"})
    elif how == "absolute":
        edit(folder, files={"/etc/passwd": "0"})
    elif how == "encoder path":
        edit(folder, encoder={"kind": "/tmp/evil"})
    elif how == "remote code":
        edit(folder, encoder={"kind": "pretrained", "model": {"auto_map": {"AutoModel": "x.Y"}}, "ids": {}})
    elif how == "setting":
        edit(folder, head={"kind": "token", "labels": LABELS, "trust_remote_code": True})
    elif how == "name":
        edit(folder, files={"a\0b": "0"})
    elif how == "canary":
        edit(folder, canaries=[["x"]] * 5)
    elif how == "format":
        edit(folder, format=99)
    elif how == "huge":
        edit(folder, encoder={"kind": "tiny", "rows": 10**15})


DAMAGES = [
    "pickle",
    "zip",
    "header",
    "overlap",
    "truncated",
    "gone",
    "no config",
    "deep",
    "link",
    "outside",
    "absolute",
]
DAMAGES += ["encoder path", "remote code", "setting", "format", "huge", "name", "canary"]
REASONS = {
    **dict.fromkeys(("pickle", "zip", "header"), "not a safetensors file"),
    "truncated": "has changed since the model was saved",
    **dict.fromkeys(("outside", "absolute"), "leaves the folder"),
    "link": "may not be a link",
    "remote code": "which lacuner refuses",
    "canary": "missing or damaged",
}
"""Why some of them are refused: that another check fails later is not enough."""


@pytest.mark.parametrize("how", DAMAGES)
def test_damaged_and_hostile_folders_are_one_sentence(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "model"
    save(new_tagger(), folder)
    damage(folder, how)
    if how == "remote code":
        import lacuner.models.encoders.huggingface  # noqa: F401 (loading the library takes seconds, and is not the point)
    with pytest.raises(ModelFileError, match=REASONS.get(how)) as caught:
        load(folder)
    assert caught.value.file is not None and str(folder) in caught.value.file
    assert "\n" not in caught.value.problem
    assert not (tmp_path / "x").exists(), "nothing was run"


def test_a_pickle_beside_a_good_file_is_never_looked_at(tmp_path: Path) -> None:
    save(new_tagger(), tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(BOMB)
    os.chmod(tmp_path / "pytorch_model.bin", 0)
    assert load(tmp_path).labels == ("LOC", "PER")


@pytest.mark.parametrize("kind", ["token", "span"])
def test_a_threshold_selects_by_score(kind: str) -> None:
    tagger = new_tagger(kind)
    docs = [document(words(12, seed), str(seed)) for seed in range(8)]
    own = [doc.spans for doc in tagger.predict(docs)]
    for threshold in (0.5, 0.7, 0.9):
        selected = [doc.spans for doc in tagger.predict(docs, threshold=threshold)]
        assert all(span.score is not None and span.score >= threshold for spans in selected for span in spans)
        if kind == "token" or threshold > 0.5:  # above 0.5, a label always beats O
            above = [tuple(span for span in spans if (span.score or 0) >= threshold) for spans in own]
            assert selected == above
    assert 0 < sum(map(len, selected)) < sum(map(len, own))
    many = [doc.spans for doc in tagger.predict(docs, threshold=0.05)]
    if kind == "span":
        assert sum(map(len, many)) > sum(map(len, own)), "a span classifier finds more below its own threshold"
    else:
        assert many == own
    assert [doc.spans for doc in tagger.predict(docs)] == own, "the threshold of one call does not stay"
    with pytest.raises(ConfigError, match="between 0 and 1, not 0"):
        list(tagger.predict(docs, threshold=0.0))


def test_a_threshold_is_applied_before_the_gazetteer() -> None:
    """A prediction below the threshold may not replace a match, and a match stays whatever its score."""
    tagger = new_tagger("span")
    doc = document(["aaa", "bbb", "ccc"])
    tagger.gazetteer = TaggerGazetteer([Entry("bbb", "DRUG")])
    columns = (np.array([0]), np.array([0]), np.array([2]), np.array([0]), np.array([0.6]))  # "aaa bbb" is a LOC
    spans = {None: DecodedSpans(*columns), 0.7: DecodedSpans._make(column[:0] for column in columns)}
    tagger.decode = lambda features, threshold=None: spans[threshold]  # type: ignore[method-assign]
    assert [span.key for span in next(tagger.predict([doc])).spans] == [(0, 7, "LOC")]
    assert [span.key for span in next(tagger.predict([doc], threshold=0.7)).spans] == [(4, 7, "DRUG")]
