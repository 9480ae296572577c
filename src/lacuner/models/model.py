"""Models: an encoder and a head in one `nn.Module`."""

from typing import Any

from torch import nn

from lacuner.models.heads.masked import MaskedHead, MaskedPieceHead
from lacuner.models.types import Batch, Encoder, Head, SubwordEncoder, TokenScores


class Model(nn.Module):
    """Encoder plus tagging head: a batch of words in, scores of the head's own type out.

    >>> from lacuner.models.encoders.tiny import TinyEncoder
    >>> from lacuner.models.heads import build_head
    >>> encoder = TinyEncoder()
    >>> model = Model(encoder, build_head({"kind": "token", "labels": ["LOC"]}, encoder.width))
    >>> features = encoder.prepare([["Mara", "left", "Halden"]])
    >>> tuple(model(encoder.collate(features, [0])).logits.shape)  # one sentence, three words, tags O, B-LOC, I-LOC
    (1, 3, 3)
    """

    encoder: Encoder
    head: Head[Any]

    def __init__(self, encoder: Encoder, head: Head[Any]) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    def forward(self, batch: Batch) -> Any:
        return self.head(self.encoder(batch), batch.mask)


class MaskedLanguageModel(nn.Module):
    """Encoder plus a head that predicts masked words or sub-words: the result of `lacuner pretrain`."""

    encoder: Encoder
    head: MaskedHead

    def __init__(self, encoder: Encoder, head: MaskedHead) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head
        if isinstance(head, MaskedPieceHead):
            head.tie(self.subword_encoder)

    @property
    def subword_encoder(self) -> SubwordEncoder:
        """The encoder, if the head predicts sub-words."""
        assert isinstance(self.encoder, SubwordEncoder)
        return self.encoder

    def forward(self, batch: Batch) -> TokenScores:
        scores: TokenScores = self.head(self.encoder(batch), batch.mask)
        return scores


AnyModel = Model | MaskedLanguageModel
"""What the training loop trains and a model folder contains."""
