"""The table of file formats, and `read` and `write` for all of them."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from lacuner.atomic import STANDARD_STREAM
from lacuner.corpus import (
    argilla,
    bioc,
    brat,
    conll,
    conllu,
    docbin,
    doccano,
    jsonl,
    labelstudio,
    parquet,
    prodigy,
    pubtator,
    spacy2,
    text,
    webanno,
)
from lacuner.corpus.folders import choose_files, data_paths
from lacuner.corpus.json_stream import sample_rows
from lacuner.corpus.reader import CorpusFile, ReadOptions, raise_error
from lacuner.corpus.streams import format_ending
from lacuner.corpus.tags import SCHEMES
from lacuner.corpus.words import split_spaces
from lacuner.data import Document, Lost
from lacuner.errors import ConfigError, CorpusError


class Format(NamedTuple):
    """A file format: file name endings, reader, writer, and how its files are recognised."""

    endings: tuple[str, ...]
    read: Callable[[CorpusFile], Iterator[Document]]
    write: Callable[[Iterable[Document], Path, Lost, str], None]
    matches_row: Callable[[Any], bool] | None = None
    """Whether a JSON value is a row of this format."""
    matches: Callable[[CorpusFile], bool] | None = None
    """Whether a file or folder is of this format, for formats other than JSON."""
    reads_folders: bool = False
    """Whether a folder is a corpus of its own; other formats read each file in it."""


FORMATS: dict[str, Format] = {
    "jsonl": Format(jsonl.ENDINGS, jsonl.read_jsonl, jsonl.write_jsonl),
    "conll": Format((".conll", ".iob", ".iob2", ".bio"), conll.read_conll, conll.write_conll),
    "tokens": Format((), jsonl.read_jsonl, jsonl.write_tokens),
    "txt": Format((".txt",), text.read_txt, text.write_txt, reads_folders=True),
    "spacy": Format((".spacy",), docbin.read_docbin, docbin.write_docbin, matches=docbin.is_docbin),
    "labelstudio": Format((), labelstudio.read_labelstudio, labelstudio.write_labelstudio, labelstudio.is_labelstudio),
    "labelstudio_min": Format(
        (), labelstudio.read_labelstudio_min, labelstudio.write_labelstudio_min, labelstudio.is_labelstudio_min
    ),
    "prodigy": Format((), prodigy.read_prodigy, prodigy.write_prodigy, prodigy.is_prodigy),
    "argilla": Format((), argilla.read_argilla, argilla.write_argilla, argilla.is_argilla),
    "argilla_v1": Format((), argilla.read_argilla, argilla.write_argilla_v1),
    "doccano": Format((), doccano.read_doccano, doccano.write_doccano, doccano.is_doccano),
    "doccano_entities": Format((), doccano.read_doccano, doccano.write_doccano_entities),
    "spacy2": Format((), spacy2.read_spacy2, spacy2.write_spacy2, spacy2.is_spacy2),
    "parquet": Format((".parquet",), parquet.read_parquet, parquet.write_parquet, None, parquet.is_parquet, True),
    "huggingface": Format((".arrow",), parquet.read_parquet, parquet.write_data_set, None, parquet.is_data_set, True),
    "brat": Format((".ann",), brat.read_brat, brat.write_brat, matches=brat.is_brat, reads_folders=True),
    "pubtator": Format((".pubtator",), pubtator.read_pubtator, pubtator.write_pubtator, matches=pubtator.is_pubtator),
    "bioc": Format((".xml",), bioc.read_bioc_xml, bioc.write_bioc_xml, matches=bioc.is_bioc_xml),
    "bioc_json": Format((), bioc.read_bioc_json, bioc.write_bioc_json, bioc.is_bioc_json),
    "webanno": Format((), webanno.read_webanno, webanno.write_webanno, matches=webanno.is_webanno),
    "conllu": Format((".conllu",), conllu.read_conllu, conllu.write_conllu, matches=conllu.is_conllu),
}
"""jsonl is lossless; tokens is JSON lines with `tokens` and `ner_tags`; spacy is spaCy's DocBin. The first format that
recognises a file reads it, so those with the strictest rule come first."""


def format_of(path: str | PathLike[str], name: str | None = None) -> Format:
    """The format of this name or, without one, of the path's ending: for a file to be written."""
    if name is not None:
        if name not in FORMATS:
            raise CorpusError(f"there is no format {name!r}: choose from {', '.join(FORMATS)}", file=path)
        return FORMATS[name]
    path = Path(path)
    if path == STANDARD_STREAM:
        return FORMATS["jsonl"]
    if path.is_dir():
        return FORMATS["txt"]
    ending = format_ending(path)
    for known in FORMATS.values():
        if ending in known.endings:
            return known
    endings = " ".join(ending for known in FORMATS.values() for ending in known.endings)
    raise CorpusError(f"unknown ending: use one of {endings}, or name the format with --format-out", file=path)


