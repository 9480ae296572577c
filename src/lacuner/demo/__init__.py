"""A generated corpus to try things on: invented reports, complete gold, and a gazetteer that covers less than half.

Nothing in it is copied from anywhere. Gold is flat (the place inside `University of Halden` is not annotated). Titles
and articles are not part of a name; adjectives of origin and eponyms (`the Teel valve`) are not annotated.
"""

from lacuner.demo.build import Demo, build

__all__ = ["Demo", "build"]
