"""Encoders (tiny, lstm, pretrained), heads (token, crf, entity+type, span) and what stands between them and words."""

from lacuner.models.build import build_encoder, build_head
from lacuner.models.crf import CRFHead
from lacuner.models.entity_type import EntityTypeHead
from lacuner.models.lstm import LSTMConfig, LSTMEncoder, lstm_from_words
from lacuner.models.span import SpanHead
from lacuner.models.targets import CorpusTargets, span_width
from lacuner.models.tiny import TinyConfig, TinyEncoder
from lacuner.models.token import TokenHead

__all__ = [
    "CRFHead",
    "CorpusTargets",
    "EntityTypeHead",
    "LSTMConfig",
    "LSTMEncoder",
    "SpanHead",
    "TinyConfig",
    "TinyEncoder",
    "TokenHead",
    "build_encoder",
    "build_head",
    "lstm_from_words",
    "span_width",
]
