"""The garbage collector of a process that runs a command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

#: The command line, and at its end the number of objects that the collector leaves alone.
PROGRAM = """
import atexit, gc, sys
atexit.register(lambda: print(gc.get_freeze_count()))
from upheld.cli import main
sys.exit(main())
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "q.dl"
    path.write_text(".decl q(x: number) q(1).")
    return path


def left_alone(*arguments: str | Path) -> int:
    """Return the number of objects that are not looked at in the end of a command, which reports nothing."""
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    return int(ran.stdout.split()[-1])


def test_a_command_ends_without_a_look_for_garbage(program: Path) -> None:
    """The modules of a process that ends are not searched once more."""
    assert left_alone("--version") > 1000
    assert left_alone("query", program, "q(x)") > 1000


def test_packages_that_count_their_objects_find_them_gone(program: Path) -> None:
    """DuckDB reports objects that are left at the end as leaks, and so may packages that functors import."""
    assert left_alone("query", program, "--sql", "select * from q") == 0
    functors = program.with_name("functors.py")
    functors.write_text("import duckdb")
    assert left_alone("query", program, "--functors", functors, "q(x)") == 0


def test_a_caller_of_main_keeps_its_own_collector() -> None:
    """A command within another process leaves the thresholds there as they are."""
    program = "import gc; from upheld.cli import main; was = gc.get_threshold(); code = main(['check', '-']); "
    ran = subprocess.run(
        [sys.executable, "-c", program + "print(code, was == gc.get_threshold())"], capture_output=True
    )
    assert ran.stdout.split() == [b"2", b"True"]
