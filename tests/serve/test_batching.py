"""The queue in front of the model: batches, thresholds, limits, failures, and an end that loses nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from lacuner.data import Document, Span
from lacuner.serve import batching
from lacuner.serve.batching import BatchQueue, OverloadedError


class SlowTagger:
    """Notes what it was asked, waits until it may go on, and labels each text with its own length as the score."""

    words_unread = 0

    def __init__(self) -> None:
        self.batches: list[tuple[list[str], float | None]] = []
        self.gate = threading.Event()
        self.entered = threading.Event()

    def predict(
        self, docs: Sequence[Document], *, on_long: str = "window", threshold: float | None = None
    ) -> Iterator[Document]:
        self.batches.append(([doc.text for doc in docs], threshold))
        self.entered.set()
        assert self.gate.wait(20)
        for doc in docs:
            if doc.text == "bad":
                raise RuntimeError("a text that breaks the model")
            yield replace(doc, spans=(Span(0, 1, doc.text, threshold),))


def run(tagger: SlowTagger, scenario: Callable[[BatchQueue], Awaitable[None]], max_characters: int = 1000) -> None:
    async def main() -> None:
        queue = BatchQueue(tagger, max_characters)
        queue.start()
        try:
            await scenario(queue)
        finally:
            tagger.gate.set()
            await queue.close()
        assert queue.characters == 0

    asyncio.run(main())


async def first_batch(tagger: SlowTagger, queue: BatchQueue) -> asyncio.Task[list[Document]]:
    """A request that the model is working on."""
    task = asyncio.create_task(queue.predict(["first"]))
    await asyncio.to_thread(tagger.entered.wait, 20)
    return task


def labels(docs: list[Document]) -> list[str]:
    return [span.label for doc in docs for span in doc.spans]


def test_requests_that_wait_are_predicted_together() -> None:
    tagger = SlowTagger()

    async def scenario(queue: BatchQueue) -> None:
        first = await first_batch(tagger, queue)
        waiting = [asyncio.create_task(queue.predict(texts)) for texts in (["a"], ["b", "c"], [], ["d"])]
        await asyncio.sleep(0)
        tagger.gate.set()
        answers = [labels(docs) for docs in await asyncio.gather(first, *waiting)]
        assert answers == [["first"], ["a"], ["b", "c"], [], ["d"]]

    run(tagger, scenario)
    assert tagger.batches == [(["first"], None), (["a", "b", "c", "d"], None)]


def test_requests_with_other_thresholds_get_their_own() -> None:
    tagger = SlowTagger()

    async def scenario(queue: BatchQueue) -> None:
        first = await first_batch(tagger, queue)
        thresholds = [0.5, None, 0.9, 0.5]
        waiting = [asyncio.create_task(queue.predict(["x"], threshold)) for threshold in thresholds]
        await asyncio.sleep(0)
        tagger.gate.set()
        answers = await asyncio.gather(first, *waiting)
        assert [docs[0].spans[0].score for docs in answers[1:]] == thresholds

    run(tagger, scenario)
    assert tagger.batches[1:] == [(["x", "x"], 0.5), (["x"], None), (["x"], 0.9)]


def test_a_batch_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "BATCH_CHARACTERS", 10)
    tagger = SlowTagger()

    async def scenario(queue: BatchQueue) -> None:
        first = await first_batch(tagger, queue)
        waiting = [asyncio.create_task(queue.predict([letter * 4])) for letter in "abc"]
        waiting.append(asyncio.create_task(queue.predict(["x" * 100])))
        await asyncio.sleep(0)
        tagger.gate.set()
        await asyncio.gather(first, *waiting)

    run(tagger, scenario)
    assert [texts for texts, _ in tagger.batches[1:]] == [["aaaa", "bbbb"], ["cccc"], ["x" * 100]]


def test_a_full_queue_refuses_and_later_accepts() -> None:
    tagger = SlowTagger()

    async def scenario(queue: BatchQueue) -> None:
        first = await first_batch(tagger, queue)
        second = asyncio.create_task(queue.predict(["x" * 80]))
        await asyncio.sleep(0)
        with pytest.raises(OverloadedError) as refused:
            await queue.predict(["y" * 80])
        assert refused.value.retry_after >= 1
        tagger.gate.set()
        await asyncio.gather(first, second)
        assert labels(await queue.predict(["y" * 80])) == ["y" * 80]
        assert labels(await queue.predict(["z" * 500])) == ["z" * 500], "an empty queue takes any request"

    run(tagger, scenario, max_characters=100)


def test_who_gives_up_leaves_the_queue() -> None:
    tagger = SlowTagger()

    async def scenario(queue: BatchQueue) -> None:
        first = await first_batch(tagger, queue)
        gone = asyncio.create_task(queue.predict(["gone"]))
        await asyncio.sleep(0)
        before = queue.characters
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        assert queue.characters == before - len("gone") - 1
        first.cancel()  # the model is working on this one: its answer is dropped
        await asyncio.gather(first, return_exceptions=True)
        tagger.gate.set()
        assert labels(await queue.predict(["next"])) == ["next"]

    run(tagger, scenario)
    assert "gone" not in [text for texts, _ in tagger.batches for text in texts]


def test_a_text_that_breaks_the_model_breaks_only_its_own_request() -> None:
    tagger = SlowTagger()

    async def scenario(queue: BatchQueue) -> None:
        first = await first_batch(tagger, queue)
        waiting = [asyncio.create_task(queue.predict(texts)) for texts in (["a"], ["b", "bad"], ["c"])]
        await asyncio.sleep(0)
        tagger.gate.set()
        answers = await asyncio.gather(first, *waiting, return_exceptions=True)
        assert isinstance(answers[2], RuntimeError)
        assert [labels(docs) for docs in answers if isinstance(docs, list)] == [["first"], ["a"], ["c"]]
        assert queue.is_alive

    run(tagger, scenario)


def test_closing_answers_what_waits() -> None:
    tagger = SlowTagger()

    async def scenario(queue: BatchQueue) -> None:
        first = await first_batch(tagger, queue)
        waiting = [asyncio.create_task(queue.predict([letter])) for letter in "abc"]
        await asyncio.sleep(0)
        closing = asyncio.create_task(queue.close())
        await asyncio.sleep(0)
        with pytest.raises(OverloadedError):
            await queue.predict(["late"])
        tagger.gate.set()
        assert [labels(docs) for docs in await asyncio.gather(first, *waiting)] == [["first"], ["a"], ["b"], ["c"]]
        await closing

    run(tagger, scenario)
