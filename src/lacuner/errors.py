"""Errors that the user can fix, as one sentence with the place. The command line exits with status 2 on them."""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from shlex import quote


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


@contextmanager
def explain_damage(
    problem: str, file: str | PathLike[str], kind: type[LacunerError] = ModelFileError, line: int | None = None
) -> Iterator[None]:
    """One sentence instead of whatever a parser raises for a file that is damaged, or not one of ours.

    >>> with explain_damage("this is not the state of a run", "state.json"):
    ...     {}["epoch"]
    Traceback (most recent call last):
    lacuner.errors.ModelFileError: state.json: this is not the state of a run
    """
    try:
        yield
    except (OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise kind(problem, file=file, line=line) from error


@contextmanager
def need_library(
    need: str, install: str, kind: type[LacunerError] = ConfigError, file: str | PathLike[str] | None = None
) -> Iterator[None]:
    """One sentence if a library is missing: what needs it, and how to install it.

    >>> with need_library("Excel files need openpyxl", "lacuner[xlsx]"):
    ...     import openpyxl_is_not_here
    Traceback (most recent call last):
    lacuner.errors.ConfigError: Excel files need openpyxl: pip install 'lacuner[xlsx]'
    """
    try:
        yield
    except ImportError as error:
        raise kind(f"{need}: pip install {quote(install)}", file=file) from error


def first_line(error: object) -> str:
    """The first line of a library's error, for a message of ours; its type if it says nothing.

    >>> first_line(ValueError("no such layer\\nTraceback: ...")), first_line(KeyError())
    ('no such layer', 'KeyError')
    """
    return next(iter(str(error).strip().splitlines()), type(error).__name__)[:300]
