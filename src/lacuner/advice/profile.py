"""What can be seen of weak labels before anything is trained: how much is missing, and how much is wrong.

Weak labels alone tell how often a labelled name stands elsewhere without a label. Some complete documents, be they of
other texts, tell much more: entities are about as frequent there as they should be here, and names mean the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from lacuner.advice.mentions import (
    Share,
    agreement,
    contradicting,
    forgotten,
    labelled_names,
    mentions,
    own_agreement,
    well_bounded,
)
from lacuner.corpus.words import words_of
from lacuner.data import Document
from lacuner.noise import NoiseMeter

LEAST = 50
"""So many entities at least must complete documents have to judge by, or a figure about names rest on. By chance alone
a share that is a half then comes out between 0.36 and 0.64, nineteen times of twenty."""
BY_MENTION = 0.6
"""At least so much of the missing share is seen in the weak labels themselves if mentions are missing, less if names
are. (At rates of 0.5 and 0.8, six corpora had 0.89 and more if mentions were dropped, 0.46 and less if names were.)"""
TOO_LITTLE = 0.1
"""Of a smaller missing share nobody can say more: it may be chance."""

GAPPY = 0.3
"""Documents of whose names so many other mentions have no label are not complete, whatever they say. (Of five corpora
the gold parts have 0.01 to 0.14, and 0.5 to 0.64 once half of the labels are dropped.)"""

_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


@dataclass(frozen=True)
class Size:
    """How large a corpus is."""

    documents: int
    words: int
    entities: int
    labels: tuple[str, ...]
    cjk: float
    """The share of Chinese and Japanese among the visible characters."""
    characters: int = 0
    """The visible ones."""

    @property
    def density(self) -> float:
        """Entities a visible character: the same however words are split."""
        return self.entities / self.characters if self.characters else 0.0


@dataclass(frozen=True)
class Seen:
    """What was seen. None: not given, or nothing to tell it by."""

    weak: Size | None = None
    gold: Size | None = None
    dev: Size | None = None
    whole: bool = False
    """All weak documents say of themselves that they are complete."""
    in_gold: float = 0.0
    """The share of the weak documents whose text complete gold has too."""
    forgotten: Share | None = None
    """Of the other mentions of a labelled name, the share without a label."""
    contradicting: Share | None = None
    """Of the other labels of a name, the share of another type."""
    judge: Literal["gold of the same texts", "gold", "dev", "gold and dev"] | None = None
    """What `missing` and `right` were told by."""
    missing: float | None = None
    """The share of the entities that have no label, or a wrong one."""
    bare: float | None = None
    """The share that has none: by how many labels there are, right or wrong."""
    right: float | None = None
    """The share of the labels that are right."""
    unlike: tuple[str, ...] = ()
    """Labels that the complete documents have and the weak ones lack."""
    unjudged: tuple[str, ...] = ()
    """Labels that the weak documents have and the complete ones lack."""
    teaching: int = 0
    """Entities of complete gold documents that have labels of weak ones."""
    in_dev: float = 0.0
    """The share of the dev documents whose text weak has too; these judge nothing."""
    gappy: float | None = None
    """Of the other mentions of their own labelled names, the share without a label in gold and dev, if that is so much
    that they cannot be complete; they judge nothing then."""

    @property
    def comparable(self) -> bool:
        """Whether weak and complete documents have a label in common."""
        complete = {label for size in (self.gold, self.dev) if size for label in size.labels}
        return self.weak is not None and bool(complete & set(self.weak.labels))

    @property
    def gaps(self) -> Literal["mentions", "names"] | None:
        """What is missing, where something is: single mentions, or names as a whole."""
        if self.bare is None or self.bare < TOO_LITTLE or self.forgotten is None or self.forgotten.of < LEAST:
            return None
        return "mentions" if self.forgotten.value >= BY_MENTION * self.bare else "names"

    def as_json(self) -> dict[str, Any]:
        shares = {
            name: None if share is None else share._asdict()
            for name, share in (("forgotten", self.forgotten), ("contradicting", self.contradicting))
        }
        return {**asdict(self), **shares, "gaps": self.gaps}


def look(
    weak: Sequence[Document] | None = None,
    gold: Sequence[Document] | None = None,
    dev: Sequence[Document] | None = None,
) -> Seen:
    """Look at the data of a training. The order of documents makes no difference."""
    weak_size, gold_size, dev_size = (None if docs is None else size_of(docs) for docs in (weak, gold, dev))
    seen = Seen(weak_size, gold_size, dev_size)
    if weak is None or weak_size is None or not weak_size.entities:
        return seen
    names = labelled_names(weak)
    seen = replace(
        seen,
        in_gold=_shared(weak, _complete(gold)),
        in_dev=_shared(dev, weak),
        whole=all(doc.complete for doc in weak),
        forgotten=forgotten(mentions(names, weak)),
        contradicting=contradicting(names),
    )
    return _judged(seen, weak, _complete(gold), _apart(_complete(dev), weak))


def size_of(docs: Iterable[Document]) -> Size:
    """Count."""
    documents = words = entities = visible = cjk = 0
    labels = set()
    for doc in docs:
        documents += 1
        words += len(words_of(doc))
        entities += len(doc.spans)
        labels |= {span.label for span in doc.spans}
        visible += len("".join(doc.text.split()))
        cjk += 0 if doc.text.isascii() else len(_CJK.findall(doc.text))
    return Size(documents, words, entities, tuple(sorted(labels)), cjk / visible if visible else 0.0, visible)


def _shared(docs: Sequence[Document] | None, others: Sequence[Document] | None) -> float:
    """The share of the documents whose text is one of the others', too."""
    texts = {doc.text for doc in others or ()}
    return sum(doc.text in texts for doc in docs) / len(docs) if docs else 0.0


