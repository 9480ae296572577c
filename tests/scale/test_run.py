"""A run in shards: nothing is missing or double, it continues where it was killed, and all engines give equal bytes."""

from __future__ import annotations

import gzip
import os
import signal
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lacuner.corpus import read, write
from lacuner.data import Document
from lacuner.errors import ConfigError, CorpusError, ProcessLostError
from lacuner.processes import lock_folder
from lacuner.scale.engines import Engine, ProcessEngine, RunShards, open_engine
from lacuner.scale.job import Record, ShardTask, _opened
from lacuner.scale.locations import location, open_for_writing, write_file
from lacuner.scale.run import Progress, ShardedRun
from lacuner.scale.shards import Corpus, Shard
from tests.scale.runs import TEXTS, files, new_run, start_run
from tests.scale.word_count import WordCount


def test_one_row_per_document(corpus: Path, tmp_path: Path) -> None:
    summary = new_run(corpus, "out").run(ProcessEngine(1))
    docs = list(read(tmp_path / "out"))
    assert [doc.text for doc in docs] == TEXTS
    assert [doc.id for doc in docs] == [str(i) for i in range(1, 21)]
    lengths = {str(n): sum(len(text.split()) == n for text in TEXTS) for n in (5, 6, 7)}
    assert summary["counts"]["documents"] == 20
    assert set(summary["counts"]["lengths"]) == set(lengths)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        ".lock",
        "documents",
        "manifest.json",
        "records",
        "summary.json",
    ]


def test_failed_documents_are_listed_with_the_reason(corpus: Path, tmp_path: Path) -> None:
    corpus.write_text("\n".join(["Mara fails", *TEXTS[:4], "Teel\tfails", "Mara stays"]) + "\n")
    progress: list[Progress] = []
    run = ShardedRun(WordCount(str(tmp_path / "log")), Corpus(corpus), tmp_path / "out", 3, on_progress=progress.append)
    summary = run.run(ProcessEngine(1))
    assert (summary["failed"], summary["counts"]["documents"]) == (2, 5)
    assert [doc.text for doc in read(tmp_path / "out")] == [*TEXTS[:4], "Mara stays"]
    rows = [file.read_text().splitlines() for file in sorted((tmp_path / "out" / "failed").iterdir())]
    assert rows == [
        ["where\tid\treason", f"{corpus}:1\t1\tValueError: cannot count 'Mara fails'"],
        ["where\tid\treason", f"{corpus}:6\t6\tValueError: cannot count 'Teel\\tfails'"],
    ]
    assert (progress[-1].done, progress[-1].total, progress[-1].failed) == (7, 7, 2)


def test_unreadable_documents_are_listed(tmp_path: Path) -> None:
    corpus = tmp_path / "a.jsonl"
    corpus.write_text('{"text": "Mara left"}\n{"txt": "?"}\n{"text": "Teel left"}\nnot JSON\n')
    summary = new_run(corpus, "out", size=2).run(ProcessEngine(1))
    assert (summary["failed"], summary["counts"]["documents"]) == (2, 2)
    lines = "".join(file.read_text() for file in sorted((tmp_path / "out" / "failed").iterdir()))
    assert f"{corpus}:2\t\tthere is neither `text`" in lines and f"{corpus}:4\t\tthis line is not JSON" in lines


def test_a_corpus_whose_name_is_not_unicode(tmp_path: Path) -> None:
    """The name is in the manifest, and in the reasons of failures."""
    corpus = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt"))
    corpus.write_text("Mara left\nMara fails\n")
    packed = corpus.with_suffix(".jsonl.gz")
    packed.write_bytes(gzip.compress(b'{"text": "Teel left"}\n{"txt": "?"}\n'))
    for path, out in ((corpus, "out"), (packed, "packed")):
        summary = new_run(path, out, size=1).run(ProcessEngine(1))
        assert (summary["failed"], summary["counts"]["documents"]) == (1, 1)
        assert new_run(path, out, size=1).run(ProcessEngine(1)) == summary
    assert "caf?.txt:2\t2\t" in (tmp_path / "out" / "failed" / "00001.tsv").read_text()


def test_a_run_without_any_success_stops(corpus: Path) -> None:
    corpus.write_text("fail\n" * 5)
    with pytest.raises(CorpusError, match=r"no document could be processed; the first failed: .*:1: 1: ValueError"):
        new_run(corpus, "out").run(ProcessEngine(1))


def test_records_are_not_kept_in_memory(corpus: Path) -> None:
    """They count every gazetteer entry that was found: a megabyte per shard in a large job."""

    class TrackedRecord(dict[str, Any]):
        pass

    records: list[weakref.ref[TrackedRecord]] = []
    alive: list[int] = []

    def run_shards(task: ShardTask, shards: Sequence[Shard]) -> Iterator[tuple[Shard, Record]]:
        for shard in shards:
            record = TrackedRecord(task(shard))
            records.append(weakref.ref(record))
            yield shard, record
            del record
            alive.append(sum(reference() is not None for reference in records))

    summary = new_run(corpus, "out").run(lambda task: nullcontext(partial(run_shards, task)))
    assert summary["counts"]["documents"] == len(TEXTS) and len(records) == 7
    assert max(alive) <= 1, "the one that was added last"


