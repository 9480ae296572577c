from __future__ import annotations

from pathlib import Path

from lacuner.api import annotate, predict
from lacuner.data import Document
from lacuner.models.lookup import LookupTagger


def test_plain_texts_will_do(tmp_path: Path) -> None:
    dictionary = tmp_path / "terms.tsv"
    dictionary.write_text("aspirin\tDrug\n", encoding="utf-8")
    docs = [*annotate(["Take aspirin.", Document("mine", "no aspirin")], dictionary), *annotate("aspirin", dictionary)]
    assert [doc.id for doc in docs] == ["1", "mine", "1"]
    assert [doc.text[span.start : span.end] for doc in docs for span in doc.spans] == ["aspirin"] * 3
    tagger = LookupTagger({"aspirin": "Drug"})
    assert [doc.text for doc in predict(tagger, "Take aspirin.") if doc.spans] == ["Take aspirin."]
