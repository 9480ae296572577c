"""`lacuner pretrain`: domain-adaptive pre-training of an encoder."""

import hashlib
from functools import partial
from pathlib import Path
from typing import Annotated

from typer import Argument, echo

from lacuner.cli.console import CorpusReader, log, print_json
from lacuner.cli.options import Encoder, InputOptions, Json, RunFolder, Seed, Settings, SettingsFile
from lacuner.errors import CorpusError


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
    from lacuner.pretraining.pretrain import pretrain as pretrain_sources
    from lacuner.pretraining.text import TextSource

    settings = [*(set_ or []), *([f'encoder.name="{encoder}"'] if encoder else [])]
    pretrain_config = load_config(PretrainConfig, config, settings)
    sources = [
        TextSource(path.name.split(".")[0], partial(CorpusReader, path, inputs), _fingerprint(path, inputs))
        for path in corpus
    ]
    result = pretrain_sources(sources, out, pretrain_config, seed, log)
    if json:
        print_json({"run": str(out), "model": str(result.run.model_folder), **result.held_out})
        return
    scores = ", ".join(f"{name} {value:.3g}" for name, value in result.held_out.items())
    echo(f"masked words of held-out text: {scores}")
    echo(f"encoder: run:{out}")


def _fingerprint(path: Path, inputs: InputOptions) -> str:
    """Hash of a file, or of all files of a folder, and of the options that decide how they are read."""
    digest = hashlib.sha256(" ".join(inputs.arguments()).encode())
    try:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                with file.open("rb") as stream:
                    digest.update(hashlib.file_digest(stream, "sha256").digest())
    except OSError as error:
        raise CorpusError(f"cannot read this file: {error.strerror}", file=path) from error
    return digest.hexdigest()
