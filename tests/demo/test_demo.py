"""The demo corpus: hard, varied, with known gazetteer coverage, and the same bytes everywhere."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from random import Random

import pytest

from lacuner.data import Document
from lacuner.demo import Demo, build
from lacuner.demo.build import write_demo
from lacuner.demo.grammar import GRAMMAR, LISTS, frame
from lacuner.demo.names import DISTRACTORS, LABELS, SLOTS, WORD_NAMES
from lacuner.demo.tables import SLOT

SUBSTANCE_ENDINGS = ("ine", "ol", "ate", "ide", "ium", "ene", "ane", "one")


@pytest.fixture(scope="module", params=[1, 2, 3])
def demo(request: pytest.FixtureRequest) -> Demo:
    return build(request.param)


def splits(demo: Demo) -> dict[str, list[Document]]:
    return {"train": demo.train, "dev": demo.dev, "test": demo.test}


def everything(demo: Demo) -> list[Document]:
    return demo.train + demo.dev + demo.test


def mentions(docs: list[Document]) -> list[tuple[str, str]]:
    return [(doc.text[span.start : span.end], span.label) for doc in docs for span in doc.spans]


def plain_words(docs: list[Document]) -> list[tuple[int, str]]:
    """Words outside every name, with their place in the sentence."""
    found = []
    for doc in docs:
        for place, (start, end) in enumerate(doc.words or ()):
            if not any(span.start <= start < span.end for span in doc.spans):
                found.append((place, doc.text[start:end]))
    return found


def longest_match(doc: Document, labels: dict[str, list[str]]) -> set[tuple[int, int, str]]:
    """What a simple annotator would do: left to right, the longest entry, the first of its labels, exact case."""
    words, found, at = doc.words or (), set(), 0
    while at < len(words):
        for upto in range(min(at + 8, len(words)), at, -1):
            start, end = words[at][0], words[upto - 1][1]
            if doc.text[start:end] in labels:
                found.add((start, end, labels[doc.text[start:end]][0]))
                at = upto
                break
        else:
            at += 1
    return found


def by_surface(entries: list[tuple[str, str]]) -> dict[str, list[str]]:
    labels: dict[str, list[str]] = defaultdict(list)
    for surface, label in entries:
        labels[surface].append(label)
    return dict(labels)


# -- the documents -----------------------------------------------------------------------------------------------


def test_sizes_and_ids(demo: Demo) -> None:
    assert {name: len(docs) for name, docs in splits(demo).items()} == {"train": 2000, "dev": 500, "test": 500}
    for name, docs in splits(demo).items():
        assert [doc.id for doc in docs] == [f"{name}-{number:04d}" for number in range(1, len(docs) + 1)]
    assert all(doc.complete is True and not doc.rejected and not doc.unsure for doc in everything(demo))


def test_words_cover_the_text_and_names_are_whole_words(demo: Demo) -> None:
    for doc in everything(demo):
        assert doc.words is not None
        rest, last = doc.text, 0
        for start, end in doc.words:
            assert last <= start < end <= len(doc.text)
            assert not re.search(r"\s", doc.text[start:end])
            rest = rest[:start] + " " * (end - start) + rest[end:]
            last = end
        assert not rest.strip(), doc.text
        starts, ends = {start for start, _ in doc.words}, {end for _, end in doc.words}
        assert all(span.start in starts and span.end in ends for span in doc.spans), doc.text


def test_spans_are_flat_sorted_and_sane(demo: Demo) -> None:
    for doc in everything(demo):
        last = 0
        for span in doc.spans:
            surface = doc.text[span.start : span.end]
            assert span.label in LABELS and span.score is None and span.source is None
            assert last <= span.start
            assert surface == surface.strip() and re.fullmatch(r"[\w'&.-]+( [\w'&.-]+)*", surface), surface
            assert surface[0].isalpha() and surface[-1].isalnum()
            last = span.end


def test_text_is_ordinary_english(demo: Demo) -> None:
    for doc in everything(demo):
        assert not re.search(r"\s[,.?:;)]|\s{2}|,[.,?:]|[{}|]|\( | '", doc.text), doc.text
        assert not re.search(r"\b[Aa] [aeio]|\b[Aa]n [b-df-hj-np-tv-z]", doc.text), doc.text
        assert doc.text.count('"') % 2 == 0
        first = doc.text.lstrip('"')[0]
        assert first.isupper() or first.isdigit(), doc.text
        assert re.search(r'[.?]"?$', doc.text) or re.match(r"[A-Z]\w+ (\w+:|of the)", doc.text), doc.text


def test_no_sentence_occurs_twice(demo: Demo) -> None:
    texts = [doc.text for doc in everything(demo)]
    assert len(set(texts)) == len(texts) == 3000


def test_how_many_names_and_words(demo: Demo) -> None:
    per_sentence = Counter(len(doc.spans) for doc in everything(demo))
    assert 0.15 <= per_sentence[0] / 3000 <= 0.25
    assert sum(per_sentence[number] for number in (1, 2, 3)) / 3000 > 0.65
    lengths = [len(doc.words or ()) for doc in everything(demo)]
    assert min(lengths) == 4 and 34 <= max(lengths) <= 40
    assert len(set(lengths)) >= 30
    share = Counter(label for _, label in mentions(everything(demo)))
    assert set(share) == set(LABELS) and min(share.values()) / share.total() > 0.08


def test_many_frames_and_words() -> None:
    rng = Random(0)
    frames = [frame(rng) for _ in range(3000)]
    assert len(set(frames)) > 1500
    assert max(Counter(frames).values()) < 60
    assert len({word for words in LISTS.values() for word in words}) > 900


def test_every_slot_can_be_filled_and_every_symbol_is_used() -> None:
    slots = {slot for rows in GRAMMAR.values() for body in rows.bodies for slot in SLOT.findall(body)}
    assert slots <= {*GRAMMAR, *LISTS, *SLOTS, *DISTRACTORS}
    assert {*GRAMMAR, *LISTS, *SLOTS, *DISTRACTORS} - slots == {"sentence"}


# -- the names ---------------------------------------------------------------------------------------------------


def test_most_test_names_are_new(demo: Demo) -> None:
    known = {surface for surface, _ in mentions(demo.train)}
    found = mentions(demo.test)
    assert sum(surface not in known for surface, _ in found) / len(found) >= 0.6
    for label in LABELS:
        surfaces = {surface for surface, its in found if its == label}
        assert sum(surface not in known for surface in surfaces) / len(surfaces) >= 0.7, label


def test_new_names_share_endings_with_known_ones(demo: Demo) -> None:
    for label, least in (("SUBSTANCE", 0.5), ("PLACE", 0.5)):
        known = Counter(surface[-3:] for surface, its in mentions(demo.train) if its == label)
        new = {surface for surface, its in mentions(demo.test) if its == label} - {
            name for name, _ in mentions(demo.train)
        }
        assert sum(known[surface[-3:]] >= 3 for surface in new) / len(new) >= least, label


def test_the_same_string_has_several_types(demo: Demo) -> None:
    types: dict[str, set[str]] = defaultdict(set)
    for surface, label in mentions(demo.train):
        types[surface].add(label)
    assert sum("PERSON" in its and bool(its & {"PLACE", "ORGANISATION"}) for its in types.values()) >= 15
    assert sum(len(its) >= 3 for its in types.values()) >= 10
    # In test too, an ambiguous string is met as another type than training mostly showed.
    assert sum(len(types[surface]) >= 2 for surface, _ in mentions(demo.test)) >= 30


def test_names_that_are_also_ordinary_words(demo: Demo) -> None:
    named = Counter(surface.lower() for surface, _ in mentions(demo.train))
    plain = Counter(word.lower() for _, word in plain_words(demo.train))
    words = {word.lower() for its in WORD_NAMES.values() for word in its}
    both = {word for word in words if named[word] and plain[word]}
    assert len(both) >= 20
    for label, its in WORD_NAMES.items():
        assert any(word.lower() in both and (word, label) in mentions(demo.train) for word in its), label


def test_shapes_of_names(demo: Demo) -> None:
    surfaces: dict[str, list[str]] = defaultdict(list)
    for surface, label in mentions(demo.train):
        surfaces[label].append(surface)
    lower = [surface == surface.lower() for surface in surfaces["SUBSTANCE"]]
    assert 0.6 < sum(lower) / len(lower) < 0.95
    assert set(range(1, 7)) <= {len(surface.split()) for its in surfaces.values() for surface in its}
    assert sum(bool(re.fullmatch(r"[A-Z]{3,4}", surface)) for surface in surfaces["ORGANISATION"]) >= 30
    assert sum(bool(re.match(r"[A-Z]\. ", surface)) for surface in surfaces["PERSON"]) >= 30
    assert sum("-" in surface for its in surfaces.values() for surface in its) >= 60
    assert sum("'" in surface for its in surfaces.values() for surface in its) >= 30


def test_names_inside_names_are_not_annotated(demo: Demo) -> None:
    places = {surface for surface, label in mentions(everything(demo)) if label == "PLACE"}
    outer = [surface for surface, _ in mentions(demo.train) if surface.startswith("University of ")]
    assert len(outer) >= 20
    assert sum(surface.removeprefix("University of ") in places for surface in outer) >= 10
    for doc in everything(demo):
        for found in re.finditer(r"University of \w+", doc.text):
            assert any(
                span.start <= found.start() and span.end >= found.end() and span.label == "ORGANISATION"
                for span in doc.spans
            )


def test_nothing_rude(demo: Demo) -> None:
    bad = re.compile(r"fuc|shit|cunt|nigg|pis[se]|rap[ei]|slut|bastar|sexi|nazi|whor", re.IGNORECASE)
    assert not [surface for surface, _ in mentions(everything(demo)) if bad.search(surface)]


# -- what is no name ---------------------------------------------------------------------------------------------


def test_capitals_do_not_decide(demo: Demo) -> None:
    inside = [word for place, word in plain_words(demo.train) if place > 0 and word[0].isupper()]
    assert len(inside) >= 700
    assert len(set(inside)) >= 250
    counts = Counter(word for _, word in plain_words(demo.train))
    for kind in ("month", "weekday", "office", "part", "title", "feast", "acronym"):
        assert sum(counts[word] > 0 for word in LISTS[kind]) >= 5, kind
    assert sum(bool(re.fullmatch(r"[A-Z]{3}(-\d+)?", word)) for word in inside) >= 30


def test_endings_and_novelty_do_not_decide(demo: Demo) -> None:
    lower = [word for _, word in plain_words(demo.train) if word.islower()]
    assert len({word for word in lower if word.endswith(SUBSTANCE_ENDINGS)}) >= 60
    known = {doc.text[start:end] for doc in demo.train for start, end in doc.words or ()}
    new = [word for _, word in plain_words(demo.test) if word.islower() and word not in known]
    assert len(new) >= 40


# -- the dictionary ----------------------------------------------------------------------------------------------


def test_dictionary_is_a_sorted_list_of_pairs(demo: Demo) -> None:
    assert demo.dictionary == sorted(set(demo.dictionary))
    assert all(surface == surface.strip() and "\t" not in surface for surface, _ in demo.dictionary)
    assert {label for _, label in demo.dictionary} == set(LABELS)


def test_the_dictionary_as_a_file(tmp_path: Path) -> None:
    text = write_demo(tmp_path)["dictionary"].read_bytes().decode()
    assert [tuple(line.split("\t")) for line in text.splitlines()] == build().dictionary
    assert text.endswith("\n") and "\r" not in text


def test_gazetteer_coverage(demo: Demo) -> None:
    entries = set(demo.dictionary)
    for docs, least, most in ((demo.train, 0.35, 0.45), (demo.test, 0.25, 0.45)):
        found = mentions(docs)
        assert least <= sum(name in entries for name in found) / len(found) <= most
    for label in LABELS:
        found = [name for name in mentions(demo.train) if name[1] == label]
        assert 0.3 <= sum(name in entries for name in found) / len(found) <= 0.5, label
    trained = set(mentions(demo.train))
    assert sum(name in entries and name not in trained for name in set(mentions(demo.test))) >= 100


def test_the_dictionary_is_ambiguous_and_wrong_in_places(demo: Demo) -> None:
    labels = by_surface(demo.dictionary)
    assert 10 <= sum(len(its) > 1 for its in labels.values()) <= 20
    gold = {(surface.lower(), label) for surface, label in mentions(everything(demo))}
    wrong = [name for name in demo.dictionary if (name[0].lower(), name[1]) not in gold]
    assert 10 <= len(wrong) <= 20
    plain = {word for _, word in plain_words(demo.train)}
    assert sum(surface in plain for surface, _ in wrong) >= 5


def test_longest_match_is_precise_but_not_perfect(demo: Demo) -> None:
    labels = by_surface(demo.dictionary)
    right = said = gold = 0
    for doc in demo.train:
        found, wanted = longest_match(doc, labels), {(span.start, span.end, span.label) for span in doc.spans}
        right, said, gold = right + len(found & wanted), said + len(found), gold + len(wanted)
    assert 0.85 <= right / said <= 0.95
    assert 0.33 <= right / gold <= 0.45


# -- the same everywhere -----------------------------------------------------------------------------------------


def digest(demo: Demo) -> str:
    return hashlib.sha256(repr((demo.train, demo.dev, demo.test, demo.dictionary)).encode()).hexdigest()


@pytest.mark.integration
@pytest.mark.parametrize("hash_seed", ["0", "1", "4242"])
def test_same_bytes_whatever_the_hash_seed(hash_seed: str) -> None:
    source = str(Path(__file__).parents[2] / "src")
    script = (
        "import hashlib; from lacuner.demo import build; d = build(1); "
        "print(hashlib.sha256(repr((d.train, d.dev, d.test, d.dictionary)).encode()).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": source}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == digest(build(1))


def test_seeds_differ() -> None:
    one, two = build(1), build(2)
    assert digest(one) != digest(two)
    assert not {doc.text for doc in one.train if len(doc.spans) > 1} & {doc.text for doc in two.train}
    assert build() == one
