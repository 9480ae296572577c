"""The whole sampling audit: its numbers, and that its page escapes all text."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lacuner.audit.probes import UnlabeledEntity, find_unlabeled
from lacuner.audit.report import audit_figures, bound_figure, render_audit, write_audit
from lacuner.audit.sampling import ProbedTraining, SamplingAudit, audit_sampling, plan_trainings
from lacuner.audit.sparsity import sampling_odds, sparsity
from lacuner.data import Document, Span, Splits
from lacuner.errors import ConfigError
from tests.audit.conftest import Corpus
from tests.hostile.test_html import HOSTILE, Page


def test_several_recipes_in_one_audit(corpus: Corpus, tmp_path: Path) -> None:
    weak, gold = corpus
    plans = plan_trainings(["negative_sampling", "nrces"], ["train.epochs=1", "rate=0.5"])
    left_by_a_killed_audit = tmp_path / ".temporary" / "0" / "label_issues.jsonl"
    left_by_a_killed_audit.parent.mkdir(parents=True)
    left_by_a_killed_audit.write_text("private")
    found = audit_sampling(plans, Splits(weak=weak, gold=gold, dev=gold[:5]), limit=10, folder=tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [".lock"], "nothing of the trainings is left"
    assert found.rate == 0.5 and found.odds.missampling == sampling_odds(weak, gold, 0.5).missampling
    one, two = found.trainings
    assert one.epochs[0].keys() == {"stage", "epoch", "loss", "dev_f1", "missampling", "uncertainty"}
    assert two.epochs[0].keys() == {"stage", "epoch", "loss", "dev_f1"}, "who draws nothing has no missampling"
    assert one.probs.shape == two.probs.shape == (1, 10) and one.config["rate"] == 0.5
    write_audit(found, tmp_path, "lacuner audit")
    facts = json.loads((tmp_path / "sampling.json").read_text(encoding="utf-8"))
    assert facts["unlabelled"] == len(find_unlabeled(weak, gold)) and len(facts["followed"]) == 10
    assert facts["corpus"]["missing"] == int(found.odds.missing.sum())
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "missampling (%)" in page and "Unlabeled entities by epoch" in page


@pytest.mark.parametrize(
    ("recipe", "settings", "words"),
    [
        ("magic", [], "there is no recipe 'magic'"),
        ("dictionary", [], "trains no span classifier"),
        ("trust", ["head.kind=token"], "trains no span classifier"),
        ("trust", ["sampler=weighted"], "sampler"),
    ],
)
def test_mistakes_are_reported_before_training(recipe: str, settings: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        plan_trainings([recipe], settings)


def test_an_audit_needs_gold(corpus: Corpus) -> None:
    with pytest.raises(ConfigError, match="weak labels and gold"):
        audit_sampling(plan_trainings(["trust"]), Splits(weak=corpus[0]))


def invented(text: str) -> SamplingAudit:
    """An audit with this text at every place where text can come from outside."""
    docs = [Document(f"{n} {text}", f"here: {text} after {n}", words=((0, 5), (6, 6 + len(text)))) for n in range(3)]
    gold = [replace(doc, spans=(Span(6, 6 + len(text), text),), complete=True) for doc in docs]
    weak = [gold[0], *(replace(doc, spans=(), complete=False) for doc in gold[1:])]
    followed = [UnlabeledEntity(doc, doc.spans[0]) for doc in gold]
    rows = [{"stage": text, "epoch": n, "loss": 1.0, "missampling": 0.1, "uncertainty": 0.2} for n in range(2)]
    table = np.array([[0.5, 0.4, np.nan], [0.2, 0.1, np.nan]])
    trainings = [ProbedTraining(text, text, {}, rows, table)]
    return SamplingAudit(trainings, followed, 3, sparsity(gold), sampling_odds(weak, gold, 0.35), 0.35, 1)


@pytest.fixture(scope="module")
def plain() -> str:
    return render_audit(invented("plain"), "plain")


def test_text_is_escaped(plain: str, tmp_path: Path) -> None:
    """All of it at once: drawing takes longer than all the rest."""
    bad = " ".join(HOSTILE.values())
    write_audit(invented(bad), tmp_path, bad)
    page, tame = Page((tmp_path / "report.html").read_text(encoding="utf-8")), Page(plain)
    assert page.pairs == tame.pairs and page.elements == tame.elements
    assert not page.elements.keys() & {"script", "img", "iframe", "object", "link", "form"}
    assert not any(set(text) & set("\0\u202e\u2066") for text, _ in page.texts)
    assert sum("alert(1)" in text for text, _ in page.texts) > 10, "it is there, as text"
    assert all(link.startswith("#") for link in page.links)
    facts = json.loads((tmp_path / "sampling.json").read_bytes().decode("utf-8", "surrogatepass"))
    assert facts["followed"][0]["text"] == bad and facts["recipes"][0]["probabilities"][0][2] is None


def test_there_is_no_bound_for_rates_above_one() -> None:
    audit = replace(invented("x"), rate=1.4)
    assert audit.as_json()["bound"]["at_least"] is None and audit.as_json()["bound"]["worst_case"] < 1
    [picture] = [each for each in audit_figures(audit) if each.name == "bound"]
    assert "bound" not in picture.legend and "bound" in bound_figure(audit.odds, 0.35).legend


def test_the_same_audit_gives_the_same_bytes(plain: str) -> None:
    assert render_audit(invented("plain"), "plain") == plain


def test_a_recipe_may_be_audited_twice_with_different_settings() -> None:
    first, second = plan_trainings(
        ["negative_sampling", "negative_sampling sampler=weighted mu=2.0"], ["train.epochs=3"]
    )
    assert (first.name, second.name) == ("negative_sampling", "negative_sampling sampler=weighted mu=2.0")
    one, other = (each.config.model_dump() for each in (first, second))
    assert (one["sampler"], other["sampler"], other["mu"]) == ("uniform", "weighted", 2.0)
    assert one["train"]["epochs"] == other["train"]["epochs"] == 3
    with pytest.raises(ConfigError, match="tracks one training"):
        plan_trainings(["nrces try_w=[2.0,5.0]"])
