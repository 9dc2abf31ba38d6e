"""The tables of the benchmarks are what the stored measurements say, and every module can be imported."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re

import pytest

import benchmarks
from benchmarks.places import HERE, REPORT, RESULTS
from benchmarks.report.report import write_report
from benchmarks.report.subjects.choices import Row, goals_of_choices, tables_of_choices, write_choices
from benchmarks.report.subjects.equality import goals_of_equality
from benchmarks.report.subjects.one_fact import goals_of_one_fact
from benchmarks.report.subjects.spark import tables_of_spark, write_spark
from benchmarks.report.subjects.threads import goals_of_threads, tables_of_threads
from benchmarks.report.subjects.triples import goals_of_triples, tables_of_triples
from benchmarks.run import MORE, PARTS, SCRIPTS

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
    assert len(REPORT.read_text(encoding="utf-8").splitlines()) <= 180


@pytest.mark.parametrize("module", [name for name in MODULES if name not in OTHERS])
def test_modules_can_be_imported(module):
    importlib.import_module(module)


@pytest.mark.parametrize("part", SCRIPTS + MORE)
def test_a_part_with_a_script_of_its_own_can_be_run(part):
    """`--parts NAME` runs the module of that name."""
    assert callable(importlib.import_module(f"benchmarks.measure.{part}").main)


def test_parts_are_in_the_readme():
    """It lists those measured by default first, and then those that are measured when they are asked for."""
    listed = re.findall(r"--parts ([\w.]+)\"", (HERE / "README.md").read_text(encoding="utf-8"))
    default, asked_for = listed[: -len(MORE)], listed[-len(MORE) :]
    assert {"engines", *default} == {*PARTS, *SCRIPTS}
    assert set(asked_for) == set(MORE)


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


def run(wall: float, cpu: float, peak: int, facts: int = 5) -> dict[str, object]:
    return {"total": {"wall": wall, "cpu": cpu}, "peak": peak, "facts": {"path": facts}}


def test_threads_are_judged_by_the_clock():
    """Speed, CPU seconds and memory by one thread's, and the best other engine with as many threads."""
    ours = {"one": run(2.0, 2.0, 100), "all": run(1.0, 2.2, 130)}
    theirs = {"one": run(1.5, 1.5, 50), "all": run(0.8, 1.6, 60)}
    wrong = {"one": run(0.1, 0.1, 1, facts=4), "all": run(0.1, 0.1, 1, facts=4)}
    failed = {"one": {"failed": "not done after 60 seconds"}, "all": {"failed": "not done after 60 seconds"}}
    workloads = {
        "closure-1m": {"upheld": ours, "souffle": wrong, "duckdb": theirs},
        "join-3m": {"upheld": ours, "duckdb": failed},
        "star-1m": {"upheld": theirs, "duckdb": ours},
    }
    found = {"date": "2026-01-01", "load": [0.0, 0.0], "count": 2, "workloads": workloads}
    assert [(goal.found, goal.reached) for goal in goals_of_threads(found)] == [
        ("`closure-1m` 2.00, `join-3m` 2.00", True),
        ("1.10 (`join-3m`)", True),
        ("1.30 (`join-3m`)", False),
        ("1 of 2 workloads; behind on `closure-1m` (DuckDB takes 0.80 of our time)", False),
    ]
    table = tables_of_threads(found)
    assert "| `closure-1m` | Upheld | 2.000 | 1.000 | 2.00 | 1.10 | 1.30 |" in table
    assert "|  | DuckDB | not done after 60 seconds | | | | |" in table


def one_fact(program: str, algorithm: str, took: float, stream: float) -> dict[str, object]:
    times = dict.fromkeys(("p50", "p99", "both", "hundred"), took)
    return {"program": program, "algorithm": algorithm, "stream": stream, **times}


def test_small_updates_are_judged_by_the_worse_algorithm():
    """A goal names the programs that reach it and those that do not, with the figure of the worse algorithm."""
    rows = [
        one_fact("orders", "adaptive", 0.1, 6_000.0),
        one_fact("orders", "ranked", 0.2, 5_500.0),
        one_fact("chain", "adaptive", 0.15, 5_100.0),
        one_fact("chain", "ranked", 0.12, 4_900.0),
    ]
    assert [(goal.found, goal.reached) for goal in goals_of_one_fact(rows)] == [
        ("reached by `chain` 0.150; not by `orders` 0.200", False),
        ("reached by `orders` 0.200, `chain` 0.150", True),
        ("reached by `orders` 0.200", True),
        ("reached by `chain` 0.150", True),
        ("reached by `orders` 5,500; not by `chain` 4,900", False),
    ]
    assert list(goals_of_one_fact([])) == []


def test_choices_are_judged_by_parts_of_the_rows(tmp_path):
    """Nine of ten rows reach the first goal, and one of them misses the second."""
    rows = [Row(1.0, "star", f"delete {k}", 0.002, "ranked", 0.002) for k in range(9)]
    rows.append(Row(1.6, "hops", "insert 1", 0.0016, "dred-c", 0.001))
    assert list(goals_of_choices(tmp_path)) == [] == tables_of_choices(tmp_path, "large")
    write_choices(tmp_path, "large", rows, {"date": "2026-01-01", "load": [0.0, 0.0], "others": ["ranked", "dred-c"]})
    first, second = goals_of_choices(tmp_path)
    assert (first.reached, second.reached) == (True, False)
    assert second.found.startswith("9 of 10 rows within 1.5 times of the best (90%); at worst 1.6 (`hops`, insert 1); ")
    assert "| `hops` | insert 1 | 1.60 | `dred-c` | 1.00 | 1.60 |" in tables_of_choices(tmp_path, "large")


def test_triples_and_equality_are_judged_by_ratios(tmp_path):
    """One relation beside many, and rewriting beside axioms: the sizes in which it takes longer are named."""
    assert [*goals_of_triples(tmp_path), *goals_of_equality(tmp_path), *tables_of_triples(tmp_path, "large")] == []
    programs = {"one": {"seconds": 0.3, "facts": 9}, "many": {"seconds": 0.2, "facts": 9}}
    triples = {"date": "2026-01-01", "load": [0.0, 0.0], "triples": 5, "rules": 2, "programs": programs}
    (tmp_path / "large-triples.json").write_text(json.dumps(triples))
    assert [goal.found for goal in goals_of_triples(tmp_path)] == ["1.50 times: 0.30 and 0.20 CPU-s"]
    assert "| one relation of triples | 9 | 0.300 | 1.50 |" in tables_of_triples(tmp_path, "large")
    rewritten = {"100": {"cpu": 0.5, "insert": 1.0}, "5000": {"cpu": 3.0, "insert": 1.0}}
    axioms = {"100": {"cpu": 1.0, "insert": 1.0}, "5000": {"cpu": 2.0, "insert": 2.0}}
    ways = {"rewrite adaptive": {"updates": rewritten}, "axioms adaptive": {"updates": axioms}}
    (tmp_path / "large-equality.json").write_text(json.dumps({"ways": ways}))
    assert [(goal.found, goal.reached) for goal in goals_of_equality(tmp_path)] == [
        ("0.50 to 1.50 times as long; longer for 5,000 facts", False),
        ("0.50 to 1.00 times as long", True),
    ]
