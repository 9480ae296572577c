"""Reading dictionaries: the files people have, and one clear sentence for each thing that is wrong with them."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Literal, NamedTuple

from lacuner.annotate.gazetteer.entries import Collector, Entries, Entry, Gazetteer, GazetteerWarning
from lacuner.annotate.gazetteer.json_forms import read_json, read_json_lines
from lacuner.annotate.gazetteer.tables import read_table, read_terms
from lacuner.errors import GazetteerError

__all__ = ["GAZETTEER_FORMATS", "Entries", "Entry", "Gazetteer", "GazetteerWarning", "load_gazetteer"]

GAZETTEER_FORMATS = {
    "tsv": "columns separated by tabs: surface, label, and a weight or an id if there is one",
    "csv": "the same, separated by commas, semicolons, tabs or bars; also the CSV of a SPARQL query",
    "txt": "a term a line, all of one label",
    "jsonl": 'a JSON object a line: {"surface", "label"}, spaCy patterns, or {"id", "terms"} for one document',
    "json": "the JSON of a SPARQL query, or a list of objects",
}
UNKNOWN_ENCODING = "name its encoding (--dictionary-encoding)"

_ZIP = b"PK\x03\x04"
_SPREADSHEETS = ("xlsx", "xls", "ods", "numbers")
_ENDINGS = {"tab": "tsv", "ndjson": "jsonl", "srj": "json", "lst": "txt", "list": "txt"}


def load_gazetteer(
    path: str | PathLike[str],
    *,
    label: str | None = None,
    mapping: Mapping[str, str] | None = None,
    format: str | None = None,
    encoding: str | None = None,
    errors: Literal["collect", "raise"] = "collect",
) -> Gazetteer:
    """Read a dictionary; its format is found by the ending of the file's name, unless named.

    `label` is for rows that have none (in a list of terms: all of them, and without it the file's name is the label).
    `mapping` says which class gives which label; rows of other classes are skipped. Without `encoding` the file is
    UTF-8, or UTF-16 if it says so, or else Windows-1252 if that makes sense.

    Mistakes are collected in `problems`, unless `errors` is `raise`, which raises the first one. A file of which
    nothing can be used raises in any case.
    """
    file = Path(path)
    if file.is_dir():
        raise GazetteerError("this is a folder; name the files in it", file=file)
    dictionary = Gazetteer(str(file))
    format = _format(file, format)
    decoded = _decode(file, encoding)
    if decoded.note:
        dictionary.add_problem(decoded.line, decoded.note, note=True)
    if label is None and format == "txt":
        label = file.stem
    readers: dict[str, Callable[[str, Collector], None]] = {
        "tsv": lambda text, collector: read_table(text, collector, separator="\t"),
        "csv": read_table,
        "txt": read_terms,
        "jsonl": read_json_lines,
        "json": read_json,
    }
    collector = Collector(dictionary, label, mapping)
    readers[format](decoded.text, collector)
    collector.finish()
    mistakes = [problem for problem in dictionary.problems if not isinstance(problem, GazetteerWarning)]
    if mistakes and errors == "raise":
        raise mistakes[0]
    if not len(dictionary):
        if not mistakes:
            raise GazetteerError("there is no entry in this file", file=file)
        more = f" (and so for all {len(mistakes):,} rows)" if len(mistakes) > 1 else ""
        raise GazetteerError(mistakes[0].problem + more, file=file, line=mistakes[0].line)
    return dictionary


def _format(file: Path, format: str | None) -> str:
    name = format or file.suffix.removeprefix(".").lower()
    name = _ENDINGS.get(name, name)
    if name not in GAZETTEER_FORMATS:
        known = ", ".join(GAZETTEER_FORMATS)
        if format:
            raise GazetteerError(f"there is no dictionary format called {format!r} (there are {known})", file=file)
        hint = "; a spreadsheet must be saved as CSV" if name in _SPREADSHEETS else ""
        raise GazetteerError(
            f"the ending does not say what format this is: name one of {known} (--dictionary-format){hint}", file=file
        )
    return name


class _Decoded(NamedTuple):
    text: str
    note: str | None = None
    line: int = 0


def _decode(file: Path, encoding: str | None) -> _Decoded:
    """The text of a file, with line ends as `\\n`."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise GazetteerError(f"cannot read this file: {error.strerror or error}", file=file) from error
    if encoding is not None:
        return _Decoded(_named(file, data, encoding))
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _Decoded(_named(file, data, "utf-16"))
    if data.startswith(_ZIP):
        raise GazetteerError("this is no text but a spreadsheet, or another archive; save it as CSV", file=file)
    if 4 * data[:1000].count(0) > len(data[:1000]):
        raise GazetteerError(f"this looks like UTF-16 without its mark; {UNKNOWN_ENCODING}", file=file)
    try:
        return _Decoded(_line_ends(data.decode("utf-8-sig")))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = data[error.start]
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        text = ""
    if not _looks_western(text):
        sentence = f"the byte 0x{byte:02X} is not UTF-8, and it makes no sense as Windows-1252"
        raise GazetteerError(f"{sentence}; save the file as UTF-8, or {UNKNOWN_ENCODING}", file=file, line=line)
    guessed = f"the file was read as Windows-1252; if that is wrong, {UNKNOWN_ENCODING}"
    note = f"the byte 0x{byte:02X} is not UTF-8; {guessed}"
    return _Decoded(_line_ends(text), note, line)


def _named(file: Path, data: bytes, encoding: str) -> str:
    try:
        return _line_ends(data.decode("utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding))
    except LookupError as error:
        raise GazetteerError(f"there is no encoding called {encoding!r}", file=file) from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise GazetteerError(f"this is not {encoding} text ({error.reason})", file=file, line=line) from error


def _line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _looks_western(text: str) -> bool:
    """Whether this is what a Western European spreadsheet writes, and not another encoding in disguise.

    Any bytes make some Windows-1252 text; but only in real ones are accented letters the exception.
    """
    letters = len(re.findall(r"[^\W\d_]", text))
    accented = len(re.findall(r"[À-ÖØ-öø-ÿŒœŠšŽžŸ]", text))
    strange = re.search(r"[\x01-\x08\x0e-\x1f\x7f-\x9f]", text)
    foreign = len(re.findall(r"[¡¢¤¥¦¨¬¯¶¸¿ƒˆ†‡‰˜‹›]", text))
    return bool(text) and strange is None and 3 * accented <= letters and 20 * foreign <= letters
