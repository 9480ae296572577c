"""The reference decoder of an ONNX export as one plain Python file, made from the modules of `reference`."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

from lacuner.models import ragged
from lacuner.models.encoders import han, hashing, word_shapes
from lacuner.models.encoders.lstm import LSTMEncoder
from lacuner.models.encoders.tiny import TinyEncoder
from lacuner.models.heads.crf import CRFHead
from lacuner.models.heads.span import SpanHead
from lacuner.models.types import Encoder, Head


class _Definition(NamedTuple):
    """A function, class, constant or import of a module."""

    text: str
    uses: frozenset[str] = frozenset()
    library: str | None = None
    """The library that it is imported from."""


def write_program(encoder: Encoder, head: Head[Any]) -> str:
    """The reference decoder for an encoder and a head."""
    from lacuner.export.reference import crf, lstm, padding, program, spans, tagger, tags, tiny

    modules: list[ModuleType] = [tagger]
    modules += [spans] if isinstance(head, SpanHead) else [tags, crf] if isinstance(head, CRFHead) else [tags]
    if isinstance(encoder, TinyEncoder | LSTMEncoder):
        modules += [tiny if isinstance(encoder, TinyEncoder) else lstm, padding, hashing, ragged, han]
    else:
        from lacuner.export.reference import subwords

        modules += [subwords, padding, word_shapes]
    code = join_definitions([*modules, program], "main")
    return f'"""{tagger.__doc__}"""\n\n{code}\n\nif __name__ == "__main__":\n    main()\n'


def join_definitions(modules: Iterable[ModuleType], root: str) -> str:
    """What the function `root` needs of several modules, as one file: imports, then definitions in the given order.

    So an export prepares words with the very code that lacuner runs itself. If two modules define the same name, the
    later one counts.
    """
    definitions: dict[str, _Definition] = {}
    for module in modules:
        definitions |= _definitions(inspect.getsource(module))
    needed, waiting = set[str](), {root}
    while waiting:
        needed |= waiting
        waiting = {name for used in waiting for name in definitions[used].uses & definitions.keys()} - needed
    kept = [definitions[name] for name in definitions if name in needed]
    bodies = [definition.text for definition in kept if definition.library is None]
    return "\n\n\n".join([*_import_blocks(kept), *bodies]) + "\n"


def _definitions(source: str) -> Iterator[tuple[str, _Definition]]:
    """The top-level names of a module; what it imports from lacuner is left out."""
    lines = source.splitlines()
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                library = alias.name if isinstance(node, ast.Import) else node.module or ""
                if not library.startswith("lacuner"):
                    one = ast.Import([alias]) if isinstance(node, ast.Import) else ast.ImportFrom(library, [alias], 0)
                    yield alias.asname or alias.name, _Definition(ast.unparse(one), library=library)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Assign):
            name = ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else node.name
            uses = frozenset(part.id for part in ast.walk(node) if isinstance(part, ast.Name))
            yield name, _Definition("\n".join(lines[node.lineno - 1 : node.end_lineno]), uses)


def _import_blocks(definitions: Iterable[_Definition]) -> Iterator[str]:
    """The imports, those of the standard library first."""
    merged: dict[tuple[bool, bool, str], set[str]] = {}
    for text, _, library in definitions:
        if library is not None:
            start, _, name = text.partition(" import ")  # no name in `import re`
            key = library.partition(".")[0] not in sys.stdlib_module_names, bool(name), start
            merged.setdefault(key, set()).add(name)
    lines = {key: f"{key[2]} import {', '.join(sorted(names))}" if key[1] else key[2] for key, names in merged.items()}
    yield "\n\n".join("\n".join(lines[key] for key in sorted(lines) if key[0] == other) for other in (False, True))
