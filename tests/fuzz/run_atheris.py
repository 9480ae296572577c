"""Coverage-guided fuzzing of one target: `python -m tests.fuzz.run_atheris TARGET -runs=N [other libFuzzer options]`.

libFuzzer starts from the seeds in the repository, and needs no network. A crash leaves the input in the current folder.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["lacuner", "json", "tomllib"]):
    from tests.fuzz.targets import SEEDS, TARGETS, attempt


def main() -> None:
    name, *options = sys.argv[1:]
    if name not in TARGETS:
        raise SystemExit(f"there is no target {name!r}; choose one of {', '.join(TARGETS)}")

    def check(data: bytes) -> None:
        attempt(name, data)

    atheris.Setup([sys.argv[0], *options, str(SEEDS / name)], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
