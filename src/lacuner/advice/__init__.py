"""Which recipe for which data: what can be seen of the labels (`look`), and what follows from it (`advise`).

Nothing is trained for it, and no gold of the training texts is needed; dev, or any gold, makes it much surer.
"""

from lacuner.advice.profile import Seen, Size, look
from lacuner.advice.rules import Advice, advise

__all__ = ["Advice", "Seen", "Size", "advise", "look"]
