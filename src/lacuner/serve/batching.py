"""The queue in front of the model: waiting requests are predicted together, in one thread, and only so many may wait.

There is no delay to fill a batch: while the model works on one batch, the next one collects in the queue.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from lacuner.data import Document

BATCH_CHARACTERS = 20_000
"""Characters that are predicted together, at most, unless one request has more. A larger batch is a little faster, but
whoever comes next waits for it. (Demo texts, `tiny`, per second of processor time: 300 one by one, 2,300 in batches of
20,000 characters, 2,700 in batches of 80,000.)"""


class Predictor(Protocol):
    """What the queue needs of a tagger."""

    words_unread: int

    def predict(
        self, docs: Sequence[Document], *, on_long: str = "window", threshold: float | None = None
    ) -> Iterator[Document]: ...


class OverloadedError(Exception):
    """The queue is full."""

    def __init__(self, retry_after: int) -> None:
        self.retry_after = retry_after
        """Seconds after which there will be room, as far as one can tell."""
        super().__init__(f"the queue is full for about {retry_after} seconds")


@dataclass(eq=False)
class _Job:
    """The texts of one request."""

    docs: list[Document]
    threshold: float | None
    answer: asyncio.Future[list[Document]]
    characters: int = field(init=False)

    def __post_init__(self) -> None:
        self.characters = sum(len(doc.text) for doc in self.docs) + len(self.docs)


class BatchQueue:
    """Collects requests and predicts them in batches, in a thread of its own.

    >>> from lacuner.models.lookup import LookupTagger
    >>> async def ask() -> list[Document]:
    ...     queue = BatchQueue(LookupTagger({"Halden": "PLACE"}), max_characters=1000)
    ...     queue.start()
    ...     docs = await queue.predict(["She left Halden."])
    ...     await queue.close()
    ...     return docs
    >>> asyncio.run(ask())[0].spans
    (Span(start=9, end=15, label='PLACE', score=1.0, source=None),)
    """

    def __init__(
        self, tagger: Predictor, max_characters: int, on_batch: Callable[[int, float], object] | None = None
    ) -> None:
        self.characters = 0
        """Characters that wait or are being predicted."""
        self._tagger = tagger
        self._max_characters = max_characters
        self._on_batch = on_batch
        self._jobs: deque[_Job] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._speed: float | None = None  # characters per second of recent batches
        self._thread = threading.Thread(target=self._work, name="model", daemon=True)
        self._loop: asyncio.AbstractEventLoop

    def start(self) -> None:
        """Start the thread; answers are delivered to the event loop that is running now."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    async def predict(self, texts: Sequence[str], threshold: float | None = None) -> list[Document]:
        """Predicted documents, one per text. Raises `OverloadedError` if too much is waiting already.

        If the caller is cancelled, its texts are removed from the queue.
        """
        docs = [Document(str(number), text) for number, text in enumerate(texts, 1)]
        job = _Job(docs, threshold, self._loop.create_future())
        with self._changed:
            if self._closing:
                raise OverloadedError(1)
            if self.characters and self.characters + job.characters > self._max_characters:
                raise OverloadedError(self._seconds_until_room(job))
            self.characters += job.characters
            self._jobs.append(job)
            self._changed.notify()
        try:
            return await job.answer
        except asyncio.CancelledError:
            with self._changed:
                if job in self._jobs:
                    self._jobs.remove(job)
                    self.characters -= job.characters
            raise

    def _seconds_until_room(self, job: _Job) -> int:
        excess = min(self.characters, self.characters + job.characters - self._max_characters)
        return 1 if self._speed is None else min(60, max(1, math.ceil(excess / self._speed)))

    async def close(self) -> None:
        """Answer everything that waits, then end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        await self._loop.run_in_executor(None, self._thread.join)

    def _work(self) -> None:
        while batch := self._next_batch():
            start = time.perf_counter()
            answers = self._predict_batch(batch)
            seconds = time.perf_counter() - start
            characters = sum(job.characters for job in batch)
            with self._changed:
                self.characters -= characters
                speed = characters / max(seconds, 1e-6)
                self._speed = speed if self._speed is None else 0.8 * self._speed + 0.2 * speed
            if self._on_batch is not None:
                self._on_batch(sum(len(job.docs) for job in batch), seconds)
            self._loop.call_soon_threadsafe(_deliver, answers)

    def _next_batch(self) -> list[_Job]:
        """The requests that have waited longest, as many as fit; empty when the queue is closed and done."""
        with self._changed:
            while not self._jobs and not self._closing:
                self._changed.wait()
            batch: list[_Job] = []
            room = BATCH_CHARACTERS
            while self._jobs and (not batch or self._jobs[0].characters <= room):
                batch.append(self._jobs.popleft())
                room -= batch[-1].characters
            return batch

    def _predict_batch(self, batch: list[_Job]) -> list[tuple[_Job, Any]]:
        """Each job with its documents or its exception. If a batch fails, its requests are predicted one by one."""
        answers: list[tuple[_Job, Any]] = []
        thresholds = dict.fromkeys(job.threshold for job in batch)
        for jobs in ([job for job in batch if job.threshold == threshold] for threshold in thresholds):
            try:
                docs = [doc for job in jobs for doc in job.docs]
                predicted = iter(list(self._tagger.predict(docs, threshold=jobs[0].threshold)))
                answers += [(job, [next(predicted) for _ in job.docs]) for job in jobs]
            except Exception as error:  # whatever it is, it is the answer to one request, and others go on
                answers += [(jobs[0], error)] if len(jobs) == 1 else self._predict_alone(jobs)
        return answers

    def _predict_alone(self, jobs: list[_Job]) -> list[tuple[_Job, Any]]:
        return [answer for job in jobs for answer in self._predict_batch([job])]


def _deliver(answers: list[tuple[_Job, Any]]) -> None:
    for job, answer in answers:
        if job.answer.done():  # the caller has given up
            continue
        if isinstance(answer, Exception):
            job.answer.set_exception(answer)
        else:
            job.answer.set_result(answer)
