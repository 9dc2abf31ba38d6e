"""A process loads what it uses: public names when they are first asked for, a command its own part of Upheld."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import upheld
from tests.helpers.cases import ROOT

SOURCE = ROOT / "src"

#: What a run of a small program has no use for.
NOT_FOR_A_RUN = (
    *("experiments", "upheld.pipeline", "upheld.engines.spark", "upheld.engines.reference"),
    *("upheld.explain", "upheld.store", "upheld.rdf.sparql", "upheld.facts.updatefiles"),
    *("upheld.compiler.edits", "upheld.compiler.queries", "upheld.compiler.hypertrees.acyclicity"),
    *("upheld.compiler.hypertrees.decomposition", "upheld.compiler.hypertrees.hypergraph"),
    *("upheld.compiler.hypertrees.deciding", "upheld.compiler.hypertrees.search"),
    *("upheld.maintain.rule_changes", "upheld.materialisation.updates.rule_changes"),
    *("upheld.materialisation.persistence.in_tasks", "upheld.materialisation.persistence.saved_rows"),
    *("upheld.materialisation.reports.check", "upheld.materialisation.reports.history"),
    *("upheld.materialisation.reports.memory", "upheld.materialisation.reports.program_change"),
    *("upheld.materialisation.reports.replay", "upheld.materialisation.reports.verification"),
    *("difflib", "html", "random", "secrets", "uuid"),
    *("numba", "llvmlite", "pandas", "pyarrow", "pyspark", "pyoxigraph", "duckdb", "polars", "re2"),
)

#: The parts of Upheld that print the help of a command.
FOR_HELP = ("upheld.cli", "upheld.base.errors", "upheld.base", "upheld.base.source")


#: The command line, in a process that goes on to its end.
MAIN = """
from upheld.cli import main
try:
    main()
except SystemExit:
    pass
"""


def loaded(program: str, *arguments: str | Path) -> set[str]:
    """Return the modules that a process of its own has loaded after a program."""
    ends = "\nprint(*sys.modules)"
    # -S -E: no .pth file or variable of the surroundings loads anything before or beside Upheld.
    begins = f"import sys; sys.path[:0] = {[str(SOURCE), *sys.path]!r}\n"
    command = [sys.executable, "-S", "-E", "-c", begins + program + ends, *map(str, arguments)]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def within(modules: set[str], packages: tuple[str, ...]) -> set[str]:
    """Return the modules that are a package, or inside it."""
    return {module for module in modules if any(f"{module}.".startswith(f"{package}.") for package in packages)}


def test_import_upheld_loads_the_errors_alone() -> None:
    """The time of `import upheld` is spent when a name is asked for."""
    names = {"upheld", "upheld.base", "upheld.base.errors", "upheld.base.source"}
    assert within(loaded("import upheld"), ("upheld",)) == names


@pytest.mark.parametrize("command", ["", "run"])
def test_help_loads_the_command_line_alone(command: str) -> None:
    """Help comes at once."""
    modules = loaded(MAIN, *command.split(), "--help")
    assert within(modules, ("upheld",)) - within(modules, FOR_HELP) == {"upheld"}
    assert "numpy" not in modules


def test_a_run_loads_what_it_uses(tmp_path: Path) -> None:
    """A plain run loads neither other commands nor Spark, and no compiler that it has no work for."""
    program = tmp_path / "q.dl"
    program.write_text(".decl p(x: number) p(1). p(2).\n.decl q(x: number) .output q\nq(x) :- p(x), x > 1.")
    modules = loaded(MAIN, "run", program, "-D", tmp_path)
    assert (tmp_path / "q.csv").read_text() == "2\n"
    assert within(modules, NOT_FOR_A_RUN) == set()


def test_names_imported_on_demand_are_those_that_type_checkers_see() -> None:
    """Each public name has one home, whoever asks for it."""
    tree = ast.parse((SOURCE / "upheld" / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    seen = {
        alias.asname or alias.name: (statement.module, alias.name)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert seen.pop("rdf") == ("upheld", "rdf")
    assert {name: (home, name) for name, home in upheld._HOMES.items()} == seen
    assert set(upheld.__all__) == {*seen, "rdf", "ConstraintViolated", "UpheldError", "UpheldWarning"}


def test_a_name_is_imported_once() -> None:
    """A name that was asked for is an attribute like others, which costs nothing more."""
    assert upheld.materialise is upheld.materialize
    assert vars(upheld)["materialise"] is vars(upheld)["materialize"] is upheld.materialise
