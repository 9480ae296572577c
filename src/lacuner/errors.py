"""Errors a user can mend: one sentence that says where to look. The command line exits with status 2 on them."""

from __future__ import annotations

from os import PathLike


class LacunerError(Exception):
    """The user's input is wrong. `str(error)` is `file:line: sentence`, with the parts that are known."""

    def __init__(
        self,
        problem: str,
        *,
        file: str | PathLike[str] | None = None,
        line: int | None = None,
        document: str | None = None,
        span: tuple[int, int] | None = None,
    ) -> None:
        self.problem = problem
        self.file = str(file) if file is not None else None
        self.line = line
        self.document = document
        self.span = span
        super().__init__(problem)

    def __str__(self) -> str:
        place = ""
        if self.file is not None:
            place = f"{self.file}:{self.line}: " if self.line is not None else f"{self.file}: "
        if self.document is not None:
            place += f"document {self.document!r}"
            place += f", span {self.span[0]}-{self.span[1]}: " if self.span is not None else ": "
        return place + self.problem


class CorpusError(LacunerError):
    """A corpus file cannot be read, written, or paired with another."""


class GazetteerError(LacunerError):
    """A dictionary file cannot be read."""


class ConfigError(LacunerError):
    """A setting is unknown, missing, or has the wrong value."""


class ModelFileError(LacunerError):
    """A model folder is damaged, hostile, or of another version."""


class TrainingError(LacunerError):
    """Nothing can be learned: no known labels, or a loss that is not a number."""
