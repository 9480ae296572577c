"""Heads with a label for spans that are none: it can be learned, and is never found."""

import numpy as np
import pytest
import torch

from lacuner.data import Lost
from lacuner.models.heads import build_head
from lacuner.models.heads.crf import CRFHead
from lacuner.models.heads.token import TokenHead
from lacuner.models.types import Annotation


@pytest.mark.parametrize("kind", [TokenHead, CRFHead])
@pytest.mark.parametrize("scheme", ["IO", "BIO", "BIOES"])
@pytest.mark.parametrize("angle", [True, False])
def test_what_is_decoded_to_it_is_no_entity(kind, scheme, angle):
    head = kind(4, ("PER", "LOC"), scheme, angle=angle, non_entity=True).eval()
    plain = kind(4, ("PER", "LOC"), scheme, angle=angle).eval()
    assert head.labels == plain.labels == ("PER", "LOC")
    assert len(head.tags) == len(plain.tags) + len(head.tags.letters)
    assert head.tags.names[: len(plain.tags)] == plain.tags.names, "tags of labels keep their numbers"
    tags = head.tags.encode(np.array([0, 2, 4]), np.array([2, 4, 5]), np.array([0, 2, 1]), 6)
    scores = head(torch.zeros(1, 6, 4), torch.ones(1, 6, dtype=torch.bool))
    sure = torch.nn.functional.one_hot(torch.from_numpy(tags), len(head.tags))[None] * 30.0
    scores = type(scores)(sure, *[getattr(scores, name) for name in scores.__slots__[1:]])
    found = head.decode(scores)
    got = list(zip(found.start.tolist(), found.end.tolist(), found.label.tolist(), strict=True))
    assert got == [(0, 2, 0), (4, 5, 1)], "the span from 2 to 4 is a non-entity"
    assert len(found.score) == 2 and (found.score > 0.9).all()


@pytest.mark.parametrize("kind", ["token", "crf"])
def test_it_is_saved_and_never_a_target(kind):
    head = build_head({"kind": kind, "labels": ["PER"], "non_entity": True}, 4)
    again = build_head(head.config(), 4)
    again.load_state_dict(head.state_dict())
    assert again.config()["non_entity"] and again.labels == ("PER",)
    targets = head.targets([Annotation(3, [(0, 1, "PER")], rejected=[(1, 2, "")], unsure=[(2, 3, "")])], Lost())
    assert targets.labels.tolist() == [1, 0, 0] and targets.known.tolist() == [True, True, False]
