"""Export to spaCy: a pipeline folder for `spacy.load`, and on request a wheel for `pip install`."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from lacuner import __version__
from lacuner.atomic import atomic_write
from lacuner.errors import ConfigError, need_library
from lacuner.export.options import ExportOptions
from lacuner.export.source import ExportSource, model_name

DEFAULT_LANGUAGE = "xx"
_SHIPPED_LANGUAGE = {"tiny-en": "en", "tiny-zh": "zh"}


def write_spacy(source: ExportSource, folder: Path, options: ExportOptions) -> None:
    """Write a pipeline with one component, `lacuner`, that contains the tagger and its gazetteer."""
    with need_library("--to spacy needs an extra", "lacuner[spacy]"):
        import spacy
    from lacuner.export.spacy_component import FACTORY

    language = options.language or _SHIPPED_LANGUAGE.get(source.encoder_name, DEFAULT_LANGUAGE)
    try:
        nlp = spacy.blank(language)
    except ImportError as error:  # spaCy's error for a language that it does not have, or that needs a library
        raise ConfigError(f"--language {language}: spaCy has no tokenizer for it here; use xx for any") from error
    component: Any = nlp.add_pipe(FACTORY)
    component.tagger = source.tagger
    nlp.meta.update(
        {
            "name": model_name(source, options),
            "version": options.version,
            "description": f"Named-entity recognition by lacuner: {', '.join(source.tagger.labels)}",
            "license": options.license,
            "requirements": [f"lacuner>={__version__}"],
        }
    )
    nlp.to_disk(folder)


def write_wheel(folder: Path) -> Path:
    """Write the pipeline in a folder as a wheel beside its files; return its path.

    Written by hand, because building one with a packaging tool needs that tool or a network, and the folder contains
    everything already. The same folder always gives the same bytes.
    """
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    if not re.fullmatch(r"\d+(\.\d+)*((a|b|rc)\d+)?", meta["version"]):
        raise ConfigError(f"--version {meta['version']!r} is not a version of a Python package, such as 1.0.0")
    package, version = f"{meta['lang']}_{meta['name']}", meta["version"]
    data = f"{package}/{package}-{version}"
    files = {f"{data}/{path.relative_to(folder).as_posix()}": path for path in folder.rglob("*") if path.is_file()}
    contents = {name: path.read_bytes() for name, path in sorted(files.items())}
    contents[f"{package}/__init__.py"] = _INIT.encode()
    contents[f"{package}/meta.json"] = (folder / "meta.json").read_bytes()
    info = f"{package}-{version}.dist-info"
    requirements = [*meta["requirements"], f"spacy{meta['spacy_version']}"]
    header = [
        "Metadata-Version: 2.1",
        f"Name: {package}",
        f"Version: {version}",
        f"Summary: {' '.join(meta['description'].split())}",
    ]
    header += [f"License: {' '.join(meta['license'].split())}"] if meta["license"] else []
    header += [f"Requires-Dist: {requirement}" for requirement in requirements]
    contents[f"{info}/METADATA"] = ("\n".join(header) + "\n").encode()
    contents[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: lacuner\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    contents[f"{info}/entry_points.txt"] = f"[spacy_models]\n{package} = {package}\n".encode()
    rows = [f"{name},sha256={_digest(part)},{len(part)}\n" for name, part in contents.items()]
    contents[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as archive:
        for name, part in contents.items():
            archive.writestr(ZipInfo(name), part, ZIP_DEFLATED)  # the time of a ZipInfo is 1980
    path = folder / f"{package}-{version}-py3-none-any.whl"
    with atomic_write(path) as stream:
        stream.write(buffer.getvalue())
    return path


_INIT = '''\
"""A spaCy pipeline, exported by lacuner."""

from pathlib import Path

from spacy.util import get_model_meta, load_model_from_init_py

__version__ = get_model_meta(Path(__file__).parent)["version"]


def load(**overrides):
    """Load the pipeline: see `spacy.load`."""
    return load_model_from_init_py(__file__, **overrides)
'''


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
