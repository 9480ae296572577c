"""The model card (README.md) of an export: data, recipe, scores, proof, limits and licence, from the run folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lacuner import __version__
from lacuner.export.options import ExportOptions
from lacuner.export.proof import Proof
from lacuner.export.source import ExportSource, model_name
from lacuner.models.merging import RULE_SENTENCES
from lacuner.models.tagger import Tagger

_LIBRARIES = {"spacy": "spacy", "huggingface": "transformers", "onnx": "onnx"}
_USAGE = {
    "spacy": """```python
import spacy

nlp = spacy.load("{folder}")  # needs `pip install 'lacuner[spacy]'`
doc = nlp("...")
print([(ent.text, ent.label_) for ent in doc.ents])
print(doc.spans["lacuner"].attrs["scores"])
```""",
    "huggingface": """```python
from transformers import pipeline

tagger = pipeline("token-classification", model="{folder}", aggregation_strategy="first")
print(tagger("..."))
```""",
    "onnx": """`pip install numpy onnxruntime tokenizers`; neither torch nor lacuner is needed.

```python
import sys

sys.path.insert(0, "{folder}")
from tagger import Tagger

print(Tagger("{folder}").predict(["..."]))  # start, end, label and score of each entity
```

`tagger.py` is a reference decoder that cuts windows, prepares words and decodes spans in plain Python; `config.json`
has the settings that it needs. In the graph, batch and sentence length are dynamic.""",
}
_LIMITS = {
    "spacy": [
        "Words are split by lacuner, not by spaCy's tokenizer. A span that cuts through a token is expanded to whole "
        'tokens; `doc.spans["lacuner"].attrs["offsets"]` has the exact characters.'
    ],
    "huggingface": [
        "The pipeline ignores text beyond the encoder's maximum length unless it is called with `stride`.",
        "The score of an entity of several words is the mean of their probabilities; lacuner takes the lowest.",
    ],
    "onnx": [],
}


def write_card(source: ExportSource, options: ExportOptions, proof: Proof, folder: str) -> str:
    """The model card as Markdown, with the metadata that the Hugging Face hub reads."""
    name = model_name(source, options)
    front: dict[str, Any] = {"license": options.license or None, "library_name": _LIBRARIES[proof.target]}
    front |= {"pipeline_tag": "token-classification", "tags": ["named-entity-recognition", "lacuner"]}
    lines = ["---", *(f"{key}: {json.dumps(value)}" for key, value in front.items() if value is not None), "---"]
    lines += ["", f"# {name}", "", _introduction(source), "", "## Use", "", _usage(proof, folder)]
    lines += ["", "## Training", "", *_training(source), "", "## Scores", "", *_scores(source, proof)]
    lines += ["", "## Proof", "", *_proof(proof), "", "## Limits", ""]
    lines += [f"- {limit}" for limit in [*_limits(source, proof), *_LIMITS[proof.target]]]
    lines += [
        "",
        "## Licence",
        "",
        options.license or "Not stated. Whoever publishes this model chooses it (`--license`).",
    ]
    return "\n".join(lines) + "\n"


def _introduction(source: ExportSource) -> str:
    labels = ", ".join(f"`{label}`" for label in source.tagger.labels)
    return f"Named-entity recognition, trained and exported by lacuner {__version__}. Entity types: {labels}."


def _usage(proof: Proof, folder: str) -> str:
    usage = _USAGE[proof.target].replace("{folder}", folder)
    if proof.notes.get("given as words"):
        usage = usage.replace('tagger("...")', 'tagger(["Some", "words", "."], is_split_into_words=True)')
        usage += (
            "\n\nGive it words, as above; offsets then count characters of the words joined by spaces. In running text "
            "this tokenizer does not show where words end, so the pipeline would join them with punctuation."
        )
    return usage


def _training(source: ExportSource) -> list[str]:
    identity = source.identity
    if not identity:
        return ["- Not known: the export was made from a model folder without its run."]
    lines = [f"- Recipe: `{identity.get('recipe')}`, seed {identity.get('seed')}"]
    lines += [f"- Encoder: `{source.encoder_name}`"] if source.encoder_name else []
    lines += [f"- Head: `{source.tagger.model.head.config()['kind']}`"] if isinstance(source.tagger, Tagger) else []
    for role, facts in _mapping(identity.get("data")).items():
        facts = _mapping(facts)
        lines.append(f"- Data, {role}: {facts.get('documents'):,} documents, SHA-256 `{facts.get('sha256')}`")
    if isinstance(source.tagger, Tagger) and source.tagger.gazetteer is not None:
        gazetteer = source.tagger.gazetteer
        lines.append(f"- Gazetteer: {len(gazetteer):,} entries of {', '.join(f'`{x}`' for x in gazetteer.labels)}")
        lines.append(f"- Merge rule of gazetteer and model: `{gazetteer.rule}` ({RULE_SENTENCES[gazetteer.rule]})")
    settings = json.dumps(identity.get("config"), indent=1, ensure_ascii=False).replace("```", "` ` `")
    return [*lines, "", "<details><summary>All settings</summary>", "", "```json", settings, "```", "", "</details>"]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _scores(source: ExportSource, proof: Proof) -> list[str]:
    lines = []
    if source.dev_f1 is not None:
        lines.append(f"- Best F1 on dev while training, of the model alone: {100 * source.dev_f1:.1f}")
    if proof.f1 is not None:
        lines.append(f"- F1 of this export on the dev documents of the proof: {100 * proof.f1[proof.target]:.1f}")
    return lines or ["None: the run had no dev data, and the export was given none (`--dev`)."]


def _proof(proof: Proof) -> list[str]:
    speed = {side: f"{value:,.0f} documents/s" for side, value in proof.documents_per_second.items()}
    return [
        f"On {proof.documents:,} documents ({proof.texts}), {proof.equal:,} of {proof.spans:,} spans of the tagger are "
        f"the same, {proof.missing:,} are missing and {proof.extra:,} are extra. The largest difference of a score is "
        f"{proof.score_difference:.2g} ({proof.scores_compared:,} compared).",
        "",
        f"Speed with one thread: lacuner {speed['lacuner']}, this export {speed[proof.target]}. `proof.json` has all "
        "numbers.",
    ]


def _limits(source: ExportSource, proof: Proof) -> list[str]:
    limits = ["The model was trained on the data above, and is unproven on other kinds of text."]
    if "weak" in _mapping(source.identity.get("data")):
        limits.append("Its labels were weak: incomplete and partly wrong. It may have learned their mistakes.")
    if source.has_gazetteer and not proof.gazetteer:
        limits.append("The gazetteer of the tagger is **not** part of this export: its matches are not tagged.")
    return limits
