"""Print the modules that a reader must open to understand each recipe, beyond data, config, training and models.

Usage: python scripts/recipe_dependencies.py

Counts the lacuner modules that the recipe's file imports, and the techniques and recipes that those import in turn.
A recipe that another one only runs as a whole does not count, because nothing but its `Config` and `train` is used.
Ends with status 1 if a recipe needs more than six.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

LIMIT = 6
ASSUMED_KNOWN = ("data", "config", "training", "models")
FOLLOWED = ("techniques", "recipes")
SOURCE = Path(__file__).resolve().parent.parent / "src" / "lacuner"


def direct_imports(module: str) -> set[str]:
    """Modules of lacuner that a module imports, without the leading `lacuner.`, imports for type checking aside."""
    tree = ast.parse(_file(module).read_text(encoding="utf-8"))
    nodes: list[ast.AST] = [tree]
    modules: set[str] = set()
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "lacuner":
            package = node.module.removeprefix("lacuner").removeprefix(".")
            names = [alias.name for alias in node.names if package != "recipes" or _uses_parts_of(alias.name, tree)]
            modules |= {_module_of(package, name) for name in names}
        nodes += ast.iter_child_nodes(node)
    return modules - {module}


def _uses_parts_of(recipe: str, tree: ast.AST) -> bool:
    """Whether a module uses more of an imported recipe than to configure and run it."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name))
    return bool({node.attr for node in nodes if ast.unparse(node.value) == recipe} - {"Config", "train"})


def dependencies(recipe: str) -> list[str]:
    """The modules that count for a recipe, sorted.

    >>> dependencies("trust")
    ['corpus.stored', 'techniques.label_masking']
    """
    waiting, needed = [f"recipes.{recipe}"], set[str]()
    while waiting:
        module = waiting.pop()
        for imported in direct_imports(module) - needed:
            package = imported.partition(".")[0]
            of_the_recipe_itself = module == f"recipes.{recipe}"
            if package in FOLLOWED or (of_the_recipe_itself and package not in ASSUMED_KNOWN):
                needed.add(imported)
            if package in FOLLOWED and imported != "recipes":  # the table of recipes names all of them
                waiting.append(imported)
    return sorted(needed - {f"recipes.{recipe}"})


def recipes() -> list[str]:
    """The names of all recipe files."""
    return sorted(file.stem for file in (SOURCE / "recipes").glob("*.py") if file.stem != "__init__")


def _file(module: str) -> Path:
    path = SOURCE / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _module_of(package: str, name: str) -> str:
    """`package.name` if that is a module, else `package`, where `name` is defined."""
    module = f"{package}.{name}" if package else name
    return module if _file(module).exists() else package


def main() -> None:
    most = 0
    for recipe in recipes():
        modules = dependencies(recipe)
        most = max(most, len(modules))
        print(f"{recipe:18} {len(modules)}  {', '.join(modules)}")
    sys.exit(most > LIMIT)


if __name__ == "__main__":
    main()
