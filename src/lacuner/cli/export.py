"""`lacuner export`: a trained tagger for spaCy, Hugging Face or ONNX."""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from lacuner.cli.console import CorpusReader, echo, log, print_json
from lacuner.cli.options import InputOptions, Json
from lacuner.data import Document
from lacuner.errors import ConfigError
from lacuner.export.options import ExportOptions


def export(
    run: Annotated[Path, Argument(metavar="RUN", help="Run folder or model folder.")],
    to: Annotated[Literal["spacy", "huggingface", "onnx"], Option("--to", help="Library to export to.")],
    out: Annotated[Path, Option("--out", help="Folder to write; it must not exist or be empty.")],
    *,
    dev: Annotated[
        Path | None, Option("--dev", help="Gold annotations to compare export and tagger on, with F1.")
    ] = None,
    text: Annotated[
        Path | None, Option("--text", help="Texts to compare both on, the first 200. Default: texts of the run.")
    ] = None,
    max_changed: Annotated[
        float | None,
        Option(
            min=0.0,
            max=1.0,
            help="Share of spans that may differ. Default: 0 spacy, 0.005 huggingface, 0.001 onnx, 0.05 int8.",
        ),
    ] = None,
    int8: Annotated[bool, Option("--int8", help="ONNX: weights in 8 bits (dynamic quantisation).")] = False,
    language: Annotated[str | None, Option(help="spaCy: language code of the tokenizer. Default: xx.")] = None,
    wheel: Annotated[bool, Option("--wheel", help="spaCy: also write a package for pip install.")] = False,
    name: Annotated[str | None, Option(help="Name of the model. Default: that of the run folder.")] = None,
    version: Annotated[str, Option(help="Version of the model.")] = "0.1.0",
    license: Annotated[str, Option(help="Licence of the model, for its card.")] = "",
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """Export a tagger to spaCy, Hugging Face or ONNX.

    The export is loaded in a new process and must predict the same entities; otherwise nothing is written.
    """
    from lacuner.export.export import export as export_run

    if dev is not None and text is not None:
        raise ConfigError("give either --dev or --text, not both")
    docs = None
    if path := dev or text:
        docs = _read(path, inputs, is_dev=dev is not None)
    options = ExportOptions(name, version, license, language, wheel, int8)
    result = export_run(run, to, out, docs, is_dev=dev is not None, max_changed=max_changed, options=options)
    proof = result.proof
    if json:
        print_json({"out": str(result.folder), "wheel": result.wheel and str(result.wheel), "proof": asdict(proof)})
        return
    for note, count in proof.notes.items():
        log(f"{note}: {count:,}")
    if not proof.gazetteer:
        log("the gazetteer of the tagger is not part of this export: both sides were compared without it")
    speed = proof.documents_per_second
    log(f"{speed['lacuner']:,.0f} documents/s before, {speed[to]:,.0f} after (one thread)")
    changed = f"{proof.missing:,} missing, {proof.extra:,} extra"
    echo(f"{proof.equal:,} of {proof.spans:,} spans in {proof.documents:,} documents are equal, {changed}")
    echo(f"wrote {result.folder}" + (f" and {result.wheel.name}" if result.wheel else ""))


def _read(path: Path, inputs: InputOptions, is_dev: bool) -> list[Document]:
    """All of dev, or the first texts of a corpus, which may be large."""
    from lacuner.export.proof import MAX_TEXTS

    reader = CorpusReader(path, inputs, complete=True if is_dev else None)
    docs = list(islice(reader, None if is_dev else MAX_TEXTS))
    reader.log_lost()
    return docs
