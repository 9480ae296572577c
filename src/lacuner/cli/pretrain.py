"""`lacuner pretrain`: domain-adaptive pre-training of an encoder."""

from pathlib import Path
from typing import Annotated

from typer import Argument, echo

from lacuner.cli.console import log, print_json, read_splits
from lacuner.cli.options import Encoder, InputOptions, Json, RunFolder, Seed, Settings, SettingsFile


def pretrain(
    corpus: Annotated[list[Path], Argument(metavar="CORPUS", help="Texts; labels are ignored.")],
    out: RunFolder,
    *,
    encoder: Encoder = None,
    seed: Seed = 1,
    config: SettingsFile = None,
    set_: Settings = None,
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """Pre-train an encoder on your texts (masked LM).

    Train with `--encoder run:OUT` afterwards.
    """
    from lacuner.config import load_config
    from lacuner.pretraining.pretrain import PretrainConfig
    from lacuner.pretraining.pretrain import pretrain as pretrain_documents

    settings = [*(set_ or []), *([f'encoder.name="{encoder}"'] if encoder else [])]
    pretrain_config = load_config(PretrainConfig, config, settings)
    docs = read_splits({"text": corpus}, inputs)["text"]
    pretrained = pretrain_documents(docs, out, pretrain_config, seed, log)
    if json:
        print_json({"run": str(out), "model": str(pretrained.run.model_folder), **pretrained.held_out})
        return
    scores = ", ".join(f"{name} {value:.3g}" for name, value in pretrained.held_out.items())
    echo(f"masked words of held-out text: {scores}")
    echo(f"encoder: run:{out}")
