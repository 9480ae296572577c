"""The reference decoder of ONNX exports computes what lacuner computes: windows, features, and spans of every head."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lacuner.corpus.words import word_pattern, words_of
from lacuner.data import Document
from lacuner.export.character_sets import literal_set
from lacuner.export.onnx_folder import _head_settings
from lacuner.export.program import write_program
from lacuner.export.reference import crf, lstm, spans, tags, tiny
from lacuner.export.reference.tagger import cut_windows
from lacuner.models.encoders.lstm import lstm_from_words
from lacuner.models.windows import Window
from lacuner.models.windows import cut_windows as cut_in_lacuner
from tests.export.conftest import make_tagger

HEADS = {
    "token": (tags, {}),
    "token BIOES": (tags, {"scheme": "BIOES", "non_entity": True}),
    "token IO": (tags, {"scheme": "IO"}),
    "crf": (crf, {}),
    "crf BIOES": (crf, {"scheme": "BIOES", "non_entity": True}),
    "entity_type": (tags, {}),
    "span": (spans, {"widths": 3}),
    "span product": (spans, {"widths": 5, "variant": "product", "threshold": 0.3}),
}


WORD = re.compile(word_pattern(literal_set))
characters = st.one_of(
    st.characters(exclude_categories=["Cs"]),
    st.sampled_from(
        "aB1_ .\n国กمक\u0301\u0903\u200c\u200d\xad\u0600\U000110bd\U0001f1e6\U0001f3fb\U000e0061ℹ❤👩한ᄀ\ufffe"
    ),
)
"""Any character, and those whose neighbours matter."""


@settings(max_examples=1000)
@given(st.text(characters, max_size=12))
@example("\ud800\u0301 \udfff")
def test_words(text: str) -> None:
    assert tuple(match.span() for match in WORD.finditer(text)) == words_of(Document("1", text))


@pytest.mark.integration
def test_words_of_every_character() -> None:
    """Each character inside a word, and behind a symbol, in the planes that have any assigned characters."""
    for start in [*range(0, 0x34000, 0x1000), 0xE0000, 0x10F000]:
        text = "".join(f"a{chr(point)}b !{chr(point)}\u0301\n" for point in range(start, start + 0x1000))
        assert tuple(match.span() for match in WORD.finditer(text)) == words_of(Document("1", text))


@given(st.lists(st.integers(1, 9), max_size=60), st.integers(2, 20), st.integers(0, 8))
def test_windows(costs: list[int], size: int, overlap: int) -> None:
    overlap = min(overlap, size - 1)
    windows, _ = cut_in_lacuner(costs, size, overlap)
    assert [Window(*window) for window in cut_windows(costs, size, overlap)] == windows * bool(costs)


def test_tiny_features() -> None:
    encoder = make_tagger("token").model.encoder
    sentences = [["Mara", "国", "國", "x" * 200, "é"], ["Mara"], ["12.5", "Mara"]]
    batch = encoder.collate(encoder.prepare(sentences), range(3))
    feed = tiny.WordFeatures({"rows": encoder.settings.rows}, Path()).feed(sentences)
    assert (feed["mask"] == batch.mask.numpy()).all()
    assert (feed["words"] == batch.tensors["words"].numpy()).all()
    assert (feed["ids"] == batch.tensors["ids"].numpy()).all()
    assert (np.cumsum(feed["sizes"]) - feed["sizes"] == batch.tensors["bags"].numpy()).all()
    assert (feed["bags"] == np.repeat(np.arange(len(feed["sizes"])), feed["sizes"])).all()


@pytest.mark.parametrize("name", HEADS)
@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), words=st.integers(1, 12))
def test_heads(name: str, seed: int, words: int) -> None:
    module, options = HEADS[name]
    head = make_tagger(name.split(maxsplit=1)[0], **options).model.head
    vectors = torch.randn(1, words, 16, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        scores = head(vectors, torch.ones(1, words, dtype=torch.bool))
        expected = head.decode(scores)
        values = scores.logits if module is crf else scores.logits.softmax(dim=-1)
    found = sorted(module.decode(values[0].numpy(), _head_settings(head)))
    assert [span[:3] for span in found] == list(zip(*(c.tolist() for c in expected[1:4]), strict=True))
    np.testing.assert_allclose([span[3] for span in found], expected.score, atol=2e-5)


def imported_libraries(tree: ast.Module) -> set[str]:
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in imported} - sys.stdlib_module_names


@pytest.mark.parametrize("head", ["span", "crf", "token"])
def test_the_program_needs_neither_torch_nor_lacuner(head: str) -> None:
    model = make_tagger(head).model
    program = write_program(model.encoder, model.head)
    tree = ast.parse(program)
    assert imported_libraries(tree) == {"numpy", "onnxruntime"}
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert len(defined) == len(set(defined)) >= 8 and "NumberedWords" not in defined, "only what is needed"
    assert ast.get_docstring(tree) and program.endswith('if __name__ == "__main__":\n    main()\n')


class Subwords(torch.nn.Module):
    """Stands for any encoder that is neither `tiny` nor `lstm`."""


@pytest.mark.parametrize("head", ["span", "token"])
def test_the_decoder_of_a_transformer_is_as_short_as_the_documentation_says(head: str) -> None:
    tree = ast.parse(write_program(Subwords(), make_tagger(head).model.head))
    assert imported_libraries(tree) == {"numpy", "onnxruntime", "tokenizers"}
    beside = {"main", "word_shape"}  # the command, and what only encoders that ignore case need
    definitions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    lines = 0
    for node in definitions:
        for part in ast.walk(node):
            if isinstance(part, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(part):
                part.body = part.body[1:]
        code = ast.unparse(node)
        lines += 0 if node.name in beside else len([line for line in code.splitlines() if line.strip()])
    assert lines <= 80


def test_lstm_features() -> None:
    encoder = lstm_from_words([["Mara", "left", "Halden"]])
    sentences = [["Mara", "国", "x" * 40, "Halden"], ["left"], ["Left", "Mara"]]
    batch = encoder.collate(encoder.prepare(sentences), range(3))
    settings = {"words": encoder.settings.words, "characters": encoder.settings.characters}
    feed = lstm.WordFeatures(settings, Path()).feed(sentences)
    assert (feed["mask"] == batch.mask.numpy()).all()
    assert (feed["words"] == batch.tensors["words"].numpy())[feed["mask"]].all()
    own, theirs = feed["spelling"][feed["distinct"]], batch.tensors["spelling"][batch.tensors["distinct"]].numpy()
    assert (own == theirs)[feed["mask"]].all()


def test_an_lstm_is_no_subword_encoder() -> None:
    """The protocol of sub-word encoders must not let other encoders pass as such."""
    from lacuner.models.types import SubwordEncoder

    assert not isinstance(lstm_from_words([["Mara"]]), SubwordEncoder)
