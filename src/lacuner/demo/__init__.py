"""A corpus of our own to try things on: invented reports, complete gold, and a dictionary that knows less than half.

Nothing in it is copied from anywhere. Gold is flat (inside `University of Halden` the place is not annotated), titles
and articles are no part of a name, and neither adjectives of origin nor names lent to things (`the Teel valve`) count.
"""

from __future__ import annotations

from lacuner.demo.build import Demo, build, dictionary_tsv

__all__ = ["Demo", "build", "dictionary_tsv"]
