"""Error profiles of annotators: label noise with the mix of mistakes that LLMs, crowd workers and others make.

A profile is a set of rates for `corrupt`. Real noise is systematic: who misses a name misses it everywhere. So labels
are dropped by name, except for experts and crowds, whose annotators differ from sentence to sentence.

- `llm`: prompting of a large model. Its labels have F1 74 against gold, as those of gpt-oss-120b on BC5CDR (74.2) and
  Wikigold (73.4; Merdjanovska, Golde and Akbik, 2026, figure 1).
- `noisebench-*`: the six kinds of noise of NoiseBench (Merdjanovska, Aynetdinov and Akbik, 2024, "NoiseBench:
  benchmarking the impact of real label noise on named entity recognition"). The labels have the F1 against gold that
  their paper reports: 94.5, 84.7, 63.4, 68.7, 59.6 and 54.4. The shares of noise that three of them follow from (5.5,
  15.3 and 31.3 % for expert, crowd-best and distant) are in the authors' code; the other three we quote from memory.

How the mistakes divide into missing, spurious, wrong type and wrong boundary is *not* published in a form that we could
check. It is our assumption: annotators mostly miss entities, LLMs on NoiseBench mostly label too much.
"""

from lacuner.noise.corrupt import Noise

PROFILES: dict[str, Noise] = {
    "llm": Noise(drop=0.16, by_surface=True, wrong_type=0.05, shift=0.09, spurious=0.12),
    "noisebench-expert": Noise(drop=0.02, wrong_type=0.02, shift=0.015, spurious=0.02),
    "noisebench-crowd-best": Noise(drop=0.12, wrong_type=0.035, shift=0.05, spurious=0.02),
    "noisebench-crowd": Noise(drop=0.34, wrong_type=0.08, shift=0.12, spurious=0.03),
    "noisebench-distant": Noise(drop=0.26, by_surface=True, wrong_type=0.12, shift=0.07, spurious=0.03),
    "noisebench-weak": Noise(drop=0.20, by_surface=True, wrong_type=0.18, shift=0.16, spurious=0.05),
    "noisebench-llm": Noise(drop=0.12, by_surface=True, wrong_type=0.12, shift=0.12, spurious=0.62),
}
"""Noise rates by the name of the profile; set the seed with `noise_profile`."""


def noise_profile(name: str, seed: int = 1) -> Noise:
    """The noise rates of a profile.

    >>> noise_profile("llm", seed=3).spurious
    0.12
    """
    return PROFILES[name].model_copy(update={"seed": seed})
