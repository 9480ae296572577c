"""`--on`: the same rows as without it, in shards."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lacuner.audit.issues import count_kinds, label_issues
from lacuner.corpus import read, write
from lacuner.models.sidecar import read_sidecar, sidecar
from lacuner.models.storage import save
from lacuner.models.tagger import Tagger
from tests.cli.conftest import Run
from tests.demo_corpus import demo_corpus
from tests.models.test_tagger import new_tagger

ANNOTATE = ("annotate", "texts.jsonl", "--dictionary", "names.tsv", "--regex", "YEAR=[0-9]{4}")
SHARDS = ("--on", "processes", "--workers", "1", "--shard-size", "40")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    corpus = [replace(doc, complete=False) for doc in demo_corpus().train[:150]]
    write(corpus, tmp_path / "texts.jsonl")
    names = {(doc.text[span.start : span.end], span.label) for doc in corpus[:80] for span in doc.spans}
    (tmp_path / "names.tsv").write_text("".join(f"{name}\t{label}\n" for name, label in sorted(names)))
    return tmp_path


def joined(folder: Path) -> bytes:
    """The output of all shards."""
    return b"".join(file.read_bytes() for file in sorted((folder / "documents").iterdir()))


@pytest.mark.parametrize("by", ["priority", "vote", "model"])
def test_annotate(run: Run, folder: Path, by: str) -> None:
    args = (*ANNOTATE, "--by", by, *(("--regex", "PERSON=Mara [A-Z][a-z]+") if by == "model" else ()))
    args = (*args, "--regex", "PLACE=Halden") if by == "model" else args
    if by == "model":
        (folder / "more.tsv").write_text((folder / "names.tsv").read_text())
        (folder / "third.tsv").write_text((folder / "names.tsv").read_text())
        args = (*args, "--dictionary", "more.tsv", "--dictionary", "third.tsv")
    single = json.loads(run(*args, "--out", "single.jsonl", "--workers", "1", "--json").stdout)
    done = run(*args, "--out", "out", *SHARDS, "--json")
    assert "4 shards, 150 documents" in done.stderr
    assert joined(folder / "out") == (folder / "single.jsonl").read_bytes()
    sharded = json.loads(done.stdout)
    for name in ("documents", "documents_with_a_match", "spans", "unsure", "sources", "top_entries", "suspicious"):
        assert sharded[name] == single[name], name
    assert sharded["lost"] == single["lost"] and sharded["accuracy"] == single["accuracy"]
    gazetteers = [read_sidecar(sidecar(folder / name)) for name in ("out", "single.jsonl")]
    assert gazetteers[0].sha256 == gazetteers[1].sha256
    again = run(*args, "--out", "out", *SHARDS)
    assert "150 are done" in again.stderr and "150 documents," in again.stdout


def test_predict(run: Run, folder: Path) -> None:
    save(new_tagger(), folder / "run")
    run("predict", "run", "texts.jsonl", "--out", "single.jsonl")
    done = run("predict", "run", "texts.jsonl", "--out", "out", "--on", "processes", "--workers", "1", "--json")
    assert joined(folder / "out") == (folder / "single.jsonl").read_bytes()
    facts = json.loads(done.stdout)
    assert (facts["documents"], facts["words_unread"], facts["failed"]) == (150, 0, 0)
    assert facts["spans"] == sum(len(doc.spans) for doc in read(folder / "single.jsonl"))


def test_long_documents_fail_alone(run: Run, folder: Path) -> None:
    save(new_tagger(limit=512), folder / "run")
    with (folder / "texts.jsonl").open("a") as stream:
        stream.write(json.dumps({"id": "long", "text": "Mara " * 5000}) + "\n")
    args = ("predict", "run", "texts.jsonl", "--out", "out", *SHARDS, "--on-long", "error")
    assert "1 documents failed; the reasons are in out/failed" in run(*args).stderr
    assert "texts.jsonl:151\tlong\t" in (folder / "out" / "failed" / "00003.tsv").read_text()
    assert len(list(read(folder / "out"))) == 150


def test_urls(run: Run, folder: Path) -> None:
    pytest.importorskip("upath")
    run(*ANNOTATE, "--out", "single.jsonl", "--workers", "1")
    url = f"file://{folder}"
    run("annotate", f"{url}/texts.jsonl", *ANNOTATE[2:], "--out", f"{url}/out", *SHARDS)
    assert joined(folder / "out") == (folder / "single.jsonl").read_bytes()
    assert (folder / "out.gazetteer.json").exists()
    run("convert", "texts.jsonl", "texts.jsonl.gz")
    run("annotate", f"{url}/texts.jsonl.gz", *ANNOTATE[2:], "--out", f"{url}/packed", *SHARDS)
    assert joined(folder / "packed") == (folder / "single.jsonl").read_bytes()
    assert not (folder / "packed" / ".temporary").exists()
    # paths of `file://` are also paths of this machine; those of other protocols are not
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.pipe("/texts/a.jsonl", (folder / "texts.jsonl").read_bytes())
    memory.pipe("/texts/b.jsonl.gz", (folder / "texts.jsonl.gz").read_bytes())
    for name in ("texts/a.jsonl", "texts/b.jsonl.gz"):
        out = f"/{Path(name).stem}"
        for message in ("4 shards, 150 documents", "150 are done"):
            done = run("annotate", f"memory://{name}", *ANNOTATE[2:], "--out", f"memory:/{out}", *SHARDS)
            assert message in done.stderr
        written = sorted(memory.find(f"{out}/documents"))
        assert b"".join(map(memory.cat_file, written)) == (folder / "single.jsonl").read_bytes()
        assert not memory.exists(f"{out}/.temporary")
    assert "only work in shards can write to a URL" in run(*ANNOTATE, "--out", f"{url}/x.jsonl", status=2).stderr
    assert "fsspec cannot open this URL" in run("annotate", "no://x", *ANNOTATE[2:], "--out", "x", status=2).stderr


def test_parquet_in_and_out(run: Run, folder: Path) -> None:
    pytest.importorskip("pyarrow")
    run("convert", "texts.jsonl", "texts.parquet")
    run(*ANNOTATE, "--out", "single.jsonl", "--workers", "1")
    run("annotate", "texts.parquet", *ANNOTATE[2:], "--out", "out", "--format-out", "parquet", *SHARDS)
    docs = [doc for file in sorted((folder / "out" / "documents").iterdir()) for doc in read(file)]
    assert docs == list(read(folder / "single.jsonl"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--on", "processes", "--gold", "texts.jsonl"], "--gold needs all documents in one process"),
        (["--on", "processes", "--lint"], "leave out --lint or --on"),
        (["--on", "dask"], "--on is processes, ray or ray://HOST:PORT"),
        (["--shard-size", "5"], "--shard-size is for work in shards: add --on processes"),
    ],
)
def test_options_that_do_not_go_together(run: Run, folder: Path, options: list[str], message: str) -> None:
    assert message in run(*ANNOTATE, "--out", "out", *options, status=2).stderr


def test_output_is_a_folder(run: Run, folder: Path) -> None:
    (folder / "file").write_text("")
    assert "--out is a folder: this is a file" in run(*ANNOTATE, "--out", "file", *SHARDS, status=2).stderr
    save(new_tagger(), folder / "run")
    for command in ((*ANNOTATE, "--out", "-"), ("predict", "run", "texts.jsonl")):
        assert "--on writes a folder, not to standard output" in run(*command, *SHARDS, status=2).stderr
    assert not (folder / "-").exists()


def test_output_inside_the_corpus_is_refused(run: Run, folder: Path) -> None:
    """The command that continues would label its own output."""
    (folder / "corpus").mkdir()
    command = ("annotate", "corpus", *ANNOTATE[2:], *SHARDS, "--out")
    assert "--out corpus/weak is inside the corpus corpus" in run(*command, "corpus/weak", status=2).stderr
    (folder / "elsewhere").symlink_to(folder / "corpus")
    assert "is inside the corpus" in run(*command, "elsewhere/weak", status=2).stderr


def test_audit_labels(run: Run, folder: Path) -> None:
    """Every issue is one that the model and the labels of its document give, and none is missing."""
    tagger = new_tagger("span")
    save(tagger, folder / "run")
    args = ("audit", "labels", "run", "texts.jsonl", "--workers", "1", "--min-score", "0.2")
    facts = json.loads(run(*args, "--out", "out", "--shard-size", "40", "--json").stdout)
    docs = list(read(folder / "texts.jsonl"))
    candidates = list(Tagger(tagger.model).predict(docs, threshold=0.0009))
    expected = label_issues(docs, candidates, min_score=0.2)
    lines = [line for file in sorted((folder / "out" / "issues").iterdir()) for line in file.read_text().splitlines()]
    assert sorted(json.loads(line)["id"] for line in lines) == sorted(issue.id for issue in expected)
    assert (facts["documents"], facts["issues"]) == (150, count_kinds(expected))
    assert sum(facts["issues"].values()) > 10
    assert "label issues in 150 documents" in run(*args, "--out", "out", "--shard-size", "40").stdout
