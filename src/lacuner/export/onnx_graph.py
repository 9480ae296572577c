"""Encoder and head as one ONNX graph: prepared words in, probabilities out; batch and sentence length are dynamic."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lacuner.errors import need_library
from lacuner.models.encoders.hashing import GROUPS
from lacuner.models.encoders.lstm import LSTMEncoder
from lacuner.models.encoders.tiny import TinyEncoder
from lacuner.models.heads.crf import CRFHead
from lacuner.models.heads.span import SpanHead
from lacuner.models.model import Model
from lacuner.models.types import Batch, SubwordEncoder

OPSET = 18
"""Version of the ONNX operators: the first in which the exporter of torch writes all that it needs."""
_EXAMPLE = [["Mara", "Teel", "left", "Halden", "."], ["玛", "拉", "12.5"]]


class _TinyGraph(nn.Module):
    """The model of a `tiny` encoder.

    `embedding_bag` becomes a slow loop in ONNX, so features are summed by the number of their bag instead.
    """

    def __init__(self, model: Model, encoder: TinyEncoder) -> None:
        super().__init__()
        self.model, self.encoder = model, encoder

    def forward(self, *inputs: Tensor) -> Tensor:
        ids, bags, sizes, words, mask = inputs
        encoder = self.encoder
        features = functional.embedding(ids, encoder.table)
        sums = features.new_zeros(sizes.shape[0], encoder.settings.feature).index_add(0, bags, features)
        means = sums / sizes.clamp(min=1).unsqueeze(1)
        distinct = functional.glu(encoder.mix(means.view(-1, len(GROUPS) * encoder.settings.feature)), dim=-1)
        vectors = encoder.contextualise(functional.embedding(words, distinct), mask)
        return head_output(self.model, vectors, mask)


class _LSTMGraph(nn.Module):
    """The model of an `lstm` encoder.

    Packed sequences cannot be traced. The LSTM of ONNX takes the lengths of the sentences instead: it ignores padding,
    and its backward direction begins with the last word of each sentence, as if packed.
    """

    def __init__(self, model: Model, encoder: LSTMEncoder) -> None:
        super().__init__()
        self.model, self.encoder = model, encoder
        for layer in range(encoder.lstm.num_layers):
            for kind, matrix in _onnx_weights(encoder.lstm, layer).items():
                self.register_buffer(f"{kind}{layer}", matrix)

    def forward(self, *inputs: Tensor) -> Tensor:
        words, distinct, spelling, mask = inputs
        lengths = mask.sum(dim=1).clamp(min=1).to(torch.int32)
        size = self.encoder.lstm.hidden_size
        vectors = self.encoder.embed_words(words, distinct, spelling).transpose(0, 1)
        for layer in range(self.encoder.lstm.num_layers):
            weights = [getattr(self, f"{kind}{layer}") for kind in ("input", "recurrent", "bias")]
            states = torch.onnx.ops.symbolic(
                "LSTM",
                (vectors, *weights, lengths),
                {"hidden_size": size, "direction": "bidirectional"},
                dtype=vectors.dtype,
                shape=(vectors.shape[0], 2, vectors.shape[1], size),
            )
            vectors = states.transpose(1, 2).flatten(2)
        return head_output(self.model, vectors.transpose(0, 1), mask)


def _onnx_weights(lstm: nn.LSTM, layer: int) -> dict[str, Tensor]:
    """Weights of both directions with the gates in the order of ONNX: input, output, forget, cell."""

    def stack(name: str) -> Tensor:
        parts = [getattr(lstm, f"{name}_l{layer}{suffix}").detach().chunk(4) for suffix in ("", "_reverse")]
        return torch.stack(
            [torch.cat([enter, out, forget, cell]) for enter, forget, cell, out in parts]
        )  # torch's order

    bias = torch.cat([stack("bias_ih"), stack("bias_hh")], dim=1)
    return {"input": stack("weight_ih"), "recurrent": stack("weight_hh"), "bias": bias}


class SubwordGraph(nn.Module):
    """The model of a Hugging Face encoder: what it needs besides sub-words follows from their number in each word."""

    def __init__(self, model: Model, encoder: SubwordEncoder) -> None:
        super().__init__()
        self.model = model
        settings = encoder.piece_settings()
        self.before, self.after = len(settings["before"]), len(settings["after"])

    def forward(self, *inputs: Tensor) -> Tensor:
        batch = self.complete(*inputs)
        return head_output(self.model, self.model.encoder(batch), batch.mask)

    def complete(self, ids: Tensor, sizes: Tensor, shapes: Tensor | None = None) -> Batch:
        """A batch as the encoder makes it itself."""
        mask, words = sizes > 0, sizes.shape[1]
        ends = sizes.cumsum(dim=1) + self.before
        place, last = torch.arange(ids.shape[1]), ends[:, -1:]
        owner = (ends.unsqueeze(1) <= place.unsqueeze(1)).sum(dim=2)
        owner = torch.where((place >= self.before) & (place < last), owner, words)  # one past the last word: no word
        tensors = {"ids": ids, "attention": (place < last + self.after).long(), "owner": owner}
        tensors["first"] = torch.where(mask, ends - sizes, 0)
        if shapes is not None:
            tensors["shape"] = functional.pad(shapes, (0, 1)).gather(1, owner)
        return Batch(mask, tensors)


def head_output(model: Model, vectors: Tensor, mask: Tensor) -> Tensor:
    """Probabilities of tags or of span labels; the emissions of a CRF, which is decoded outside the graph."""
    head = model.head
    if isinstance(head, SpanHead):  # all widths at once: their grouping depends on the size of the batch
        return head.score_group(vectors, *head.word_parts(vectors), (0, head.widths)).softmax(dim=-1)
    logits: Tensor = head(vectors, mask).logits
    return logits if isinstance(head, CRFHead) else logits.softmax(dim=-1)


def write_graph(model: Model, path: Path, int8: bool = False) -> list[str]:
    """Write the graph of a model, with its weights in 8 bits if asked to; return the names of its inputs."""
    _check_extra()
    model.eval()
    features = model.encoder.prepare(_EXAMPLE)
    batch = model.encoder.collate(features, range(len(_EXAMPLE)))
    graph: nn.Module
    if isinstance(model.encoder, TinyEncoder):
        starts, total = batch.tensors["bags"], len(batch.tensors["ids"])
        sizes = torch.diff(starts, append=torch.tensor([total]))
        inputs = {"ids": batch.tensors["ids"], "bags": torch.repeat_interleave(sizes), "sizes": sizes}
        inputs |= {"words": batch.tensors["words"], "mask": batch.mask}
        graph = _TinyGraph(model, model.encoder)
    elif isinstance(model.encoder, LSTMEncoder):
        inputs = {**{name: batch.tensors[name] for name in ("words", "distinct", "spelling")}, "mask": batch.mask}
        graph = _LSTMGraph(model, model.encoder)
    else:
        assert isinstance(model.encoder, SubwordEncoder)
        words = torch.arange(batch.mask.shape[1])
        sizes = (batch.tensors["owner"].unsqueeze(1) == words.unsqueeze(1)).sum(dim=2)
        inputs = {"ids": batch.tensors["ids"], "sizes": sizes}
        if model.encoder.config()["shapes"]:
            inputs["shapes"] = batch.tensors["shape"].gather(1, batch.tensors["first"]) * batch.mask
        graph = SubwordGraph(model, model.encoder)
    program = _export(graph.eval(), inputs)
    path.parent.mkdir(parents=True, exist_ok=True)
    if int8:
        with TemporaryDirectory(prefix="lacuner-") as folder:
            program.save(Path(folder, "model.onnx"))
            _quantise(Path(folder, "model.onnx"), path)
    else:
        program.save(path)
    return list(inputs)


def _check_extra() -> None:
    with need_library("--to onnx needs an extra", "lacuner[onnx]"):
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401


def _export(graph: nn.Module, inputs: dict[str, Tensor]) -> Any:
    shapes = tuple(dict.fromkeys(range(tensor.dim()), torch.export.Dim.DYNAMIC) for tensor in inputs.values())
    with torch.no_grad(), _silence():
        return torch.onnx.export(
            graph,
            tuple(inputs.values()),
            dynamo=True,
            dynamic_shapes=(shapes,),
            input_names=list(inputs),
            output_names=["scores"],
            opset_version=OPSET,
            verbose=False,
        )


def _quantise(source: Path, target: Path) -> None:
    """Dynamic quantisation: weights in 8 bits, activations converted batch by batch."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with _silence():
        # torch optimises the graph after it has written the shapes of inner values, so some are wrong
        model = onnx.load(source)
        del model.graph.value_info[:]
        onnx.save(model, source)
        quantize_dynamic(source, target, weight_type=QuantType.QInt8, per_channel=True)


@contextmanager
def _silence() -> Iterator[None]:
    """Keep the exporters from writing to the console what a user cannot act on."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
