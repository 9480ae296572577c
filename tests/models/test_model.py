"""An encoder and a head together: the same seed gives the same bytes, and unknown words teach nothing."""

import hashlib

import pytest
import torch

from lacuner.data import Lost
from lacuner.losses.crf import crf_loss
from lacuner.losses.cross_entropy import cross_entropy
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.heads.crf import CRFHead
from lacuner.models.heads.entity_type import EntityTypeHead
from lacuner.models.heads.span import SpanHead
from lacuner.models.heads.token import TokenHead
from lacuner.models.types import Annotation

WORDS = [["Ada", "met", "Charles", "in", "London"], ["London", "is", "far"], ["阿", "达"], []]
LABELS = ("LOC", "PER")
WEAK = [Annotation(5, [(0, 1, "PER")]), Annotation(3, [(0, 1, "LOC")]), Annotation(2), Annotation(0)]
HEADS = {
    "token": lambda: (TokenHead(16, LABELS), cross_entropy),
    "entity_type": lambda: (EntityTypeHead(16, LABELS), cross_entropy),
    "span": lambda: (SpanHead(16, LABELS, 3, hidden=8), cross_entropy),
    "crf": lambda: (CRFHead(16, LABELS), crf_loss),
}


def train(name, seed, annotations=WEAK, steps=4):
    torch.manual_seed(seed)
    encoder = TinyEncoder(TinyConfig(width=16, layers=2, rows=256, feature=8, heads=2))
    head, loss = HEADS[name]()
    features, targets = encoder.prepare(WORDS), head.targets(annotations, Lost())
    parameters = [*encoder.parameters(), *head.parameters()]
    before = [parameter.detach().clone() for parameter in parameters]
    optimiser = torch.optim.SGD(parameters, lr=0.5)
    for _ in range(steps):
        for indices in ([0, 1], [2, 3]):
            batch = encoder.collate(features, indices)
            optimiser.zero_grad()
            loss(head(encoder(batch), batch.mask), targets.collate(indices)).sum().backward()
            optimiser.step()
    digest = hashlib.sha256(b"".join(parameter.detach().numpy().tobytes() for parameter in parameters)).hexdigest()
    moved = any(not torch.equal(a, b) for a, b in zip(before, parameters, strict=True))
    return digest, moved


@pytest.mark.parametrize("name", sorted(HEADS))
def test_same_seed_same_bytes(name):
    assert train(name, 1) == train(name, 1) != train(name, 2)


@pytest.mark.parametrize("name", sorted(HEADS))
def test_nothing_known_moves_nothing(name):
    nothing = [Annotation(len(words)) for words in WORDS]
    unsure = [Annotation(len(words), unsure=[(0, len(words), "")] if words else [], complete=True) for words in WORDS]
    assert train(name, 1)[1]
    assert not train(name, 1, nothing)[1]
    assert not train(name, 1, unsure)[1]
