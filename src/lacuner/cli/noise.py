"""`lacuner noise`: make weak labels of known quality, and measure those of unknown."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from lacuner.cli import options

app = typer.Typer(help="Make noise that is known, and measure noise that is not.", no_args_is_help=True)


@app.command()
def corrupt(
    gold: Annotated[Path, typer.Argument(metavar="GOLD", help="A corpus whose spans are true.")],
    out: Annotated[Path, typer.Option("--out", help="Where the weak corpus goes.")],
    drop: Annotated[float, typer.Option("--drop", help="Share of entities that lose their label.")] = 0.0,
    drop_type: Annotated[
        list[str] | None,
        typer.Option("--drop-type", metavar="LABEL=RATE", help="Another rate for a type; may be repeated."),
    ] = None,
    by_surface: Annotated[
        bool, typer.Option("--by-surface", help="Drop names, not mentions: all mentions of a name vanish together.")
    ] = False,
    wrong_type: Annotated[
        float, typer.Option("--wrong-type", help="Share of the kept ones that get another type.")
    ] = 0.0,
    shift: Annotated[
        float, typer.Option("--shift", help="Share of the kept ones of which one edge moves a word.")
    ] = 0.0,
    seed: Annotated[int, typer.Option("--seed", help="Another seed, other entities.")] = 1,
    format: options.Format = None,
    encoding: options.Encoding = "utf-8",
    separator: options.Separator = None,
    token_column: options.TokenColumn = 0,
    tag_column: options.TagColumn = -1,
    scheme: options.Scheme = None,
    json: options.Json = False,
) -> None:
    """Remove and falsify labels by stated rates. The same entity meets the same fate wherever its sentence stands."""
    from lacuner.cli.console import Watched, print_json, report_lost, say
    from lacuner.config import make_config
    from lacuner.corpus import write
    from lacuner.noise import Noise
    from lacuner.noise import corrupt as corrupted

    options.keep_inputs({"--out": out}, gold)
    rates = {label: _rate(label, rate) for label, rate in (each.partition("=")[::2] for each in drop_type or [])}
    values = {"drop": drop, "drop_types": rates, "by_surface": by_surface, "wrong_type": wrong_type, "shift": shift}
    noise = make_config(Noise, {**values, "seed": seed})
    reading = options.read_options(encoding, scheme, columns=(separator, token_column, tag_column))
    labels = None
    if noise.wrong_type:
        labels = sorted({span.label for doc in Watched(gold, format=format, options=reading) for span in doc.spans})
    docs = Watched(gold, format=format, complete=True, options=reading)
    tally: Counter[str] = Counter()
    lost = write(corrupted(docs, noise, labels, tally), out)
    report_lost(docs.lost, f"read {gold}")
    report_lost(lost, f"wrote {out}")
    for label in rates:
        if not tally[f"entities {label}"]:
            say(f"--drop-type {label}: there is no entity of this type")
    if json:
        print_json({**tally, "out": str(out), "lost": dict(lost), "noise": noise.model_dump()})
        return
    total = max(tally["entities"], 1)
    for what in ("dropped", "retyped", "could not be retyped", "shifted", "could not be shifted"):
        if tally[what] or what == "dropped":
            typer.echo(f"{what}: {tally[what]:,} of {tally['entities']:,} entities ({100 * tally[what] / total:.1f} %)")


def _rate(label: str, rate: str) -> float:
    from lacuner.errors import ConfigError

    try:
        return float(rate)
    except ValueError as error:
        raise ConfigError(f"--drop-type is written LABEL=RATE, not {label}={rate}") from error


@app.command()
def measure(
    weak: Annotated[Path, typer.Argument(metavar="WEAK", help="The labels to measure.")],
    gold: Annotated[Path, typer.Option("--gold", help="The truth, complete unless the file says otherwise.")],
    format: options.Format = None,
    encoding: options.Encoding = "utf-8",
    separator: options.Separator = None,
    token_column: options.TokenColumn = 0,
    tag_column: options.TagColumn = -1,
    scheme: options.Scheme = None,
    json: options.Json = False,
) -> None:
    """Weak labels against gold: precision, recall, what is missing, wrong or invented, and how sparse entities are."""
    from lacuner.cli.console import Watched, print_json, print_table, report_lost
    from lacuner.cli.score_table import incomplete_note, score_rows
    from lacuner.noise import measure as measured
    from lacuner.noise.measure import KINDS, NO_ENTITY

    reading = options.read_options(encoding, scheme, columns=(separator, token_column, tag_column))
    labels, truth = (
        Watched(weak, format=format, options=reading),
        Watched(gold, format=format, complete=True, options=reading),
    )
    result = measured(labels, truth)
    for docs in (labels, truth):
        report_lost(docs.lost, f"read {docs.path}")
    if json:
        print_json(result.as_json())
        return
    print_table("", ("", "P", "R", "F1", "correct", "weak", "gold"), score_rows(result.scores))
    if not result.scores.final:
        typer.echo(incomplete_note(result.scores))
    rows = [(label, *[f"{counts[kind]:,}" for kind in KINDS]) for label, counts in result.kinds.items()]
    print_table(
        "\nWhat became of the entities",
        ("type", *KINDS),
        [*rows, ("all", *[f"{result.total[kind]:,}" for kind in KINDS])],
    )
    names = [*result.kinds, NO_ENTITY]
    confusion = [(real, *[f"{result.confusion[real, found]:,}" for found in names]) for real in names]
    print_table("\nGold type (rows) against weak type (columns)", ("", *names), confusion)
    density = result.density
    typer.echo(
        f"\n{100 * density.share:.1f} % of {density.sentences:,} sentences have at most sqrt(n) entities in n words"
    )
