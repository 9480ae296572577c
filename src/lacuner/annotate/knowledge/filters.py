"""Which names of a knowledge base become entries of a gazetteer, and why others do not."""

import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from os import PathLike

from lacuner.annotate.knowledge.concepts import ALIAS, LABEL, Name
from lacuner.annotate.matching.normalise import character_sets
from lacuner.annotate.matching.terms import COMMON_WORDS, normalise_surface
from lacuner.annotate.sources import read_stop_list
from lacuner.errors import ConfigError

# Why a name is not an entry:
LANGUAGE = "in another language"
KIND = "of another kind"
SHORT = "too short"
LONG = "too long"
COMMON = "a common word"
NUMBER = "a number"
CONTROL = "has control characters"

KINDS = (LABEL, ALIAS, "exact", "narrow", "broad", "related", "hidden")
DEFAULT_KINDS = (LABEL, ALIAS, "exact")
"""Narrow, broad and related synonyms are names of other things; hidden ones are misspellings."""
_ANY_LANGUAGE = ("", "mul", "zxx")
"""Languages of names that are the same in all of them: unknown, multiple (Wikidata), none."""
_ISO_639_2 = {
    **{"en": "eng", "de": "ger", "fr": "fre", "es": "spa", "it": "ita", "pt": "por", "nl": "dut", "ru": "rus"},
    **{"ja": "jpn", "zh": "chi", "ko": "kor", "sv": "swe", "no": "nor", "nb": "nor", "da": "dan", "fi": "fin"},
    **{"cs": "cze", "hu": "hun", "pl": "pol", "tr": "tur", "el": "gre", "eu": "baq", "he": "heb", "hr": "scr"},
}
"""Two-letter codes and the codes that UMLS uses."""


@dataclass(frozen=True)
class NameFilter:
    """Which names to keep: by language, kind and length, and whether common words and numbers are kept.

    >>> name_filter = NameFilter(languages=("en",), min_length=3)
    >>> [name_filter.reason(Name(text, language=tag)) for text, tag in (("Oslo", "en"), ("Oslo", "fr"), ("Ås", "en"))]
    [None, 'in another language', 'too short']
    """

    languages: Collection[str] = ()
    """Language tags; without any, all languages are kept. `en` also keeps `en-gb` and, in UMLS, `ENG`."""
    kinds: Collection[str] = DEFAULT_KINDS
    min_length: int = 2
    """Characters; in scripts without spaces between words, one less is enough."""
    max_length: int = 100
    keep_common: bool = False
    keep_numbers: bool = False
    common_words: frozenset[str] = frozenset()
    """Common words of other languages than English, in normal form (`read_common_words`)."""

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in KINDS:
                raise ConfigError(f"--kind is one of {', '.join(KINDS)}; not {kind!r}")
        if not 1 <= self.min_length <= self.max_length:
            raise ConfigError("--min-length must be at least 1, and at most --max-length")

    def reason(self, name: Name) -> str | None:
        """Why a name is not kept; None if it is."""
        surface = name.surface
        form = normalise_surface(surface)
        if not self._is_language(name.language):
            return LANGUAGE
        if name.kind not in self.kinds:
            return KIND
        if any(unicodedata.category(char) in ("Cc", "Cs", "Co", "Cn") for char in surface):
            return CONTROL
        if len(surface) > self.max_length:
            return LONG
        word = character_sets().word
        if len(form) < self.min_length - any(char not in word and char.isalpha() for char in form):
            return SHORT
        if not self.keep_numbers and not any(map(str.isalpha, form)):
            return NUMBER
        if form in self.common_words or (not self.keep_common and form in COMMON_WORDS):
            return COMMON
        return None

    def _is_language(self, language: str) -> bool:
        if not self.languages or language.lower() in _ANY_LANGUAGE:
            return True
        tag = language.lower().replace("_", "-")
        return any(
            tag == wanted or tag.startswith(f"{wanted}-") or tag == _ISO_639_2.get(wanted)
            for wanted in map(str.lower, self.languages)
        )


def read_common_words(path: str | PathLike[str]) -> frozenset[str]:
    """The words of a list, one per line, perhaps with their frequency, in normal form.

    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "de.txt"
    >>> _ = file.write_text("und 120\\nGut\\t95\\nim Grunde\\n")
    >>> sorted(read_common_words(file))
    ['gut', 'im grunde', 'und']
    """
    words = (re.sub(r"\s+\d+$", "", line) for line in read_stop_list(path))
    return frozenset(map(normalise_surface, words))
