"""Build a shipped encoder: pre-train it on text, round its weights, and write it with its model card into the package.

    python scripts/build_encoders.py tiny-en ../shared/text build/tiny-en

The second argument is a folder with the texts; the third is a run folder. An interrupted run resumes with the same
command. The texts are not part of the repository; the model cards say where they are from.

    python scripts/build_encoders.py tiny-en ../shared/text build/tiny-en-2 --words 40000000 --seed 2 --further

trains the encoder of the package further. Its model card then has the commands of both runs.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from lacuner import __version__
from lacuner.config import load_config
from lacuner.corpus import read
from lacuner.data import Document
from lacuner.models.encoders.han import simplify
from lacuner.models.encoders.shipped import shipped_folder
from lacuner.models.storage import save
from lacuner.pretraining.pretrain import PretrainConfig, PretrainingResult, pretrain
from lacuner.pretraining.text import TextSource

FROM_SCRATCH = ["encoder.name=tiny", "encoder.size=base"]
COMMON = ["most=30000", "least=5", "held_out=0.002", "train.warmup=0.05"]
FURTHER = ["train.learning_rate=2e-3", "train.head_learning_rate=2e-3"]
"""Settings of a run that starts from the weights of the package, besides `further` of its encoder."""
ENCODERS = {
    "tiny-en": {
        "language": "English",
        "texts": ["wikipedia-en.txt.xz", "elife-en.txt.xz"],
        "settings": ["mix=[0.7,0.3]", "rate=0.2", "compounds=0.5"],
        "further": ["mix=[0.6,0.4]", "dropout=0.1"],
        "limits": "trained on encyclopedic and scientific text; informal text is foreign to it.",
    },
    "tiny-zh": {
        "language": "Chinese",
        "texts": ["wikipedia-zh.txt.xz"],
        "settings": ["rate=0.2", "span=2"],
        "further": ["dropout=0.1"],
        "limits": "trained on encyclopedic text; informal text is foreign to it. Traditional characters are read as "
        "their simplified forms, and its masked-LM head predicts simplified ones only.",
    },
}
ATTRIBUTION = {
    "wikipedia-en.txt.xz": "English Wikipedia, paragraphs of about 181,000 articles. Wikipedia contributors, "
    "CC BY-SA 3.0",
    "elife-en.txt.xz": "eLife, 2,446 research articles with decision letters. The articles' authors, eLife Sciences, "
    "CC BY 4.0 (some CC0)",
    "wikipedia-zh.txt.xz": "Chinese Wikipedia, paragraphs of about 85,000 articles, simplified and traditional "
    "characters. Wikipedia contributors, CC BY-SA",
}
CARD = """# {name}

The {language} encoder that comes with lacuner: hashed character features, gated convolutions and one attention layer
(`tiny`, size `base`), pre-trained as a masked language model. `--encoder auto` takes it for {language} text.

| | |
|---|---|
| texts | {texts} |
| training | {training} |
| held-out text | {scores} |
| command | {command} |
| weights | {size:.1f} MB: the feature table in 8 bits, everything else in 16 bits; SHA-256 `{sha256}` |
| texts by hash | {hashes} |

How it compares with training from scratch and with a transformer is in `docs/results.md` of the project.

Limits: {limits} It repeats whatever associations these texts contain.
Its masked-LM head predicts {vocabulary:,} frequent words; `top5` above says how often the right word is among its first
five, and `docs/pretraining.md` what that means for augmentation.

The weights are derived from the texts above and are distributed with the attribution given there.
"""


def build(name: str, texts: Path, run: Path, words: int, seed: int, further: bool = False) -> None:
    """Pre-train (or resume, or load) and write the model folder; `further` starts from the weights of the package."""
    recipe = ENCODERS[name]
    folder = shipped_folder(name)
    earlier = _earlier_training((folder / "README.md").read_text()) if further else None
    files = [texts / file for file in recipe["texts"]]
    hashes = [hashlib.file_digest(file.open("rb"), "sha256").hexdigest() for file in files]
    sources = [
        TextSource(file.name.split(".")[0], partial(read_simplified, file), digest)
        for file, digest in zip(files, hashes, strict=True)
    ]
    start = [f"encoder.name={name}", *FURTHER, *recipe["further"]] if further else FROM_SCRATCH
    config = load_config(PretrainConfig, settings=[*COMMON, *recipe["settings"], *start, f"words={words}"])
    seconds = run.with_name(run.name + ".seconds")  # beside the run folder, which contains no times
    before, begin = float(seconds.read_text()) if seconds.exists() else 0.0, time.monotonic()

    def log(line: str) -> None:
        print(line, flush=True)
        run.parent.mkdir(parents=True, exist_ok=True)
        seconds.write_text(str(before + time.monotonic() - begin))

    result = pretrain(sources, run, config, seed, log)
    training = f"{words:,} words, {float(seconds.read_text()) / 3600:.1f} hours on one CPU core, seed {seed}"
    options = f" --words {words}" + (f" --seed {seed}" if seed != 1 else "") + (" --further" if further else "")
    command = f"`python scripts/build_encoders.py {name} TEXTS RUN{options}`, lacuner {__version__}, commit {_commit()}"
    if earlier is not None:
        training, command = f"{earlier[0]}; then {training}", f"{earlier[1]}; then {command}"
    digests = save(result.model, folder, compact=True)
    (folder / "README.md").write_text(
        CARD.format(
            name=name,
            language=recipe["language"],
            texts="; ".join(ATTRIBUTION[file.name] for file in files),
            training=training,
            scores=_scores(result, run),
            command=command,
            size=sum(file.stat().st_size for file in folder.iterdir()) / 1e6,
            sha256=digests["model.safetensors"],
            hashes=", ".join(f"{file.name} `{digest[:16]}`" for file, digest in zip(files, hashes, strict=True)),
            limits=recipe["limits"],
            vocabulary=len(result.model.head.labels),
        )
    )


def read_simplified(file: Path) -> Iterator[Document]:
    """The documents of a file, with simplified Chinese characters, as the encoder reads them; other text as it is."""
    return (replace(doc, text=simplify(doc.text)) for doc in read(file))


def _earlier_training(card: str) -> tuple[str, str]:
    """The rows `training` and `command` of a model card."""
    lines = card.splitlines()
    training, command = (
        next(line for line in lines if line.startswith(f"| {row} |")) for row in ("training", "command")
    )
    return training.split(" | ", 1)[1].rstrip(" |"), command.split(" | ", 1)[1].rstrip(" |")


def _scores(result: PretrainingResult, run: Path) -> str:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    best = min((row["dev"] for row in rows if "dev" in row), key=lambda row: row["perplexity"])
    return ", ".join(f"{name} {value:.3g}" for name, value in best.items())


def _commit() -> str:
    git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return git.stdout.strip() or "unknown"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=ENCODERS)
    parser.add_argument("texts", type=Path)
    parser.add_argument("run", type=Path)
    parser.add_argument("--words", type=int, default=30_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--further", action="store_true", help="start from the weights of the package")
    options = parser.parse_args(arguments)
    build(options.name, options.texts, options.run, options.words, options.seed, options.further)


if __name__ == "__main__":
    main(sys.argv[1:])
