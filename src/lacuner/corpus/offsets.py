"""Offsets of other tools: in UTF-16 units (JavaScript), in bytes, or counted with CRLF as one character.

Python counts code points. An emoji is two units in JavaScript, so every later offset is shifted; an editor that turns
CRLF into LF shifts them the other way. Where a file repeats the text of a span, it shows how its tool counts.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import accumulate

from lacuner.data import Span
from lacuner.errors import CorpusError

UNITS = {"utf-16": "UTF-16 units", "bytes": "bytes", "crlf": "characters without CR"}
"""Units that are tried, in this order, if characters do not give the text of a span."""
NEAR = 200
"""Characters around an offset in which the text of a span is searched, if no unit fits."""


class OffsetTable:
    """Converts offsets of one text; built once per document, tables only when needed.

    >>> table = OffsetTable("🚀 Mara")
    >>> table.locate(3, 7, "Mara")
    (2, 6, 'UTF-16 units')
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._tables: dict[str, dict[int, int]] = {}

    @cached_property
    def _units(self) -> list[str]:
        """The units that can differ from characters in this text."""
        units = []
        if not self.text.isascii():
            units += ["utf-16", "bytes"] if max(self.text) > "\uffff" else ["bytes"]
        if "\r\n" in self.text:
            units.append("crlf")
        return units

    def to_characters(self, offset: int, unit: str) -> int | None:
        """The character at an offset in this unit; None if the offset is inside a character or outside the text."""
        if unit not in self._units:
            return offset if 0 <= offset <= len(self.text) else None
        if unit not in self._tables:
            positions = list(_positions(self.text, unit))
            # CR and LF have the same position: the first counts, so that a span before them ends before both
            self._tables[unit] = {position: i for i, position in reversed(list(enumerate(positions)))}
        return self._tables[unit].get(offset)

    def locate(self, start: int, end: int, surface: str | None) -> tuple[int, int, str | None]:
        """The characters of a span whose text the file gives, and the unit in which its offsets are counted.

        The unit is None if it is characters, and `"search"` if the text was found near the offsets.
        """
        if surface is None or (0 <= start < end and end - start == len(surface) and self.text[start:end] == surface):
            return start, end, None
        if not surface.strip() or self._is_same(start, end, surface):
            return start, end, None
        for unit in self._units:
            first, last = self.to_characters(start, unit), self.to_characters(end, unit)
            if first is not None and last is not None and self._is_same(first, last, surface):
                return first, last, UNITS[unit]
        first = self._nearest(max(start, 0), surface)
        if first is None:
            written, covered = surface[:40], self.text[max(start, 0) : min(max(end, 0), max(start, 0) + 40)]
            raise CorpusError(f"the span {start}-{end} is {written!r} in the file, but the text there is {covered!r}")
        return first, first + len(surface), "search"

    def other_units(self, start: int, end: int) -> Iterator[tuple[str, int, int]]:
        """The units for `--offsets` in which a span is possible, with its characters.

        >>> list(OffsetTable("🚀 Mara").other_units(3, 7))
        [('utf-16', 2, 6)]
        """
        for unit in self._units:
            first, last = self.to_characters(start, unit), self.to_characters(end, unit)
            if unit != "crlf" and first is not None and last is not None and first < last:
                yield unit, first, last

    def _is_same(self, start: int, end: int, surface: str) -> bool:
        """Whether the text there is the surface up to white space, which editors change, and escaped line breaks."""
        if end - start > 2 * len(surface) + NEAR:  # a short surface must not cost as much as a long text
            return False
        text = self.text[max(start, 0) : max(end, 0)]
        return text == surface or text.split() == surface.replace("\\n", " ").split()

    def _nearest(self, start: int, surface: str) -> int | None:
        """Where the surface occurs within `NEAR` characters of an offset, nearest first."""
        low, high = max(start - NEAR, 0), start + NEAR + len(surface)
        after = self.text.find(surface, start, high)
        before = self.text.rfind(surface, low, start + len(surface))
        candidates = [position for position in (before, after) if position >= 0]
        return min(candidates, key=lambda position: abs(position - start), default=None)


def _positions(text: str, unit: str) -> Iterator[int]:
    """The offset of each character in this unit, and of the end."""
    if unit == "utf-16":
        return accumulate((1 + (character > "\uffff") for character in text), initial=0)
    if unit == "bytes":
        return accumulate((len(character.encode("utf-8", "surrogatepass")) for character in text), initial=0)
    return accumulate((text[i : i + 2] != "\r\n" for i in range(len(text))), initial=0)


def to_characters(text: str, spans: Iterable[Span], unit: str) -> Iterator[Span]:
    """Spans whose offsets are counted in another unit.

    >>> list(to_characters("🚀 Mara", [Span(3, 7, "PER")], "utf-16"))
    [Span(start=2, end=6, label='PER', score=None, source=None)]
    """
    table = OffsetTable(text)
    for span in spans:
        start, end = table.to_characters(span.start, unit), table.to_characters(span.end, unit)
        if start is None or end is None:
            raise CorpusError(f"the span {span.start}-{span.end} does not fit the text in --offsets {unit}")
        yield span._replace(start=start, end=end)


def to_unit(text: str, unit: str) -> list[int]:
    """The offset of each character, and of the end, in this unit.

    >>> to_unit("🚀 Mara", "utf-16")
    [0, 2, 3, 4, 5, 6, 7]
    """
    return list(_positions(text, unit))
