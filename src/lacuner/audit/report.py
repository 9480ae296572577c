"""What an audit leaves behind: a page and the same as JSON."""

from __future__ import annotations

import json
from math import isnan
from pathlib import Path

from lacuner.atomic import atomic_write
from lacuner.audit.plots import pictures
from lacuner.audit.sampling import Audit
from lacuner.reporting.html import render_page

NAMES = {"loss": "loss", "dev_f1": "dev F1", "missampling": "missampling (%)", "uncertainty": "uncertainty"}
"""What an epoch may have, and how people call it."""
SCALES = {"dev_f1": (100, 1), "missampling": (100, 2)}
LISTED = 50
"""Followed entities that the page has in a table."""


def write_audit(audit: Audit, out: Path, command: str) -> None:
    """Write `report.html` and `sampling.json`. The same audit gives the same bytes."""
    facts = audit.as_json()
    with atomic_write(out / "sampling.json") as stream:
        stream.write((json.dumps(facts, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode(*_LOSSLESS))
    with atomic_write(out / "report.html") as stream:
        stream.write(report(audit, command).encode())


_LOSSLESS = ("utf-8", "surrogatepass")  # half a character in a text must not cost the report


def report(audit: Audit, command: str) -> str:
    """The page."""
    facts = audit.as_json()
    listed = [
        (each, [watched.table[[0, -1], number].tolist() for watched in audit.watched if len(watched.table)])
        for number, each in enumerate(audit.followed[:LISTED])
    ]
    return render_page(
        Path(__file__).parent / "sampling.html.jinja",
        pictures(audit),
        {"share": share, "number": number_text},
        command=command,
        facts=facts,
        columns=columns(audit),
        watched=audit.watched,
        listed=listed,
    )


def columns(audit: Audit) -> dict[str, str]:
    """What the epochs of this audit have, with the names for people."""
    there = {name for watched in audit.watched for row in watched.epochs for name in row}
    return {name: shown for name, shown in NAMES.items() if name in there}


def share(value: float) -> str:
    """Per cent."""
    return f"{100 * value:.2f} %"


def number_text(value: float | None, name: str = "") -> str:
    """A value of an epoch; nothing where there is none."""
    if value is None or isnan(value):
        return ""
    times, digits = SCALES.get(name, (1, 3))
    return f"{times * value:.{digits}f}"
