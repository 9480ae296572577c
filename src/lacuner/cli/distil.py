"""`lacuner distil`: teach the predictions of a tagger to another encoder."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from lacuner.cli.console import CorpusReader, check_pipes, echo, hash_corpus, log, print_json, read_splits
from lacuner.cli.options import Cache, Dev, InputOptions, Json, RunFolder, Seed, Settings, SettingsFile, Stream
from lacuner.data import Document, remove_labels


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
    stream: Stream = None,
    cache: Cache = None,
    seed: Seed = 1,
    config: SettingsFile = None,
    set_: Settings = None,
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """Distil a tagger into another encoder, on unlabeled text.

    The gazetteer passes to the student. A tenth of the texts, at most 500, is held out to measure how far both agree.
    """
    from lacuner.config import load_config, string_setting
    from lacuner.export.distil import DistilConfig
    from lacuner.export.distil import distil as distil_run
    from lacuner.trainer.streaming import keep_or_store

    settings = [*(set_ or []), *string_setting("encoder.name", to), *string_setting("head", head)]
    student = load_config(DistilConfig, config, settings)

    stream = check_pipes(text, stream)

    def read_texts() -> Iterator[Document]:
        for path in text:
            reader = CorpusReader(path, inputs)
            yield from remove_labels(reader)
            reader.log_lost("text")

    # documents of `train`, with their labels, may be prepared in the same folder
    sources = [] if stream is False else ["texts", *(hash_corpus(path, inputs, names=True) for path in text)]
    texts = keep_or_store(read_texts, cache or out / "prepared", sources, stream, log)
    gold = read_splits({"dev": [dev] if dev else None}, inputs).get("dev")
    result = distil_run(run, texts, out, student, dev=gold, seed=seed, log=log)
    agreement = result.agreement
    if json:
        facts = {"precision": agreement.precision, "recall": agreement.recall, "f1": agreement.f1}
        print_json({"run": str(out), "model": str(result.run.model_folder), "agreement": facts})
        return
    echo(f"agreement with the teacher on held-out text: F1 {100 * agreement.f1:.1f} ({agreement.gold:,} spans)")
    echo(f"model: {result.run.model_folder}")
