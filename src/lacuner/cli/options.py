"""Arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lacuner.corpus import FORMATS, ReadOptions
from lacuner.corpus.tags import SCHEMES
from lacuner.errors import ConfigError

Format = Annotated[
    str | None,
    typer.Option("--format", help=f"Format of the input, if its ending does not tell: {', '.join(FORMATS)}."),
]
Encoding = Annotated[str, typer.Option("--encoding", help="Encoding of the input.")]
Separator = Annotated[
    str | None, typer.Option("--separator", help="Column files: tab, space, or a character. Found out by default.")
]
TokenColumn = Annotated[int, typer.Option("--token-column", help="Column files: where the word stands, from 0.")]
TagColumn = Annotated[int, typer.Option("--tag-column", help="Column files: where the tag stands; -1 is the last.")]
Scheme = Annotated[
    str | None, typer.Option("--scheme", help=f"Tag scheme of the input: {', '.join(SCHEMES)}. Found out by default.")
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict", help="Tags that break their scheme make no entity (seqeval strict), not as conlleval reads them."
    ),
]
Words = Annotated[
    str, typer.Option("--words", help="Words of texts that have none: unicode (CJK characters alone), or space.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, and nothing else there.")]


def keep_inputs(outputs: dict[str, Path | None], *inputs: Path | None) -> None:
    """Refuse to write over what is read, or twice to the same place; `outputs` by the option that names them."""
    places = {path.resolve() for path in inputs if path is not None}
    for option, path in outputs.items():
        if path is not None:
            place = path.resolve()
            if place in places:
                raise ConfigError(f"{option} {path} is a file that this command reads, or writes already")
            places.add(place)


_NAMED = {"tab": "\t", "space": " ", r"\t": "\t"}


def read_options(
    encoding: str,
    scheme: str | None = None,
    words: str = "unicode",
    columns: tuple[str | None, int, int] = (None, 0, -1),
    strict: bool = False,
) -> ReadOptions:
    """What was said on the command line about the input; `columns` are separator, word's and tag's place."""
    separator, token_column, tag_column = columns
    if separator is not None:
        separator = _NAMED.get(separator, separator)
    return ReadOptions(
        encoding=encoding,
        separator=separator,
        token_column=token_column,
        tag_column=tag_column,
        scheme=scheme,
        strict=strict,
        words=words,  # type: ignore[arg-type]  # `read` refuses what it does not know
    )
