"""The demo corpus for tests: built once per process, because building takes half a second."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from lacuner.data import Document
from lacuner.demo import Demo, build

_build_once = cache(build)


def demo_corpus() -> Demo:
    """The demo corpus. Documents can be changed, so every caller gets copies and no test depends on another."""
    demo = _build_once()
    return replace(demo, train=_copies(demo.train), dev=_copies(demo.dev), test=_copies(demo.test))


def _copies(docs: list[Document]) -> list[Document]:
    return [replace(doc) for doc in docs]
