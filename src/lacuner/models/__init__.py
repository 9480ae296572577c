"""Encoders (tiny, lstm, pretrained), heads (token, crf, entity+type, span) and what stands between them and words."""

from lacuner.models.encoders import build_encoder
from lacuner.models.encoders.lstm import LSTMConfig, LSTMEncoder, lstm_from_words
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.heads import build_head
from lacuner.models.heads.crf import CRFHead
from lacuner.models.heads.entity_type import EntityTypeHead
from lacuner.models.heads.span import SpanHead
from lacuner.models.heads.token import TokenHead
from lacuner.models.targets import CorpusTargets, choose_span_width

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
    "choose_span_width",
    "lstm_from_words",
]
