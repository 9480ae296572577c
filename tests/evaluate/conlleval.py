"""conlleval's definition of a chunk, transcribed as rules on pairs of neighbouring tags, to compare with."""

from __future__ import annotations


def ends(previous: str, previous_type: str, tag: str, type_: str) -> bool:
    if previous in ("E", "S"):
        return True
    if previous in ("B", "I") and tag in ("B", "S", "O"):
        return True
    return previous not in ("O", "") and previous_type != type_


def starts(previous: str, previous_type: str, tag: str, type_: str) -> bool:
    if tag in ("B", "S"):
        return True
    if tag in ("I", "E") and previous in ("E", "S", "O", ""):
        return True
    return tag != "O" and previous_type != type_


def chunks(tags: list[str]) -> set[tuple[int, int, str]]:
    """Chunks as (start, end, type), read from left to right."""
    found, start, previous, previous_type = set(), None, "", ""
    for i, full in enumerate([*tags, "O"]):
        tag, _, type_ = full.partition("-")
        if start is not None and ends(previous, previous_type, tag, type_):
            found.add((start, i, previous_type))
            start = None
        if starts(previous, previous_type, tag, type_):
            start = i
        previous, previous_type = tag, type_
    return found
