"""Training and prediction: `tiny` compared with spaCy's NER, heads with each other, transformers with its pipeline.

Data: BC5CDR if it is available, otherwise the demo corpus. Both sides are trained on the same sentences, in batches of
the same number of words, in turns. Times are the CPU time of the process.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.speed.row import Row
from lacuner.data import Document

WORDS_PER_BATCH = 500
ROOT = Path(__file__).resolve().parent.parent.parent


def documents(count: int) -> list[Document]:
    from lacuner.corpus import read
    from lacuner.demo import build

    path = ROOT.parent / "shared" / "data" / "bc5cdr" / "train.gold.conll"
    docs = list(read(path, complete=True)) if path.exists() else build().train
    return docs[:count]


def in_turns(
    sides: dict[str, Callable[[], object]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Return the seconds of each side per round, without the first round, which warms up."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, work in sides.items():
            start = clock()
            work()
            if number:
                times[name].append(clock() - start)
    return times


def ratio(times: dict[str, list[float]], ours: str, theirs: str) -> float:
    return median(b / a for a, b in zip(times[ours], times[theirs], strict=True))


def spacy_docs(docs: Sequence[Document], vocab: Any) -> list[Any]:
    from spacy.tokens import Doc, Span

    from lacuner.corpus.words import word_texts

    converted = []
    for doc in docs:
        words = doc.words or ()
        new = Doc(vocab, words=word_texts(doc))
        starts, ends = {a: i for i, (a, _) in enumerate(words)}, {b: i + 1 for i, (_, b) in enumerate(words)}
        new.set_ents([Span(new, starts[s.start], ends[s.end], s.label) for s in doc.spans])
        converted.append(new)
    return converted


def measure_tiny(quick: bool) -> list[Row]:
    """CPU time of one epoch of each model, then of one prediction of each."""
    import spacy
    from spacy.training import Example
    from spacy.training.batchers import minibatch_by_words

    from lacuner.data import Lost
    from lacuner.models.config import EncoderConfig, HeadConfig
    from lacuner.models.tagger import Tagger
    from lacuner.recipes.negative_sampling import Config as SamplingConfig
    from lacuner.recipes.negative_sampling import sampling_step
    from lacuner.training.batches import epoch_batches
    from lacuner.training.config import RecipeConfig, TrainConfig
    from lacuner.training.dataset import training_set, weak_training_set
    from lacuner.training.loop import _Trainer, limit_threads
    from lacuner.training.run_folder import Run
    from lacuner.training.stage import new_model
    from lacuner.training.steps import loss_step

    docs = documents(400 if quick else 1500)
    words = sum(len(doc.words or ()) for doc in docs)
    nlp = spacy.blank("en")
    nlp.add_pipe("ner")
    golds = spacy_docs(docs, nlp.vocab)
    examples = [Example(type(doc)(nlp.vocab, words=[token.text for token in doc]), doc) for doc in golds]
    optimizer = nlp.initialize(lambda: examples)

    def theirs() -> None:
        random.shuffle(examples)
        for batch in minibatch_by_words(examples, WORDS_PER_BATCH):
            nlp.update(batch, sgd=optimizer, drop=0.1)

    sides: dict[str, Callable[[], object]] = {"spacy": theirs}
    taggers = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("token", "span", "weighted", "tiny-en"):
            run = Run(Path(folder) / kind, {"seed": 1})
            head = HeadConfig(kind="token") if kind in ("token", "tiny-en") else HeadConfig(kind="span", width=10)
            encoder = EncoderConfig(name="tiny-en" if kind == "tiny-en" else "tiny")
            model = new_model(RecipeConfig(encoder=encoder, head=head), docs, run)
            if kind == "weighted":
                weak = weak_training_set(model, [replace(doc, complete=False) for doc in docs], Lost())
                data, step = weak.as_annotated, sampling_step(weak, SamplingConfig(sampler="weighted"), 0)
            else:
                data = training_set(model, docs, Lost())
                step = loss_step(data)
            config = TrainConfig(epochs=50, learning_rate=2e-3, head_learning_rate=2e-3, budget=WORDS_PER_BATCH)
            trainer = _Trainer(model, data.features, config, run.stage("train"))
            sides[kind] = _epoch(trainer, step, epoch_batches, limit_threads)
            taggers[kind] = Tagger(model)
        times = in_turns(sides, 3 if quick else 4, time.process_time)
    bare = [replace(doc, spans=()) for doc in docs]

    def predict_theirs() -> int:
        unlabeled = (type(doc)(nlp.vocab, words=[token.text for token in doc]) for doc in golds)
        return sum(len(doc.ents) for doc in nlp.pipe(unlabeled, batch_size=256))

    reading = in_turns(
        {
            "spacy": predict_theirs,
            "token": lambda: sum(len(doc.spans) for doc in taggers["token"].predict(bare)),
            "span": lambda: sum(len(doc.spans) for doc in taggers["span"].predict(bare)),
            "tiny-en": lambda: sum(len(doc.spans) for doc in taggers["tiny-en"].predict(bare)),
        },
        3 if quick else 4,
        time.process_time,
    )
    speed = {name: words / median(seconds) for name, seconds in times.items()}
    read = {name: words / median(seconds) for name, seconds in reading.items()}
    return [
        Row(
            "train tiny + token head, words/s",
            speed["token"],
            speed["spacy"],
            "spaCy NER",
            ratio(times, "token", "spacy"),
            1.5,
        ),
        Row(
            "train span head, width 10, words/s",
            speed["span"],
            speed["token"],
            "our token head",
            ratio(times, "span", "token"),
            0.6,
        ),
        Row(
            "train with weighted negatives, words/s",
            speed["weighted"],
            speed["span"],
            "our span head",
            ratio(times, "weighted", "span"),
            0.77,
        ),
        Row(
            "predict tiny + token head, words/s",
            read["token"],
            read["spacy"],
            "spaCy NER",
            ratio(reading, "token", "spacy"),
            1.0,
        ),
        Row(
            "train tiny-en + token head, words/s",
            speed["tiny-en"],
            speed["token"],
            "our tiny",
            ratio(times, "tiny-en", "token"),
            1 / 1.6,
        ),
        Row(
            "train tiny-en + token head, words/s",
            speed["tiny-en"],
            speed["spacy"],
            "spaCy NER",
            ratio(times, "tiny-en", "spacy"),
            1.0,
        ),
        Row(
            "predict tiny-en + token head, words/s",
            read["tiny-en"],
            read["token"],
            "our tiny",
            ratio(reading, "tiny-en", "token"),
            1 / 1.4,
        ),
        Row(
            "predict tiny-en + token head, words/s",
            read["tiny-en"],
            read["spacy"],
            "spaCy NER",
            ratio(reading, "tiny-en", "spacy"),
            1.0,
        ),
        Row(
            "predict tiny + span head, words/s",
            read["span"],
            read["spacy"],
            "spaCy NER",
            ratio(reading, "span", "spacy"),
            1.0,
        ),
    ]


def _epoch(trainer: Any, step: Any, batches: Any, threads: Any) -> Callable[[], None]:
    def epoch() -> None:
        trainer.model.train()
        with threads(trainer.model):  # as `fit` does
            for indices in batches(trainer.features.costs, WORDS_PER_BATCH, 1):
                trainer._update(step, indices, 0)

    return epoch


def measure_help(quick: bool) -> list[Row]:
    """Compare `lacuner --help` with importing its libraries; it may take at most twice as long."""

    def seconds(*code: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, *code], capture_output=True, check=True)
        return time.perf_counter() - start

    both = [
        (seconds("-m", "lacuner", "--help"), seconds("-c", "import typer, rich.console, rich.table"))
        for _ in range(3 if quick else 7)
    ]
    return [
        Row(
            "lacuner --help, seconds",
            median(a for a, _ in both),
            median(b for _, b in both),
            "import typer, rich",
            median(b / a for a, b in both),
            0.5,
        )
    ]


def measure_loading(quick: bool) -> list[Row]:
    """The CPU time to load each shipped encoder, compared with 0.3 seconds."""
    from lacuner.models.config import EncoderConfig
    from lacuner.models.encoders import SHIPPED, open_encoder

    rows = []
    for name in SHIPPED:
        times = in_turns(
            {name: lambda name=name: open_encoder(EncoderConfig(name=name), ())}, 3 if quick else 7, time.process_time
        )
        seconds = median(times[name])
        rows.append(Row(f"load {name}, seconds", seconds, 0.3, "limit", 0.3 / seconds, 1.0))
    return rows


def measure(quick: bool = False) -> list[Row]:
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from benchmarks.speed.pretrained import measure_pretrained

    return [*measure_tiny(quick), *measure_loading(quick), *measure_pretrained(quick), *measure_help(quick)]
