"""What the service measures, in the text format of Prometheus; the numbers of all workers are summed up."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that names the folder through which workers share their numbers; there is no text of users in it."""
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    """The metrics of one worker.

    >>> metrics = Metrics()
    >>> metrics.texts.inc(3)
    >>> "lacuner_texts_total 3.0" in metrics.render().decode()
    True
    """

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self.requests = Counter(
            "lacuner_requests", "Requests by path and HTTP status.", ["path", "status"], registry=registry
        )
        self.seconds = Histogram(
            "lacuner_request_seconds",
            "Time until a request was answered.",
            ["path"],
            buckets=SECONDS,
            registry=registry,
        )
        self.texts = Counter("lacuner_texts", "Texts that were predicted.", registry=registry)
        self.characters = Counter("lacuner_characters", "Characters that were predicted.", registry=registry)
        self.entities = Counter("lacuner_entities", "Predicted entities by label.", ["label"], registry=registry)
        self.words_unread = Counter("lacuner_words_unread", "Words that the encoder truncated.", registry=registry)
        self.batch_texts = Histogram("lacuner_batch_texts", "Texts per batch.", buckets=TEXTS, registry=registry)
        self.batch_seconds = Histogram(
            "lacuner_batch_seconds", "Time of the model per batch.", buckets=SECONDS, registry=registry
        )
        self.queue = Gauge(
            "lacuner_queue_characters",
            "Characters that wait or are being predicted.",
            registry=registry,
            multiprocess_mode="livesum",
        )

    def render(self) -> bytes:
        """All metrics as text: of this process, or of all workers if there are several."""
        if FOLDER_VARIABLE not in os.environ:
            return generate_latest(self._registry)
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
