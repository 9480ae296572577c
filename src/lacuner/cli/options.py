"""Options that several commands share: defined once, as fields of a dataclass or as annotated types."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import partial
from os import PathLike
from os.path import realpath  # unlike `Path.resolve`, it does not fail on links that form a loop
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_type_hints

from typer import Option

from lacuner.atomic import STANDARD_STREAM
from lacuner.corpus import FORMATS, ReadOptions
from lacuner.corpus.reader import CorpusFile
from lacuner.corpus.tags import SCHEMES
from lacuner.errors import ConfigError

if TYPE_CHECKING:
    FormatName: TypeAlias = str
    SchemeName: TypeAlias = str
else:  # the choices come from the tables, so that a new format or scheme is listed in --help without an edit here
    FormatName, SchemeName = Literal[tuple(FORMATS)], Literal[tuple(SCHEMES)]

Json = Annotated[bool, Option("--json", help="Print one JSON object and nothing else.")]
Seed = Annotated[int, Option("--seed", help="Random seed.")]
Encoder = Annotated[
    str | None,
    Option(
        "--encoder", help="auto (default), tiny-en, tiny-zh, tiny, lstm, lexicon:ENCODER, hf:NAME_OR_PATH or run:PATH."
    ),
]
On = Annotated[
    str,
    Option(
        "--on",
        metavar="ENGINE",
        help="Where independent models are trained: processes (this machine), ray or ray://HOST:PORT.",
    ),
]
Stream = Annotated[
    bool | None,
    Option(
        "--stream/--no-stream",
        help="Read documents from disk as they are used, or keep them in memory. Default: from disk if there are more "
        "than 200,000.",
    ),
]
Cache = Annotated[
    Path | None, Option("--cache", metavar="DIR", help="Folder for documents prepared on disk. Default: OUT/prepared.")
]
LabelPrecision = Annotated[
    float,
    Option("--label-precision", min=0.01, max=0.99, help="Share of the labels that are right, by your estimate."),
]
RunFolder = Annotated[Path, Option("--out", help="Run folder. The same command resumes an unfinished run.")]
SettingsFile = Annotated[Path | None, Option("--config", help="TOML file with settings.")]
Settings = Annotated[
    list[str] | None, Option("--set", metavar="KEY=VALUE", help="Setting, e.g. train.epochs=5. Repeatable.")
]
Gold = Annotated[Path, Option("--gold", help="Gold annotations of the same texts.")]
Dev = Annotated[Path | None, Option("--dev", help="Gold annotations for early stopping and tuning.")]

_SEPARATORS = {"tab": "\t", "space": " ", r"\t": "\t"}


_Reading = partial(Option, rich_help_panel="Reading the input")
"""An option under a heading of its own in `--help`, after the options that matter more."""


@dataclass(frozen=True)
class InputOptions:
    """How to read a corpus. Each field is an option of every command that reads one."""

    format: Annotated[FormatName | None, _Reading(help="Input format. Default: detected from content and name.")] = None
    encoding: Annotated[str, _Reading(help="Input encoding.")] = "utf-8"
    words: Annotated[Literal["unicode", "space"], _Reading(help="Word splitting of untokenised text.")] = "unicode"
    separator: Annotated[str | None, _Reading(help="Columns: tab, space or a character. Default: detected.")] = None
    token_column: Annotated[int, _Reading(help="Columns: index of the word.")] = 0
    tag_column: Annotated[int, _Reading(help="Columns: index of the tag, -1 is the last.")] = -1
    scheme: Annotated[SchemeName | None, _Reading(help="Tag scheme. Default: detected.")] = None
    label_names: Annotated[
        str | None,
        _Reading(metavar="NAMES", help="Names of integer tags, from 0: O,B-PER,... or a file with one per line."),
    ] = None
    text_field: Annotated[
        str | None, _Reading(metavar="KEY", help="JSON: key of the text, or of the words. Default: that of the tool.")
    ] = None
    tag_field: Annotated[
        str | None, _Reading(metavar="KEY", help="JSON, data sets: key of the words' tags. Default: tags or ner_tags.")
    ] = None
    offsets: Annotated[Literal["characters", "utf-16", "bytes"], _Reading(help="Unit of offsets in JSON.")] = (
        "characters"
    )
    split: Annotated[str | None, _Reading(help="Folders with several splits: the split to read.")] = None
    strict: Annotated[bool, _Reading("--strict", help="Ignore invalid tag sequences (seqeval strict).")] = False

    def read_options(self, keep_bad_spans: bool = False) -> ReadOptions:
        """The options as `lacuner.corpus.read` takes them."""
        values = asdict(self)
        del values["format"]
        separator = _SEPARATORS.get(self.separator or "", self.separator)
        values |= {"separator": separator, "label_names": _read_names(self.label_names)}
        return ReadOptions(**values, keep_bad_spans=keep_bad_spans)

    def arguments(self) -> list[str]:
        """The options that differ from their defaults, as command-line arguments."""
        changed = {name: [value] for name, value in asdict(self).items() if value != getattr(InputOptions, name)}
        changed.pop("strict", None)
        return to_arguments(changed) + ["--strict"] * self.strict


def parse_location(text: str) -> Path:
    """The path, or the URL, after an option."""
    from lacuner.scale.locations import location

    return location(text)


def _read_names(value: str | None) -> tuple[str, ...]:
    """The names after `--label-names`, or those in the file that it names."""
    if value is None:
        return ()
    if "," in value:
        return tuple(name.strip() for name in value.split(","))
    path = Path(value)
    if not path.is_file():
        raise ConfigError(
            f"--label-names is a list such as O,B-PER,I-PER or a file with one name per line, not {value!r}"
        )
    return tuple(CorpusFile(path).read_text().split())


def to_arguments(options: Mapping[str, Iterable[object]]) -> list[str]:
    """The values of each option as command-line arguments.

    >>> to_arguments({"gold": ["a.conll"], "set": ["train.epochs=5", "head.kind=crf"]})
    ['--gold', 'a.conll', '--set', 'train.epochs=5', '--set', 'head.kind=crf']
    """
    values = [(f"--{name.replace('_', '-')}", str(value)) for name, items in options.items() for value in items]
    return [argument for pair in values for argument in pair]


def flatten_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each dataclass parameter of a command by one option per field, because typer cannot nest options.

    >>> def convert(corpus: str, inputs: InputOptions) -> None:
    ...     print(corpus, inputs.encoding)
    >>> flat = flatten_options(convert)
    >>> list(inspect.signature(flat).parameters)[:4]
    ['corpus', 'format', 'encoding', 'words']
    >>> values = {field.name: field.default for field in fields(InputOptions)}
    >>> flat(corpus="a.conll", **{**values, "encoding": "latin-1"})
    a.conll latin-1
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if is_dataclass(parameter.annotation):
            groups[parameter.name] = parameter.annotation
            types = get_type_hints(parameter.annotation, include_extras=True)
            for field in fields(parameter.annotation):
                kind, default = inspect.Parameter.KEYWORD_ONLY, field.default
                parameters.append(inspect.Parameter(field.name, kind, default=default, annotation=types[field.name]))
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    def flat(**values: Any) -> None:
        options = {name: [values.pop(field.name) for field in fields(group)] for name, group in groups.items()}
        command(**values, **{name: group(*options[name]) for name, group in groups.items()})

    flat.__name__, flat.__doc__ = command.__name__, command.__doc__
    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return flat


def parse_pairs(pairs: Iterable[str], option: str, form: str) -> dict[str, str]:
    """The values of an option that is written `A=B`.

    >>> parse_pairs(["DISEASE=Disease"], "--map", "LABEL=LABEL")
    {'DISEASE': 'Disease'}
    """
    parsed = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        if not name or not value:
            raise ConfigError(f"{option} is written {form}, not {pair!r}")
        parsed[name] = value
    return parsed


def refuse_overwriting(outputs: dict[str, Path | None], *inputs: Path | None) -> None:
    """Refuse to write to a file that is read, or twice to the same file; `outputs` by option name."""
    taken = {_real_path(path) for path in inputs if path is not None}
    for option, path in outputs.items():
        if path is not None and path != STANDARD_STREAM:
            if _real_path(path) in taken:
                raise ConfigError(f"{option} {path} is already an input or output of this command: choose another file")
            taken.add(_real_path(path))


def refuse_output_inside(corpus: Path, out: Path) -> None:
    """Refuse an output folder inside the corpus: a command that continues would read its own output."""
    if _real_path(out).startswith(f"{_real_path(corpus).rstrip('/')}/"):
        raise ConfigError(f"--out {out} is inside the corpus {corpus}: choose a folder that is not read")


def _real_path(path: Path) -> str:
    if "\0" in str(path):
        raise ConfigError("a file name cannot contain NUL", file=repr(str(path)))
    return realpath(path) if isinstance(path, PathLike) else str(path)  # a URL
