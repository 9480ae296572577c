"""The gazetteer that travels with a tagger: entries, how they are matched, and the rule by which they are merged."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from lacuner.annotate.gazetteer.entries import Entry
from lacuner.annotate.matching.terms import Case, Spacing, normalise_surface
from lacuner.annotate.sources import gazetteer_source
from lacuner.corpus.intervals import IntervalSet
from lacuner.data import Document, Span
from lacuner.errors import explain_damage
from lacuner.models.merging import DEFAULT_RULE, MERGE_RULES, MergeRule, merge_spans

FORMAT, FORMAT_OF_SEVERAL = 1, 2
"""Format versions of files: with one gazetteer, and with several that have different options."""
SOURCE = "gazetteer"
"""The `source` of spans that come from a gazetteer match."""


class TaggerGazetteer:
    """Entries with the options by which `lacuner annotate` matched them.

    >>> gazetteer = TaggerGazetteer([Entry("aspirin", "Chemical")])
    >>> gazetteer.find(Document("1", "Aspirin helps."))
    [Span(start=0, end=7, label='Chemical', score=None, source='gazetteer')]
    """

    def __init__(
        self,
        entries: Iterable[Entry],
        *,
        case: Case = "smart",
        spacing: Spacing = "given",
        stop: Iterable[str] = (),
        others: Iterable["TaggerGazetteer"] = (),
        rule: MergeRule = DEFAULT_RULE,
    ) -> None:
        self.own = [Entry(entry.surface, entry.label) for entry in entries]
        self.case, self.spacing, self.stop = case, spacing, tuple(sorted(stop))
        self.others = tuple(others)
        """Gazetteers with other options. Where their matches overlap those of an earlier one, the earlier one wins."""
        self.rule = rule
        """How matches, those of `others` too, and predictions combine where they overlap."""
        self._source = gazetteer_source(self.own, name=SOURCE, case=case, spacing=spacing, stop=self.stop)

    @property
    def entries(self) -> list[Entry]:
        """The entries, whatever their options."""
        return [entry for part in self.parts for entry in part.own]

    @property
    def parts(self) -> tuple["TaggerGazetteer", ...]:
        """This gazetteer and the others, which all have options of their own."""
        return (self, *self.others)

    def __len__(self) -> int:
        return sum(len(part.own) for part in self.parts)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(sorted({entry.label for entry in self.entries}))

    def find(self, doc: Document) -> list[Span]:
        """The matches in a document; entries with several labels are left to the model."""
        spans = list(self._source.find(doc).spans)
        for other in self.others:
            taken = IntervalSet((span.start, span.end) for span in spans)
            spans += [span for span in other.find(doc) if not taken.overlaps(span.start, span.end)]
        return sorted(spans) if self.others else spans

    def merge(self, doc: Document) -> Document:
        """A document with predicted spans, combined with the matches of the gazetteer."""
        return replace(doc, spans=merge_spans(self.find(doc), doc.spans, self.rule))

    def with_rule(self, rule: MergeRule) -> "TaggerGazetteer":
        """This gazetteer with another merge rule."""
        changed = copy(self)  # a new one would build its matcher again
        changed.rule = rule
        return changed

    def extend(self, entries: Iterable[Entry]) -> "TaggerGazetteer":
        """This gazetteer with more entries; those with a surface that it has are dropped. Its options stay."""
        known = {normalise_surface(entry.surface) for entry in self.entries}
        new = [entry for entry in entries if normalise_surface(entry.surface) not in known]
        return self.replace_entries([[*self.own, *new], *(other.own for other in self.others)])

    def join(self, other: "TaggerGazetteer") -> "TaggerGazetteer":
        """Both gazetteers, this one with priority; each is matched with its own options.

        >>> exact = TaggerGazetteer([Entry("aspirin", "Chemical")], case="exact")
        >>> both = TaggerGazetteer([Entry("Halden", "LOC")]).join(exact)
        >>> [span.label for span in both.find(Document("1", "HALDEN has Aspirin and aspirin."))]
        ['LOC', 'Chemical']
        """
        joined = self
        for part in other.parts:
            if part.options == joined.options and not joined.others:
                joined = joined.extend(part.own)
            else:
                known = {normalise_surface(entry.surface) for entry in joined.entries}
                own = [entry for entry in part.own if normalise_surface(entry.surface) not in known]
                others = (*joined.others, TaggerGazetteer(own, **part.options)) if own else joined.others
                joined = TaggerGazetteer(joined.own, **joined.options, others=others, rule=self.rule)
        return joined

    def replace_entries(self, entries: Sequence[Iterable[Entry]]) -> "TaggerGazetteer":
        """A gazetteer with the same options and other entries, given for each of its parts."""
        others = [TaggerGazetteer(own, **part.options) for part, own in zip(self.others, entries[1:], strict=True)]
        return TaggerGazetteer(entries[0], **self.options, others=others, rule=self.rule)

    def rename_labels(self, names: Mapping[str, str]) -> "TaggerGazetteer":
        """This gazetteer with some labels renamed."""
        return self.replace_entries(
            [[entry._replace(label=names.get(entry.label, entry.label)) for entry in part.own] for part in self.parts]
        )

    @property
    def options(self) -> dict[str, Any]:
        """How the entries are matched."""
        return {"case": self.case, "spacing": self.spacing, "stop": self.stop}

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.to_json()).hexdigest()

    def to_json(self) -> bytes:
        """The gazetteer as a file."""
        facts = {"format": FORMAT, **_part_facts(self)}
        if self.rule != DEFAULT_RULE:
            facts["rule"] = self.rule
        if self.others:
            facts |= {"format": FORMAT_OF_SEVERAL, "others": [_part_facts(other) for other in self.others]}
        return json.dumps(facts, ensure_ascii=False, indent=0).encode("utf-8", "surrogatepass")


def _part_facts(part: TaggerGazetteer) -> dict[str, Any]:
    return {**part.options, "entries": [[entry.surface, entry.label] for entry in part.own]}


def parse_gazetteer(data: bytes, file: Path) -> TaggerGazetteer:
    """The gazetteer that `TaggerGazetteer.to_json` wrote."""
    with explain_damage("not a valid gazetteer file: run `lacuner annotate` again", file):
        facts: Any = json.loads(data)
        if facts["format"] not in (FORMAT, FORMAT_OF_SEVERAL):
            raise ValueError("of another version")
        others = facts["others"] if facts["format"] == FORMAT_OF_SEVERAL else []
        gazetteer = _parse_part(facts, [_parse_part(other, []) for other in others])
        return gazetteer.with_rule(MERGE_RULES[MERGE_RULES.index(facts.get("rule", DEFAULT_RULE))])


def _parse_part(facts: Any, others: list[TaggerGazetteer]) -> TaggerGazetteer:
    rows = [Entry(surface, label) for surface, label in facts["entries"]]
    strings = [*facts["stop"], *(text for row in rows for text in row[:2])]
    options = facts["case"] in get_args(Case) and facts["spacing"] in get_args(Spacing)
    if not options or not all(isinstance(text, str) and text for text in strings):
        raise ValueError("wrong options or entries")
    return TaggerGazetteer(rows, case=facts["case"], spacing=facts["spacing"], stop=facts["stop"], others=others)
