"""`lacuner augment`: augmented sentences from a masked language model."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from lacuner.cli.console import CorpusReader, echo, log_lost, print_json
from lacuner.cli.options import InputOptions, Json, Seed, refuse_overwriting
from lacuner.corpus import words_of, write
from lacuner.data import Document

EXAMPLES = 5


def augment(
    corpus: Annotated[Path, Argument(metavar="CORPUS", help="Texts, with or without labels.")],
    encoder: Annotated[
        str,
        Option("--encoder", help="tiny-en, tiny-zh, run:PATH (from `pretrain`) or hf:NAME_OR_PATH (masked-LM head)."),
    ],
    out: Annotated[Path, Option("--out", help="Output file; labels are kept.")],
    *,
    rate: Annotated[float, Option(min=0.0, max=1.0, help="Share of words to replace.")] = 0.15,
    least_top5: Annotated[
        float | None, Option(help="Refuse encoders with a lower top-5 accuracy. Default: 0.6.")
    ] = None,
    seed: Seed = 1,
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """Replace some words by predictions of a masked LM; labels stay."""
    from lacuner.pretraining.augmentation import MIN_TOP5, changed_documents, open_augmentation_model
    from lacuner.pretraining.augmentation import augment as augment_documents

    refuse_overwriting({"--out": out}, corpus)
    reader = CorpusReader(corpus, inputs)
    docs = list(reader)
    reader.log_lost()
    model = open_augmentation_model(encoder, docs, MIN_TOP5 if least_top5 is None else least_top5)
    augmented = augment_documents(docs, model, rate, seed)
    log_lost(write(augmented, out), f"wrote {out}")
    changed = list(changed_documents(docs, augmented))
    words, replaced = sum(len(words_of(doc)) for doc in docs), sum(count for *_, count in changed)
    if json:
        print_json({"documents": len(docs), "words": words, "changed": replaced, "out": str(out)})
        return
    for before, after, _ in changed[:EXAMPLES]:
        echo(f"  {_bracket_spans(before)}\n  {_bracket_spans(after)}\n")
    echo(f"{len(docs):,} documents, {replaced:,} of {words:,} words changed: {out}")


def _bracket_spans(doc: Document) -> str:
    """The text on one line, with labeled spans in brackets."""
    text, end = "", 0
    for span in sorted(doc.spans, key=lambda span: span.start):
        if span.start >= end:
            text += f"{doc.text[end : span.start]}[{doc.text[span.start : span.end]} {span.label}]"
            end = span.end
    return " ".join((text + doc.text[end:]).split())