def detect_format(file: CorpusFile) -> str:
    """The name of the format of a file or folder: by its content, and by its ending where the content does not tell.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "export.json"
    >>> _ = path.write_text('[{"data": {"text": "Mara left"}, "annotations": []}]')
    >>> detect_format(CorpusFile(path))
    'labelstudio'
    """
    for name, known in FORMATS.items():
        if known.matches is not None and known.matches(file):
            return name
    if file.path.is_dir():
        return _detect_folder(file)
    rows = sample_rows(file)
    for row in rows:
        for name, known in FORMATS.items():
            if known.matches_row is not None and known.matches_row(row):
                return name
    if not rows and spacy2.is_python(file):
        raise file.error("these are spaCy 2 pairs as Python code, which is not read: write them with json.dump")
    ending = format_ending(file.path)
    if not rows and ending in FORMATS["txt"].endings and conll.has_tags(file):
        return "conll"  # many column files are called train.txt
    for name, known in FORMATS.items():
        if ending in known.endings:
            return name
    if rows:
        return "jsonl"
    if conll.has_tags(file):
        return "conll"
    if file.path == STANDARD_STREAM and text.is_prose(file):
        return "txt"
    advice = "a gazetteer is for `lacuner annotate --dictionary`; " if ending in (".tsv", ".csv") else ""
    raise file.error(
        f"neither content nor ending tell the format: {advice}for one text per line use --format txt; the other "
        f"formats are {', '.join(name for name in FORMATS if name != 'txt')}"
    )


def _detect_folder(folder: CorpusFile) -> str:
    """`txt` for texts, otherwise the format that the files have in common."""
    paths = data_paths(folder)
    first_text = next((path for path in paths if path.suffix.lower() == ".txt"), None)
    if first_text is not None and _format_inside(folder.at(first_text)) in ("txt", None):
        return "txt"
    first: dict[str, Path] = {}
    for path in paths:
        name = _format_inside(folder.at(path))
        if name is not None:
            first.setdefault(name, path)
    names = [name for name in first if name != "jsonl" or not all(map(_may_look_like_ours, first))]
    if len(names) > 1:
        files = ", ".join(f"{first[name].relative_to(folder.path).as_posix()} is {name}" for name in names)
        raise folder.error(f"the files in this folder have several formats ({files}): name one with --format")
    if not first:
        known = ", ".join(FORMATS)
        raise folder.error(
            "there is no .txt file in this folder, and no other file whose format is recognised: "
            f"choose one of {known} with --format"
        )
    return next(iter(names), "jsonl")


def _may_look_like_ours(name: str) -> bool:
    """Whether a file in this format may have rows of text alone, which are recognised as jsonl."""
    return name == "jsonl" or FORMATS[name].matches_row is not None


def _format_inside(file: CorpusFile) -> str | None:
    """The format of a file in a folder; None if it is none, such as JSON that only describes a data set."""
    try:
        name = detect_format(file)
    except CorpusError:
        return None
    if name == "jsonl" and format_ending(file.path) not in jsonl.ENDINGS:
        return name if any(jsonl.is_jsonl(row, file.options) for row in sample_rows(file)) else None
    return name


def folder_files(folder: CorpusFile, format: str) -> list[CorpusFile]:
    """The files of a folder that are read in a format, each like a file of its own."""
    readers = [FORMATS[format].read, *([jsonl.read_jsonl] if _may_look_like_ours(format) else ())]

    def is_readable(file: CorpusFile) -> bool:
        name = _format_inside(file)
        return name is not None and FORMATS[name].read in readers

    return choose_files(folder, is_readable)


