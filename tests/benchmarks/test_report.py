"""The tables of the benchmarks are what the stored measurements say, and every module can be imported."""

from __future__ import annotations

import importlib
import json
import pkgutil

import pytest

import benchmarks
from benchmarks.places import HERE, REPORT, RESULTS
from benchmarks.report.report import write_report
from benchmarks.report.spark import tables_of_spark, write_spark

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


def test_rows_of_spark_that_were_not_measured_stay(tmp_path):
    """A program, and the conditions of its measurement, take the place of their own alone."""
    cost = {"cpu": 1.0, "wall": 1.0}
    rows = [
        {"name": name, "algorithm": "rematerialise", "facts": 1, "memory": cost, "spark": cost} for name in ("a", "b")
    ]
    now = {"date": "2026-01-01", "load": [0.0, 0.0], "memory": "2g"}
    system = {"cores": 2, "Spark": "4"}
    write_spark(tmp_path, "small", {**system, "engine": {"programs": rows}, "conditions": {"programs": now}})
    again, later = {**rows[1], "facts": 7}, {**now, "date": "2026-02-02", "runs": 9}
    write_spark(tmp_path, "small", {**system, "engine": {"programs": [again]}, "conditions": {"programs, b": later}})
    found = json.loads((tmp_path / "small-spark.json").read_text())
    assert found["engine"]["programs"] == [rows[0], again] and found["date"] == "2026-01-01"
    text = "\n".join(tables_of_spark(tmp_path, "small"))
    assert "*programs, b* 2026-02-02, 2g for Java, the least of 9 runs" in text
