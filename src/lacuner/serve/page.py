"""The demo page of the service: a form without any script, and the submitted text with highlighted entities."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from lacuner.data import Document
from lacuner.reporting.entities import render_entities, split_at_spans
from lacuner.serve.security import HEADERS


def render_demo(
    title: str,
    labels: Sequence[str],
    doc: Document | None = None,
    *,
    text: str = "",
    threshold: str = "",
    problem: str = "",
) -> str:
    """The page, with what was submitted, and with the entities of a document if there is one.

    >>> "<form" in render_demo("run", ["PLACE"]) and "<script" not in render_demo("run", ["PLACE"])
    True
    """
    counts = Counter(span.label for span in doc.spans) if doc is not None else Counter()
    return render_entities(
        Path(__file__).with_name("demo.html.jinja"),
        labels,
        title=title,
        text=text if doc is None else doc.text,
        threshold=threshold,
        problem=problem,
        segments=None if doc is None else split_at_spans(doc.text, doc.spans),
        counts=dict(sorted(counts.items())),
    )


@cache
def demo_headers() -> Mapping[str, str]:
    """The headers of every response; the Content Security Policy allows the style sheet of the page, by its hash."""
    [style] = re.findall(r"<style>(.*?)</style>", render_demo("", []), re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    rules = ("default-src 'none'", f"style-src 'sha256-{digest}'", "form-action 'self'", "base-uri 'none'")
    return {**HEADERS, "content-security-policy": "; ".join((*rules, "frame-ancestors 'none'"))}
