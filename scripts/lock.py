"""Write `requirements.lock`: the exact versions of constraints.txt with the hashes of their files, for one platform.

Usage: python scripts/lock.py REPORT, where REPORT is what pip wrote:

    pip install --dry-run --ignore-installed --report REPORT -c constraints.txt '.[dev,...]'

Addresses are left out: a hash identifies a file, wherever it comes from.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

HEADER = """# Exact versions with hashes, for Linux on x86-64 and Python 3.11, without the extras docs and scale.
# torch is the CPU build.
# `make setup-locked` installs them with --require-hashes. To renew: scripts/lock.py.
"""


def lock_lines(report: dict[str, object]) -> list[str]:
    """One line per package, sorted by name.

    >>> info = {"archive_info": {"hashes": {"sha256": "ab"}}}
    >>> lock_lines({"install": [{"metadata": {"name": "x", "version": "1"}, "download_info": info}]})
    ['x==1 --hash=sha256:ab']
    """
    lines = []
    items = report["install"]
    assert isinstance(items, list)
    for item in items:
        hashes = item["download_info"].get("archive_info", {}).get("hashes", {})
        if "sha256" in hashes:  # the project itself has none
            name, version = item["metadata"]["name"].lower(), item["metadata"]["version"]
            lines.append(f"{name}=={version} --hash=sha256:{hashes['sha256']}")
    return sorted(lines)


if __name__ == "__main__":
    content = HEADER + "\n".join(lock_lines(json.loads(Path(sys.argv[1]).read_text()))) + "\n"
    Path("requirements.lock").write_text(content)
