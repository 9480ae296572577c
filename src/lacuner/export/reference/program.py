"""The command of the reference decoder."""

import json
import os
import sys
import time
from pathlib import Path

from lacuner.export.reference.tagger import Tagger


def main() -> None:
    """Predict a file: JSON lines to standard output, the time to standard error."""
    tagger = Tagger(Path(__file__).parent, int(os.environ.get("OMP_NUM_THREADS", "0")))
    with open(sys.argv[1], encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    begin = time.perf_counter()
    predictions = tagger.predict([row["text"] for row in rows])
    seconds = time.perf_counter() - begin
    for row, spans in zip(rows, predictions, strict=True):
        found = [dict(zip(("start", "end", "label", "score"), span, strict=True)) for span in spans]
        sys.stdout.write(json.dumps({"id": row.get("id", ""), "text": row["text"], "spans": found}) + "\n")
    sys.stderr.write(json.dumps({"documents": len(rows), "seconds": seconds}) + "\n")
