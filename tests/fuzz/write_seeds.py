"""Write the seeds of all targets: `python -m tests.fuzz.write_seeds`. Needed when a format or a target is added."""

from __future__ import annotations

import json
from pathlib import Path

from lacuner.annotate.gazetteer.load import GAZETTEER_FORMATS
from lacuner.corpus import FORMATS, write
from lacuner.review.decisions import Decision, Edit, text_hash
from tests.annotate.knowledge.test_readers import SEEDS as KNOWLEDGE
from tests.fuzz.targets import QUEUE_FILES, SEEDS, model_files, scratch
from tests.hostile.test_readers import SAMPLE
from tests.strategies import ENDINGS

GAZETTEERS = {
    "tsv": "surface\tlabel\tweight\tid\nHalden\tLOC\t0.5\tQ1\nMara Teel\tPER\t\t\n",
    "csv": 'item,itemLabel,itemAltLabel,class\nQ1,Halden,"Fredrikshald, H",LOC\n',
    "txt": "# places\nHalden\nMara Teel\n",
    "jsonl": '{"surface": "Halden", "label": "LOC", "weight": 0.5}\n{"label": "PER", "pattern": [{"LOWER": "mara"}]}\n'
    '{"id": "7", "terms": ["Teel", ["Oslo", "LOC"]]}\n',
    "json": '{"results": {"bindings": [{"surface": {"value": "Halden"}, "label": {"value": "LOC"}}]}}',
}
SETTINGS = 'train.epochs = 3\n[encoder]\nname = "tiny"\n[head]\nkind = "span"\n'
SPEC = 'seeds = [1]\nsettings = ["train.epochs=1"]\n[data.demo]\n[noise]\nmasked = [0.5]\n'
SPEC += '[recipes.trust]\nrecipe = "trust"\n'
IDENTITY = {"identity": {"recipe": "trust", "seed": 1, "config": {}, "data": {}}, "versions": {}, "machine": "x"}
STATE = {"epoch": 1, "step": 3, "rng": [1, 2], "tensors": "0123.safetensors", "sha256": "0" * 64}
METRICS = '{"stage": "train", "epoch": 0, "loss": 0.5, "dev": {"f1": 0.5, "precision": 0.5, "recall": 0.5}}\n'
COMPARISON = [{"system": "both", "correct": 1, "predicted": 2, "gold": 3, "low": 0.1, "high": 0.7}]
OPERATING_POINT = dict.fromkeys(("threshold", "new", "missing", "recall", "precision", "f1", "labels_f1"), 0.5) | {
    "length_odds": [0.5, 2]
}
ISSUE_LINE = '{"context": "in [Halden] now", "text": "Halden"}\n'
SIDECAR = {"format": 1, "case": "smart", "spacing": "given", "stop": ["Will"], "entries": [["Halden", "LOC"]]}
BERT = {"model_type": "bert", "hidden_size": 16, "attn_implementation": "sdpa", "id2label": {"0": "O"}}
PATTERNS = "# years\nYEAR=born in (?P<entity>[0-9]{4})\n=Mr[.] [A-Z][a-z]+\n"


def decisions() -> bytes:
    edit = Edit("a", text_hash(SAMPLE[0].text), "0123", SAMPLE[0].spans)
    rows = [Decision("accept", (edit,), number=1), Decision("undo", undoes=1, number=2)]
    return "".join(json.dumps(row.as_json()) + "\n" for row in rows).encode()


def queue_files() -> dict[str, bytes]:
    from lacuner.review.queue import save_queue
    from tests.review.conftest import small_queue

    folder = save_queue(small_queue(), scratch() / "seed queue")
    return {name: (folder / name).read_bytes() for name in QUEUE_FILES}


def spreadsheet() -> bytes:
    from openpyxl import Workbook

    book = Workbook()
    assert book.active is not None
    for row in (("surface", "label"), ("Halden", "LOC")):
        book.active.append(row)
    book.save(scratch() / "seed.xlsx")
    return (scratch() / "seed.xlsx").read_bytes()


def bench_rows() -> bytes:
    from lacuner.bench.rows import row_line
    from lacuner.bench.spec import load_spec
    from tests.bench.conftest import SMALL, invented

    (scratch() / "small.toml").write_text(SMALL)
    spec = load_spec(scratch() / "small.toml", scratch())
    return "".join(map(row_line, invented(spec).rows.values())).encode()


def all_seeds() -> dict[str, dict[str, bytes]]:
    seeds: dict[str, dict[str, bytes]] = {}
    for name in FORMATS:
        path = scratch() / f"good{ENDINGS[name]}"
        write(SAMPLE, path, format=name)
        seeds[f"corpus-{name}"] = {"written": (path / "a.ann" if name == "brat" else path).read_bytes()}
    seeds |= {f"gazetteer-{name}": {"entries": GAZETTEERS[name].encode()} for name in GAZETTEER_FORMATS}
    seeds |= {f"knowledge-{name}": {"sample": text.encode()} for name, text in KNOWLEDGE.items()}
    seeds["knowledge-xlsx"] = {"sample": spreadsheet()}
    seeds |= {f"queue-{name}": {"sample": data} for name, data in queue_files().items()}
    seeds |= {"settings": {"trust": SETTINGS.encode()}, "bench-spec": {"small": SPEC.encode()}}
    seeds |= {"bench-rows": {"invented": bench_rows()}, "patterns": {"patterns": PATTERNS.encode()}}
    seeds |= {"run": {"trust": json.dumps(IDENTITY).encode()}, "stage": {"trust": json.dumps(STATE).encode()}}
    seeds["run-files"] = {"metrics": METRICS.encode(), "issues": ISSUE_LINE.encode()}
    seeds["run-files"] |= {"comparison": json.dumps(COMPARISON).encode()}
    seeds["run-files"] |= {"operating_point": json.dumps(OPERATING_POINT).encode()}
    seeds["model-config"] = {"tiny": json.dumps(model_files()[1]).encode()}
    seeds["model-gazetteer"] = {"one": json.dumps(SIDECAR).encode()}
    seeds["model-gazetteer"]["two"] = json.dumps({**SIDECAR, "format": 2, "others": [SIDECAR]}).encode()
    seeds |= {"huggingface-config": {"bert": json.dumps(BERT).encode()}, "decisions": {"two": decisions()}}
    return seeds


def main() -> None:
    for target, files in all_seeds().items():
        for name, data in files.items():
            path = Path(SEEDS / target / name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


if __name__ == "__main__":
    main()
