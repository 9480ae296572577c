"""`lacuner predict`: tag entities in new texts."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option, echo

from lacuner.cli.console import CorpusReader, log, log_lost, print_json
from lacuner.cli.options import InputOptions, Json, refuse_overwriting
from lacuner.corpus import words_of, write
from lacuner.data import Document


def predict(
    run: Annotated[Path, Argument(metavar="RUN", help="Run folder or model folder.")],
    corpus: Annotated[Path, Argument(metavar="CORPUS", help="Texts; existing labels are ignored.")],
    out: Annotated[Path, Option("--out", help="Output file with the predicted spans.")],
    *,
    on_long: Annotated[
        Literal["window", "error"], Option(help="Long documents: split into windows or refuse.")
    ] = "window",
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """Tag entities in new texts, with a score per span."""
    from lacuner.models.storage import load

    refuse_overwriting({"--out": out}, corpus)
    tagger = load(run)
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


def _count(docs: Iterable[Document], counts: Counter[str]) -> Iterator[Document]:
    """Pass the documents on and count them, their words and their spans."""
    for doc in docs:
        counts.update(documents=1, words=len(words_of(doc)), spans=len(doc.spans))
        yield doc
