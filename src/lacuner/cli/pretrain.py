"""`lacuner pretrain`: an encoder that has read the texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lacuner.cli import options


def pretrain(
    corpus: Annotated[list[Path], typer.Argument(metavar="CORPUS...", help="Texts; labels in them are ignored.")],
    out: Annotated[Path, typer.Option("--out", help="The run folder; the same command continues an unfinished run.")],
    encoder: Annotated[
        str | None, typer.Option("--encoder", help="tiny, lstm, hf:NAME_OR_PATH, or run:PATH; tiny by default.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Another seed, other weights.")] = 1,
    config: Annotated[Path | None, typer.Option("--config", help="Settings, in TOML.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting, such as train.epochs=5.")
    ] = None,
    format: options.Format = None,
    encoding: options.Encoding = "utf-8",
    words: options.Words = "unicode",
    separator: options.Separator = None,
    token_column: options.TokenColumn = 0,
    tag_column: options.TagColumn = -1,
    scheme: options.Scheme = None,
    json: options.Json = False,
) -> None:
    """Teach an encoder to guess hidden words of your texts; `--encoder run:OUT` then starts from it."""
    from lacuner.cli.console import print_json, read_roles, say
    from lacuner.config import load_config
    from lacuner.pretraining.pretrain import PretrainConfig
    from lacuner.pretraining.pretrain import pretrain as pretrain_documents

    chosen = [*(set_ or []), *([f'encoder.name="{encoder}"'] if encoder else [])]
    settings = load_config(PretrainConfig, config, chosen)
    reading = options.read_options(encoding, scheme, words, (separator, token_column, tag_column))
    docs = read_roles({"unlabeled": corpus}, format, reading).get("unlabeled", [])
    done = pretrain_documents(docs, out, settings, seed, say)
    if json:
        print_json({"run": str(out), "model": str(done.run.model_folder), **done.held_out})
        return
    guessed = ", ".join(f"{name} {value:.3g}" for name, value in done.held_out.items())
    typer.echo(f"hidden words of held-out text: {guessed}")
    typer.echo(f"encoder: run:{out}")