def test_the_summary_of_a_run_that_continues_is_whole(corpus: Path, tmp_path: Path) -> None:
    whole = new_run(corpus, "whole").run(ProcessEngine(1))
    with pytest.raises(KeyboardInterrupt):
        new_run(corpus, "out").run(stop_after(3))
    assert new_run(corpus, "out").run(ProcessEngine(1)) == whole
    assert list(whole["counts"]) == sorted(whole["counts"]), "shards finish in any order"


def stop_after(count: int) -> Engine:
    """An engine that is interrupted after some shards."""

    def run_shards(task: ShardTask, shards: Sequence[Shard]) -> Iterator[tuple[Shard, Record]]:
        for shard in shards[:count]:
            yield shard, task(shard)
        raise KeyboardInterrupt

    return lambda task: nullcontext(partial(run_shards, task))


def list_shards(names: list[str]) -> Engine:
    """An engine that adds the names of the shards that it runs to a list."""

    @contextmanager
    def engine(task: ShardTask) -> Iterator[RunShards]:
        with ProcessEngine(1)(task) as run_shards:
            yield lambda shards: (names.extend(shard.name for shard in shards), run_shards(shards))[1]

    return engine


def test_the_same_command_continues(corpus: Path, tmp_path: Path) -> None:
    new_run(corpus, "whole").run(ProcessEngine(1))
    with pytest.raises(KeyboardInterrupt):
        new_run(corpus, "out").run(stop_after(2))
    (tmp_path / "out" / "documents" / ".00002.jsonl.part").write_text("half a li")  # as if killed while writing
    done: list[str] = []
    new_run(corpus, "out").run(list_shards(done))
    assert done == ["00002", "00003", "00004", "00005", "00006"]
    assert files(tmp_path / "out") == files(tmp_path / "whole")


def test_converted_documents_at_a_url_are_removed_if_the_run_stops(corpus: Path, tmp_path: Path) -> None:
    pytest.importorskip("upath")
    write([Document(str(i), text) for i, text in enumerate(TEXTS)], tmp_path / "texts.jsonl.gz")
    out = location(f"file://{tmp_path}/out")
    with pytest.raises(KeyboardInterrupt):
        run = ShardedRun(WordCount(str(tmp_path / "log")), Corpus(tmp_path / "texts.jsonl.gz"), out, 3)
        run.run(stop_after(2))
    assert len(list((tmp_path / "out" / "documents").iterdir())) == 2
    assert not (tmp_path / "out" / ".temporary").exists()


def test_only_changed_shards_are_done_again(corpus: Path, tmp_path: Path) -> None:
    new_run(corpus, "out").run(ProcessEngine(1))
    corpus.write_text("\n".join([*TEXTS[:4], "Mara stayed", *TEXTS[5:11]]) + "\n")
    done: list[str] = []
    new_run(corpus, "out").run(list_shards(done))
    new_run(corpus, "new").run(ProcessEngine(1))
    assert done == ["00001", "00003"]
    assert files(tmp_path / "out") == files(tmp_path / "new")


