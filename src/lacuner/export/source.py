"""What is exported: a tagger, and what its run folder tells about it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from lacuner.atomic import read_regular_file
from lacuner.data import Document
from lacuner.errors import ConfigError
from lacuner.export.options import ExportOptions
from lacuner.models.lookup import LookupTagger
from lacuner.models.storage import AnyTagger, load
from lacuner.models.tagger import Tagger
from lacuner.training.run_folder import stored_identity


@dataclass(frozen=True)
class ExportSource:
    """A tagger with the facts of its run; `identity` is empty if the folder is a model without a run."""

    folder: Path
    tagger: AnyTagger
    identity: Mapping[str, Any] = field(default_factory=dict)
    dev_f1: float | None = None
    """Best F1 on dev while training, if there was one."""

    @property
    def has_gazetteer(self) -> bool:
        return isinstance(self.tagger, Tagger) and self.tagger.gazetteer is not None

    @property
    def encoder_name(self) -> str:
        """The encoder as `--encoder` named it; empty if the run does not say."""
        config = self.identity.get("config")
        encoder = config.get("encoder") if isinstance(config, dict) else None
        return str(encoder.get("name", "")) if isinstance(encoder, dict) else ""

    def model(self, target: str) -> Tagger:
        """The tagger, which must have a neural model to be exported to this target."""
        if isinstance(self.tagger, LookupTagger):
            raise ConfigError(
                f"this run only looks names up: it has no model for {target}; --to spacy exports it", file=self.folder
            )
        return self.tagger

    def advise(self, encoder: str = "tiny", options: str = "") -> str:
        """How to get a model with another encoder or head, as the end of an error message."""
        command = f"lacuner distil {self.folder} --to {encoder} --text TEXTS --out STUDENT"
        return f"`{' '.join(filter(None, (command, options)))}` trains a model that can"


def open_source(run: str | PathLike[str]) -> ExportSource:
    """Load the tagger of a run or model folder with what is known about its training."""
    folder = Path(run)
    return ExportSource(folder, load(folder), stored_identity(folder) or {}, best_dev_f1(folder))


def best_dev_f1(folder: Path) -> float | None:
    """The best dev F1 in a run's metrics; None without dev."""
    try:
        rows = [json.loads(line) for line in read_regular_file(folder / "metrics.jsonl").splitlines()]
        return max((float(row["dev"]["f1"]) for row in rows if "dev" in row), default=None)
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def model_name(source: ExportSource, options: ExportOptions) -> str:
    """The name of an exported model, usable in a package name.

    >>> from lacuner.models.lookup import LookupTagger
    >>> model_name(ExportSource(Path("runs/My run"), LookupTagger({"Halden": "LOC"})), ExportOptions())
    'my_run'
    """
    name = options.name or source.folder.resolve().name
    slug = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    if not slug or (options.name is not None and slug != options.name.replace("-", "_")):
        raise ConfigError(f"--name {name!r} is not usable as the name of a package: use a to z, 0 to 9 and _")
    return slug


def stored_texts(folder: Path, most: int) -> list[Document]:
    """Texts that a run folder contains: the contexts of its label issues."""
    texts: dict[str, None] = {}
    try:
        with (folder / "label_issues.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                issue = json.loads(line)
                texts[str(issue["context"]).replace(f"[{issue['text']}]", issue["text"], 1)] = None
                if len(texts) == most:
                    break
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass  # the caller asks for texts if there are none
    return [Document(str(number), text) for number, text in enumerate(texts, 1)]
