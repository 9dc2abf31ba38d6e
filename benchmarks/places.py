"""Where benchmarks keep their files, and how they start each other."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
#: Facts that have been made.
CACHE = HERE / ".cache"
#: Measurements, and the tables that RESULTS.md links to.
RESULTS = HERE / "results"
REPORT = HERE / "RESULTS.md"
#: Where `make bench` puts the packages of the other engines.
OTHERS = HERE / ".venv" / "bin" / "python"


def command(python: str, module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of this package by a Python; its working directory is to be `ROOT`."""
    return [python, "-m", f"benchmarks.{module}", *arguments]
