"""Pipelines on Spark: loading, the modes of a closure, updates, and what grows how. Writes results/SIZE-spark.json.

    python -m benchmarks.measure.spark small
    python -m benchmarks.measure.spark large --only loading growth

Processor time is that of this process, of Spark's Java and of its Python workers. Starting the session, and one run of
each kind on few facts, so that Java and kernels are compiled and workers are there, are not counted.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import upheld
from benchmarks.measure.spending import peak_memory
from benchmarks.places import RESULTS
from benchmarks.report.report import write_report
from benchmarks.report.subjects.spark import write_spark
from benchmarks.workloads.graphs import components, giant
from benchmarks.workloads.rulesets import CLOSURE
from experiments.measuring.spending import processor_time
from upheld.engines.spark.session import spark_session

#: Nodes of a digraph of degree 2 whose closure has so many facts, in millions.
NODES = {0.1: 400, 0.3: 690, 1.0: 1_260, 3.0: 2_170, 10.0: 3_960, 30.0: 6_850, 60.0: 9_690}

SIZES: dict[str, dict[str, Any]] = {
    "small": {"rows": 1_000_000, "closure": 1.0, "components": 48, "growth": {"driver": (0.1, 0.3, 1.0)}, "repeat": 2},
    "large": {
        "rows": 3_000_000,
        "closure": 1.0,
        "components": 4_800,
        "growth": {"driver": (1.0, 3.0, 10.0, 30.0)},
        "repeat": 2,
    },
}

MODES = ("driver", "distributed")
PARTS = ("loading", "distributed", "closure", "update", "growth", "constants")

#: Facts of an update: half of them deleted, half inserted. And updates one after the other, of which the mean is told.
UPDATE, UPDATES = 100, 4


# -- what is spent -----------------------------------------------------------------------------------------------------


def spent(work: Callable[[], Any], repeat: int = 1) -> tuple[dict[str, float], Any]:
    """Return the least that work took, and what came of it."""
    best: dict[str, float] = {}
    for _ in range(repeat):
        cpu, wall = processor_time(), time.perf_counter()
        result = work()
        took = {"cpu": processor_time() - cpu, "wall": time.perf_counter() - wall}
        best = took if not best or took["cpu"] < best["cpu"] else best
    return best, result


def tell(what: str, took: dict[str, float], more: str = "") -> None:
    print(f"{what:32} {took['cpu']:8.2f} CPU-s {took['wall']:8.2f} s  {more}", flush=True)


# -- facts -------------------------------------------------------------------------------------------------------------


def edges(millions: float) -> Any:
    return giant(NODES[millions], np.random.default_rng(1))["edge"]


def parquet(folder: Path, name: str, rows: Any) -> str:
    """Write rows of numbers as one Parquet file, and return its path."""
    path = folder / f"{name}.parquet"
    pq.write_table(pa.table({f"c{i}": rows[:, i] for i in range(rows.shape[1])}), path)
    return str(path)


def sources_of(folder: Path, rows: int) -> dict[str, str]:
    """Write as many triples, as N-Triples, CSV and Parquet; a fifth of the rows has a name that no other row has."""
    r = np.random.default_rng(2)
    people, knows = rows // 5, [f"http://example.org/vocabulary#knows{i}" for i in range(20)]
    subject, object = r.integers(0, people, (2, rows))
    predicate = r.integers(0, len(knows), rows)
    names = [f"http://example.org/people/person-{i}" for i in range(people)]
    columns = {"s": [names[i] for i in subject], "p": [knows[i] for i in predicate], "o": [names[i] for i in object]}
    pq.write_table(pa.table(columns), folder / "triples.parquet")
    with (folder / "triples.nt").open("w") as triples, (folder / "triples.csv").open("w") as lines:
        lines.write("s,p,o\n")
        for s, p, o in zip(*columns.values()):
            triples.write(f"<{s}> <{p}> <{o}> .\n")
            lines.write(f"{s},{p},{o}\n")
    return {kind: str(folder / f"triples.{end}") for kind, end in (("N-Triples", "nt"), ("CSV", "csv"))} | {
        "Parquet": str(folder / "triples.parquet")
    }


# -- what is measured --------------------------------------------------------------------------------------------------


def loading(spark: SparkSession, size: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Reading triples, encoding them and loading them into the driver's engine, which has no rule to apply."""
    (folder / "few").mkdir()
    found = []
    given, few = sources_of(folder, size["rows"]), sources_of(folder / "few", 1_000)
    texts = ".decl t(s:symbol, p:symbol, o:symbol)\n.output t\n"
    numbers = ".decl t(c0:number, c1:number)\n.output t\n"
    rows = np.random.default_rng(3).integers(0, 1 << 30, (size["rows"], 2))
    given["Parquet, two numbers"] = parquet(folder, "numbers", rows)
    few["Parquet, two numbers"] = parquet(folder / "few", "numbers", rows[:1_000])
    for kind, path in given.items():
        program = numbers if kind.endswith("numbers") else texts

        def load(path: str, program: str = program) -> Any:
            return upheld.Pipeline(program, {"t": path}, mode="driver").run(spark).report.stages

        load(few[kind])
        took, stages = spent(partial(load, path), size["repeat"] + 1)
        rate = size["rows"] / took["cpu"]
        alone, _ = spent(partial(by_spark_alone, spark, path), size["repeat"] + 1)
        tell(f"loading {kind}", took, f"{rate:,.0f} rows a CPU-second; Spark's reader alone: {alone['cpu']:.2f} CPU-s")
        seconds = {stage.name: stage.seconds for stage in stages}
        one = {"format": kind, "rows": size["rows"], **took, "rate": rate, "stages": seconds}
        found.append({**one, "spark alone": alone["cpu"]})
    return found


