"""Export to ONNX: the graph, its settings, and a reference decoder as one plain Python file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lacuner.atomic import atomic_write
from lacuner.corpus.words import word_pattern
from lacuner.errors import ConfigError
from lacuner.export.character_sets import literal_set
from lacuner.export.onnx_graph import OPSET, write_graph
from lacuner.export.options import ExportOptions
from lacuner.export.program import write_program
from lacuner.export.source import ExportSource
from lacuner.models.encoders.lstm import LSTMEncoder
from lacuner.models.encoders.tiny import TinyEncoder
from lacuner.models.heads.crf import IMPOSSIBLE, CRFHead
from lacuner.models.heads.span import MAX_HIDDEN_VALUES, SpanHead
from lacuner.models.heads.tie_or_break import TieOrBreakHead
from lacuner.models.inference import BUDGET
from lacuner.models.tag_sets import tag_set_of
from lacuner.models.types import Encoder, Head, SubwordEncoder
from lacuner.models.windows import OVERLAP, WINDOW

FORMAT = 2
PROGRAM = "tagger.py"


def write_onnx(source: ExportSource, folder: Path, options: ExportOptions) -> None:
    """Write `model.onnx`, `config.json`, `tagger.py` and, for Hugging Face encoders, `tokenizer.json`."""
    model = source.model("ONNX").model
    if not isinstance(model.encoder, TinyEncoder | LSTMEncoder | SubwordEncoder):
        kind = model.encoder.config()["kind"]
        raise ConfigError(
            f"an encoder of kind {kind!r} cannot be exported to ONNX: tiny, lstm and hf: encoders can; "
            f"{source.advise()}",
            file=source.folder,
        )
    if isinstance(model.head, TieOrBreakHead):
        raise ConfigError(
            f"a head of kind 'tie_or_break' cannot be exported to ONNX: token, crf, span and entity_type heads can; "
            f"{source.advise()}",
            file=source.folder,
        )
    inputs = write_graph(model, folder / "model.onnx", options.int8)
    size = WINDOW if model.encoder.limit is None else model.encoder.limit
    config = {
        "format": FORMAT,
        "opset": OPSET,
        "labels": list(model.head.labels),
        "word_pattern": word_pattern(literal_set),
        "window": size,
        "overlap": min(OVERLAP, size // 4),
        "budget": _budget(model.head, model.encoder),
        "encoder": {**_encoder_settings(model.encoder), "inputs": inputs},
        "head": _head_settings(model.head),
    }
    files = {"config.json": json.dumps(config, indent=1).encode(), **model.encoder.files()}
    files[PROGRAM] = write_program(model.encoder, model.head).encode()
    for name, data in files.items():
        with atomic_write(folder / name) as stream:
            stream.write(data)


def _budget(head: Head[Any], encoder: Encoder) -> int:
    """Words per batch: as many as the tagger scores at once, fewer if all spans of a batch would need much memory."""
    if not isinstance(head, SpanHead):
        return BUDGET
    values = head.widths * (head.hidden + {"width": 0, "product": encoder.width, "biaffine": 1}[head.variant])
    return max(1, min(BUDGET, MAX_HIDDEN_VALUES // values))


def _encoder_settings(encoder: TinyEncoder | LSTMEncoder | SubwordEncoder) -> dict[str, Any]:
    if isinstance(encoder, TinyEncoder):
        return {"rows": encoder.settings.rows}
    if isinstance(encoder, LSTMEncoder):
        return {"words": encoder.settings.words, "characters": encoder.settings.characters}
    return encoder.piece_settings()


def _head_settings(head: Head[Any]) -> dict[str, Any]:
    if isinstance(head, SpanHead):
        return {"threshold": head.threshold}
    tags = tag_set_of(head)
    labels = [label if label < len(head.labels) else -1 for label in tags.types.tolist()]  # -1 is no entity
    settings: dict[str, Any] = {"tags": [[name[0], label] for name, label in zip(tags.names, labels, strict=True)]}
    if isinstance(head, CRFHead):
        transitions = head.transitions.detach().masked_fill(~head.allowed, IMPOSSIBLE).double().cpu().numpy()
        apart = transitions.copy()
        apart[tags.joined()] = IMPOSSIBLE
        start = head.start.detach().masked_fill(~head.allowed_start, IMPOSSIBLE)
        end = head.end.detach().masked_fill(~head.allowed_end, IMPOSSIBLE)
        settings |= {"transitions": transitions.tolist(), "apart": apart.tolist()}
        settings |= {"start": start.tolist(), "end": end.tolist()}
    return settings