def _complete(docs: Sequence[Document] | None) -> list[Document]:
    """Gold and dev are complete unless they say otherwise."""
    return [doc for doc in docs or () if doc.complete is not False]


def _apart(docs: Sequence[Document], others: Sequence[Document]) -> list[Document]:
    """The documents whose text is none of the others'."""
    texts = {doc.text for doc in others}
    return [doc for doc in docs if doc.text not in texts]


def _judged(seen: Seen, weak: Sequence[Document], gold: list[Document], dev: list[Document]) -> Seen:
    """Add what complete documents say: the weak ones' own gold if there is enough of it, or else any."""
    here, there = set(size_of(weak).labels), set(size_of([*gold, *dev]).labels)
    common = here & there
    weak, gold, dev = (_only(common, docs) for docs in (weak, gold, dev))
    seen = replace(
        seen, unlike=tuple(sorted(there - here)), teaching=size_of(gold).entities, gappy=_gappy([*gold, *dev])
    )
    if there:
        seen = replace(seen, unjudged=tuple(sorted(here - there)))
    if seen.gappy is not None:
        return seen
    measured = _measured(weak, gold)
    if measured is not None:
        return replace(seen, judge="gold of the same texts", missing=measured[0], right=measured[1], bare=measured[2])
    others, these = size_of([*gold, *dev]), size_of(weak)
    if min(others.entities, these.entities) < LEAST:
        return seen
    right = _right(weak, [*gold, *dev])
    found = min(these.density / others.density, 1.0)
    judge: Any = " and ".join(name for name, docs in (("gold", gold), ("dev", dev)) if docs)
    return replace(
        seen, judge=judge, missing=1 - found * (1.0 if right is None else right), bare=1 - found, right=right
    )


def _gappy(docs: Sequence[Document]) -> float | None:
    """How much documents forget that call themselves complete, if it is too much to believe them."""
    share = forgotten(mentions(labelled_names(docs), docs))
    return share.value if share is not None and share.of >= LEAST and share.value > GAPPY else None


def _measured(weak: Sequence[Document], gold: Sequence[Document]) -> tuple[float, float, float] | None:
    """Missing, right and bare as they are, where enough documents have gold; texts that stand twice are left out."""
    once = Counter(doc.text for doc in weak)
    truth = {doc.text: doc for doc in gold}
    several = Counter(doc.text for doc in gold)
    measuring = NoiseMeter()
    for doc in weak:
        if once[doc.text] == several[doc.text] == 1:
            measuring.add(doc, truth[doc.text])
    exact = measuring.result().scores.exact
    if min(exact.gold, exact.predicted) < LEAST:
        return None
    return 1 - exact.recall, exact.precision, max(1 - exact.predicted / exact.gold, 0.0)


def _right(weak: Sequence[Document], complete: Sequence[Document]) -> float | None:
    """How many labels are right, by what their names mean in complete documents, and by where such names begin and end.

    Names that mean several things agree less although nothing is wrong; so we take it as a share of the agreement that
    the complete documents have among themselves. Labels with wrong bounds are seldom anybody's name, and so do not show
    in that; they do where they share words with a name.
    """
    names, own = labelled_names(weak), labelled_names(complete)
    same, best = agreement(names, mentions(names, complete)), own_agreement(mentions(own, complete))
    if same is None or best is None or min(same.of, best.of) < LEAST or not best.value:
        return None
    bounded = well_bounded(weak, complete)
    return min(same.value / best.value, 1.0) * (bounded.value if bounded and bounded.of >= LEAST else 1.0)


def _only(labels: Collection[str], docs: Sequence[Document]) -> list[Document]:
    """The documents with the entities of these labels."""
    return [replace(doc, spans=tuple(span for span in doc.spans if span.label in labels)) for doc in docs]
