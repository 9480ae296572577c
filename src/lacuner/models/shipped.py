"""Pre-trained encoders that come with lacuner: model folders inside the package, with a model card each."""

from pathlib import Path

from lacuner.models.model import MaskedLanguageModel
from lacuner.models.storage import load_model

FOLDER = Path(__file__).parent / "encoders" / "shipped"
SHIPPED = ("tiny-en", "tiny-zh")


def load_shipped(name: str) -> MaskedLanguageModel:
    """A shipped encoder with its masked-LM head."""
    model = load_model(FOLDER / name)
    assert isinstance(model, MaskedLanguageModel)
    return model
