"""T12: for any file content, a reader returns documents or raises a CorpusError; time and memory are bounded."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lacuner.corpus import FORMATS, read, write
from lacuner.corpus.reader import span_problem
from lacuner.data import Document, Span
from lacuner.errors import CorpusError
from tests.strategies import ENDINGS

SAMPLE = [
    Document("a", "Mara Teel left Halden.", spans=(Span(0, 9, "PER"), Span(15, 21, "LOC")), complete=True),
    Document("b", "Ünïcode 北京 straße", spans=(Span(8, 10, "LOC"),), unsure=(Span(11, 17, ""),)),
]
NAMES = sorted(ENDINGS)


def test_every_format_is_tried() -> None:
    assert set(NAMES) == set(FORMATS)


def survives(data: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"x{ENDINGS[name]}"
        path.with_name("x.txt").write_text(SAMPLE[0].text)  # beside brat's annotation
        path.write_bytes(data)
        try:
            docs = list(read(path, format=name))
        except CorpusError as error:
            assert error.file in (str(path), str(path.with_name("x.txt")))
            assert "\n" not in error.problem
            return
        for doc in docs:
            assert all(span_problem(doc.text, span) is None for span in (*doc.spans, *doc.rejected, *doc.unsure))
            json.dumps(doc.meta, ensure_ascii=False).encode()


@pytest.mark.parametrize("name", NAMES)
def test_any_bytes(name: str) -> None:
    @settings(max_examples=60)
    @given(st.binary(max_size=200))
    def check(data: bytes) -> None:
        survives(data, name)

    check()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("txt", "spacy", "parquet", "huggingface")])
def test_nearly_valid_text(name: str) -> None:
    pieces = [
        "Mara",
        "\t",
        " ",
        "B-PER",
        "O",
        "\n",
        "\n\n",
        "#",
        "-DOCSTART-",
        "I-",
        '{"text":',
        '"a"',
        "}",
        '"spans":[',
        "[0,1,",
        "]",
        ",",
    ]
    pieces += [
        '{"tokens":["a"],"ner_tags":["B-X"]}',
        '{"text":"ab","spans":[{"start":0,"end":1,"label":"X"}]}',
        "\ufeff",
        "\r",
        "\x85",
    ]
    pieces += [
        '{"text":"ab","label":[[0,1,"X"]]}',
        '{"text":"ab","spans":[],"answer":"accept","_view_id":"ner"}',
        '{"data":{"text":"ab"},"annotations":[{"result":[',
        '{"type":"labels","value":{"start":0,"end":1,"labels":["X"]}}',
        '{"id":"1","fields":{"text":"ab"},"responses":{"s":[{"value":[]}]}}',
        '["ab",{"entities":[[0,1,"X"]]}]',
        '{"documents":[{"id":"1","passages":[{"offset":0,"text":"ab","annotations":[',
        '{"infons":{"type":"X"},"locations":[{"offset":0,"length":1}],"text":"a"}',
        "<collection><document>",
        "<passage><offset>0</offset><text>ab</text>",
        '<annotation><infon key="type">X</infon><location offset="0" length="1"/></annotation>',
        "</passage></document></collection>",
        "T1\tX 0 4\tMara",
        "T1\tX 0 4;5 9",
        "1|t|ab",
        "1|a|cd",
        "1\t0\t2\tab\tX",
        "#FORMAT=WebAnno TSV 3.3\n#T_SP=a.NamedEntity|value\n\n",
        "#Text=ab\n1-1\t0-2\tab\tX[1]|Y\t\n\n",
        "# text = ab\n1\tab\t_\t_\t_\t_\t_\t_\t_\tNER=B-X\n\n",
        "1-2\tab\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n",
    ]

    @settings(max_examples=150)
    @given(st.lists(st.sampled_from(pieces), max_size=20).map("".join))
    def check(text: str) -> None:
        survives(text.encode(), name)

    check()


@pytest.mark.parametrize("name", NAMES)
def test_truncated_at_every_byte(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"good{ENDINGS[name]}"
    write(SAMPLE, path, format=name)
    data = (path / "a.ann" if name == "brat" else path).read_bytes()
    assert len(data) > 20
    for end in range(0, len(data), max(len(data) // 500, 1)):
        survives(data[:end], name)


@pytest.mark.parametrize("name", ["jsonl", "conll", "tokens", "txt"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "latin-1", "cp1252"])
def test_wrong_encodings(name: str, encoding: str, tmp_path: Path) -> None:
    path = tmp_path / f"good{ENDINGS[name]}"
    write(SAMPLE, path, format=name)
    data = path.read_text(encoding="utf-8").replace("北", "é").replace("京", "è").encode(encoding)
    path.write_bytes(data)
    with pytest.raises(CorpusError) as caught:
        list(read(path, format=name))
    assert caught.value.file == str(path)


# The kernel's own peak of this process: ru_maxrss would also have that of the process that started it.
PEAK = """
import re
from pathlib import Path
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024
"""
LONG = (
    PEAK
    + """
