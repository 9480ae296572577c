"""Heads: shapes, padding, decoding, and the mathematics of each output."""

import numpy as np
import pytest
import torch

from lacuner.data import Lost
from lacuner.errors import ConfigError, ModelFileError
from lacuner.models import heads
from lacuner.models.heads import build_head
from lacuner.models.heads import span as span_module
from lacuner.models.heads.crf import CRFHead
from lacuner.models.heads.entity_type import EntityTypeHead, joint_log_probs, split_entity_and_type
from lacuner.models.heads.prototype import PrototypeHead
from lacuner.models.heads.span import SpanHead
from lacuner.models.heads.tie_or_break import TieOrBreakHead
from lacuner.models.heads.token import AngleOutput, TokenHead, simplex
from lacuner.models.types import Annotation, SpanScores, TieOrBreakScores
from lacuner.training.steps import supervised_loss

LABELS = ("LOC", "ORG", "PER")
HEADS = {
    "token-io": lambda: TokenHead(8, LABELS, "IO"),
    "token-bio": lambda: TokenHead(8, LABELS, "BIO"),
    "token-bioes-angle": lambda: TokenHead(8, LABELS, "BIOES", angle=True),
    "crf": lambda: CRFHead(8, LABELS, "BIOES"),
    "crf-angle": lambda: CRFHead(8, LABELS, "BIO", angle=True),
    "entity-type": lambda: EntityTypeHead(8, LABELS),
    "entity-type-angle": lambda: EntityTypeHead(8, LABELS, angle=True),
    "entity-type-one": lambda: EntityTypeHead(8, ("PER",), angle=True),
    "prototype-io": lambda: PrototypeHead(8, LABELS),
    "tie-or-break": lambda: TieOrBreakHead(8, LABELS),
    "span-width": lambda: SpanHead(8, LABELS, 4, "width", 16),
    "span-product": lambda: SpanHead(8, LABELS, 4, "product", 16),
    "span-biaffine": lambda: SpanHead(8, LABELS, 4, "biaffine", 16),
}
CORPUS = [
    Annotation(5, [(0, 2, "PER"), (2, 3, "PER"), (4, 5, "PER")], complete=True),
    Annotation(3, [(1, 3, "PER")], complete=True),
    Annotation(1, complete=True),
    Annotation(0, complete=True),
]


def vectors_and_mask(seed=0):
    torch.manual_seed(seed)
    mask = torch.arange(5) < torch.tensor([a.length for a in CORPUS])[:, None]
    return torch.randn(len(CORPUS), 5, 8), mask


def test_every_row_of_the_table_is_tested():
    assert {make().config()["kind"] for make in HEADS.values()} == set(heads.HEADS)


@pytest.mark.parametrize("name", sorted(HEADS))
def test_every_head_memorises_its_targets_and_decodes_them(name):
    torch.manual_seed(0)
    head = HEADS[name]()
    vectors, mask = vectors_and_mask()
    targets = head.targets(CORPUS, Lost()).collate(range(len(CORPUS)))
    optimiser = torch.optim.Adam(head.parameters(), lr=0.1)
    head.dropout = 0.0
    for _ in range(150):
        optimiser.zero_grad()
        supervised_loss(head(vectors, mask), targets).sum().backward()
        optimiser.step()
    found = head.eval().decode(head(vectors, mask))
    got = {(s, a, e, head.labels[label]) for s, a, e, label in zip(*(x.tolist() for x in found[:4]), strict=True)}
    want = {(i, *span) for i, a in enumerate(CORPUS) for span in a.spans}
    if "io" in name.split("-") or name.startswith("entity"):
        want = want - {(0, 0, 2, "PER"), (0, 2, 3, "PER")} | {(0, 0, 3, "PER")}
    assert got == want
    assert ((found.score > 0.5) & (found.score <= 1)).all()


@pytest.mark.parametrize("name", sorted(HEADS))
def test_padding_changes_nothing_and_has_no_gradient(name):
    head = HEADS[name]().eval()
    vectors, mask = vectors_and_mask()
    vectors.requires_grad_()
    targets = head.targets(CORPUS, Lost()).collate(range(len(CORPUS)))
    supervised_loss(head(vectors, mask), targets).sum().backward()
    assert (vectors.grad[~mask] == 0).all() and (vectors.grad[mask] != 0).any()
    other = torch.where(mask.unsqueeze(-1), vectors.detach(), torch.randn_like(vectors))
    first, second = head.decode(head(vectors.detach(), mask)), head.decode(head(other, mask))
    assert all(np.array_equal(a, b) for a, b in zip(first[:4], second[:4], strict=True))
    alone = head.decode(head(vectors.detach()[1:2, :3], mask[1:2, :3]))
    chosen = first.sentence == 1
    assert np.array_equal(alone.start, first.start[chosen]) and np.allclose(alone.score, first.score[chosen], atol=1e-5)


