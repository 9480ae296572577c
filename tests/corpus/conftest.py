"""Sample files in the formats of other tools, read with what was lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lacuner.corpus import ReadOptions
from lacuner.corpus.formats import choose_format, read_file
from lacuner.corpus.reader import CorpusFile
from lacuner.data import Document, Lost


class Sample(NamedTuple):
    """What was read: documents, losses, and the format that was recognised."""

    docs: list[Document]
    lost: Lost
    format: str

    def surfaces(self) -> list[list[tuple[str, str]]]:
        return [[(doc.text[span.start : span.end], span.label) for span in doc.spans] for doc in self.docs]


ReadSample = Callable[..., Sample]


@pytest.fixture
def read_sample(tmp_path: Path) -> ReadSample:
    """Read a text, or values as JSON lines; the format is recognised unless it is given."""

    def go(*values: Any, name: str = "sample", format: str | None = None, **options: Any) -> Sample:
        lines = [value if isinstance(value, str) else json.dumps(value) for value in values]
        path = tmp_path / name
        path.write_text("\n".join(lines), encoding="utf-8", newline="")
        lost = Lost()
        file = CorpusFile(path, ReadOptions(**options), lost)
        chosen = choose_format(file, format)
        return Sample(list(read_file(file, chosen)), lost, chosen)

    return go