import sys
from lacuner.corpus import read
from lacuner.errors import CorpusError
try:
    for doc in read(sys.argv[1]):
        raise SystemExit("read a document")
except CorpusError as error:
    print(error.line, peak())
"""
)


@pytest.mark.integration
@pytest.mark.parametrize("ending", [".jsonl", ".conll", ".txt"])
def test_a_line_of_100_megabytes(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{ending}"
    with path.open("wb") as stream:
        for _ in range(100):
            stream.write(b"abcdefg " * (1 << 17))
    done = subprocess.run(
        [sys.executable, "-c", LONG, str(path)], capture_output=True, text=True, timeout=60, check=True
    )
    line, megabytes = map(int, done.stdout.split())
    assert line == 1
    assert megabytes < 250


STREAM = (
    PEAK
    + """
import sys
from lacuner.corpus import read
count = sum(len(doc.words) for doc in read(sys.argv[1]))
print(count, peak())
"""
)


def megabytes_to_read(path: Path, sentences: int) -> int:
    block = "".join(f"word{i}\t{'B-PER' if i % 7 == 0 else 'O'}\n" for i in range(12)) + "\n"
    with path.open("w") as stream:
        for _ in range(sentences // 1000):
            stream.write(block * 1000)
    done = subprocess.run([sys.executable, "-c", STREAM, str(path)], capture_output=True, text=True, check=True)
    count, megabytes = map(int, done.stdout.split())
    assert count == sentences * 12
    return megabytes


@pytest.mark.integration
def test_memory_stays_flat_while_streaming(tmp_path: Path) -> None:
    small, large = (megabytes_to_read(tmp_path / "x.conll", size) for size in (30_000, 150_000))
    assert large - small < 5


@pytest.mark.slow
def test_memory_stays_flat_over_a_million_sentences(tmp_path: Path) -> None:
    small, large = (megabytes_to_read(tmp_path / "x.conll", size) for size in (30_000, 1_000_000))
    assert large - small < 5


CONVERT = (
    PEAK
    + """
import sys
from lacuner.corpus import read, write
write(read(sys.argv[1]), sys.argv[2], format=sys.argv[3])
print(peak())
"""
)


@pytest.mark.integration
@pytest.mark.parametrize("name", ["labelstudio", "prodigy", "bioc", "bioc_json", "pubtator"])
def test_memory_stays_flat_while_converting(name: str, tmp_path: Path) -> None:
    """Also for formats that are one JSON array or one XML element on a single line."""
    peaks = []
    for copies in (3_000, 9_000):
        docs = (Document(str(i), SAMPLE[0].text * 40, spans=SAMPLE[0].spans, complete=True) for i in range(copies))
        source = tmp_path / f"{copies}.gz"
        write(docs, source, format=name)
        command = [sys.executable, "-c", CONVERT, str(source), str(tmp_path / "out.gz"), name]
        peaks.append(int(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    assert peaks[1] - peaks[0] < 5


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all parts of a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy of a JSON value with one part replaced."""
    if not path:
        return new
    result = dict(value) if isinstance(value, dict) else list(value)
    result[path[0]] = replaced(value[path[0]], path[1:], new)
    return result


ROWS = [
    name
    for name, known in FORMATS.items()
    if known.matches_row or name in ("jsonl", "tokens", "argilla_v1", "doccano_entities")
]


@pytest.mark.parametrize("name", ROWS)
def test_any_value_anywhere_in_a_row(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    tried = 0
    for doc in SAMPLE:
        write([doc], path, format=name)
        rows, _ = json.JSONDecoder().raw_decode(path.read_text(encoding="utf-8"))  # all, or the first line
        for place in places(rows):
            for value in (None, True, -1, 10**400, "", [None], {"text": 3, "start": "x"}):
                tried += 1
                path.write_text(json.dumps(replaced(rows, place, value)), encoding="utf-8")
                try:
                    docs = list(read(path, format=name))
                except CorpusError as error:
                    assert "\n" not in str(error)
                    continue
                for read_doc in docs:
                    json.dumps([read_doc.text, read_doc.id, read_doc.meta], ensure_ascii=False).encode()
    assert tried > 100