@pytest.mark.parametrize("name", sorted(HEADS))
def test_a_head_is_made_again_from_its_config(name):
    head = HEADS[name]().eval()
    again = build_head(head.config(), 8).eval()
    again.load_state_dict(head.state_dict())
    vectors, mask = vectors_and_mask()
    assert torch.equal(head(vectors, mask).logits, again(vectors, mask).logits)
    assert again.labels == head.labels and again.config() == head.config()


@pytest.mark.parametrize("corners", range(2, 61))
def test_simplex(corners):
    points = simplex(corners)
    assert points.shape == (corners, corners - 1)
    products = points @ points.T
    off = products[~torch.eye(corners, dtype=torch.bool)]
    assert torch.allclose(products.diagonal(), torch.ones(corners).double(), atol=1e-12)
    assert torch.allclose(off, torch.full_like(off, -1 / (corners - 1)), atol=1e-12)
    assert torch.allclose(points.sum(0), torch.zeros(corners - 1).double(), atol=1e-12)


def test_angle_logits_sum_to_zero():
    logits = AngleOutput(6, 9)(torch.randn(4, 6))
    assert logits.shape == (4, 9) and torch.allclose(logits.sum(-1), torch.zeros(4), atol=1e-5)


def test_joint_probabilities_of_entity_and_type():
    entity, types = torch.randn(7).double(), torch.randn(7, 3).double()
    probs = joint_log_probs(entity, types).exp().numpy()
    s = 1 / (1 + np.exp(-entity.numpy()))
    t = np.exp(types.numpy()) / np.exp(types.numpy()).sum(-1, keepdims=True)
    np.testing.assert_allclose(probs, np.concatenate([1 - s[:, None], s[:, None] * t], 1), atol=1e-12)
    far = joint_log_probs(torch.tensor([200.0, -200.0]), torch.zeros(2, 3))
    assert torch.isfinite(far).all()


@pytest.mark.parametrize("variant", ["width", "product", "biaffine"])
def test_span_scores_are_those_of_the_unfactored_network(variant):
    head = SpanHead(8, LABELS, 4, variant, 16).eval()
    if variant == "width":
        torch.nn.init.normal_(head.by_width)
    vectors, mask = vectors_and_mask()
    scores = head(vectors, mask)
    for b, i, w in [(0, 0, 0), (0, 1, 3), (0, 2, 2), (1, 0, 2)]:
        first, last = vectors[b, i], vectors[b, i + w]
        if variant == "biaffine":
            s, e = (torch.cat([torch.relu(part), torch.ones(1)]) for part in (head.start(first), head.end(last)))
            # U [end, class, start], as Yu et al. write it, from the layer whose bias belongs to the 1 behind the start
            rows = torch.cat([head.output.weight, head.output.bias[:, None]], dim=1)
            u = rows.unflatten(0, (17, 4))
            assert torch.allclose(scores.logits[b, i, w], torch.einsum("s,ecs,e->c", s, u, e), atol=1e-5)
            continue
        total = head.start(first) + head.end(last)
        if variant == "width":
            hidden = torch.relu(total + head.by_width[w])
        else:
            hidden = torch.tanh(total + head.product(first * last))
        assert torch.allclose(scores.logits[b, i, w], head.output(hidden), atol=1e-5)
    assert scores.mask[0].sum() == 5 + 4 + 3 + 2 and scores.mask[3].sum() == 0


@pytest.mark.parametrize("variant", ["width", "product", "biaffine"])
def test_groups_of_widths_give_the_same_scores_and_gradients(variant, monkeypatch):
    head = SpanHead(8, LABELS, 5, variant, 16).eval()
    vectors, mask = vectors_and_mask()
    results = []
    for most in (2**24, 1):
        monkeypatch.setattr(span_module, "MAX_HIDDEN_VALUES", most)
        head.zero_grad()
        logits = head(vectors, mask).logits
        logits.square().sum().backward()
        results.append((logits.detach(), head.start.weight.grad.clone()))
    assert torch.allclose(results[0][0], results[1][0], atol=1e-6)
    assert torch.allclose(results[0][1], results[1][1], rtol=1e-4, atol=1e-5)


