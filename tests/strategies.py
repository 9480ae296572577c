"""Documents that try to break things, and the formats that they are written in."""

from __future__ import annotations

from hypothesis import strategies as st

from lacuner.corpus.words import split_words
from lacuner.data import Document, Span, sort_spans

ENDINGS = {
    "jsonl": ".jsonl",
    "conll": ".conll",
    "tokens": ".jsonl",
    "txt": ".txt",
    "spacy": ".spacy",
    "labelstudio": ".json",
    "labelstudio_min": ".json",
    "prodigy": ".jsonl",
    "argilla": ".json",
    "argilla_v1": ".jsonl",
    "doccano": ".jsonl",
    "doccano_entities": ".jsonl",
    "spacy2": ".json",
    "parquet": ".parquet",
    "huggingface": ".parquet",
    "brat": ".ann",
    "pubtator": ".pubtator",
    "bioc": ".xml",
    "bioc_json": ".json",
    "webanno": ".tsv",
    "conllu": ".conllu",
}
"""The ending with which each format is written in the tests that cover all of them; brat's is a folder."""
# combining mark, ZWJ emoji, CRLF, NBSP, line separator, right to left, dotted I, sharp s, CJK, Indic, Thai
NASTY = [
    "é",
    "e\u0301",
    "👨\u200d👩\u200d👧",
    "\r\n",
    "\u00a0",
    "\u2028",
    "שלום",
    "\u202e",
    "İ",
    "ß",
    "北京",
    "हिन्दी",
    "ไทย",
    "\t",
    "\n",
    "#",
    "-",
]
characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
texts = st.lists(st.one_of(st.text(characters, max_size=6), st.sampled_from(NASTY), st.just(" ")), max_size=12).map(
    "".join
)
labels = st.sampled_from(["PER", "LOC", "Bio-Entity", "地名"])


@st.composite
def documents(draw: st.DrawFn, *, flat: bool = False, aligned: bool = False) -> Document:
    """A document with any text, any words, and any possible spans in any state."""
    text = draw(texts)
    words = draw(st.sampled_from([None, split_words(text)])) if not aligned else split_words(text)
    size = len(text)
    edges = (
        words
        if aligned and words is not None
        else [(i, j) for i in range(size) for j in range(i + 1, min(size, i + 9) + 1)]
    )

    def some() -> tuple[Span, ...]:
        if not edges:
            return ()
        picked = []
        for _ in range(draw(st.integers(0, 4))):
            first, last = sorted(draw(st.integers(0, len(edges) - 1)) for _ in range(2))
            start, end = (edges[first][0], edges[last][1]) if aligned else edges[first]
            score = draw(st.none() | st.floats(0, 1))
            picked.append(Span(start, end, draw(labels), score, draw(st.none() | st.just("dictionary"))))
        if flat:
            kept: list[Span] = []
            for span in picked:
                if all(span.end <= other.start or span.start >= other.end for other in kept):
                    kept.append(span)
            picked = kept
        return sort_spans({span[:3]: span for span in picked}.values())

    return Document(
        id=draw(st.text(characters, min_size=1, max_size=5)),
        text=text,
        words=words,
        spans=some(),
        rejected=some(),
        unsure=some(),
        complete=draw(st.none() | st.booleans()),
        meta=draw(st.dictionaries(st.sampled_from(["url", "date"]), st.text(characters, max_size=5), max_size=2)),
    )
