"""`lacuner predict`: tag entities in new texts."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option, echo

from lacuner.cli.console import CorpusReader, log, log_lost, print_json
from lacuner.cli.options import InputOptions, Json, refuse_overwriting
from lacuner.corpus import words_of, write
from lacuner.data import Document
from lacuner.errors import ConfigError

if TYPE_CHECKING:
    from lacuner.models.gazetteer import TaggerGazetteer


def predict(
    run: Annotated[Path, Argument(metavar="RUN", help="Run folder or model folder.")],
    corpus: Annotated[Path, Argument(metavar="CORPUS", help="Texts; existing labels are ignored.")],
    out: Annotated[Path, Option("--out", help="Output file with the predicted spans.")],
    *,
    on_long: Annotated[
        Literal["window", "error"], Option(help="Long documents: split into windows or refuse.")
    ] = "window",
    no_gazetteer: Annotated[bool, Option("--no-gazetteer", help="Predict with the model alone.")] = False,
    dictionary: Annotated[
        list[Path] | None, Option(metavar="FILE", help="Further gazetteer entries. Repeatable.")
    ] = None,
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """Tag entities in new texts, with a score per span.

    Matches of the gazetteer that the model was trained with are tagged too.
    """
    from lacuner.models.storage import load
    from lacuner.models.tagger import Tagger

    refuse_overwriting({"--out": out}, corpus, *(dictionary or ()))
    tagger = load(run)
    if no_gazetteer and dictionary:
        raise ConfigError("give either --no-gazetteer or --dictionary, not both")
    if isinstance(tagger, Tagger):
        tagger.gazetteer = None if no_gazetteer else _extend(tagger.gazetteer, dictionary or [])
    elif dictionary:
        raise ConfigError("this run only looks names up: add the entries to its labels and train again")
    reader = CorpusReader(corpus, inputs)
    counts: Counter[str] = Counter()
    start = time.perf_counter()
    lost = write(_count(tagger.predict(reader, on_long=on_long), counts), out)
    seconds = time.perf_counter() - start
    reader.log_lost()
    log_lost(lost, f"wrote {out}")
    if tagger.words_truncated:
        log(f"{tagger.words_truncated:,} words were truncated (too long for the encoder)")
    documents, words, spans = (counts[name] for name in ("documents", "words", "spans"))
    if json:
        facts = {"documents": documents, "words": words, "words_unread": tagger.words_unread, "spans": spans}
        print_json({**facts, "documents_per_second": documents / seconds})
        return
    log(f"{documents / seconds:,.0f} documents/s, {words / seconds:,.0f} words/s")
    unread = f"{tagger.words_unread:,} words unread"
    echo(f"{documents:,} documents, {words:,} words, {unread}, {spans:,} entities: {out}")


def _extend(gazetteer: TaggerGazetteer | None, files: Iterable[Path]) -> TaggerGazetteer | None:
    """The tagger's gazetteer with the entries of more files; its own entries have priority."""
    from lacuner.annotate import load_gazetteer
    from lacuner.models.gazetteer import TaggerGazetteer

    for file in files:
        entries = load_gazetteer(file).entries
        gazetteer = TaggerGazetteer(entries) if gazetteer is None else gazetteer.extend(entries)
    return gazetteer


def _count(docs: Iterable[Document], counts: Counter[str]) -> Iterator[Document]:
    """Pass the documents on and count them, their words and their spans."""
    for doc in docs:
        counts.update(documents=1, words=len(words_of(doc)), spans=len(doc.spans))
        yield doc
