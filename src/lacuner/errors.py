"""Errors that the user can fix, as one sentence with the place. The command line exits with status 2 on them."""

from os import PathLike


class LacunerError(Exception):
    """The user's input is wrong. `str(error)` is `file:line: sentence`, without the parts that are not known.

    >>> print(LacunerError("this line is not JSON", file="weak.jsonl", line=7))
    weak.jsonl:7: this line is not JSON
    """

    def __init__(self, problem: str, *, file: str | PathLike[str] | None = None, line: int | None = None) -> None:
        self.problem = problem
        self.file = str(file) if file is not None else None
        self.line = line
        super().__init__(problem)

    def __str__(self) -> str:
        if self.file is None:
            return self.problem
        return f"{self.file}{'' if self.line is None else f':{self.line}'}: {self.problem}"


class CorpusError(LacunerError):
    """A corpus file cannot be read, written, or aligned with another."""


class GazetteerError(LacunerError):
    """A gazetteer file cannot be read."""


class ConfigError(LacunerError):
    """A setting is unknown, missing, or has a wrong value."""


class ModelFileError(LacunerError):
    """A model folder is damaged, malicious, or of another version."""


class TrainingError(LacunerError):
    """Training is impossible: there are no labels, or the loss is not a finite number."""


class ProcessLostError(LacunerError):
    """One of several processes that train together has ended. Not the user's mistake: the exit status is 1."""
