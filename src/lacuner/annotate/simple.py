"""Labelling for notebooks: a plain function on documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike

from lacuner.annotate.dictionary import load_dictionary
from lacuner.annotate.run import annotate as annotate_by
from lacuner.annotate.sources import Source, dictionary_source
from lacuner.annotate.tally import Tally
from lacuner.annotate.terms import Case
from lacuner.types import Document


def annotate(
    docs: Iterable[Document],
    dictionary: str | PathLike[str] | None = None,
    *,
    case: Case = "smart",
    sources: Iterable[Source] = (),
    tally: Tally | None = None,
) -> Iterator[Document]:
    """Documents with weak labels from a dictionary file, and from other sources that come after it in priority."""
    first = [] if dictionary is None else [dictionary_source(load_dictionary(dictionary).entries, case=case)]
    return annotate_by(docs, [*first, *sources], tally=tally)
