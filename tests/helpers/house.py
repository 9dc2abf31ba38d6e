"""Figures of the source tree: `python -m tests.helpers.house FOLDER...` prints a column for each `src/upheld`.

Compare two versions with `git worktree add ../before COMMIT` and
`python -m tests.helpers.house ../before/src/upheld src/upheld`. For the length of `make test`, run
`make test ARGS="--junitxml=tests.xml"` in each and add `--tests ../before/tests.xml tests.xml`.
"""

from __future__ import annotations

import argparse
import ast
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

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


def figures(package: Path) -> dict[str, object]:
    """Return the figures of a source tree by name."""
    parsed = trees(package)
    sizes = Counter(file.parent for file in parsed)
    largest, most = max(sizes.items(), key=lambda item: item[1])
    graph = {file: set(imported(package, file, tree)) for file, tree in parsed.items()}
    algebra = [p for f, tree in parsed.items() if "algebra" in f.parts for p in protocol_members(tree)]
    [main_file] = [file for file in parsed if file.name == "materialisation.py"]
    methods = [tree for file, tree in parsed.items() if file.parent == main_file.parent and file.name in METHODS]
    return {
        "files": len(parsed),
        "folders": len(sizes),
        "files in the largest folder": f"{most} ({largest.relative_to(package)})",
        "folders with more than 16 files": sum(count > 16 for count in sizes.values()),
        "files in cycles of imports": sum(map(len, cycles(graph))),
        "protocols of the algebra": len(algebra),
        "members of these protocols": sum(count for _, count in algebra),
        "branches on representations in `materialisation`": sum(map(branches_on_representation, methods)),
        "lines of the longest file": max(len(f.read_text(encoding="utf-8").splitlines()) for f in parsed),
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


if __name__ == "__main__":
    main()
