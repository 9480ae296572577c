"""`lacuner pretrain`: domain-adaptive pre-training of an encoder."""

from collections.abc import Iterator
from functools import partial
from json import loads
from pathlib import Path
from typing import Annotated

from typer import Argument

from lacuner.atomic import read_regular_file
from lacuner.cli.console import CorpusReader, echo, hash_corpus, log, print_json
from lacuner.cli.options import Encoder, InputOptions, Json, RunFolder, Seed, Settings, SettingsFile
from lacuner.data import Document


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
    from lacuner.config import load_config, string_setting
    from lacuner.pretraining.pretrain import PretrainConfig
    from lacuner.pretraining.pretrain import pretrain as pretrain_sources
    from lacuner.pretraining.text import TextSource
    from lacuner.training.distributed import is_first

    settings = [*(set_ or []), *string_setting("encoder.name", encoder)]
    pretrain_config = load_config(PretrainConfig, config, settings)
    names = [path.name.split(".")[0] for path in corpus]
    sources = [
        TextSource(
            name if names.count(name) == 1 else str(path), partial(_read, path, inputs), hash_corpus(path, inputs)
        )
        for name, path in zip(names, corpus, strict=True)
    ]
    result = pretrain_sources(sources, out, pretrain_config, seed, log)
    if not is_first():
        return
    _draw_curves(out)
    if json:
        print_json({"run": str(out), "model": str(result.run.model_folder), **result.held_out})
        return
    scores = ", ".join(f"{name} {value:.3g}" for name, value in result.held_out.items())
    echo(f"masked words of held-out text: {scores}")
    echo(f"learning curves: {out / 'learning_curves.svg'}")
    echo(f"encoder: run:{out}")


def _read(path: Path, inputs: InputOptions) -> Iterator[Document]:
    reader = CorpusReader(path, inputs)
    yield from reader
    reader.log_lost("text")


def _draw_curves(run: Path) -> None:
    """Draw the training loss, and the perplexity on held-out text of each corpus, by shard."""
    from lacuner.reporting.svg import Axes, Figure, Panel, line_style, write_figures

    rows = [loads(line) for line in read_regular_file(run / "metrics.jsonl").splitlines()]
    measured = [row for row in rows if "dev" in row]
    series = [name for name in measured[-1]["dev"] if name.startswith("perplexity")]
    styles = {name: line_style(number) for number, name in enumerate(["training loss", *series])}

    def draw(names: list[str], points: list[tuple[int, dict[str, float]]], axes: Axes) -> None:
        for name in names:
            style, x = styles[name], [epoch + 1 for epoch, _ in points]
            axes.plot(x, [row[name] for _, row in points], color=style.colour, marker=style.marker, markersize=3)
        axes.set(xlabel="shard", ylim=(0, None))

    losses = [(row["epoch"], {"training loss": row["loss"]}) for row in rows]
    held_out = [(row["epoch"], row["dev"]) for row in measured]
    panels = [
        Panel("training loss", partial(draw, ["training loss"], losses)),
        Panel("perplexity on held-out text", partial(draw, series, held_out)),
    ]
    write_figures([Figure("learning_curves", "Learning curves", "", panels, styles)], run)
