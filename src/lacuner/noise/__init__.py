"""How wrong are weak labels? Make noise that is known (`corrupt`), and measure noise that is not (`measure`)."""

from lacuner.noise.corrupt import Noise, corrupt
from lacuner.noise.measure import Measurement, Measuring, measure

__all__ = ["Measurement", "Measuring", "Noise", "corrupt", "measure"]
