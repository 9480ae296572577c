"""Load gazetteer files: find the format and the encoding, and read the entries."""

import codecs
import re
from collections.abc import Callable, Mapping
from functools import partial
from os import PathLike
from pathlib import Path

from lacuner.annotate.gazetteer.entries import Gazetteer, GazetteerBuilder, GazetteerWarning
from lacuner.annotate.gazetteer.files import read_file
from lacuner.annotate.gazetteer.json_forms import read_json, read_json_lines
from lacuner.annotate.gazetteer.tables import read_table, read_terms
from lacuner.errors import GazetteerError

_READERS: dict[str, Callable[[str, GazetteerBuilder], None]] = {
    "tsv": partial(read_table, separator="\t"),
    "csv": read_table,
    "txt": read_terms,
    "jsonl": read_json_lines,
    "json": read_json,
}
GAZETTEER_FORMATS = tuple(_READERS)
_EXTENSIONS = {"tab": "tsv", "ndjson": "jsonl", "srj": "json", "lst": "txt", "list": "txt"}
_SPREADSHEETS = ("xlsx", "xls", "ods", "numbers")
_COMPRESSED = ("gz", "bz2", "xz", "zst", "zip")
_ZIP = b"PK\x03\x04"
_NAME_ENCODING = "name its encoding (--dictionary-encoding)"


def load_gazetteer(
    path: str | PathLike[str],
    *,
    label: str | None = None,
    mapping: Mapping[str, str] | None = None,
    format: str | None = None,
    encoding: str | None = None,
) -> Gazetteer:
    """Load a gazetteer file. Its problems are collected; a file without a usable entry raises `GazetteerError`.

    `label` is for rows that have none. In a list of terms these are all rows, and the default is the file's name.
    `mapping` gives the label of each class; rows of other classes are skipped.
    `format` is one of `GAZETTEER_FORMATS`; the default follows from the file's extension.
    `encoding`: the default is UTF-8, UTF-16 with a byte order mark, or Windows-1252 if the text looks like it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "terms.csv"
    ...     _ = path.write_text("surface,label\\naspirin,Chemical\\nheart attack,Disease\\n")
    ...     gazetteer = load_gazetteer(path)
    >>> [entry.surface for entry in gazetteer.entries], gazetteer.problems
    (['aspirin', 'heart attack'], [])
    """
    file = Path(path)
    if file.is_dir():
        raise GazetteerError("this is a folder; name the files in it", file=file)
    if re.match("https?:/", str(file)):
        raise GazetteerError("a gazetteer is read from a file: download it first", file=path)
    format = _find_format(file, format)
    if label is None and format == "txt":
        label = file.stem
    builder = GazetteerBuilder(str(file), label, mapping)
    _READERS[format](_decode(file, encoding, builder), builder)
    gazetteer = builder.finish()
    if not len(gazetteer):
        mistakes = [problem for problem in gazetteer.problems if not isinstance(problem, GazetteerWarning)]
        if not mistakes:
            raise GazetteerError("there is no entry in this file", file=file)
        more = f" (and so for all {len(mistakes):,} rows)" if len(mistakes) > 1 else ""
        raise GazetteerError(mistakes[0].problem + more, file=file, line=mistakes[0].line)
    return gazetteer


def _find_format(file: Path, format: str | None) -> str:
    name = format or file.suffix.removeprefix(".").lower()
    name = _EXTENSIONS.get(name, name)
    if name in GAZETTEER_FORMATS:
        return name
    known = ", ".join(GAZETTEER_FORMATS)
    if format:
        raise GazetteerError(f"there is no dictionary format called {format!r} (there are {known})", file=file)
    hint = "; save a spreadsheet as CSV, or convert it with `lacuner dictionary build`" if name in _SPREADSHEETS else ""
    if name in _COMPRESSED:
        raise GazetteerError("a gazetteer must not be compressed: unpack it first", file=file)
    problem = f"the extension does not tell the format: name one of {known} (--dictionary-format){hint}"
    raise GazetteerError(problem, file=file)


def _decode(file: Path, encoding: str | None, builder: GazetteerBuilder) -> str:
    """The text of a file, with `\\n` as line ends. A guessed encoding is recorded as a warning."""
    data = read_file(file)
    if encoding is None and data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    if encoding is not None:
        return _decode_as(file, data, encoding)
    if data.startswith(_ZIP):
        raise GazetteerError("this is not text but a spreadsheet or another archive; save it as CSV", file=file)
    if 4 * data[:1000].count(0) > len(data[:1000]):
        raise GazetteerError(f"this looks like UTF-16 without a byte order mark; {_NAME_ENCODING}", file=file)
    try:
        return _unify_line_ends(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"the byte 0x{data[error.start]:02X} is not UTF-8"
    text = data.decode("cp1252", errors="replace")
    if not _looks_western(text):
        hint = f"save the file as UTF-8, or {_NAME_ENCODING}"
        raise GazetteerError(f"{problem}, and the file does not look like Windows-1252; {hint}", file=file, line=line)
    warning = f"{problem}; the file was read as Windows-1252; if that is wrong, {_NAME_ENCODING}"
    builder.add_problem(line, warning, warning=True)
    return _unify_line_ends(text)


def _decode_as(file: Path, data: bytes, encoding: str) -> str:
    try:
        return _unify_line_ends(data.decode("utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding))
    except LookupError as error:
        raise GazetteerError(f"there is no encoding called {encoding!r}", file=file) from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise GazetteerError(f"this is not {encoding} text ({error.reason})", file=file, line=line) from error


def _unify_line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _looks_western(text: str) -> bool:
    """Whether this is Windows-1252 as a Western European spreadsheet writes it, not another encoding in disguise.

    Almost any bytes can be decoded as Windows-1252, but only in real text are accented letters the exception.
    """
    letters = len(re.findall(r"[^\W\d_]", text))
    accented = len(re.findall(r"[À-ÖØ-öø-ÿŒœŠšŽžŸ]", text))
    unusual = len(re.findall(r"[¡¢¤¥¦¨¬¯¶¸¿ƒˆ†‡‰˜‹›]", text))
    undecoded = re.search(r"[\x01-\x08\x0e-\x1f\x7f-\x9f\ufffd]", text)
    return undecoded is None and 3 * accented <= letters and 20 * unusual <= letters