def read(
    path: str | PathLike[str],
    *,
    format: str | None = None,
    complete: bool | None = None,
    options: ReadOptions = ReadOptions(),
    lost: Lost | None = None,
    on_error: Callable[[CorpusError], None] = raise_error,
    on_bytes: Callable[[int], object] | None = None,
) -> Iterator[Document]:
    """Stream documents from a file or folder.

    Arguments:
        path: a file, perhaps compressed, a folder, or `-` for standard input.
        format: a name in `FORMATS`; by default it is detected.
        complete: value of `Document.complete` for documents whose file does not say.
        options: layout of the file.
        lost: records what the reader repaired or ignored.
        on_error: receives the error of a single document, which is then skipped; by default errors are raised.
        on_bytes: called with the number of bytes just read, for a progress bar.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "gold.conll"
    >>> _ = file.write_text("Mara B-PER\\nleft O\\nOslo B-LOC\\n")
    >>> [doc] = read(file, complete=True)
    >>> doc.text, [span.key for span in doc.spans]
    ('Mara left Oslo', [(0, 4, 'PER'), (10, 14, 'LOC')])
    """
    file = CorpusFile(Path(path), options, lost if lost is not None else Lost(), on_error, on_bytes)
    return read_file(file, choose_format(file, format), complete)


def choose_format(file: CorpusFile, name: str | None = None) -> str:
    """The name of the format in which an input is read, which must exist: as given, or detected."""
    if file.path != STANDARD_STREAM and not _exists(file.path):
        raise CorpusError("there is no such file or folder", file=file.path)
    if name is None:
        return detect_format(file)
    format_of(file.path, name)
    return name


def read_file(file: CorpusFile, format: str, complete: bool | None = None) -> Iterator[Document]:
    """Stream the documents of a file whose format is known."""
    options = file.options
    if options.words not in ("unicode", "space"):
        raise ConfigError(f"--words is unicode or space, not {options.words!r}")
    if options.scheme is not None:
        _check_scheme(options.scheme)
    known = FORMATS[format]
    files = folder_files(file, format) if file.path.is_dir() and not known.reads_folders else [file]
    return _apply_defaults(chain.from_iterable(map(known.read, files)), complete, options)


def _exists(path: Path) -> bool:
    try:
        return "\0" not in str(path) and path.exists()
    except OSError as error:  # e.g. a name that is too long
        raise CorpusError(f"cannot read this file: {error.strerror or error}", file=path) from error


def _check_scheme(scheme: str) -> None:
    if scheme not in SCHEMES:
        raise ConfigError(f"there is no tag scheme {scheme!r}: --scheme is one of {', '.join(SCHEMES)}")


def _apply_defaults(docs: Iterator[Document], complete: bool | None, options: ReadOptions) -> Iterator[Document]:
    for doc in docs:
        if doc.complete is None:
            doc.complete = complete
        if options.words == "space" and doc.words is None:
            doc.words = split_spaces(doc.text)
        yield doc


def write(
    docs: Iterable[Document], path: str | PathLike[str], *, format: str | None = None, scheme: str = "IOB2"
) -> Lost:
    """Write documents and return what the format cannot express; `scheme` is for formats with tags.

    The path `-` is standard output, where the default format is jsonl. A path that ends in .gz, .bz2, .xz or .zst is
    compressed.

    >>> import tempfile
    >>> lost = write([Document("a", "Mara left")], Path(tempfile.mkdtemp()) / "texts.txt")
    >>> print(lost)
    lost: id not written: 1
    """
    _check_scheme(scheme)
    lost = Lost()
    path = Path(path)
    if "\0" in str(path):
        raise CorpusError("a file name cannot contain NUL", file=repr(str(path)))
    try:
        format_of(path, format).write(docs, path, lost, scheme)
    except UnicodeEncodeError as error:
        shown = ascii(error.object[max(error.start - 20, 0) : error.end + 20])
        raise CorpusError(f"half of a surrogate pair is not a character: {shown}", file=path) from error
    return lost
