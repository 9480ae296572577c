"""Settings of the HTTP service."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ServiceSettings:
    """Where the service listens, what it loads, and its limits."""

    run: Path
    """Run folder or model folder."""
    gazetteer: bool = True
    """Whether the tagger's gazetteer is used."""
    dictionary: tuple[Path, ...] = ()
    """Files with further gazetteer entries."""
    threshold: float | None = None
    """Decision threshold of requests that have none; None: the model's own."""
    host: str = "127.0.0.1"
    names: frozenset[str] = frozenset()
    """Host names that the service answers to, beside addresses and localhost."""
    max_bytes: int = 256_000
    """Bytes per request."""
    max_seconds: float = 30.0
    """Time for a request to arrive, and again for its prediction."""
    max_queue: int = 1_000_000
    """Characters that may wait for the model."""
