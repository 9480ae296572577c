"""The file beside weak labels with the gazetteer that made them, so that a tagger trained on them can use it.

It is found by its name. It also contains the hash of the labels: by this it is found if the labels were renamed, and
changes to the labels are noticed.
"""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from lacuner.atomic import atomic_write, read_regular_file
from lacuner.models.gazetteer import TaggerGazetteer, parse_gazetteer

ENDING = ".gazetteer.json"
_HASH = re.compile(rb'"labels_sha256": "([0-9a-f]{64})"')
_BEGINNING = 200
"""Bytes of a file in which the hash must be: gazetteers can be large."""


def sidecar(corpus: Path) -> Path:
    """Where `lacuner annotate` writes the gazetteer that made the labels of a corpus.

    >>> sidecar(Path("weak.jsonl")).name
    'weak.jsonl.gazetteer.json'
    """
    corpus = corpus if corpus.name else corpus.resolve()  # `.` has no name
    return corpus.with_name(corpus.name + ENDING)


def is_sidecar(path: Path) -> bool:
    """Whether a gazetteer file is one that `annotate` wrote, which also has the matching options."""
    return path.name.endswith(ENDING)


def sidecar_content(gazetteer: TaggerGazetteer, corpus: Path) -> bytes:
    """A gazetteer as a file, with the hash of the corpus that it labeled, if this is one local file."""
    content, digest = gazetteer.to_json(), _hash_file(corpus)
    return content if digest is None else f'{{\n"labels_sha256": "{digest}",'.encode() + content[1:]


def write_sidecar(gazetteer: TaggerGazetteer, corpus: Path) -> Path:
    """Write a gazetteer beside the corpus that it labeled."""
    path = sidecar(corpus)
    with atomic_write(path) as stream:
        stream.write(sidecar_content(gazetteer, corpus))
    return path


def find_sidecar(corpus: Path) -> Path | None:
    """The gazetteer file of a corpus, or None: by its name, or in the same folder by the hash of the corpus."""
    if sidecar(corpus).is_file():
        return sidecar(corpus)
    hashes = {path: _recorded_hash(path) for path in sorted(corpus.parent.glob(f"*{ENDING}"))}
    digest = _hash_file(corpus) if any(hashes.values()) else None
    return next((path for path, recorded in hashes.items() if recorded and recorded == digest), None)


def has_changed(corpus: Path, gazetteer_file: Path) -> bool:
    """Whether a corpus is not as it was when its gazetteer file was written; False if the file has no hash."""
    recorded = _recorded_hash(gazetteer_file)
    return recorded is not None and recorded != _hash_file(corpus)


def read_sidecar(path: Path) -> TaggerGazetteer:
    """The gazetteer in a file that `write_sidecar` wrote."""
    return parse_gazetteer(read_regular_file(path), path)


def read_sidecars(corpora: Iterable[Path]) -> TaggerGazetteer | None:
    """The gazetteers beside these corpora as one, each with its options, the first with priority; None without any."""
    gazetteer: TaggerGazetteer | None = None
    for path in dict.fromkeys(filter(None, map(find_sidecar, corpora))):
        own = read_sidecar(path)
        gazetteer = own if gazetteer is None else gazetteer.join(own)
    return gazetteer


def _recorded_hash(path: Path) -> str | None:
    with path.open("rb") as stream:
        match = _HASH.search(stream.read(_BEGINNING))
    return match[1].decode() if match else None


def _hash_file(path: Path) -> str | None:
    try:
        with open(path, "rb") as stream:  # not `path.open`: that of a URL would download it
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (OSError, TypeError):
        return None
