"""Options of an export."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ExportOptions:
    """Options of an export. Those that its target does not have are refused if they differ from the defaults."""

    name: str | None = None
    """Name of the exported model; by default that of the run folder."""
    version: str = "0.1.0"
    license: str = ""
    """Licence of the model, for its card; empty: not stated."""
    language: str | None = None
    """spaCy: language code of the pipeline's tokenizer. None: that of a shipped encoder, otherwise `xx`."""
    wheel: bool = False
    """spaCy: also write an installable package."""
    int8: bool = False
    """ONNX: weights in 8 bits (dynamic quantisation)."""
