"""Figures of the source tree: `python -m tests.helpers.house FOLDER...` prints a column for each `src/upheld`.

A second table has the files, lines and lines of imports of each room. Compare two versions with
`git worktree add ../before COMMIT` and `python -m tests.helpers.house ../before/src/upheld src/upheld`. For the length
of `make test`, run `make test ARGS="--junitxml=tests.xml"` in each and add `--tests ../before/tests.xml tests.xml`.
"""

from __future__ import annotations

import argparse
import ast
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from statistics import median

from tests.test_imports import cycles

#: Files with the methods of `Materialisation`.
METHODS = ("materialisation.py", "lifecycle.py", "inspection.py", "reading.py")

#: Words in their conditions by which they ask how facts are represented.
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


def lines_of(file: Path) -> int:
    """Return the number of lines of a file."""
    return len(file.read_text(encoding="utf-8").splitlines())


def lines_of_imports(tree: ast.Module) -> int:
    """Return how many lines the imports of a file take, those inside functions included."""
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports)


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield all functions of a file."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def docstring_lines(node: ast.AST) -> int:
    """Return how many lines the docstring of a module, class or function takes."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or not node.body:
        return 0
    first = node.body[0]
    if not (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    ):
        return 0
    return (first.end_lineno or first.lineno) - first.lineno + 1


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return how many lines of a function follow its signature and its docstring."""
    body = function.body[1:] if docstring_lines(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def explained(file: Path, tree: ast.Module) -> int:
    """Return how many lines of a file are docstrings or begin with a comment."""
    comments = sum(line.lstrip().startswith("#") for line in file.read_text(encoding="utf-8").splitlines())
    return comments + sum(map(docstring_lines, ast.walk(tree)))


def room_of(package: Path, file: Path) -> str:
    """Return the folder of the package that a file is in; files beside the rooms are the surface."""
    parts = file.relative_to(package).parts
    return parts[0] if len(parts) > 1 else "the surface"


def rooms(package: Path) -> dict[str, tuple[int, int, int]]:
    """Return the files, lines and lines of imports of each room."""
    sums: dict[str, tuple[int, int, int]] = {}
    for file, tree in trees(package).items():
        for room in (room_of(package, file), "all"):
            files, lines, imports = sums.get(room, (0, 0, 0))
            sums[room] = files + 1, lines + lines_of(file), imports + lines_of_imports(tree)
    return sums


def figures(package: Path) -> dict[str, object]:
    """Return the figures of a source tree by name."""
    parsed = trees(package)
    sizes = Counter(file.parent for file in parsed)
    largest, most = max(sizes.items(), key=lambda item: item[1])
    graph = {file: set(imported(package, file, tree)) for file, tree in parsed.items()}
    algebra = [p for f, tree in parsed.items() if "algebra" in f.parts for p in protocol_members(tree)]
    [main_file] = [file for file in parsed if file.name == "materialisation.py"]
    arrows = {(room_of(package, a), room_of(package, b)) for a, targets in graph.items() for b in targets}
    lines, _bodies = sum(map(lines_of, parsed)), [body_lines(f) for tree in parsed.values() for f in functions(tree)]
    methods = [tree for file, tree in parsed.items() if file.parent == main_file.parent and file.name in METHODS]
    return {
        "lines": lines,
        "of them docstrings and comments": f"{sum(explained(f, tree) for f, tree in parsed.items()) / lines:.0%}",
        "median lines of the body of a function": median(
            body_lines(f) for tree in parsed.values() for f in functions(tree)
        ),
        "rooms": len({room_of(package, file) for file in parsed} - {"the surface"}),
        "arrows between rooms": sum(a != b and "the surface" not in (a, b) for a, b in arrows),
        "files": len(parsed),
        "folders": len(sizes),
        "files in the largest folder": f"{most} ({largest.relative_to(package)})",
        "folders with more than 16 files": sum(count > 16 for count in sizes.values()),
        "files in cycles of imports": sum(map(len, cycles(graph))),
        "protocols of the algebra": len(algebra),
        "members of these protocols": sum(count for _, count in algebra),
        "branches on representations in `materialisation`": sum(map(branches_on_representation, methods)),
        "lines of the longest file": max(map(lines_of, parsed)),
    }


def length_of(report: Path) -> dict[str, object]:
    """Return the number of tests and the length of a run, from the JUnit report of pytest."""
    suite = ElementTree.parse(report).getroot().find("testsuite")
    assert suite is not None, f"{report} has no test suite"
    minutes, seconds = divmod(round(float(suite.attrib["time"])), 60)
    return {"tests": int(suite.attrib["tests"]), "length of `make test`": f"{minutes}:{seconds:02}"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a Markdown table with a column for each package."""
    parser = argparse.ArgumentParser(prog="python -m tests.helpers.house", description="Print figures of source trees.")
    parser.add_argument("packages", type=Path, nargs="+", metavar="FOLDER", help="a source tree: `src/upheld`")
    parser.add_argument("--tests", type=Path, nargs="+", default=[], metavar="FILE", help="JUnit report of each tree")
    options = parser.parse_args(arguments)
    runs = (length_of(report) if report else {} for _, report in zip_longest(options.packages, options.tests))
    columns = [figures(package) | run for package, run in zip(options.packages, runs, strict=True)]
    print("| | " + " | ".join(map(str, options.packages)) + " |")
    print("|---|" + "--:|" * len(columns))
    for name in dict.fromkeys(name for column in columns for name in column):
        print(f"| {name} | " + " | ".join(str(column.get(name, "")) for column in columns) + " |")
    print("\n| room |" + " files | lines | imports |" * len(columns))
    print("|---|" + "--:|--:|--:|" * len(columns))
    sums = [rooms(package) for package in options.packages]
    for name in sorted({name for column in sums for name in column}, key=lambda name: (name == "all", name)):
        cells = (f" {n} | {k} | {i} |" if n else " | | |" for n, k, i in (s.get(name, (0, 0, 0)) for s in sums))
        print(f"| {name} |" + "".join(cells))


if __name__ == "__main__":
    main()
