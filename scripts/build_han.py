"""Write the table of simplified Chinese characters, from the Unihan database of the Unicode standard.

    python scripts/build_han.py Unihan_Variants.txt

The file is part of Unihan.zip (unicode.org) and of Debian's package `unicode-data`. A character gets a simplified form
if it is not part of GB 2312, the character set of simplified Chinese, and its form is: so simplified text, in which
a few of these characters occur with another meaning, does not change.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

TABLE = Path(__file__).parents[1] / "src" / "lacuner" / "models" / "encoders" / "han.py"
HEAD = '''"""Simplified forms of traditional Chinese characters, written by `scripts/build_han.py`.

Derived from the Unihan database of Unicode {version}. Copyright 1991-{year} Unicode, Inc., Unicode License v3.
"""

PAIRS = (
{lines}
)
"""A traditional character and its simplified form, one pair after another."""

SIMPLIFIED = dict(zip(map(ord, PAIRS[::2]), PAIRS[1::2], strict=True))
"""The table as `str.translate` takes it."""


def simplify(text: str) -> str:
    """Traditional characters replaced by their simplified forms.

    >>> simplify("國立臺灣大學"), simplify("国立大学")
    ('国立台湾大学', '国立大学')
    """
    return text.translate(SIMPLIFIED)
'''


def read_pairs(lines: Iterable[str]) -> dict[str, str]:
    """Characters outside GB 2312 with their first simplified form inside it.

    >>> read_pairs(["U+570B\\tkSimplifiedVariant\\tU+56FD", "U+4E7E\\tkSimplifiedVariant\\tU+4E7E U+5E72"])
    {'國': '国'}
    """
    pairs = {}
    for line in lines:
        if "\tkSimplifiedVariant\t" in line:
            point, _, variants = line.split("\t")
            character, forms = _character(point), [_character(variant) for variant in variants.split()]
            common = [form for form in forms if _in_gb2312(form)]
            if common and not _in_gb2312(character):
                pairs[character] = common[0]
    return pairs


def _character(point: str) -> str:
    return chr(int(point.strip().removeprefix("U+"), 16))


def _in_gb2312(character: str) -> bool:
    try:
        return bool(character.encode("gb2312"))
    except UnicodeEncodeError:
        return False


def main(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    dates = [line for line in lines if line.startswith("# Date:")]
    versions = [line.split()[-1] for line in lines if line.startswith("# Unicode version")]
    flat = "".join(a + b for a, b in sorted(read_pairs(lines).items()))
    rows = "\n".join(f'    "{flat[i : i + 56]}"' for i in range(0, len(flat), 56))
    TABLE.write_text(HEAD.format(version=versions[0], year=dates[0].split()[2][:4], lines=rows), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
