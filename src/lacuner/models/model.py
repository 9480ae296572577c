"""An encoder and a head in one: words in, scores out."""

from __future__ import annotations

from typing import Any

from torch import nn

from lacuner.models.types import Batch


class Model(nn.Module):
    """What is trained. `encoder` is an `Encoder`, `head` a `Head`."""

    def __init__(self, encoder: Any, head: Any) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head
        if hasattr(head, "tie"):
            head.tie(encoder)

    def forward(self, batch: Batch) -> Any:
        return self.head(self.encoder(batch), batch.mask)
