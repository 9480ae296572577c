"""The report: facts, samples, HTML."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from lacuner.annotate import (
    Entry,
    EntryPrecision,
    LabellingStatistics,
    annotate,
    capitalised_source,
    gazetteer_source,
    lint,
    read_stop_list,
    regex_source,
)
from lacuner.annotate.report import (
    MAX_EXAMPLES,
    MAX_MISSED,
    AnnotationReport,
    ExampleSampler,
    render_report,
    report_json,
    write_report,
)
from lacuner.data import Document, Lost, Span
from lacuner.errors import CorpusError
from lacuner.noise import measure

ENTRIES = [Entry("Halden", "PLACE"), Entry("Mara Teel", "PERSON"), Entry("Ross", "PERSON"), Entry("Ross", "PLACE")]
TEXTS = [
    "Mara Teel left Halden.",
    "In Halden nobody knew Ross.",
    "Bram Oster met Mara Teel in 1912.",
    "Nothing to see.",
    "Bram Oster and Bram Oster again, near Lower Halden.",
]
CHART = '<figure class="bars">'
GOLD = [
    [(0, 9, "PERSON"), (15, 21, "PLACE")],
    [(3, 9, "PLACE"), (22, 26, "PERSON")],
    [(0, 10, "PERSON"), (15, 24, "PERSON")],
    [],
    [(0, 10, "PERSON"), (15, 25, "PERSON"), (38, 50, "PLACE")],
]


def labelling(gold: bool = True, more: bool = False) -> AnnotationReport:
    docs = [Document(str(number), text) for number, text in enumerate(TEXTS)]
    truth = [
        Document(doc.id, doc.text, spans=tuple(Span(*span) for span in spans), complete=True)
        for doc, spans in zip(docs, GOLD, strict=True)
    ]
    sources = [gazetteer_source(ENTRIES)]
    if more:
        sources += [regex_source("YEAR", r"\b\d{4}\b"), capitalised_source()]
    statistics, examples, precision = LabellingStatistics(), ExampleSampler(), EntryPrecision()
    weak = []
    for doc, real in zip(annotate(docs, sources, statistics=statistics), truth, strict=True):
        examples.add(doc, real if gold else None)
        precision.add(doc, real)
        weak.append(doc)
    return AnnotationReport(
        title="Five texts",
        settings={"corpus": Path("texts"), "dictionary": [Path("a.tsv"), Path("b.tsv")], "case": "smart"},
        statistics=statistics,
        sources=sources,
        examples=examples,
        lint_rows=lint(sources[0], statistics, precision=precision if gold else None),
        gold_scores=measure(weak, truth).as_json() if gold else None,
    )


def test_facts() -> None:
    facts = report_json(labelling())
    assert facts["documents"] == 5 and facts["documents_with_a_match"] == 4
    assert facts["spans"] == {"PLACE": 3, "PERSON": 2}
    assert facts["unsure"] == {"PERSON": 1, "PLACE": 1}
    [unsure] = facts["unsure_places"]
    assert unsure["labels"] == ("PERSON", "PLACE") and unsure["places"] == 1
    assert [example["text"] for example in unsure["examples"]] == ["Ross"]
    assert {example["text"] for example in facts["examples"]["PLACE"]} == {"Halden"}
    assert facts["top_entries"][0]["surface"] == "Halden" and facts["top_entries"][0]["matches"] == 3
    assert facts["suspicious"][0]["surface"] == "Ross"
    assert facts["gold"]["correct"] == 4 and facts["gold"]["gold"] == 9
    assert facts["settings"] == {"corpus": "texts", "dictionary": ["a.tsv", "b.tsv"], "case": "smart"}
    assert facts["lost"] == {"labelling": {}}
    assert json.loads(json.dumps(facts, allow_nan=False))["missed"] == facts["missed"]


def test_missed_entities() -> None:
    missed = report_json(labelling())["missed"]
    assert missed[0] == {
        "surface": "Bram Oster",
        "label": "PERSON",
        "mentions": 3,
        "missed": 3,
        "unsure": 0,
        "other": 0,
    }
    rest = {row["surface"]: (row["missed"], row["unsure"], row["other"]) for row in missed[1:]}
    assert rest == {"Ross": (1, 1, 0), "Lower Halden": (1, 0, 1)}


def test_right_and_wrong_examples() -> None:
    facts = report_json(labelling())
    assert [example["right"] for example in facts["examples"]["PERSON"]] == [True]
    assert all(example["right"] is None for example in report_json(labelling(gold=False))["examples"]["PERSON"])


def test_the_page_shows_the_facts() -> None:
    page = render_report(report_json(labelling(more=True)))
    for phrase in (
        "Five texts",
        "80.0 %",
        "Bram Oster met <mark>Mara Teel</mark> in 1912.",
        "Looks like a name, type unknown",
        "Bram Oster",
        "several labels",
        "No entry needs a stop list.",
        "Problems in the dictionary files</h3>\n<p>None.</p>",
        "YEAR",
        "capitalised",
        "not in gold",
    ):
        assert phrase in page, phrase
    assert page.count(CHART) == 3


def test_pages_without_gold_and_without_matches() -> None:
    page = render_report(report_json(labelling(gold=False)))
    assert page.count(CHART) == 1 and "Against gold" not in page and "in gold" not in page
    nothing = AnnotationReport(
        title="", settings={}, statistics=LabellingStatistics(), sources=[], examples=ExampleSampler()
    )
    page = render_report(report_json(nothing))
    assert CHART not in page and "No matches." in page


def test_losses_are_reported() -> None:
    run = labelling()
    run.statistics.lost.span(Document("d7", "Mara Teel"), Span(0, 4, "PERSON"), "does not fit the words")
    other = Lost()
    other.count("unsure spans")
    facts = report_json(
        AnnotationReport(
            title="",
            settings={},
            statistics=run.statistics,
            sources=[],
            examples=ExampleSampler(),
            lost={"writing": other},
            problems=["a.tsv:3: empty"],
        )
    )
    assert facts["lost"] == {"labelling": {"does not fit the words": 1}, "writing": {"unsure spans": 1}}
    assert facts["lost_spans"][0]["text"] == "Mara"
    page = render_report(facts)
    assert "d7" in page and "unsure spans" in page and "a.tsv:3: empty" in page


def test_the_stop_list_can_be_copied(tmp_path: Path) -> None:
    docs = [Document(str(number), "The Will of the people, the Will.") for number in range(3)]
    source = gazetteer_source([Entry("Will", "PERSON")])
    statistics = LabellingStatistics()
    list(annotate(docs, [source], statistics=statistics))
    rows = lint(source, statistics)
    page = render_report(
        report_json(
            AnnotationReport(
                title="",
                settings={},
                statistics=statistics,
                sources=[source],
                examples=ExampleSampler(),
                lint_rows=rows,
            )
        )
    )
    copied = page.split("<pre>")[1].split("</pre>")[0].replace("<bdi>", "").replace("</bdi>", "")
    (tmp_path / "stop.txt").write_text(copied, encoding="utf-8")
    assert read_stop_list(tmp_path / "stop.txt") == {"Will"}


@pytest.mark.integration
def test_same_facts_same_bytes(tmp_path: Path) -> None:
    write_report(tmp_path / "a" / "one.html", labelling(more=True))
    code = (
        "from tests.annotate.test_report import labelling, write_report; "
        f"write_report({str(tmp_path / 'two.html')!r}, labelling(more=True))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONHASHSEED": "7"})
    assert (tmp_path / "a" / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CorpusError, match="cannot write"):
        write_report(tmp_path / "file" / "report.html", labelling())


def test_other_scripts_make_no_warning_and_stay_text() -> None:
    statistics = LabellingStatistics(documents=1)
    names = ["品牌", "ยี่ห้อ", "العلامة", "🏴‍☠️", "$x_{", "长" * 40, "W" * 40, "name 0"]
    statistics.spans.update({name: 9 - number for number, name in enumerate(names)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        page = render_report(
            report_json(
                AnnotationReport(title="", settings={}, statistics=statistics, sources=[], examples=ExampleSampler())
            )
        )
    chart = page.split(CHART)[1].split("</figure>")[0]
    for name in names:
        assert chart.count(f"<bdi>{name}</bdi>") == 1


def test_examples_do_not_depend_on_order() -> None:
    rng = random.Random(1)
    docs = []
    for number in range(500):
        name = f"N{int(rng.paretovariate(0.7)) % 90}"
        docs.append(Document(str(number), f"text {number} of {name} here", spans=(Span(0, 4, "A"),)))
        docs[-1].spans = (Span(docs[-1].text.index(name), docs[-1].text.index(name) + len(name), "A"),)
    results = []
    for _ in range(3):
        examples = ExampleSampler()
        for doc in docs:
            examples.add(doc)
        results.append(examples.examples_by_label())
        rng.shuffle(docs)
    assert results[0] == results[1] == results[2]
    texts = [example["text"] for example in results[0]["A"]]
    assert len(texts) == len(set(texts)) == MAX_EXAMPLES


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lacuner.annotate.report.MAX_GOLD_ENTITIES", 100)
    examples = ExampleSampler()
    for number in range(150):
        examples.add(Document("", f"N{number}"), Document("", f"N{number}", spans=(Span(0, len(f"N{number}"), "A"),)))
    assert examples.uncounted == 50
    assert len(examples.missed_entities()) == MAX_MISSED


def test_context_is_cut_between_words() -> None:
    examples = ExampleSampler()
    text = "word " * 40 + "Name" + " word" * 40
    examples.add(Document("", text, spans=(Span(200, 204, "A"),)))
    [example] = examples.examples_by_label()["A"]
    assert example["before"].startswith("… word ") and example["before"].endswith(" word ")
    assert example["after"].endswith(" word …")


@pytest.mark.integration
def test_importing_it_is_light() -> None:
    code = "import sys, lacuner.annotate.report; print(*{'matplotlib', 'jinja2', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
