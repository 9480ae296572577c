"""Which recipe for which data: a profile of the labels (`profile`), and rules that choose a recipe (`advise`).

Nothing is trained, and no gold of the training texts is needed; dev or any other gold data improves the estimates.
"""

from lacuner.advice.profile import DataProfile, Size, profile
from lacuner.advice.rules import Advice, advise

__all__ = ["Advice", "DataProfile", "Size", "advise", "profile"]
