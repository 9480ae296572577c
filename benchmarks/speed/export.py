"""Exports: documents per second of lacuner, the spaCy export, ONNX and int8, beside spaCy's NER and the HF pipeline.

All sides read the same texts from scratch, with one thread, in turns; CPU time is measured. Data: BC5CDR if it is
available, otherwise the demo corpus. Both taggers are trained for two epochs, so that they predict a realistic number
of entities.
"""

from __future__ import annotations

import importlib.util
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.speed.models import documents, in_turns, ratio, spacy_docs
from benchmarks.speed.row import Row
from lacuner.data import Document

EPOCHS = 2


def load_program(folder: Path) -> Any:
    """The tagger of an ONNX export, with one thread."""
    spec = importlib.util.spec_from_file_location(f"tagger_{folder.name}", folder / "tagger.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Tagger(folder, threads=1)


def write_exports(run: Path, tagger: Any, targets: Sequence[str]) -> dict[str, Path]:
    """Write exports without their proofs: the speed of a model does not depend on them."""
    from lacuner.export.export import EXPORTERS
    from lacuner.export.options import ExportOptions
    from lacuner.export.source import ExportSource

    folders = {}
    for name in targets:
        folders[name] = run.parent / f"{run.name}_{name}"
        options = ExportOptions(int8=name == "int8", language="en" if name == "spacy" else None)
        EXPORTERS["onnx" if name == "int8" else name].write(ExportSource(run, tagger), folders[name], options)
    return folders


def train_spacy(docs: Sequence[Document]) -> Any:
    """spaCy's default NER, trained on the documents."""
    import spacy
    from spacy.training import Example
    from spacy.training.batchers import minibatch_by_words

    nlp = spacy.blank("en")
    nlp.add_pipe("ner")
    examples = [Example(type(doc)(nlp.vocab, words=[t.text for t in doc]), doc) for doc in spacy_docs(docs, nlp.vocab)]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(EPOCHS):
        random.Random(1).shuffle(examples)
        for batch in minibatch_by_words(examples, 500):
            nlp.update(batch, sgd=optimizer, drop=0.1)
    return nlp


def measure_tiny(quick: bool, folder: Path) -> list[Row]:
    import spacy

    from lacuner.config import make_config
    from lacuner.data import Splits
    from lacuner.recipes import find_recipe
    from lacuner.trainer.train import train

    docs = documents(300 if quick else 1500)
    config = make_config(
        find_recipe("trust").Config,
        {"train": {"epochs": EPOCHS}, "encoder": {"name": "tiny"}, "head": {"kind": "span"}},
    )
    tagger: Any = train("trust", Splits(weak=docs), folder / "tiny", config).tagger
    theirs = train_spacy(docs)
    exports = write_exports(folder / "tiny", tagger, ("spacy", "onnx", "int8"))
    pipeline = spacy.load(exports["spacy"])
    programs = {name: load_program(exports[name]) for name in ("onnx", "int8")}
    texts = [doc.text for doc in docs]
    sides: dict[str, Callable[[], object]] = {
        "spaCy": lambda: sum(len(doc.ents) for doc in theirs.pipe(texts)),
        "lacuner": lambda: sum(len(doc.spans) for doc in tagger.predict([Document("", text) for text in texts])),
        "spacy export": lambda: sum(len(doc.ents) for doc in pipeline.pipe(texts)),
        "onnx": lambda: sum(map(len, programs["onnx"].predict(texts))),
        "int8": lambda: sum(map(len, programs["int8"].predict(texts))),
    }
    assert sides["onnx"]() == sides["lacuner"](), "the export must predict the same"
    times = in_turns(sides, 3 if quick else 5, time.process_time)
    speed = {name: len(texts) / median(seconds) for name, seconds in times.items()}

    def row(name: str, side: str, minimum: float) -> Row:
        return Row(
            f"{name}, documents/s", speed[side], speed["spaCy"], "spaCy CNN NER", ratio(times, side, "spaCy"), minimum
        )

    return [
        row("predict tiny + span head", "lacuner", 4.0),
        row("predict, spaCy export", "spacy export", 1.5),
        row("predict, ONNX export", "onnx", 2.0),
        row("predict, ONNX int8", "int8", 3.0),
    ]


def measure_transformer(quick: bool, folder: Path) -> list[Row]:
    """A transformer of MiniLM's size with random weights, compared with the transformers pipeline."""
    import torch

    from benchmarks.speed.pretrained import _document, pipeline_side, sentences, write_encoder
    from lacuner.models.encoders.huggingface import HuggingFaceConfig, open_huggingface
    from lacuner.models.heads import build_head
    from lacuner.models.model import Model
    from lacuner.models.tagger import Tagger

    torch.manual_seed(0)
    rows = sentences(100 if quick else 400)
    write_encoder(folder / "encoder", rows)
    encoder = open_huggingface(str(folder / "encoder"), HuggingFaceConfig(shapes=False))
    head: Any = build_head({"kind": "token", "labels": ["LOC", "PER"], "scheme": "IO", "dropout": 0.0}, encoder.width)
    with torch.no_grad():
        head.output.weight.mul_(20)
    tagger = Tagger(Model(encoder, head).eval())
    exports = write_exports(folder / "transformer", tagger, ("onnx", "int8"))
    programs = {name: load_program(path) for name, path in exports.items()}
    texts = [_document(words, "").text for words in rows]
    theirs = pipeline_side(folder / "encoder", head, texts)
    sides: dict[str, Callable[[], object]] = {
        "onnx": lambda: [{span[:3] for span in spans} for spans in programs["onnx"].predict(texts)],
        "int8": lambda: [{span[:3] for span in spans} for spans in programs["int8"].predict(texts)],
        "pipeline": theirs,
    }
    results: dict[str, Any] = {name: side() for name, side in sides.items()}
    same = {
        name: sum(a == b for a, b in zip(results[name], results["pipeline"], strict=True)) for name in ("onnx", "int8")
    }
    assert same["onnx"] >= 0.995 * len(texts), "the export must predict the same"
    times = in_turns(sides, 2 if quick else 3, time.process_time)
    speed = {name: len(texts) / median(seconds) for name, seconds in times.items()}
    return [
        Row(
            f"predict MiniLM-sized, {name}, documents/s ({same[name]} of {len(texts)} equal)",
            speed[name],
            speed["pipeline"],
            "transformers pipeline",
            ratio(times, name, "pipeline"),
            minimum,
        )
        for name, minimum in (("onnx", 1.5), ("int8", 2.2))
    ]


@contextmanager
def one_thread() -> Any:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def measure(quick: bool = False) -> list[Row]:
    """Goals: `tiny` 4 times spaCy's NER; MiniLM in ONNX 1.5 times the pipeline of transformers, in 8 bits 2.2 times."""
    import lacuner.export.spacy_component  # noqa: F401 (registers the component, installed or not)

    with tempfile.TemporaryDirectory() as name, one_thread():
        return [*measure_tiny(quick, Path(name)), *measure_transformer(quick, Path(name))]
