"""No step takes more than linear work, whatever the documents are like: thousands of spans, labels, or equal texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from lacuner.advice import profile
from lacuner.advice.entity_ratio import entity_ratios
from lacuner.annotate import Entry, annotate, gazetteer_source
from lacuner.annotate.boundaries import NeighbourSample
from lacuner.annotate.lint import EntryPrecision, lint
from lacuner.annotate.report import ExampleSampler
from lacuner.annotate.sources import function_source
from lacuner.annotate.statistics import LabellingStatistics
from lacuner.audit.issues import label_issues
from lacuner.corpus.check import fix, span_problems
from lacuner.data import Document, Lost, Span
from lacuner.evaluate.align import align
from lacuner.evaluate.scores import score
from lacuner.noise import Noise, corrupt, measure
from lacuner.review.apply import apply_decisions
from lacuner.review.build import build_queue, useful_sentences
from lacuner.review.decisions import Decision, DecisionLog, ReviewState, text_hash
from lacuner.review.exchange import decisions_from, documents_to_annotate
from lacuner.review.queue import ReviewQueue
from lacuner.review.session import ReviewSession
from lacuner.techniques.label_issues import find_missing
from tests.growth import assert_linear_steps


class Corpus(NamedTuple):
    weak: list[Document]
    gold: list[Document]


def one_document(size: int, types: int = 5) -> Corpus:
    """One document with many spans; of three, one has a wrong type, one wrong boundaries, and one lacks its label."""
    text = "Mara Teel left " * size
    gold = [Span(15 * i, 15 * i + 9, f"L{i % types}") for i in range(size)]
    weak = [gold[i]._replace(label=f"L{(i + 1) % types}") for i in range(0, size, 3)]
    weak += [gold[i]._replace(end=gold[i].start + 4) for i in range(1, size, 3)]
    return Corpus(
        [Document("1", text, spans=tuple(weak), unsure=tuple(gold[2::3]))],
        [Document("1", text, spans=tuple(gold), complete=True)],
    )


def many_types(size: int) -> Corpus:
    return one_document(size, size)


def one_span_around_all(size: int) -> Corpus:
    weak, gold = one_document(size)
    around = Span(0, 15 * size - 1, "L0")
    return Corpus(
        [replace(weak[0], spans=(*weak[0].spans, around))], [replace(gold[0], spans=(*gold[0].spans, around))]
    )


def nested(size: int) -> Corpus:
    """Every weak label begins where the document does, and ends where another word does."""
    weak, gold = one_document(size)
    spans = tuple(Span(0, 15 * i + 9, f"L{i % 5}") for i in range(size))
    return Corpus([replace(weak[0], spans=spans)], gold)


def equal_texts(size: int) -> Corpus:
    """Documents with the same text, in another order in gold."""
    gold = [Document(f"d{i}", "Mara left", spans=(Span(0, 4, f"L{i % 5}"),), complete=True) for i in range(size)]
    return Corpus([replace(doc, spans=doc.spans[i % 2 :], complete=None) for i, doc in enumerate(gold)][::-1], gold)


CORPORA: dict[str, Callable[[int], Corpus]] = {
    "one document": one_document,
    "many types": many_types,
    "one span around all": one_span_around_all,
    "nested": nested,
    "equal texts": equal_texts,
}


def check_and_fix(corpus: Corpus) -> None:
    for doc in corpus.weak:
        list(span_problems(doc))
        fix(doc, Counter())


def annotate_and_report(corpus: Corpus) -> None:
    """Two sources that overlap, with all that a report collects."""
    entries = sorted({(doc.text[s.start : s.end], s.label) for doc in corpus.gold[:1] for s in doc.spans[:50]})
    sources = [gazetteer_source([Entry(*entry) for entry in entries]), function_source("weak", weak_spans(corpus.weak))]
    statistics = LabellingStatistics(neighbours=NeighbourSample())
    examples, precision = ExampleSampler(), EntryPrecision()
    by_id = {doc.id: doc for doc in corpus.gold}
    for doc in annotate(corpus.weak, sources, statistics=statistics):
        examples.add(doc, by_id[doc.id])
        precision.add(doc, by_id[doc.id])
    lint(sources[0], statistics, precision)
    examples.missed_entities()


def weak_spans(docs: Sequence[Document]) -> Callable[[Document], Sequence[Span]]:
    spans = {doc.id: doc.spans for doc in docs}
    return lambda doc: spans[doc.id]


def predicted(corpus: Corpus) -> list[Document]:
    """What a model might predict, for the weak documents: gold, with scores."""
    by_id = {doc.id: doc for doc in corpus.gold}
    spans = (
        tuple(span._replace(score=0.4 + 0.1 * (span.start % 5)) for span in by_id[d.id].spans) for d in corpus.weak
    )
    return [replace(doc, spans=own) for doc, own in zip(corpus.weak, spans, strict=True)]


def queue_of(corpus: Corpus) -> ReviewQueue:
    predictions = predicted(corpus)
    issues = label_issues(corpus.weak, predictions, min_score=0.0)
    return build_queue(corpus.weak, issues, useful_sentences(corpus.weak, predictions, limit=5))


def find_issues(corpus: Corpus) -> None:
    predictions = predicted(corpus)
    label_issues(corpus.weak, predictions, min_score=0.0)
    for doc, prediction in zip(corpus.weak, predictions, strict=True):
        rejected = tuple(span._replace(start=span.start + 1) for span in prediction.spans)
        find_missing(replace(doc, rejected=rejected), prediction.spans)


def to_another_tool_and_back(corpus: Corpus) -> None:
    queue = queue_of(corpus)
    annotated = [
        replace(doc, rejected=tuple(Span(issue.start, issue.end, "") for issue in queue.by_document.get(doc.id, ())))
        for doc in documents_to_annotate(queue, ReviewState())
    ]
    decisions_from(queue, annotated, Lost())


def decisions_of(corpus: Corpus) -> list[Decision]:
    queue = queue_of(corpus)
    actions = ("accept", "reject")
    decisions = (queue.decide(issue.id, actions[i % 2]) for i, issue in enumerate(queue.issues))  # type: ignore[arg-type]
    return [replace(decision, number=number) for number, decision in enumerate(decisions, 1)]


WORK: dict[str, Callable[[Corpus], object]] = {
    "check and fix": check_and_fix,
    "align": lambda corpus: list(align(corpus.gold, corpus.weak)),
    "score": lambda corpus: score(corpus.gold, corpus.weak),
    "measure": lambda corpus: measure(corpus.weak, corpus.gold),
    "corrupt": lambda corpus: list(corrupt(corpus.gold, Noise(drop=0.2, wrong_type=0.3, shift=0.5, spurious=0.9))),
    "profile": lambda corpus: profile(corpus.weak),
    "entity ratios": lambda corpus: entity_ratios(corpus.weak, {span.label for span in corpus.gold[0].spans}),
    "annotate, lint and report": annotate_and_report,
    "label issues": find_issues,
    "build a queue": queue_of,
    "another tool and back": to_another_tool_and_back,
    "decide and apply": lambda corpus: apply_decisions(corpus.weak, decisions_of(corpus)),
}


@pytest.mark.parametrize("corpus", CORPORA)
@pytest.mark.parametrize("work", WORK)
def test_the_work_is_linear(work: str, corpus: str) -> None:
    assert_linear_steps(CORPORA[corpus], WORK[work], 100)


@pytest.mark.parametrize("corpus", ["one document", "nested"])
def test_a_review_session_takes_linear_work_per_decision(corpus: str, tmp_path: Path) -> None:
    """The issues of a document were compared with all decisions about it, at every decision."""

    def make(size: int) -> ReviewSession:
        log = DecisionLog(tmp_path / f"{size}.jsonl")
        data = CORPORA[corpus](size)
        for decision in decisions_of(data):
            log.append(replace(decision, number=0))
        return ReviewSession(queue_of(data), log)

    assert_linear_steps(make, lambda session: session.read_state(), 60)


def test_decisions_about_one_document_hash_its_text_once() -> None:
    text_hash.cache_clear()
    decisions_of(one_document(60))
    assert text_hash.cache_info().misses == 1
