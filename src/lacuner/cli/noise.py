"""`lacuner noise`: simulate label noise, or measure it against gold."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from lacuner.cli.console import CorpusReader, echo, log, log_lost, print_json, print_scores, print_table
from lacuner.cli.options import Gold, InputOptions, Json, Seed, refuse_overwriting
from lacuner.corpus import write
from lacuner.data import labels_of
from lacuner.errors import ConfigError

if TYPE_CHECKING:
    from lacuner.noise import Noise

MAX_TYPES = 20
"""Rows and columns of the printed confusion matrix."""


def corrupt(
    gold: Annotated[Path, Argument(metavar="GOLD", help="Corpus with gold annotations.")],
    out: Annotated[Path, Option("--out", help="Output file with the weak labels.")],
    *,
    drop: Annotated[float, Option(help="Share of entities whose label is removed.")] = 0.0,
    drop_type: Annotated[
        list[str] | None, Option(metavar="LABEL=RATE", help="Drop rate of one type. Repeatable.")
    ] = None,
    by_surface: Annotated[
        bool, Option("--by-surface", help="Drop all mentions of a name or none, as if a gazetteer lacked it.")
    ] = False,
    wrong_type: Annotated[float, Option(help="Share of kept entities with a wrong type.")] = 0.0,
    shift: Annotated[float, Option(help="Share of kept entities with one boundary moved.")] = 0.0,
    spurious: Annotated[float, Option(help="Number of labels added outside entities, per entity.")] = 0.0,
    profile: Annotated[
        str | None,
        Option(
            help="Error profile instead of single rates: `llm`, or `noisebench-` with `expert`, `crowd-best`, `crowd`, "
            "`distant`, `weak` or `llm`."
        ),
    ] = None,
    seed: Seed = 1,
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """Simulate noise: remove or falsify labels at given rates.

    Which entities are hit depends on the seed and the entity itself, not on file order.
    """
    from lacuner.config import make_config
    from lacuner.noise import Noise
    from lacuner.noise import corrupt as corrupt_documents

    refuse_overwriting({"--out": out}, gold)
    rates = dict(_parse_rate(text) for text in drop_type or [])
    values = {"drop": drop, "drop_types": rates, "by_surface": by_surface, "wrong_type": wrong_type, "shift": shift}
    values["spurious"] = spurious
    noise = make_config(Noise, {**values, "seed": seed})
    if profile is not None:
        noise = _find_profile(profile, [name for name, value in values.items() if value], seed)
    labels = labels_of(CorpusReader(gold, inputs)) if noise.wrong_type else None
    reader = CorpusReader(gold, inputs, complete=True)
    counts: Counter[str] = Counter()
    lost = write(corrupt_documents(reader, noise, labels, counts), out)
    reader.log_lost()
    log_lost(lost, f"wrote {out}")
    for label in rates:
        if not counts[f"entities {label}"]:
            log(f"--drop-type {label}: there is no entity of this type")
    if json:
        print_json({**counts, "out": str(out), "lost": dict(lost), "noise": noise.model_dump()})
        return
    total = counts["entities"]
    changes = ("dropped", "retyped", "could not be retyped", "shifted", "could not be shifted")
    for change in (*changes, "spurious", "could not be added"):
        if counts[change] or change == "dropped":
            share = 100 * counts[change] / max(total, 1)
            echo(f"{change}: {counts[change]:,} ({share:.1f} % of {total:,} entities)")


def _find_profile(name: str, rates: list[str], seed: int) -> Noise:
    from lacuner.noise import PROFILES, noise_profile

    if name not in PROFILES:
        raise ConfigError(f"there is no --profile {name!r}; there are {', '.join(PROFILES)}")
    if rates:
        option = "drop-type" if rates[0] == "drop_types" else rates[0].replace("_", "-")
        raise ConfigError(f"--profile sets all rates: leave out --{option}")
    return noise_profile(name, seed)


def _parse_rate(text: str) -> tuple[str, float]:
    label, _, rate = text.partition("=")
    try:
        return label, float(rate)
    except ValueError as error:
        raise ConfigError(f"--drop-type is written LABEL=RATE, not {text}") from error


def measure(
    weak: Annotated[Path, Argument(metavar="WEAK", help="Corpus with weak labels.")],
    gold: Gold,
    *,
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """Compare weak labels with gold.

    Shows precision and recall, missing, wrong and spurious labels by type, and how sparse entities are.
    """
    from lacuner.noise import measure as measure_documents
    from lacuner.noise.measure import KINDS, NO_ENTITY

    weak_docs, gold_docs = CorpusReader(weak, inputs), CorpusReader(gold, inputs, complete=True)
    result = measure_documents(weak_docs, gold_docs)
    weak_docs.log_lost()
    gold_docs.log_lost()
    if json:
        print_json(result.as_json())
        return
    print_scores(result.scores, "weak")
    rows = [(label, *[f"{counts[kind]:,}" for kind in KINDS]) for label, counts in result.kinds.items()]
    total = ("all", *[f"{result.total[kind]:,}" for kind in KINDS])
    print_table("\nLabel errors by type", ("type", *KINDS), [*rows, total])
    most = sorted(result.kinds, key=lambda label: -result.kinds[label].total())[:MAX_TYPES]
    types = [*sorted(most), NO_ENTITY]
    confusion = [(real, *[f"{result.confusion[real, weak_type]:,}" for weak_type in types]) for real in types]
    print_table("\nGold type (rows) against weak type (columns)", ("", *types), confusion)
    if len(result.kinds) > MAX_TYPES:
        echo(f"(the {MAX_TYPES} most frequent of {len(result.kinds):,} types; --json has all pairs)")
    density = result.density
    echo(f"\n{100 * density.share:.1f} % of {density.sentences:,} sentences have at most sqrt(n) entities in n words")
