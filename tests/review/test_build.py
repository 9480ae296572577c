"""The review queue of a corpus: evidence, sentences to label, and cross-fitting from end to end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from lacuner.annotate.gazetteer.entries import Entry
from lacuner.audit.cross_fitting import CrossFitOptions, cross_fit, cross_fit_settings
from lacuner.audit.issues import new_issue
from lacuner.corpus import read, words_of
from lacuner.corpus.stored import store_documents
from lacuner.data import Document, Span, Splits
from lacuner.errors import ConfigError
from lacuner.evaluate.scores import count_exact
from lacuner.noise import Noise, corrupt
from lacuner.review import build
from lacuner.review import queue as queue_module
from lacuner.review.apply import apply_decisions
from lacuner.review.build import build_queue, find_unpredicted, number_equal_ids, useful_sentences
from lacuner.review.decisions import Action, Decision
from lacuner.review.prepare import prepare_review
from lacuner.review.queue import ReviewQueue, Sentence, open_queue, save_queue
from lacuner.trainer.train import load_recipe_config
from tests.demo_corpus import demo_corpus


def test_evidence_counts_mentions_of_the_same_string() -> None:
    docs = [
        Document("1", "Teel met Teel.", spans=(Span(9, 13, "PER", source="list"),)),
        Document("2", "Teel, Teel and Mara.", spans=(Span(0, 4, "ORG"),)),
    ]
    issue = new_issue("missing", docs[0], Span(0, 4, "PER"), (), 0.9, {"probability": 0.7})
    queue = build_queue(docs, [issue], gazetteer=[Entry("teel", "PER"), Entry("Mara", "PER")])
    assert queue.issues[0].evidence == {
        "probability": 0.7,
        "gazetteer": [{"term": "teel", "label": "PER"}],
        "labeled": {"ORG": 1, "PER": 1},
        "unlabeled": 2,
        "mentions": [
            {"document": "1", "start": 9, "end": 13, "label": "PER", "source": "list"},
            {"document": "2", "start": 0, "end": 4, "label": "ORG"},
        ],
    }
    assert queue.issues[0].id == issue.id


def test_issues_of_equal_strings_follow_each_other() -> None:
    doc = Document("1", "Teel Mara Teel")
    scores = {(0, 4): 0.8, (5, 9): 0.9, (10, 14): 0.1}
    issues = [new_issue("missing", doc, Span(*place, "PER"), (), score) for place, score in scores.items()]
    assert [issue.start for issue in build_queue([doc], issues).issues] == [0, 10, 5]
    rare = [replace(issue, score=1.0) if issue.text == "Mara" else replace(issue, score=0.5) for issue in issues]
    assert [issue.start for issue in build_queue([doc], rare).issues] == [5, 0, 10]


def test_what_a_long_queue_leaves_out_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    doc = Document("1", "Teel Mara Oslo")
    issues = [new_issue("missing", doc, Span(start, start + 4, "PER"), (), 0.9 - start / 100) for start in (0, 5, 10)]
    assert build_queue([doc], issues).facts["unlisted"] == 0
    monkeypatch.setattr(build, "MAX_ISSUES", 2)
    queue = build_queue([doc], issues)
    assert [issue.start for issue in queue.issues] == [0, 5] and queue.facts["unlisted"] == 1


def test_other_occurrences_of_probable_names_are_issues_too() -> None:
    docs = [
        Document("1", "Teel met Teel and Mara Teel.", spans=(Span(18, 27, "PER"),)),
        Document("2", "Teel, Oslo, Teel", rejected=(Span(12, 16, ""),)),
        Document("3", "Teel", complete=True),
    ]
    probable = new_issue("missing", docs[0], Span(0, 4, "PER"), (), 0.9)
    improbable = new_issue("missing", docs[1], Span(6, 10, "PER"), (), 0.1)
    found = find_unpredicted(docs, [probable, improbable])
    assert [(issue.doc_id, issue.start, issue.label, issue.score) for issue in found] == [
        ("1", 9, "PER", 0.45),
        ("2", 0, "PER", 0.45),
    ]
    queue = build_queue(docs, [probable, improbable])
    assert [(issue.doc_id, issue.start) for issue in queue.issues] == [("1", 0), ("1", 9), ("2", 0), ("2", 6)]
    assert len(queue.decide(probable.id, "accept", everywhere=True).edits) == 3


def test_another_spelling_of_a_name_is_another_string() -> None:
    docs = [Document("1", "O'Brel met O\u2019Brel.")]
    assert find_unpredicted(docs, [new_issue("missing", docs[0], Span(0, 6, "PER"), (), 0.9)]) == []


def test_useful_sentences_are_uncertain_incomplete_and_prefilled() -> None:
    docs = [
        Document("sure", "Mara left"),
        Document("uncertain", "Mara came and Teel", spans=(Span(14, 18, "PER"),)),
        Document("complete", "Mara came", complete=True),
    ]
    scores = (0.99, 0.6, 0.5)
    predicted = [replace(doc, spans=(Span(0, 4, "PER", score),)) for doc, score in zip(docs, scores, strict=True)]
    first, second = useful_sentences(docs, predicted)
    assert (first.doc_id, second.doc_id) == ("uncertain", "sure")
    assert [span.key for span in first.spans] == [(0, 4, "PER"), (14, 18, "PER")]
    [only] = useful_sentences(docs, predicted, lambda scores: scores / 4, limit=1)
    assert only.doc_id == "sure"  # 0.25 is more uncertain than 0.15
    assert only.spans == ()


def test_ids_become_distinct() -> None:
    docs = number_equal_ids([Document("1", "a"), Document("1", "a"), Document("1", "b")])
    assert [doc.id for doc in docs] == ["1", "1 (2)", "1 (3)"]
    docs = number_equal_ids([Document("1", "a"), Document("1", "b"), Document("1 (2)", "c")])
    assert [doc.id for doc in docs] == ["1", "1 (3)", "1 (2)"]


def test_ids_of_stored_documents_are_numbered_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docs = [Document("1", "a"), Document("1", "b"), Document("1 (2)", "c"), Document("2", "d")]
    stored = store_documents(docs, tmp_path, "v1", ordered=True)
    numbered = number_equal_ids(stored)
    assert list(numbered) == list(number_equal_ids(docs)) and [doc.id for doc in numbered] == [
        "1",
        "1 (3)",
        "1 (2)",
        "2",
    ]
    monkeypatch.setattr("lacuner.review.build.store_documents", None)
    assert list(number_equal_ids(stored)) == list(numbered)


def test_the_models_get_the_encoder_of_the_run() -> None:
    run = {"config": {"encoder": {"name": "lstm"}}}
    assert cross_fit_settings("trust", run) == ['encoder.name="lstm"']
    assert cross_fit_settings("trust") == cross_fit_settings("trust", {"config": {}}) == []
    config = load_recipe_config("negative_sampling", ["weak"], None, cross_fit_settings("negative_sampling", run))
    assert config.model_dump()["encoder"]["name"] == "lstm" and config.model_dump()["train"]["epochs"] == 6


def test_too_few_texts_for_the_folds_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--folds 3"):
        cross_fit(Splits(weak=[Document("1", "a"), Document("2", "a")]), tmp_path)


@pytest.mark.integration
def test_a_queue_from_end_to_end(tmp_path: Path) -> None:
    """Most of the first issues on the demo corpus are real; the models never saw the document."""
    gold = demo_corpus().train[:150]
    weak = [replace(doc, complete=None) for doc in corrupt(gold, Noise(drop=0.4, by_surface=True))]
    settings = ['encoder.name="tiny"', "train.epochs=12"]
    config = load_recipe_config("negative_sampling", ["weak"], None, settings)
    queue = prepare_review(Splits(weak=weak), tmp_path, CrossFitOptions(config=config, folds=2))
    assert open_queue(tmp_path) == queue
    assert queue.facts["calibrated_on"] == "hidden names"
    entities = {doc.id: {span.key for span in doc.spans} for doc in gold}
    missing = [issue for issue in queue.issues if issue.kind == "missing"]
    right = [issue.span.key in entities[issue.doc_id] for issue in missing]
    assert sum(right[:20]) / 20 >= max(0.25, sum(right) / len(right))
    assert abs(sum(issue.score for issue in missing) - sum(right)) / len(right) < 0.25
    assert queue.sentences
    better = apply_decisions(weak, answer(queue, {doc.id: doc.spans for doc in gold})).docs
    assert count_exact(gold, better).f1 > count_exact(gold, weak).f1


def answer(queue: ReviewQueue, gold: Mapping[str, Sequence[Span]]) -> list[Decision]:
    """Decide every issue as gold says; where the boundaries differ, skip."""
    decisions = []
    for number, issue in enumerate(queue.issues, 1):
        entities = gold[issue.doc_id]
        touching = any(span.overlaps(issue.span) for span in entities)
        action: Action = "skip" if touching else "reject"
        if issue.span.key in {span.key for span in entities}:
            action = "accept"
        if issue.kind == "spurious":
            action = {"accept": "reject", "reject": "accept", "skip": "skip"}[action]  # type: ignore[assignment]
        decisions.append(replace(queue.decide(issue.id, action), number=number))
    return decisions


@pytest.mark.integration
def test_a_stored_corpus_gives_the_same_queue(tmp_path: Path) -> None:
    """Equal ids, equal texts, complete documents: the files of the queue are the same byte for byte."""
    weak = [replace(doc, complete=None) for doc in corrupt(demo_corpus().train[:30], Noise(drop=0.4))]
    weak = [
        replace(weak[0], complete=True),
        *weak[1:],
        replace(weak[3], id="new"),
        replace(weak[4], text="Mara", spans=()),
    ]
    weak = [replace(doc, words=words_of(doc)) for doc in weak]
    config = load_recipe_config("negative_sampling", ["weak"], None, ['encoder.name="tiny"', "train.epochs=1"])
    stored = store_documents(weak, tmp_path / "prepared", "v1", ordered=True)
    files = []
    for name, docs in (("memory", weak), ("disk", stored)):
        prepare_review(Splits(weak=docs), tmp_path / name, CrossFitOptions(config=config, folds=2))
        folder = tmp_path / name / "review"
        files.append({path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()})
    assert files[0] == files[1] and len(files[0]["queue.jsonl"]) > 1000
    models = next((tmp_path / "disk" / "review" / "models").iterdir())
    assert sorted(path.name for path in models.iterdir()) == ["0", "1", "predicted"]
    assert not any((models / fold / "prepared").exists() for fold in "01"), "it is as large as the corpus"


def test_only_the_documents_that_are_named_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_module, "MOST_DOCUMENTS", 1)
    docs = [
        Document(str(number), "Teel left", spans=(Span(0, 4, "PER"),) if number == 3 else ()) for number in range(5)
    ]
    queue = build_queue(docs, [new_issue("missing", docs[2], Span(0, 4, "PER"), (), 0.9)])
    assert len(queue.issues) == 4, "in other documents, too"
    queue = build_queue(docs, [new_issue("missing", docs[2], Span(5, 9, "PER"), (), 0.9)], [Sentence("4", 0.5, ())])
    assert list(queue.documents) == ["0", "1", "2", "3", "4"], "other occurrences of `left`"
    queue = replace(queue, issues=queue.issues[:1])
    save_queue(queue, tmp_path, docs)
    assert list(open_queue(tmp_path).documents) == ["0", "2", "4"]
    assert [doc.id for doc in read(tmp_path / "review" / "documents.jsonl")] == ["0", "1", "2", "3", "4"]
    evidence = {"mentions": [{"document": "3", "start": 0, "end": 4}, None]}
    for mentions, kept in ((evidence, ["0", "2", "3", "4"]), ({"mentions": 3}, ["0", "2", "4"])):
        save_queue(replace(queue, issues=(replace(queue.issues[0], evidence=mentions),)), tmp_path, docs)
        assert list(open_queue(tmp_path).documents) == kept
