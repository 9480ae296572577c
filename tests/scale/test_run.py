"""A run in shards: nothing is missing or double, it continues where it was killed, and all engines give equal bytes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from lacuner.corpus import read, write
from lacuner.data import Document
from lacuner.errors import ConfigError, CorpusError, ProcessLostError
from lacuner.processes import lock_folder
from lacuner.scale.engines import ProcessEngine, open_engine
from lacuner.scale.job import Record, ShardTask, _opened
from lacuner.scale.locations import location
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


def test_a_run_without_any_success_stops(corpus: Path) -> None:
    corpus.write_text("fail\n" * 5)
    with pytest.raises(CorpusError, match=r"no document could be processed; the first failed: .*:1: 1: ValueError"):
        new_run(corpus, "out").run(ProcessEngine(1))


def stop_after(count: int) -> object:
    """An engine that is interrupted after some shards."""

    def engine(task: ShardTask, shards: Sequence[Shard]) -> Iterator[tuple[Shard, Record]]:
        for shard in shards[:count]:
            yield shard, task(shard)
        raise KeyboardInterrupt

    return engine


def test_the_same_command_continues(corpus: Path, tmp_path: Path) -> None:
    new_run(corpus, "whole").run(ProcessEngine(1))
    with pytest.raises(KeyboardInterrupt):
        new_run(corpus, "out").run(stop_after(2))  # type: ignore[arg-type]
    (tmp_path / "out" / "documents" / ".00002.jsonl.part").write_text("half a li")  # as if killed while writing
    done: list[str] = []

    def engine(task: ShardTask, shards: Sequence[Shard]) -> Iterator[tuple[Shard, Record]]:
        done.extend(shard.name for shard in shards)
        return ProcessEngine(1)(task, shards)

    new_run(corpus, "out").run(engine)
    assert done == ["00002", "00003", "00004", "00005", "00006"]
    assert files(tmp_path / "out") == files(tmp_path / "whole")


def test_converted_documents_at_a_url_are_removed_if_the_run_stops(corpus: Path, tmp_path: Path) -> None:
    pytest.importorskip("upath")
    write([Document(str(i), text) for i, text in enumerate(TEXTS)], tmp_path / "texts.jsonl.gz")
    out = location(f"file://{tmp_path}/out")
    with pytest.raises(KeyboardInterrupt):
        run = ShardedRun(WordCount(str(tmp_path / "log")), Corpus(tmp_path / "texts.jsonl.gz"), out, 3)
        run.run(stop_after(2))  # type: ignore[arg-type]
    assert len(list((tmp_path / "out" / "documents").iterdir())) == 2
    assert not (tmp_path / "out" / ".temporary").exists()


def test_only_changed_shards_are_done_again(corpus: Path, tmp_path: Path) -> None:
    new_run(corpus, "out").run(ProcessEngine(1))
    corpus.write_text("\n".join([*TEXTS[:4], "Mara stayed", *TEXTS[5:11]]) + "\n")
    done: list[str] = []

    def engine(task: ShardTask, shards: Sequence[Shard]) -> Iterator[tuple[Shard, Record]]:
        done.extend(shard.name for shard in shards)
        return ProcessEngine(1)(task, shards)

    new_run(corpus, "out").run(engine)
    new_run(corpus, "new").run(ProcessEngine(1))
    assert done == ["00001", "00003"]
    assert files(tmp_path / "out") == files(tmp_path / "new")


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
