"""Label noise: simulate it at known rates (`corrupt`), or measure that of weak labels against gold (`measure`)."""

from lacuner.noise.corrupt import Noise, corrupt
from lacuner.noise.measure import Measurement, NoiseMeter, measure
from lacuner.noise.profiles import PROFILES, noise_profile

__all__ = ["PROFILES", "Measurement", "Noise", "NoiseMeter", "corrupt", "measure", "noise_profile"]
