"""Error profiles: the simulated labels have the stated F1, and spurious labels touch no entity."""

from collections import Counter
from itertools import pairwise

import pytest

from lacuner.data import Document, Span
from lacuner.evaluate import score
from lacuner.noise import PROFILES, Noise, corrupt, measure, noise_profile
from tests.demo_corpus import demo_corpus

F1 = {
    "llm": 0.74,
    "noisebench-expert": 0.945,
    "noisebench-crowd-best": 0.847,
    "noisebench-crowd": 0.634,
    "noisebench-distant": 0.687,
    "noisebench-weak": 0.596,
    "noisebench-llm": 0.544,
}


def expected_f1(noise: Noise) -> float:
    """F1 of the corrupted labels against gold, in expectation."""
    labeled = 1 - noise.drop
    correct = labeled * (1 - noise.wrong_type) * (1 - noise.shift)
    return 2 * correct / (1 + labeled + noise.spurious)


@pytest.mark.parametrize("name", PROFILES)
def test_the_labels_have_the_f1_of_the_profile(name: str) -> None:
    gold = demo_corpus().train
    weak = list(corrupt(gold, noise_profile(name, seed=2)))
    assert abs(expected_f1(PROFILES[name]) - F1[name]) < 0.006
    # dropping by name moves whole names, so the simulated F1 scatters
    assert abs(score(gold, weak).exact.f1 - F1[name]) < (0.06 if PROFILES[name].by_surface else 0.03)


def test_spurious_labels_touch_no_entity_and_no_punctuation_ends_one() -> None:
    gold, tally = demo_corpus().train[:300], Counter[str]()
    weak = list(corrupt(gold, Noise(spurious=0.5, shift=0.3, seed=4), tally=tally))
    spurious = measure(weak, gold).total["spurious"]
    assert spurious == tally["spurious"]
    assert 0.45 < (spurious + tally["could not be added"]) / tally["entities"] < 0.55
    for old, new in zip(gold, weak, strict=True):
        spans = sorted(new.spans)
        assert all(first.end <= second.start for first, second in pairwise(spans))
        added = [span for span in spans if not any(span.overlaps(other) for other in old.spans)]
        for span in added:
            assert old.text[span.start].isalnum() or old.text[span.end - 1].isalnum()
            assert span.label in {other.label for other in old.spans}


def test_where_there_is_no_room_nothing_is_added() -> None:
    tally: Counter[str] = Counter()
    doc = Document("1", "Mara Teel .", spans=(Span(0, 9, "PERSON"),))
    [weak] = corrupt([doc], Noise(spurious=1.0), tally=tally)
    assert weak.spans == doc.spans and tally["could not be added"] == 1


def test_without_spurious_labels_noise_is_as_before() -> None:
    gold = demo_corpus().train[:50]
    rates = Noise(drop=0.3, wrong_type=0.2, shift=0.2)
    with_spurious = list(corrupt(gold, rates.model_copy(update={"spurious": 0.5})))
    for plain, more in zip(corrupt(gold, rates), with_spurious, strict=True):
        assert set(plain.spans) <= set(more.spans)
