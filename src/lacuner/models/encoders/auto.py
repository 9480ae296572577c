"""`auto`: the shipped encoder for the language of the texts, or `tiny` from scratch if there is none."""

from collections.abc import Iterable
from typing import NamedTuple

from lacuner.data import Document
from lacuner.models.encoders.shipped import SHIPPED

SAMPLE = 100_000
"""Characters that are looked at."""
MIN_SHARE = 0.3
"""Share of the letters that must be Chinese; product titles and reports mix in Latin names."""
MIN_ENGLISH = 0.04
"""Share of the words that must be English function words: 16 % in encyclopedic text, 9 % in tweets (dev sets)."""
ENGLISH = frozenset({"the", "of", "and", "to", "with", "that", "from", "by", "for"})
"""Function words that are hardly words of another language (unlike in, a, is, was)."""


class EncoderChoice(NamedTuple):
    """The name of an encoder, and the reason in a sentence for the log."""

    name: str
    reason: str


def choose_encoder(docs: Iterable[Document]) -> EncoderChoice:
    """Choose an encoder by the texts.

    >>> choose_encoder([Document("1", "The mill in Halden was built by the Teel family.")]).name
    'tiny-en'
    >>> choose_encoder([Document("1", "玛拉在哈尔登买了机器。")]).name
    'tiny-zh'
    >>> choose_encoder([Document("1", "Die Mühle wurde von Mara Teel gebaut.")]).name
    'tiny'
    """
    text = _sample(docs)
    letters = sum(map(str.isalpha, text))
    han = sum("\u3400" <= character <= "\u9fff" for character in text)
    kana = sum("\u3040" <= character <= "\u30ff" for character in text)
    if "tiny-zh" in SHIPPED and han > MIN_SHARE * letters and kana < 0.1 * han:
        return EncoderChoice("tiny-zh", "encoder: tiny-zh, pre-trained on Chinese text")
    words = text.lower().split()
    if "tiny-en" in SHIPPED and sum(word in ENGLISH for word in words) > MIN_ENGLISH * max(len(words), 1):
        return EncoderChoice("tiny-en", "encoder: tiny-en, pre-trained on English text")
    shipped = " or ".join(f"--encoder {name}" for name in SHIPPED)
    return EncoderChoice(
        "tiny",
        f"encoder: tiny, from scratch, because the texts are neither English nor Chinese ({shipped} to override)",
    )


def _sample(docs: Iterable[Document]) -> str:
    texts, size = [], 0
    for doc in docs:
        texts.append(doc.text)
        size += len(doc.text)
        if size > SAMPLE:
            break
    return "\n".join(texts)[:SAMPLE]
