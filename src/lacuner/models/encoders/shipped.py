"""Pre-trained encoders that come with lacuner: one model folder each, with a model card (README.md).

`scripts/build_encoders.py` makes them from text.
"""

from pathlib import Path

FOLDER = Path(__file__).parent / "weights"
SHIPPED = tuple(sorted(path.parent.name for path in FOLDER.glob("*/config.json")))
"""Names of the shipped encoders: `tiny-en`, `tiny-zh`."""


def shipped_folder(name: str) -> Path:
    """The model folder of a shipped encoder.

    >>> shipped_folder("tiny-en").name
    'tiny-en'
    """
    return FOLDER / name
