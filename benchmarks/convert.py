"""Converting a Label Studio export to columns: documents per second compared with Label Studio's own converter.

Both sides convert the same generated export in turns. Beside it, the peak memory of our conversion for two sizes shows
whether it streams. Not part of `make speed`, because label-studio-sdk is not installed by `make setup`.

    pip install label-studio-sdk && python -m benchmarks.convert [megabytes]
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from lacuner.corpus import read, write

CONFIG = """<View><Labels name="label" toName="text"><Label value="PER"/><Label value="LOC"/></Labels>
<Text name="text" value="$text"/></View>"""
OURS = "import sys; from lacuner.corpus import read, write; write(read(sys.argv[1]), sys.argv[2])"
TURNS = 5
PEAK = "; from pathlib import Path; print(Path('/proc/self/status').read_text())"


def write_export(path: Path, megabytes: float) -> int:
    """Write an export of generated texts with about one entity per ten words; return the number of tasks."""
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefghijklmnoprstuvw", k=rng.randint(2, 10))) for _ in range(20_000)]
    number = size = 0
    with path.open("w", encoding="utf-8") as stream:
        while size < megabytes * 1e6:
            chosen = rng.choices(words, k=rng.randint(10, 60))
            text, result, start = " ".join(chosen), [], 0
            for word in chosen:
                if rng.random() < 0.1:
                    value = {
                        "start": start,
                        "end": start + len(word),
                        "text": word,
                        "labels": [rng.choice(("PER", "LOC"))],
                    }
                    names = {"from_name": "label", "to_name": "text", "type": "labels", "origin": "manual"}
                    result.append({"id": f"r{start}", "value": value, **names})
                start += len(word) + 1
            annotation = {"id": number, "completed_by": 1, "was_cancelled": False, "result": result}
            row = json.dumps({"id": number, "data": {"text": text}, "annotations": [annotation], "predictions": []})
            size += stream.write((",\n" if number else "[") + row)
            number += 1
        stream.write("]")
    return number


def cpu_seconds(work: Callable[[], object]) -> float:
    """Time on the processor, which other programs on a busy machine change less than the time on the clock."""
    start = time.process_time()
    work()
    return time.process_time() - start


def peak_megabytes(source: Path, target: Path) -> int:
    command = [sys.executable, "-c", OURS + PEAK, str(source), str(target)]
    status = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    match = re.search(r"VmHWM:\s+(\d+)", status)
    assert match is not None
    return int(match[1]) // 1024


def main(megabytes: float) -> None:
    from label_studio_sdk.converter import Converter

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        documents = write_export(folder / "export.json", megabytes)
        converter = Converter(CONFIG, str(folder), download_resources=False)

        def ours() -> None:
            write(read(folder / "export.json"), folder / "ours.conll")

        def theirs() -> None:
            with contextlib.redirect_stdout(io.StringIO()):
                converter.convert(str(folder / "export.json"), str(folder / "theirs"), "CONLL2003", is_dir=False)

        pairs = [(cpu_seconds(ours), cpu_seconds(theirs)) for _ in range(TURNS)]
        our_time, their_time = median(a for a, _ in pairs), median(b for _, b in pairs)
        ratios = sorted(b / a for a, b in pairs)
        print(f"{documents:,} documents, {megabytes:g} MB, {TURNS} turns, documents per second of CPU time")
        print(f"lacuner {documents / our_time:,.0f}, Label Studio converter {documents / their_time:,.0f}")
        print(f"ratio {median(ratios):.1f} ({ratios[0]:.1f} to {ratios[-1]:.1f})")
        write_export(folder / "large.json", 4 * megabytes)
        small, large = (peak_megabytes(folder / file, folder / "x.conll") for file in ("export.json", "large.json"))
        print(f"peak memory: {small} MB for {megabytes:g} MB, {large} MB for {4 * megabytes:g} MB")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 20)
