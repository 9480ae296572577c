"""Encoders, heads, and the taggers that are made of them. A new encoder or head: see `encoders` and `heads`."""

from lacuner.models.config import EncoderConfig, HeadConfig
from lacuner.models.encoders import open_encoder
from lacuner.models.heads import build_head
from lacuner.models.lookup import LookupTagger
from lacuner.models.model import Model
from lacuner.models.storage import load, save
from lacuner.models.tagger import Tagger

__all__ = [
    "EncoderConfig",
    "HeadConfig",
    "LookupTagger",
    "Model",
    "Tagger",
    "build_head",
    "load",
    "open_encoder",
    "save",
]
