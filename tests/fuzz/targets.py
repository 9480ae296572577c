"""What is fuzzed: every reader of a file that may come from somebody else, as a function of its bytes.

A target returns if the file was read or refused with one sentence (`LacunerError`); any other exception is a bug. A
target has seeds in `seeds/NAME/`: small valid files. `test_targets.py` mutates them in the normal tier,
`test_atheris.py` with coverage guidance in the slow one.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from lacuner.annotate import load_gazetteer
from lacuner.annotate.gazetteer.load import GAZETTEER_FORMATS
from lacuner.annotate.knowledge import KNOWLEDGE_FORMATS, KnowledgeFile, build_gazetteer
from lacuner.annotate.patterns import read_patterns
from lacuner.corpus import FORMATS, read
from lacuner.errors import LacunerError
from tests.annotate.knowledge.test_readers import ENDINGS as KNOWLEDGE_ENDINGS
from tests.hostile.test_readers import SAMPLE
from tests.strategies import ENDINGS as CORPUS_ENDINGS

SEEDS = Path(__file__).parent / "seeds"


@cache
def scratch() -> Path:
    """A folder of this process; in memory where there is such a place, because fuzzing writes thousands of files."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="lacuner-fuzz-", dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def put(name: str, data: bytes) -> Path:
    path = scratch() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def read_corpus(name: str, data: bytes) -> None:
    path = put(f"corpus/x{CORPUS_ENDINGS[name]}", data)
    if name == "brat":
        path.with_name("x.txt").write_text(SAMPLE[0].text)
    for doc in read(path, format=name):
        json.dumps([doc.id, doc.text, doc.meta], ensure_ascii=False).encode()


def read_gazetteer(name: str, data: bytes) -> None:
    gazetteer = load_gazetteer(put(f"x.{name}", data))
    assert len(gazetteer) and all("\n" not in str(problem) for problem in gazetteer.problems)


def read_knowledge(name: str, data: bytes) -> None:
    out = scratch() / "built.tsv"
    build_gazetteer([KnowledgeFile(put(KNOWLEDGE_ENDINGS[name], data), label="X")], out, format=name)


def read_settings(data: bytes) -> None:
    from lacuner.config import load_config
    from lacuner.recipes import RECIPES

    load_config(RECIPES["trust"].Config, put("x.toml", data))


def read_bench_spec(data: bytes) -> None:
    from lacuner.bench.spec import load_spec

    load_spec(put("spec.toml", data), scratch())


def read_bench_rows(data: bytes) -> None:
    """Read rows, and write all tables with them."""
    from lacuner.bench.report import result_tables, results_markdown
    from lacuner.bench.rows import read_rows
    from lacuner.bench.runner import open_bench
    from lacuner.bench.spec import load_spec
    from lacuner.bench.summary import paired_tests, summarise
    from tests.bench.conftest import SMALL

    spec = load_spec(put("small.toml", SMALL.encode()), scratch())
    out = put("bench/results.jsonl", data).parent
    bench = open_bench(spec, scratch(), out)
    # whatever their keys are: those of the spec change with the defaults of recipes
    bench.rows = dict(zip(bench.cells, read_rows(out).values(), strict=False))
    lines = summarise(bench)
    results_markdown(bench, list(result_tables(bench, lines, list(paired_tests(lines, spec)))), "")


def read_run(data: bytes) -> None:
    """`run.json` of a folder in which a run is started."""
    from lacuner.training.run_folder import Run, stored_identity

    folder = put("run/run.json", data).parent
    stored_identity(folder)
    with Run(folder, {"seed": 1, "recipe": "trust"}).locked():
        pass


def read_stage(data: bytes) -> None:
    """`state.json` of a stage that is resumed."""
    from lacuner.training.run_folder import Run

    put("stage/stages/train/state.json", data)
    Run(scratch() / "stage", {"seed": 1}).stage("train")


