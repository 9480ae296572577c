"""How many entities seem to be missing, and probabilities that go with that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from lacuner.recipes.evidence import Evidence, scaled, weigh
from lacuner.types import Document, Span

TEXT = "Ada met Bo in Cork and Dee in Eton"


def evidence(entities: int, labelled: float, found: float, wrong: int, seed: int = 1) -> Evidence:
    """Models that are surer of entities than of others, and do not care whether somebody has labelled them."""
    rng = np.random.default_rng(seed)
    known = rng.random(entities) < labelled
    seen = rng.random(entities) < found
    scores = rng.beta(4, 2, entities)
    return Evidence(
        int(known.sum()), scores[known & seen], np.concatenate([scores[~known & seen], rng.beta(1, 6, wrong)])
    )


@pytest.mark.parametrize("labelled", [0.2, 0.5, 0.8])
def test_how_many_are_missing_follows_from_what_is_found_again(labelled: float) -> None:
    found = evidence(20_000, labelled, 0.7, 30_000)
    missing = 20_000 - found.labels
    assert found.missing() == pytest.approx(missing, rel=0.1)


def test_where_nothing_is_missing_nothing_seems_to_be() -> None:
    rng = np.random.default_rng(3)
    assert Evidence(5_000, rng.beta(4, 2, 4_000), rng.beta(1, 6, 3_000)).missing() < 250
    assert Evidence(0, np.array([]), np.array([0.9])).missing() == 0


def test_what_counts_for_and_against() -> None:
    doc = Document("1", TEXT, spans=(Span(0, 3, "P"),), unsure=(Span(8, 10, ""),), rejected=(Span(14, 18, "P"),))
    seen = [
        Span(0, 3, "P", 0.9),  # a label that was found again
        Span(8, 10, "P", 0.8),  # nobody is sure what that is
        Span(14, 18, "P", 0.7),  # ruled out
        Span(23, 26, "P", 0.6),
        Span(30, 34, "L", 0.3),
    ]
    found = weigh([doc], [replace(doc, spans=tuple(seen))])
    assert (found.labels, found.labelled.tolist(), found.others.tolist()) == (1, [0.9], [0.6, 0.3])
    other = replace(doc, spans=(Span(0, 7, "P", 0.9), Span(14, 18, "L", 0.5)))
    assert weigh([doc], [other]).others.tolist() == [0.5], "only P was ruled out there; what meets a label says nothing"
    whole = replace(doc, complete=True)
    assert not len(weigh([whole], [replace(whole, spans=tuple(seen))]).others), "a complete document lacks nothing"


@pytest.mark.parametrize("missing", [0.0, 3.0, 400.0, 900.0])
def test_probabilities_add_up_to_what_is_missing(missing: float) -> None:
    rng = np.random.default_rng(4)
    probs = torch.from_numpy(rng.dirichlet([5, 1, 1], size=1_000))
    got = scaled(probs, missing)
    assert float((1 - got[:, 0]).sum()) == pytest.approx(missing, abs=1e-3)
    torch.testing.assert_close(got.sum(dim=-1), torch.ones(1_000, dtype=torch.float64))
    types = probs[:, 1] / probs[:, 1:].sum(dim=-1)
    some = got[:, 0] < 1 - 1e-6
    torch.testing.assert_close((got[:, 1] / got[:, 1:].sum(dim=-1))[some], types[some], msg="types are what they were")
    free = (got[:, 0] > 1e-9) & some
    odds = (1 - got[:, 0]) / ((1 - probs[:, 0]) / probs[:, 0])
    assert missing == 0 or float(odds[free].std()) < 1e-9, "one number for all"


def test_more_than_there_are_spans() -> None:
    probs = torch.tensor([[0.9, 0.1], [0.5, 0.5]])
    assert scaled(probs, 5.0)[:, 0].tolist() == [0.0, 0.0]
    assert scaled(probs[:0], 5.0).shape == (0, 2)
