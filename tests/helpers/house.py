"""Figures of the source tree: `python -m tests.helpers.house FOLDER...` prints a column for each `src/upheld`.

Compare two versions with `git worktree add ../before COMMIT` and
`python -m tests.helpers.house ../before/src/upheld src/upheld`.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.test_imports import cycles

#: Words in conditions of `materialisation.py` by which it asks how its facts are represented.
REPRESENTATIONS = ("Rewriting", "Layered", "_rewriting", "classings", "_tested", "equality")


def trees(package: Path) -> dict[Path, ast.Module]:
    """Return the syntax tree of each file."""
    return {file: ast.parse(file.read_text(encoding="utf-8")) for file in sorted(package.rglob("*.py"))}


def imported(package: Path, file: Path, tree: ast.Module) -> Iterator[Path]:
    """Yield the files of the package that a file imports, those for type checking included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "upheld":
            for alias in node.names:
                parts = [*node.module.split("."), alias.name][1:]
                for length in (len(parts), len(parts) - 1):
                    stem = package.joinpath(*parts[:length])
                    target = next((f for f in (stem.with_suffix(".py"), stem / "__init__.py") if f.is_file()), None)
                    if length and target is not None:
                        if target != file:
                            yield target
                        break


def protocol_members(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the name and the number of members of each protocol of a file."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases):
            yield node.name, sum(isinstance(part, ast.FunctionDef | ast.AnnAssign) for part in node.body)


def branches_on_representation(tree: ast.Module) -> int:
    """Return how many conditions ask how facts are represented."""
    conditions = (n.test for n in ast.walk(tree) if isinstance(n, ast.If | ast.IfExp | ast.While))
    return sum(any(word in ast.unparse(test) for word in REPRESENTATIONS) for test in conditions)


def figures(package: Path) -> dict[str, object]:
    """Return the figures of a source tree by name."""
    parsed = trees(package)
    sizes = Counter(file.parent for file in parsed)
    largest, most = max(sizes.items(), key=lambda item: item[1])
    graph = {file: set(imported(package, file, tree)) for file, tree in parsed.items()}
    algebra = [p for f, tree in parsed.items() if "algebra" in f.parts for p in protocol_members(tree)]
    of_materialisation = next(f for f in parsed if f.name == "materialisation.py")
    return {
        "files": len(parsed),
        "folders": len(sizes),
        "files in the largest folder": f"{most} ({largest.relative_to(package)})",
        "folders with more than 16 files": sum(count > 16 for count in sizes.values()),
        "files in cycles of imports": sum(map(len, cycles(graph))),
        "protocols of the algebra": len(algebra),
        "members of these protocols": sum(count for _, count in algebra),
        "branches on representations in `materialisation`": branches_on_representation(parsed[of_materialisation]),
        "lines of the longest file": max(len(f.read_text(encoding="utf-8").splitlines()) for f in parsed),
    }


def main(packages: Sequence[str]) -> None:
    """Print a Markdown table with a column for each package."""
    columns = [figures(Path(package)) for package in packages]
    print("| | " + " | ".join(packages) + " |")
    print("|---|" + "--:|" * len(columns))
    for name in columns[0]:
        print(f"| {name} | " + " | ".join(str(column[name]) for column in columns) + " |")


if __name__ == "__main__":
    main(sys.argv[1:])
