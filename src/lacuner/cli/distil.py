"""`lacuner distil`: teach the predictions of a tagger to another encoder."""

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option, echo

from lacuner.cli.console import log, print_json, read_splits
from lacuner.cli.options import Dev, InputOptions, Json, RunFolder, Seed, Settings, SettingsFile


def distil(
    run: Annotated[Path, Argument(metavar="RUN", help="Teacher: run folder or model folder.")],
    to: Annotated[
        str, Option("--to", help="Encoder of the student: tiny, tiny-en, tiny-zh, lstm, hf:... or run:PATH.")
    ],
    text: Annotated[list[Path], Option("--text", help="Texts; labels are ignored. Repeatable.")],
    out: RunFolder,
    *,
    head: Annotated[
        Literal["token", "crf", "span", "entity_type"] | None,
        Option(help="Head of the student. Default: that of the teacher; for a CRF, token."),
    ] = None,
    dev: Dev = None,
    seed: Seed = 1,
    config: SettingsFile = None,
    set_: Settings = None,
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """Distil a tagger into another encoder, on unlabeled text.

    The gazetteer passes to the student. A tenth of the texts, at most 500, is held out to measure how far both agree.
    """
    from lacuner.config import load_config
    from lacuner.export.distil import DistilConfig
    from lacuner.export.distil import distil as distil_run

    settings = [*(set_ or []), f'encoder.name="{to}"', *([f'head="{head}"'] if head else [])]
    student = load_config(DistilConfig, config, settings)
    splits = read_splits({"text": text, "dev": [dev] if dev else None}, inputs)
    result = distil_run(run, splits.get("text", []), out, student, dev=splits.get("dev"), seed=seed, log=log)
    agreement = result.agreement
    if json:
        facts = {"precision": agreement.precision, "recall": agreement.recall, "f1": agreement.f1}
        print_json({"run": str(out), "model": str(result.run.model_folder), "agreement": facts})
        return
    echo(f"agreement with the teacher on held-out text: F1 {100 * agreement.f1:.1f} ({agreement.gold:,} spans)")
    echo(f"model: {result.run.model_folder}")