def read_run_files(data: bytes) -> None:
    """The smaller files of a finished run."""
    from lacuner.audit.sampling import read_metrics
    from lacuner.export.source import best_dev_f1, stored_texts
    from lacuner.techniques.hidden_entries import read_operating_point
    from lacuner.trainer.comparison import read_comparison

    names = ("metrics.jsonl", "comparison.json", "operating_point.json", "label_issues.jsonl")
    for name in names:
        put(f"finished/{name}", data)
    folder = scratch() / "finished"
    best_dev_f1(folder)
    stored_texts(folder, 10)
    for function in (read_metrics, read_comparison, read_operating_point):
        try:
            function(folder)
        except LacunerError as error:
            assert "\n" not in str(error)


@cache
def model_files() -> tuple[Path, dict[str, Any]]:
    """A small saved model and its config."""
    from tests.hostile.test_model_folders import MODELS, new_folder

    folder = scratch() / "model"
    return folder, new_folder(*MODELS["tiny, span"], folder)


def read_model_config(data: bytes) -> None:
    """`config.json` of a model folder; the weights beside it are those of a small model."""
    from lacuner.models.storage import CONFIG, load

    folder, _ = model_files()
    (folder / CONFIG).write_bytes(data)
    load(folder)


def read_sidecar(data: bytes) -> None:
    from lacuner.models.gazetteer import parse_gazetteer

    gazetteer = parse_gazetteer(data, scratch() / "gazetteer.json")
    gazetteer.find(SAMPLE[0])


def read_huggingface_config(data: bytes) -> None:
    from lacuner.models.encoders.huggingface_config import check_config_file, check_model_config

    path = put("config.json", data)
    check_model_config(check_config_file(path), path)


def read_decisions(data: bytes) -> None:
    """Read decisions, apply them, and append one more."""
    from lacuner.review.apply import apply_decisions
    from lacuner.review.decisions import Decision, DecisionLog

    log = DecisionLog(put("decisions.jsonl", data))
    apply_decisions(SAMPLE, log.state().effective())
    log.append(Decision("skip"))
    assert log.read()[-1].action == "skip"


QUEUE_FILES = ("queue.json", "queue.jsonl", "sentences.jsonl", "documents.jsonl")


def read_queue(name: str, data: bytes) -> None:
    """One file of a review queue, beside the others of an empty one."""
    from lacuner.review.queue import open_queue

    empty = {"queue.json": b'{"format": 1, "labels": [], "facts": {}}', "queue.jsonl": b"", "sentences.jsonl": b""}
    empty["documents.jsonl"] = (SEEDS / "queue-documents.jsonl" / "sample").read_bytes()
    for file, content in {**empty, name: data}.items():
        put(f"queue/review/{file}", content)
    open_queue(scratch() / "queue")


def read_regular_expressions(data: bytes) -> None:
    read_patterns(put("patterns.txt", data))


TARGETS: dict[str, Callable[[bytes], None]] = {
    **{f"corpus-{name}": partial(read_corpus, name) for name in FORMATS},
    **{f"gazetteer-{name}": partial(read_gazetteer, name) for name in GAZETTEER_FORMATS},
    **{f"knowledge-{name}": partial(read_knowledge, name) for name in KNOWLEDGE_FORMATS},
    **{f"queue-{name}": partial(read_queue, name) for name in QUEUE_FILES},
    "settings": read_settings,
    "bench-spec": read_bench_spec,
    "bench-rows": read_bench_rows,
    "patterns": read_regular_expressions,
    "run": read_run,
    "stage": read_stage,
    "run-files": read_run_files,
    "model-config": read_model_config,
    "model-gazetteer": read_sidecar,
    "huggingface-config": read_huggingface_config,
    "decisions": read_decisions,
}


def attempt(name: str, data: bytes) -> bool:
    """Run a target; returns whether the file was read, and raises if it is neither read nor refused in one sentence."""
    try:
        TARGETS[name](data)
    except LacunerError as error:
        assert "\n" not in str(error), f"more than one line: {error}"
        str(error).encode("utf-8", "surrogatepass")
        return False
    return True


def seeds(name: str) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted((SEEDS / name).iterdir())}
