"""The tables of the benchmarks are what the stored measurements say, and every module can be imported."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import benchmarks
from benchmarks.places import HERE, REPORT, RESULTS
from benchmarks.report.report import write_report

#: Modules that need a package which only `make bench` installs.
OTHERS = {"benchmarks.engines.duckdb", "benchmarks.engines.duckdb_statements", "benchmarks.engines.egglog"}

MODULES = [module.name for module in pkgutil.walk_packages(benchmarks.__path__, "benchmarks.")]


def test_tables_are_those_of_the_measurements(tmp_path):
    """Nobody has edited a table, and whoever changed what writes them has written them anew."""
    results = tmp_path / RESULTS.name
    results.mkdir()
    for path in RESULTS.glob("*.json*"):
        (results / path.name).symlink_to(path)
    write_report(results, tmp_path / REPORT.name)
    for path in (REPORT, *RESULTS.glob("*.md")):
        assert (tmp_path / path.relative_to(HERE)).read_text(encoding="utf-8") == path.read_text(encoding="utf-8")


def test_the_summary_is_short():
    """Goals and a table for each subject, on three screens."""
    assert len(REPORT.read_text(encoding="utf-8").splitlines()) <= 160


@pytest.mark.parametrize("module", [name for name in MODULES if name not in OTHERS])
def test_modules_can_be_imported(module):
    importlib.import_module(module)