def distributed(spark: SparkSession, size: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Reading facts into tasks and writing them from there to Parquet, with the most memory that the driver needs."""
    (folder / "few").mkdir()
    names = {
        "CSV": ".decl t(s:symbol, p:symbol, o:symbol)\n.output t\n",
        "Parquet, two numbers": ".decl t(c0:number, c1:number)\n.output t\n",
    }
    rows = np.random.default_rng(3).integers(0, 1 << 30, (size["rows"], 2))
    found = []
    for kind, program in names.items():
        given = {}
        for count, where in ((1_000, folder / "few"), (size["rows"], folder)):
            given[count] = sources_of(where, count)[kind] if kind == "CSV" else parquet(where, "numbers", rows[:count])

        def passed(path: str, program: str = program) -> int:
            sinks = [{"path": str(folder / "out")}]
            run = upheld.Pipeline(program, {"t": path}, sinks, mode="distributed").run(spark)
            return run.report.relations["t"]["facts"]

        passed(given[1_000])
        least = begin_peak()
        took, facts = spent(partial(passed, given[size["rows"]]), size["repeat"])
        peak = (peak_memory() - least) / 2**20
        tell(f"distributed, {kind}", took, f"{facts:,} facts, at most {peak:,.0f} MB more in the driver")
        found.append({"format": kind, "rows": size["rows"], "facts": facts, **took, "peak": peak})
    return found


def begin_peak() -> int:
    """Begin to look for the most memory of this process anew; return what it has now."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak_memory()


def by_spark_alone(spark: SparkSession, path: str) -> None:
    """Have Spark's own reader bring a file to the driver as Arrow batches; of N-Triples, its lines."""
    match path.rpartition(".")[2]:
        case "nt":
            frame = spark.read.text(path)
        case "csv":
            frame = spark.read.schema("s string, p string, o string").option("header", "true").csv(path)
        case _:
            frame = spark.read.parquet(path)
    frame.toArrow()


def closed(spark: SparkSession, path: str, mode: str) -> int:
    """Derive the closure of a file of edges in a mode, and return the number of its facts."""
    run = upheld.Pipeline(CLOSURE, {"edge": path}, mode=mode).run(spark)
    return run.report.relations["path"]["facts"]


def closure(spark: SparkSession, size: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """A closure in memory alone, and from a Parquet file in each mode."""
    rows, few = edges(size["closure"]), parquet(folder, "few", edges(0.1)[:200])
    given = parquet(folder, "edges", rows)

    def memory(rows: Any = rows) -> int:
        return len(upheld.materialise(CLOSURE, {"edge": rows}, algorithm="rematerialise")["path"])

    memory(rows[:200])
    took, facts = spent(memory, 3)
    tell("closure, memory engine alone", took, f"{facts:,} facts")
    found = [{"mode": "memory", "facts": facts, **took}]
    for mode in MODES:
        closed(spark, few, mode)
        took, count = spent(partial(closed, spark, given, mode), size["repeat"])
        assert count == facts, "modes differ"
        tell(f"closure, {mode}", took, f"{took['cpu'] / found[0]['cpu']:.1f} times")
        found.append({"mode": mode, "facts": count, **took})
    return found


def update(spark: SparkSession, size: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Updates of a closure that Spark or the driver holds, beside deriving all again there."""
    r = np.random.default_rng(4)
    rows = components(size["components"], r)["edge"]
    half = UPDATE // 2
    there, new = rows[: -UPDATES * half], rows[-UPDATES * half :]
    found = []
    for engine in size.get("engines", ("memory", "spark")):
        chosen: Any = upheld.SparkEngine(spark) if engine == "spark" else engine

        def made(rows: Any = there, chosen: Any = chosen, algorithm: str = "rematerialise") -> Any:
            return upheld.materialise(CLOSURE, {"edge": rows}, engine=chosen, algorithm=algorithm)

        made(there[:200]).close()
        with made(there[:200], algorithm="ranked") as m:
            m.update(delete={"edge": there[:1]}, insert={"edge": new[:1]})
        again, m = spent(made)
        facts = len(m["path"])
        m.close()
        counted, m = spent(partial(made, algorithm="ranked"))
        # The first update finishes the books that later ones go by.
        first, _ = spent(partial(m.update, delete={"edge": there[-1:]}))
        each, changed = [], 0
        for k in range(UPDATES):
            some = slice(k * half, (k + 1) * half)
            one, change = spent(partial(m.update, delete={"edge": there[some]}, insert={"edge": new[some]}))
            each.append(one)
            changed += sum(len(side["path"]) for side in (change.inserted, change.deleted))
        took = {clock: sum(one[clock] for one in each) / UPDATES for clock in ("cpu", "wall")}
        most = max(one["cpu"] for one in each)
        tell(
            f"update, {engine}",
            took,
            f"{changed // UPDATES:,} of {facts:,} facts changed; {most:.2f} CPU-s at most, {again['cpu']:.2f} anew, "
            f"{counted['cpu']:.2f} with books, {first['cpu']:.2f} first",
        )
        one = {"engine": engine, "facts": facts, "changed": changed // UPDATES, **took, "most": most}
        found.append({**one, "again": again, "counted": counted, "first": first})
        m.close()
    return found


def growth(spark: SparkSession, size: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Closures of more and more facts in each mode."""
    found = []
    for mode, sizes in size["growth"].items():
        closed(spark, parquet(folder, "few", edges(0.1)[:200]), mode)
        for millions in sizes:
            given = parquet(folder, f"edges-{millions}", edges(millions))
            took, facts = spent(partial(closed, spark, given, mode))
            tell(f"growth, {mode}", took, f"{facts:,} facts")
            found.append({"mode": mode, "facts": facts, "edges": pq.read_metadata(given).num_rows, **took})
    return found


def constants(spark: SparkSession, size: dict[str, Any], folder: Path) -> dict[str, float]:
    """The constants of the cost model, in CPU seconds."""
    rows = 2_000_000
    few, pairs = spark.range(0, 10, 1, 1), spark.range(0, rows, 1, 2).selectExpr("id as a", "id * 7 as b")
    work: dict[str, Callable[[], Any]] = {
        "job": lambda: few.localCheckpoint(),
        "to the driver": lambda: pairs.toArrow(),
    }
    took = {}
    for name, one in work.items():
        one()
        took[name] = spent(one, 3)[0]["cpu"]
        tell(f"constant, {name}", {"cpu": took[name], "wall": 0.0})
    found = {"job": took["job"], "row to the driver": (took["to the driver"] - took["job"]) / rows}
    edge = edges(0.3)
    derive = partial(upheld.materialise, CLOSURE, {"edge": edge}, algorithm="rematerialise")
    derive()
    derived, m = spent(derive, 5)
    found["fact derived"] = derived["cpu"] / len(m["path"])
    pairs_of_numbers = np.random.default_rng(5).integers(0, rows, (rows // 4, 2))
    load = partial(upheld.materialise, "edge(1, 2).", {"edge": pairs_of_numbers}, algorithm="rematerialise")
    load()
    found["fact loaded"] = spent(load, 3)[0]["cpu"] / len(pairs_of_numbers)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", choices=SIZES)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--millions", nargs="+", type=float, choices=NODES, help="the sizes of `growth`, in all modes")
    parser.add_argument("--engines", nargs="+", choices=("memory", "spark"), help="those of `update`")
    parser.add_argument("--memory", default="3g", help="of Spark's Java")
    options = parser.parse_args()
    size = dict(SIZES[options.size])
    if options.millions:
        size["growth"] = dict.fromkeys(MODES, options.millions)
    if options.engines:
        size["engines"] = options.engines
    spark = spark_session(memory=options.memory)
    measures = {
        "loading": loading,
        "distributed": distributed,
        "closure": closure,
        "update": update,
        "growth": growth,
        "constants": constants,
    }
    for part in options.only:
        load = os.getloadavg()[0]
        with tempfile.TemporaryDirectory() as folder:
            found: dict[str, Any] = {part: measures[part](spark, size, Path(folder))}
        found |= {"date": time.strftime("%Y-%m-%d"), "load": [load, os.getloadavg()[0]]}
        found |= {"cores": os.cpu_count(), "Spark": spark.version, "memory": options.memory}
        write_spark(RESULTS, options.size, found)
    write_report()


if __name__ == "__main__":
    main()
