"""Export a trained tagger: write it in another library's format, prove that it predicts the same, then publish it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from os import PathLike
from pathlib import Path
from types import ModuleType

from lacuner.atomic import atomic_write
from lacuner.data import Document
from lacuner.errors import ConfigError, need_library
from lacuner.export.model_card import write_card
from lacuner.export.onnx_folder import write_onnx
from lacuner.export.options import ExportOptions
from lacuner.export.proof import MAX_TEXTS, PROOF, Proof, Sample, Tolerance, make_sample, prove
from lacuner.export.source import ExportSource, open_source, stored_texts
from lacuner.export.spacy_pipeline import write_spacy, write_wheel
from lacuner.processes import atomic_folder


@dataclass(frozen=True)
class Exporter:
    """How a tagger is written for another library, and how exact the result must be."""

    write: Callable[[ExportSource, Path, ExportOptions], None]
    options: tuple[str, ...] = ()
    """The options, beside name, version and licence, that this target has."""
    gazetteer: bool = False
    """Whether the export applies the tagger's gazetteer."""
    exact_scores: bool = True
    """Whether the target defines the score of an entity as lacuner does; otherwise only single words are compared."""
    tolerance: Tolerance = field(default_factory=Tolerance)
    fits: Callable[[ExportSource, Document], bool] = lambda source, doc: True
    """Whether the target reads a document to its end; others are not compared."""


def _huggingface() -> ModuleType:
    with need_library("--to huggingface needs an extra", "lacuner[transformers]"):
        from lacuner.export import huggingface
    return huggingface


def _write_huggingface(source: ExportSource, folder: Path, options: ExportOptions) -> None:
    _huggingface().write_huggingface(source, folder, options)


def _fits_huggingface(source: ExportSource, doc: Document) -> bool:
    return bool(_huggingface().fits_pipeline(source, doc))


EXPORTERS: dict[str, Exporter] = {
    "spacy": Exporter(write_spacy, ("language", "wheel"), gazetteer=True, tolerance=Tolerance(score=1e-5, changed=0.0)),
    "huggingface": Exporter(
        _write_huggingface, exact_scores=False, tolerance=Tolerance(changed=0.005), fits=_fits_huggingface
    ),
    "onnx": Exporter(write_onnx, ("int8",)),
}
"""Targets by their name after `--to`."""
INT8 = Tolerance(score=1.0, changed=0.05)
"""Of 8-bit weights: any difference of scores, and one span in twenty."""


@dataclass(frozen=True)
class Exported:
    """A finished export."""

    folder: Path
    proof: Proof
    wheel: Path | None = None


def export(
    run: str | PathLike[str],
    to: str,
    out: str | PathLike[str],
    docs: Sequence[Document] | None = None,
    *,
    is_dev: bool = False,
    max_changed: float | None = None,
    options: ExportOptions = ExportOptions(),  # noqa: B008 frozen
) -> Exported:
    """Export the tagger of a run, and refuse to if the export does not predict what the tagger predicts.

    Args:
        run: run folder or model folder.
        to: target, a key of `EXPORTERS`.
        out: folder to write, which must not exist or be empty.
        docs: documents for the proof; by default texts that the run folder contains.
        is_dev: whether `docs` are dev: then all of them are used, and F1 is stated. Otherwise the first 200 are.
        max_changed: share of spans that may differ, instead of the target's own tolerance.
        options: name, version, licence, and options of the target.
    """
    exporter, folder = _check(to, Path(out), options), Path(out)
    source = open_source(run)
    sample = _sample(source, docs, is_dev, exporter)
    tolerance = INT8 if options.int8 else exporter.tolerance
    if max_changed is not None:
        tolerance = replace(tolerance, changed=max_changed)
    with atomic_folder(folder) as part:
        exporter.write(source, part, options)
        proof = prove(
            to,
            source.folder,
            part,
            sample,
            tolerance,
            gazetteer=exporter.gazetteer or not source.has_gazetteer,
            exact_scores=exporter.exact_scores,
        )
        _write(part / PROOF, json.dumps(asdict(proof), ensure_ascii=False, indent=1) + "\n")
        _write(part / "README.md", write_card(source, options, proof, folder.name))
        wheel = write_wheel(part) if options.wheel else None
    return Exported(folder, proof, folder / wheel.name if wheel else None)


def _check(to: str, out: Path, options: ExportOptions) -> Exporter:
    if to not in EXPORTERS:
        raise ConfigError(f"there is no export to {to!r}; --to is one of {', '.join(EXPORTERS)}")
    own = (*EXPORTERS[to].options, "name", "version", "license")
    foreign = [item.name for item in fields(options) if item.name not in own and getattr(options, item.name)]
    if foreign:
        raise ConfigError(f"--{foreign[0]} has no meaning with --to {to}: leave it out")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError("this is not an empty folder: choose another --out", file=out)
    return EXPORTERS[to]


def _sample(source: ExportSource, docs: Sequence[Document] | None, is_dev: bool, exporter: Exporter) -> Sample:
    """The documents to compare on, without those that the target would not read to their end."""
    origin = "dev" if is_dev else "given texts"
    if docs is None:
        docs, origin = stored_texts(source.folder, MAX_TEXTS), "contexts of label issues in the run"
    docs = docs if is_dev else docs[:MAX_TEXTS]
    if not docs:
        raise ConfigError("there are no texts to compare the export on: give some with --dev or --text")
    fitting = [doc for doc in docs if exporter.fits(source, Document("", doc.text))]
    if not fitting:
        raise ConfigError("all texts are longer than the encoder reads at once: give shorter ones with --text")
    return make_sample(fitting, origin, is_dev, skipped=len(docs) - len(fitting))


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as stream:
        stream.write(text.encode("utf-8", "surrogatepass"))