def test_a_record_is_never_older_than_its_output(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The input changes, the run is killed between output and record, and the input is as before again."""
    new_run(corpus, "out").run(ProcessEngine(1))
    whole = files(tmp_path / "out")

    def die(path: Path, record: Record) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("lacuner.scale.job.write_json", die)
        corpus.write_text("Mara stayed\n")
        new_run(corpus, "out").run(ProcessEngine(1))
    assert files(tmp_path / "out")["documents/00000.jsonl"] != whole["documents/00000.jsonl"]
    corpus.write_text("\n".join(TEXTS) + "\n")
    new_run(corpus, "out").run(ProcessEngine(1))
    assert files(tmp_path / "out") == whole


def test_other_settings_need_another_folder(corpus: Path, tmp_path: Path) -> None:
    new_run(corpus, "out").run(ProcessEngine(1))
    for other in (new_run(corpus, "out", WordCount("log", setting=2)), new_run(corpus, "out", size=4)):
        with pytest.raises(ConfigError, match="output of other settings or models: choose another --out"):
            other.run(ProcessEngine(1))


def test_engines_have_names() -> None:
    with pytest.raises(ConfigError, match="--on is processes, ray or ray://HOST:PORT, not 'spark'"):
        open_engine("spark", None)


@pytest.mark.integration
@pytest.mark.parametrize("forkable", [True, False])
def test_processes_give_the_same_bytes(corpus: Path, tmp_path: Path, forkable: bool) -> None:
    new_run(corpus, "whole").run(ProcessEngine(1))
    _opened.clear()
    job = WordCount(str(tmp_path / "log"), forkable=forkable, seconds=0.05)
    new_run(corpus, "out", job).run(ProcessEngine(2))
    assert files(tmp_path / "out") == files(tmp_path / "whole")
    opened = (tmp_path / "log").read_text().split()
    assert len(opened) == (1 if forkable else len(set(opened)))  # once per worker, or once for all of them
    assert len(opened) <= 2


@pytest.mark.integration
def test_a_killed_worker_is_replaced(corpus: Path, tmp_path: Path) -> None:
    corpus.write_text("\n".join([*TEXTS[:7], "kill", *TEXTS[7:]]) + "\n")
    new_run(corpus, "whole", WordCount(str(tmp_path / "whole.log"), kills=0)).run(ProcessEngine(1))
    _opened.clear()
    new_run(corpus, "out").run(ProcessEngine(2))
    assert (tmp_path / "out.log.killed").exists()
    assert files(tmp_path / "out") == files(tmp_path / "whole")


@pytest.mark.integration
def test_a_shard_that_always_kills_its_worker_ends_the_run(corpus: Path, tmp_path: Path) -> None:
    corpus.write_text("kill\n" + "\n".join(TEXTS) + "\n")
    job = WordCount(str(tmp_path / "log"), kills=99)
    with pytest.raises(ProcessLostError, match=r"shard 00000: its worker was killed 3 times.*fewer --workers"):
        new_run(corpus, "out", job).run(ProcessEngine(2))


@pytest.mark.integration
def test_a_killed_run_continues(corpus: Path, tmp_path: Path) -> None:
    new_run(corpus, "whole").run(ProcessEngine(1))
    process = start_run(corpus, tmp_path / "out", "processes")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    while True:  # workers notice a little later that the process is gone, and hold the lock of the folder until then
        try:
            with lock_folder(tmp_path / "out"):
                break
        except ConfigError:
            time.sleep(0.05)
    assert 1 <= len(list((tmp_path / "out" / "records").glob("0*.json"))) < 7
    new_run(corpus, "out").run(ProcessEngine(1))
    assert files(tmp_path / "out") == files(tmp_path / "whole")


def test_a_corpus_of_which_nothing_can_be_read(tmp_path: Path) -> None:
    """It is converted first, because it is compressed: the error is the same as that of the plain file."""
    with gzip.open(tmp_path / "a.jsonl.gz", "wt") as stream:
        stream.write('{"txt": "Mara"}\n' * 2)
    with pytest.raises(CorpusError, match=r"no document could be read; the first failed: .*gz:1: .*--text-field"):
        new_run(tmp_path / "a.jsonl.gz", "out").run(ProcessEngine(1))
    assert len((tmp_path / "out" / "failed" / "unreadable.tsv").read_text().splitlines()) == 3


def test_there_is_no_summary_before_all_is_done(corpus: Path, tmp_path: Path) -> None:
    new_run(corpus, "out").run(ProcessEngine(1))
    corpus.write_text("\n".join(reversed(TEXTS)) + "\n")
    with pytest.raises(KeyboardInterrupt):
        new_run(corpus, "out").run(stop_after(2))
    assert not (tmp_path / "out" / "summary.json").exists()
    new_run(corpus, "out").run(ProcessEngine(1))
    assert (tmp_path / "out" / "summary.json").exists()


@pytest.mark.parametrize("manifest", ["[1]", "{}", '{"job": [1], "shard_size": 3}'])
def test_a_manifest_that_is_not_ours(corpus: Path, tmp_path: Path, manifest: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest.json").write_text(manifest)
    with pytest.raises(ConfigError, match="choose another --out"):
        new_run(corpus, "out").run(ProcessEngine(1))


def test_two_writers_of_the_same_url(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray may try a shard again while the first worker still writes; if a writer fails, nothing of it is left."""
    pytest.importorskip("upath")
    memory = pytest.importorskip("fsspec").filesystem("memory")
    place = location("memory://two/writers.txt")
    with open_for_writing(place) as first:
        first.write_text("same")
        write_file(place, b"same")
    assert memory.cat("/two/writers.txt") == b"same"

    def fail(*_: object) -> None:
        raise OSError("no connection")

    monkeypatch.setattr(type(memory), "mv", fail)
    with pytest.raises(OSError, match="no connection"):
        write_file(place, b"new")
    assert memory.find("/two") == ["/two/writers.txt"]


def test_a_url_that_cannot_be_opened_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    upath = pytest.importorskip("upath")

    def fail(text: str) -> None:
        raise RuntimeError("no credentials")

    monkeypatch.setattr(upath, "UPath", fail)
    with pytest.raises(ConfigError, match="s3://texts/a: fsspec cannot open this URL: no credentials"):
        location("s3://texts/a")


def test_a_shard_whose_output_is_gone_is_done_again(corpus: Path, tmp_path: Path) -> None:
    new_run(corpus, "out").run(ProcessEngine(1))
    whole = files(tmp_path / "out")
    (tmp_path / "out" / "documents" / "00002.jsonl").unlink()
    done: list[str] = []
    new_run(corpus, "out").run(list_shards(done))
    assert done == ["00002"] and files(tmp_path / "out") == whole
