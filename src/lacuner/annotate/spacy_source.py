"""A spaCy pipeline, or a file of patterns for its entity ruler, as a labelling source.

Only components of spaCy itself are loaded. A pipeline that names others is refused: their code is not ours to judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lacuner.annotate.gazetteer.files import read_file
from lacuner.annotate.sources import Source, SourceOutput, batch_source, sort_output
from lacuner.data import Document, Span
from lacuner.errors import ConfigError, ModelFileError, first_line, need_library

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

COMPONENTS = (
    *("tok2vec", "ner", "beam_ner", "entity_ruler", "span_ruler", "spancat", "spancat_singlelabel", "span_finder"),
    *("tagger", "parser", "senter", "sentencizer", "morphologizer", "lemmatizer", "trainable_lemmatizer"),
    *("attribute_ruler", "merge_entities", "merge_noun_chunks", "merge_subtokens", "token_splitter", "doc_cleaner"),
)
"""The factories that a pipeline may use."""
FUNCTIONS = ("spacy.", "spacy-legacy.", "thinc.")
"""How the functions that a pipeline names may begin."""


def spacy_source(path: str | PathLike[str], *, name: str | None = None) -> Source:
    """Label with a spaCy pipeline (a folder) or with patterns of its entity ruler (a `.jsonl` file).

    Entities are labeled, and so are the span groups `ruler` and `sc`. Words given by the corpus are kept.

    >>> import json, tempfile
    >>> file = Path(tempfile.mkdtemp()) / "patterns.jsonl"
    >>> _ = file.write_text(json.dumps({"label": "PLACE", "pattern": [{"LOWER": "halden"}, {"IS_DIGIT": True}]}))
    >>> source = spacy_source(file)
    >>> [span.key for span in source.find(Document("1", "Near Halden 1600.")).spans]
    [(5, 16, 'PLACE')]
    """
    path = Path(path)
    nlp = _load_pipeline(path) if path.is_dir() else _load_patterns(path)
    name = path.stem if name is None else name

    def find_batch(docs: Sequence[Document]) -> list[SourceOutput]:
        try:
            tagged = list(nlp.pipe([_to_spacy(nlp, doc) for doc in docs]))
        except Exception as error:  # components raise errors of many types
            raise ConfigError(f"the source {name!r} failed: {first_line(error)}") from error
        return [sort_output(name, doc, _spans(own)) for doc, own in zip(docs, tagged, strict=True)]

    return batch_source(name, find_batch)


def _spans(doc: Doc) -> list[Span]:
    groups = [span for key in ("ruler", "sc") if key in doc.spans for span in doc.spans[key]]
    spans = [Span(span.start_char, span.end_char, span.label_) for span in (*doc.ents, *groups)]
    return list(dict.fromkeys(span for span in spans if span.start < span.end))


def _to_spacy(nlp: Language, doc: Document) -> Doc:
    """The text as spaCy's document: with the words of the corpus, if it has any, otherwise with spaCy's."""
    from spacy.tokens import Doc
    from spacy.util import get_words_and_spaces

    if doc.words is None:
        return nlp.make_doc(doc.text)
    try:
        words, spaces = get_words_and_spaces([doc.text[start:end] for start, end in doc.words], doc.text)
    except ValueError:  # there is text between the words; spans that do not fit the words are counted
        return nlp.make_doc(doc.text)
    return Doc(nlp.vocab, words=words, spaces=spaces)


def _import_spacy(path: Path) -> Any:
    with need_library("a spaCy source needs spaCy", "lacuner[spacy]", file=path):
        import spacy
    return spacy


def _load_patterns(path: Path) -> Language:
    """A pipeline that splits words and matches the patterns of a file."""
    import json

    if not path.is_file():
        raise ConfigError("there is no such file or folder", file=path)
    if path.suffix.lower() != ".jsonl":
        raise ConfigError("a spaCy source is the folder of a pipeline, or a .jsonl file of patterns", file=path)
    spacy = _import_spacy(path)
    nlp: Language = spacy.blank("xx")
    nlp.max_length = 1 << 30
    ruler: Any = nlp.add_pipe("entity_ruler")
    try:
        lines = read_file(path).decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise ConfigError("this file of patterns is not UTF-8", file=path) from error
    patterns = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                patterns.append(json.loads(line))
                ruler.add_patterns(patterns[-1:])
            except Exception as error:  # JSON errors, missing keys, and spaCy's own errors
                problem = f"this is not a pattern of spaCy's entity ruler ({first_line(error)})"
                raise ConfigError(problem, file=path, line=number) from error
    if not patterns:
        raise ConfigError("there is no pattern in this file", file=path)
    return nlp


def _load_pipeline(path: Path) -> Language:
    """The pipeline in a folder, if it is made of spaCy's own components."""
    spacy = _import_spacy(path)
    try:
        config = spacy.util.load_config(path / "config.cfg", interpolate=False)
    except Exception as error:  # as above
        raise ModelFileError(f"this folder is not a spaCy pipeline ({first_line(error)})", file=path) from error
    for name, component in config.get("components", {}).items():
        factory = component.get("factory", name) if isinstance(component, dict) else name
        if factory not in COMPONENTS:
            problem = f"the pipeline has the component {factory!r}, which is not one of spaCy's own"
            hint = "remove it (nlp.remove_pipe) and save the pipeline again, or call it from Python (function_source)"
            raise ModelFileError(f"{problem}; {hint}", file=path)
    for function in _functions([config.get("nlp"), config.get("components")]):  # spaCy builds nothing else on loading
        if not function.startswith(FUNCTIONS):
            raise ModelFileError(f"the pipeline names the function {function!r}, which is not spaCy's own", file=path)
    try:
        nlp: Language = spacy.load(path)
    except Exception as error:  # as above
        raise ModelFileError(f"cannot load this spaCy pipeline: {first_line(error)}", file=path) from error
    nlp.max_length = 1 << 30
    return nlp


def _functions(config: Any) -> list[str]:
    """The registered functions that a config names."""
    if isinstance(config, list):
        return [function for value in config for function in _functions(value)]
    if not isinstance(config, dict):
        return []
    own = [str(value) for key, value in config.items() if str(key).startswith("@")]
    return own + [function for value in config.values() for function in _functions(value)]
