"""`lacuner apply`: decisions of a reviewer and a weak corpus become a better corpus."""

import shutil
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from lacuner.atomic import STANDARD_STREAM
from lacuner.cli.console import echo, log, log_lost, print_json, read_or_store
from lacuner.cli.options import InputOptions, Json, Stream, refuse_overwriting


def apply(
    decisions: Annotated[Path, Argument(metavar="DECISIONS", help="Run folder that was reviewed, or decisions.jsonl.")],
    weak: Annotated[
        list[Path], Argument(metavar="WEAK...", help="The reviewed weak labels, in the order of the audit.")
    ],
    out: Annotated[Path, Option("--out", help="Corpus with the decisions applied (.jsonl keeps everything).")],
    *,
    stream: Stream = None,
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """Apply the decisions of a review to the weak labels.

    Accepted spans get the source `review`, rejected ones are ruled out, and sentences that were labeled completely are
    complete documents, which `lacuner train --recipe auto` uses as gold. The gazetteer beside the weak labels changes
    with them.
    """
    from lacuner.corpus import write
    from lacuner.errors import CorpusError
    from lacuner.models.sidecar import read_sidecars, write_sidecar
    from lacuner.review.apply import apply_decisions, revise_gazetteer
    from lacuner.review.decisions import DecisionLog
    from lacuner.review.queue import decision_log

    refuse_overwriting({"--out": out}, decisions, *weak)
    decided = decision_log(decisions) if decisions.is_dir() else DecisionLog(decisions)
    if not decided.path.is_file():
        raise CorpusError("there are no decisions here: `lacuner review` writes them", file=decided.path)
    prepared = (decided.path if out == STANDARD_STREAM else out).parent / f".{out.name}.prepared"
    try:
        docs = read_or_store(weak, "weak", inputs, (stream, prepared), ordered=True)
        result = apply_decisions(docs, decided.read())
        log_lost(result.lost, "apply")
        log_lost(write(result.docs, out), f"write {out}")
        gazetteer = read_sidecars(weak)
        counts = {}
        if gazetteer is not None:
            revised, new_entries, removed_entries = revise_gazetteer(gazetteer, result.docs)
            counts = {"entries_added": new_entries, "entries_removed": removed_entries}
            file = write_sidecar(revised, out)
            log(f"gazetteer for training: {file} ({new_entries:,} entries added, {removed_entries:,} removed)")
    finally:
        shutil.rmtree(prepared, ignore_errors=True)
    counts |= {key: getattr(result, key) for key in ("added", "confirmed", "removed", "rejected", "completed")}
    if json:
        print_json({"out": str(out), "documents": len(result.docs), **counts, "lost": dict(result.lost)})
        return
    echo(
        f"{result.added:,} entities added, {result.confirmed:,} labels confirmed, {result.removed:,} removed, "
        f"{result.rejected:,} spans ruled out, {result.completed:,} documents complete"
    )
    echo(f"corpus: {out}")
