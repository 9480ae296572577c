"""Pre-trained word vectors from a text file."""

from collections.abc import Set
from pathlib import Path

import numpy as np

from lacuner.errors import CorpusError
from lacuner.models.encoders.hashing import normalise_word


def read_vectors(path: Path, keep: Set[str], first: int = 0) -> dict[str, np.ndarray]:
    """The vectors of the normalised words in `keep`, and of the first words of the file whatever they are.

    Each line has a word and its numbers, separated by spaces; a first line with two numbers is skipped.
    """
    table: dict[str, np.ndarray] = {}
    size = 0
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, 1):
                word, *values = line.rstrip("\n").rstrip().split(" ")
                if number == 1 and len(values) == 1:
                    continue
                size = size or len(values)
                if len(values) != size or not size:
                    raise CorpusError(
                        f"this line has {len(values)} numbers, the first has {size}", file=path, line=number
                    )
                key = normalise_word(word)
                if key in table or not (number <= first or key in keep):
                    continue
                table[key] = np.array(values, dtype=np.float32)
    except OSError as error:
        raise CorpusError(f"cannot read this file of word vectors: {error.strerror}", file=path) from error
    except ValueError as error:
        raise CorpusError(f"not a number: {error}", file=path, line=number) from error
    return table
