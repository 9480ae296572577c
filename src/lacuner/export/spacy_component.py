"""The spaCy component `lacuner`: a tagger in any spaCy pipeline.

`nlp.add_pipe("lacuner", config={"model": RUN})` finds it through the entry point of the installed package. Words are
split by lacuner from the text of the document, so predictions do not depend on spaCy's tokenizer. Spans are mapped by
characters; a span that cuts through a token is expanded to whole tokens, which `attrs` of the span group records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import srsly
from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup

from lacuner.atomic import atomic_write
from lacuner.corpus.words import words_touching
from lacuner.data import Document
from lacuner.errors import ConfigError, ModelFileError

if TYPE_CHECKING:
    from lacuner.models.storage import AnyTagger

FACTORY = "lacuner"
SPANS_KEY = "lacuner"


class LacunerComponent:
    """Predicts entities: all in `doc.spans[spans_key]` with scores, those that do not overlap in `doc.ents`.

    The attributes of the span group have one value per span: `scores` (NaN for a gazetteer match that the model does
    not predict), `sources` (`gazetteer` or empty) and `offsets` (exact characters of the prediction); `expanded` is the
    number of spans that were expanded to whole tokens.
    """

    def __init__(self, model: str | Path | None = None, spans_key: str = SPANS_KEY, overwrite_ents: bool = False):
        self.model, self.spans_key, self.overwrite_ents = model, spans_key, overwrite_ents
        self._tagger: AnyTagger | None = None
        self.expanded = 0
        """Spans so far that cut through a token and were expanded."""

    @property
    def tagger(self) -> AnyTagger:
        """The tagger; loaded on first use, because `from_disk` may replace the one that the config names."""
        from lacuner.models.storage import load

        if self._tagger is None:
            if self.model is None:
                raise ConfigError('the component has no model: nlp.add_pipe("lacuner", config={"model": RUN_FOLDER})')
            self._tagger = load(self.model)
        return self._tagger

    @tagger.setter
    def tagger(self, tagger: AnyTagger) -> None:
        self._tagger = tagger

    @property
    def labels(self) -> tuple[str, ...]:
        """Entity types, shown by `nlp.pipe_labels`; none before `from_disk` if the model's folder has moved."""
        if self._tagger is None and (self.model is None or not Path(self.model).exists()):
            return ()
        return self.tagger.labels

    def __call__(self, doc: Doc) -> Doc:
        [doc] = self._annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 256) -> Iterator[Doc]:
        """Annotate a stream of documents in batches."""
        docs = iter(stream)
        while batch := list(islice(docs, batch_size)):
            yield from self._annotate(batch)

    def _annotate(self, docs: list[Doc]) -> list[Doc]:
        texts = [Document(str(number), doc.text) for number, doc in enumerate(docs)]
        for doc, predicted in zip(docs, self.tagger.predict(texts), strict=True):
            self.expanded += annotate_doc(doc, predicted, self.spans_key, self.overwrite_ents)
        return docs

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the model into a folder of the pipeline."""
        from lacuner.models.storage import save

        save(self.tagger, path)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> LacunerComponent:
        """Load the model that `to_disk` wrote."""
        from lacuner.models.storage import load

        self._tagger = load(path)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The files of the model folder in one message."""
        with TemporaryDirectory() as folder:
            self.to_disk(folder)
            files = {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}
            data: bytes = srsly.msgpack_dumps({str(path.relative_to(folder)): part for path, part in files.items()})
        return data

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> LacunerComponent:
        """Load the model that `to_bytes` returned."""
        with TemporaryDirectory() as folder:
            for name, part in srsly.msgpack_loads(data).items():
                if not (path := Path(folder, name).resolve()).is_relative_to(Path(folder).resolve()):
                    raise ModelFileError(f"the file name {name!r} leaves the folder")
                with atomic_write(path) as stream:
                    stream.write(part)
            return self.from_disk(folder)


def annotate_doc(doc: Doc, predicted: Document, spans_key: str = SPANS_KEY, overwrite_ents: bool = False) -> int:
    """Add predicted spans to a document; return how many were expanded to whole tokens.

    Of overlapping spans, which expansion can cause, the most probable one becomes an entity. Entities of earlier
    components stay, unless `overwrite_ents` is set.

    >>> import spacy
    >>> from lacuner.data import Span as LacunerSpan
    >>> doc = spacy.blank("xx")("Mara left Haldenshire.")
    >>> annotate_doc(doc, Document("1", doc.text, spans=(LacunerSpan(10, 16, "LOC", 0.9),)))
    1
    >>> doc.ents, doc.spans["lacuner"].attrs["offsets"]
    ((Haldenshire,), [[10, 16]])
    """
    tokens = tuple((token.idx, token.idx + len(token)) for token in doc)
    places = [words_touching(tokens, span.start, span.end) for span in predicted.spans]
    spans = [Span(doc, *place, span.label) for place, span in zip(places, predicted.spans, strict=True)]
    cut = [
        (tokens[first][0], tokens[last - 1][1]) != span[:2]
        for (first, last), span in zip(places, predicted.spans, strict=True)
    ]
    scores = np.array([np.nan if span.score is None else span.score for span in predicted.spans], dtype=np.float32)
    attributes = {
        "scores": scores,
        "sources": [span.source or "" for span in predicted.spans],
        "offsets": [[span.start, span.end] for span in predicted.spans],
        "expanded": sum(cut),
    }
    doc.spans[spans_key] = SpanGroup(doc, name=spans_key, spans=spans, attrs=attributes)
    # a gazetteer match without a score wins over predictions, as it does in `merge_spans`
    order = np.argsort(-np.nan_to_num(scores, nan=2.0), kind="stable")
    own = [spans[i] for i in order]
    doc.set_ents(_keep_disjoint([*own, *doc.ents] if overwrite_ents else [*doc.ents, *own]))
    return sum(cut)


def _keep_disjoint(spans: Iterable[Span]) -> list[Span]:
    """The spans that do not overlap an earlier one."""
    taken: set[int] = set()
    kept = []
    for span in spans:
        tokens = range(span.start, span.end)
        if taken.isdisjoint(tokens):
            taken.update(tokens)
            kept.append(span)
    return kept


def _make_component(
    nlp: Language, name: str, model: str | None, spans_key: str, overwrite_ents: bool
) -> LacunerComponent:
    return LacunerComponent(model, spans_key, overwrite_ents)


make_component: Callable[..., Any] = Language.factory(
    FACTORY,
    assigns=["doc.ents", "doc.spans"],
    default_config={"model": None, "spans_key": SPANS_KEY, "overwrite_ents": False},
    func=_make_component,
)
