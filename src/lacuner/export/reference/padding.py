"""Batches of rows of different lengths."""

from itertools import zip_longest

import numpy as np


def pad(rows: list[list[int]], value: int) -> np.ndarray:
    """Rows of numbers as one array, filled up to the longest row.

    >>> pad([[1, 2], [3]], 0).tolist()
    [[1, 2], [3, 0]]
    """
    return np.array(list(zip_longest(*rows, fillvalue=value)), dtype=np.int64).T