def test_greedy_takes_the_most_probable_first():
    logits = torch.zeros(1, 4, 3, 2)
    logits[..., 0] = 5.0
    for i, w, value in [(0, 1, 9.0), (1, 0, 12.0), (1, 2, 8.0), (2, 1, 7.0)]:
        logits[0, i, w, 1] = value
    fits = torch.arange(4)[:, None] + torch.arange(3) < 4
    found = SpanHead(8, ("X",), 3).decode(SpanScores(logits, fits[None]))
    assert list(zip(found.start.tolist(), found.end.tolist(), strict=True)) == [(1, 2), (2, 4)]
    assert found.score == pytest.approx(torch.tensor([7.0, 2.0]).sigmoid().numpy())


@pytest.mark.parametrize(
    ("threshold", "expected"), [(None, [(1, 0)]), (0.95, []), (0.2, [(0, 1), (1, 0)]), (0.5, [(1, 0)])]
)
def test_a_label_must_be_probable_enough(threshold, expected):
    """Of three classes: O leads at the first word by 1, a label at the second by 1.5."""
    logits = torch.tensor([[2.0, -3.0, 1.0], [0.0, 1.5, 0.0]]).view(1, 2, 1, 3)
    found = SpanHead(8, ("X", "Y"), 1, threshold=threshold).decode(SpanScores(logits, torch.ones(1, 2, 1).bool()))
    assert list(zip(found.start.tolist(), found.label.tolist(), strict=True)) == expected
    probs = logits[0, :, 0].softmax(-1)
    assert found.score == pytest.approx([float(probs[i, 1 + label]) for i, label in expected])


def test_bad_settings_are_refused():
    good = SpanHead(8, LABELS).config()
    for change in (
        {"dropout": 1.0},
        {"threshold": 1.0},
        {"widths": 0},
        {"variant": "round"},
        {"labels": ["A", "A"]},
        {"labels": []},
    ):
        with pytest.raises(ModelFileError):
            build_head({**good, **change}, 8)
        with pytest.raises(ConfigError):
            SpanHead(8, **{name: value for name, value in {**good, **change}.items() if name != "kind"})
    for bad in ({}, {"kind": "tail"}, {**good, "colour": 1}):
        with pytest.raises(ModelFileError):
            build_head(bad, 8)


def test_dropout_forgets_the_same_features_at_every_word():
    head = TokenHead(64, LABELS, dropout=0.5).train()
    torch.manual_seed(1)
    scores = head(torch.ones(2, 6, 64), torch.ones(2, 6, dtype=torch.bool))
    assert torch.allclose(scores.logits[0], scores.logits[0, :1].expand(6, -1))
    assert not torch.allclose(scores.logits[0, 0], scores.logits[1, 0])


def test_spans_can_be_asked_for_entity_and_type() -> None:
    logits = torch.randn(2, 3, 4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    asked = split_entity_and_type(SpanScores(logits, torch.ones(2, 3, 4, dtype=torch.bool)))
    probs = logits.softmax(dim=-1)
    torch.testing.assert_close(asked.entity.sigmoid(), 1 - probs[..., 0])
    torch.testing.assert_close(asked.types.softmax(dim=-1), probs[..., 1:] / probs[..., 1:].sum(dim=-1, keepdim=True))
    torch.testing.assert_close(joint_log_probs(asked.entity, asked.types), asked.logits)
    assert split_entity_and_type(asked) is asked


def test_chunks_between_breaks_are_decoded():
    """Two sentences: "a b" tied and a type, "c" none; one word of its own. Scores are the lowest probability."""
    logits = torch.zeros(2, 3, 5)
    logits[0, :, 0] = torch.tensor([9.0, 2.0, -1.0])  # the logit before the first word has no meaning
    logits[0, 0, 1:3], logits[0, 2, 1:3] = torch.tensor([0.0, 3.0]), torch.tensor([4.0, 0.0])
    logits[1, 0, 1:3] = torch.tensor([0.0, 0.5])
    mask = torch.tensor([[True] * 3, [True, False, False]]).unsqueeze(-1).expand(-1, -1, 2)
    found = TieOrBreakHead(8, ("X",)).decode(TieOrBreakScores(logits, mask))
    assert [column.tolist() for column in found[:4]] == [[0, 1], [0, 0], [2, 1], [0, 0]]
    assert found.score == pytest.approx(torch.tensor([1.0, 0.5]).sigmoid().numpy())
