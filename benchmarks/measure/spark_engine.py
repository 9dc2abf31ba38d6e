"""The Spark engine beside the memory engine: programs, updates, a hub, memory. Adds to results/SIZE-spark.json.

    python -m benchmarks.measure.spark_engine small
    python -m benchmarks.measure.spark_engine large --only programs updates
    python -m benchmarks.measure.spark_engine large --rows "same generation" --repeat 10     # keeps the other rows

Both engines get their facts from arrays, and two tasks hold the partitions. Processor time is that of this process, of
Spark's Java and of its Python workers. Every program is derived once before it is measured, so that workers are there
and kernels are compiled; the start of the job is part of each measurement.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

import upheld
from benchmarks.measure.spark import NODES, edges, spent, tell
from benchmarks.measure.strata import main_program, sample
from benchmarks.places import RESULTS
from benchmarks.report.report import write_report
from benchmarks.report.subjects.spark import write_spark
from benchmarks.workloads.copies import apart, with_suffix
from benchmarks.workloads.graphs import Facts, campus, components, generations
from benchmarks.workloads.rulesets import CAMPUS, CLOSURE, SAME_GENERATION
from upheld.engines.spark.session import spark_session

#: The partitions that goals speak of.
PARTITIONS = 2

NONLINEAR = """
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), path(y, z).
"""

#: A hierarchy of classes and of properties, domains and ranges, all in one relation of triples: 0 is the type of a
#: thing, 1 the class above a class, 2 the property above a property, 3 the domain and 4 the range of a property.
TRIPLES = """
t(c, 1, e) :- t(c, 1, d), t(d, 1, e).
t(x, 0, d) :- t(x, 0, c), t(c, 1, d).
t(x, q, y) :- t(x, p, y), t(p, 2, q).
t(x, 0, c) :- t(x, p, _), t(p, 3, c).
t(y, 0, c) :- t(_, p, y), t(p, 4, c).
"""

SIZES: dict[str, dict[str, Any]] = {
    "small": {
        "closure": (1.0,), "nonlinear": 690, "generations": (10, 205), "things": 60_000, "departments": 42,
        "scale": 5_000, "updated": 480, "hub": 400_000, "tasks": 1.0, "repeat": 2,
    },
    "large": {
        "closure": (1.0, 3.0, 10.0, 30.0, 60.0), "nonlinear": 1_260, "generations": (10, 410), "things": 120_000,
        "departments": 112, "scale": 50_000, "updated": 4_800, "hub": 2_000_000, "tasks": 10.0, "repeat": 3,
    },
}  # fmt: skip

#: Copies of a program's rules, each over its own part of the facts.
COPIES = 10

#: Updates of each size, of which the median is shown.
UPDATES = 7


def triples(things: int, r: np.random.Generator) -> Facts:
    """Things of 200 classes in a tree, with 40 properties in another."""
    classes, properties = np.arange(100, 300), np.arange(300, 340)
    above = [(c, 1, classes[(c - 101) // 3]) for c in classes[1:]]
    above += [(p, 2, properties[(p - 301) // 2]) for p in properties[1:]]
    ends = [(p, end, r.choice(classes)) for p in properties for end in (3, 4)]
    names = np.arange(1000, 1000 + things)
    types = np.stack([names, np.zeros_like(names), r.choice(classes, things)], 1)
    links = np.stack([r.choice(names, things), r.choice(properties, things), r.choice(names, things)], 1)
    return {"t": np.unique(np.concatenate([types, links, np.array(above), np.array(ends)]), axis=0)}


def chosen(spark: SparkSession, partitions: int = PARTITIONS) -> upheld.SparkEngine:
    return upheld.SparkEngine(spark, partitions=partitions)


def derive(rules: str, facts: Facts, engine: Any, algorithm: str = "rematerialise") -> None:
    """Materialise a program."""
    upheld.materialise(rules, facts, engine=engine, algorithm=algorithm).close()


def counted(rules: str, facts: Facts, engine: Any, algorithm: str = "rematerialise") -> int:
    """Return the number of facts that a program has."""
    with upheld.materialise(rules, facts, engine=engine, algorithm=algorithm) as m:
        return count_of(m)


def count_of(m: upheld.Materialisation) -> int:
    return sum(len(m[relation]) for relation in m.relations)


def compared(
    spark: SparkSession, name: str, rules: str, facts: Facts, repeat: int, algorithm: str = "rematerialise"
) -> dict[str, Any]:
    """Return the cost of a program in memory and in tasks."""
    row: dict[str, Any] = {"name": name, "algorithm": algorithm}
    for kind, engine in (("memory", "memory"), ("spark", chosen(spark))):
        count = counted(rules, facts, engine, algorithm)
        assert row.setdefault("facts", count) == count, "engines differ"
        row[kind], _ = spent(partial(derive, rules, facts, engine, algorithm), repeat)
    times = row["spark"]["cpu"] / row["memory"]["cpu"]
    tell(name, row["spark"], f"{row['facts']:,} facts, {times:.1f} times memory's {row['memory']['cpu']:.2f}")
    return row


def programs(spark: SparkSession, size: dict[str, Any]) -> list[dict[str, Any]]:
    """Programs of many kinds, derived in memory and in tasks; of a size that has some of `rows`, these alone."""
    r, repeat = np.random.default_rng(1), size["repeat"]
    made: list[tuple[str, str, Facts, int]] = [
        (f"closure, {m:g} M", CLOSURE, {"edge": edges(m)}, 1 if m > 3 else repeat) for m in size["closure"]
    ]
    nodes = size["nonlinear"]
    graph = {"edge": np.unique(np.random.default_rng(1).integers(0, nodes, (2 * nodes, 2)), axis=0)}
    _, rules, given = main_program(size["scale"])
    count, width = size["generations"]
    made += [
        ("closure, not linear", NONLINEAR, graph, repeat),
        ("same generation", SAME_GENERATION, generations(count, width, r), repeat),
        ("triples", TRIPLES, triples(size["things"], r), repeat),
        ("campus, 90 rules", CAMPUS, campus(size["departments"], r), repeat),
        ("Claros-L, 1,314 rules", rules, given, repeat),
    ]
    rows, names = size.get("rows"), [name for name, *_ in made]
    if unknown := set(rows or ()).difference(names):
        raise SystemExit(f"no such rows: {', '.join(sorted(unknown))}; there are {'; '.join(names)}")
    return [compared(spark, *one) for one in made if rows is None or one[0] in rows]


def more_rules(spark: SparkSession, size: dict[str, Any]) -> dict[str, Any]:
    """The 90 rules of campus, and ten copies of them, over the same facts.

    The facts are ten campuses without a value in common. The 90 rules have all of them in the same relations; each copy
    has relations of its own, with the facts of one campus. So both derive the same facts by the same instances, and the
    rest of the cost is what 810 rules more cost by themselves.
    """
    r = np.random.default_rng(8)
    parts = apart([campus(size["departments"] // COPIES, r) for _ in range(COPIES)])
    together = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    separate = {f"{name}_{k}": rows for k, part in enumerate(parts) for name, rows in part.items()}
    copies = "".join(with_suffix(CAMPUS, f"_{k}") for k in range(COPIES))
    found = {
        "once": compared(spark, "ten campuses, 90 rules", CAMPUS, together, size["repeat"]),
        "ten times": compared(spark, "ten campuses, 900 rules", copies, separate, size["repeat"]),
    }
    assert found["once"]["facts"] == found["ten times"]["facts"], "copies of the rules derive other facts"
    return found


def books(spark: SparkSession, size: dict[str, Any]) -> dict[str, Any]:
    """Materialising with the books of `ranked`, and without any."""
    facts = {"edge": edges(size["closure"][0])}
    return {
        algorithm: compared(spark, f"books, {algorithm}", CLOSURE, facts, size["repeat"], algorithm)
        for algorithm in ("rematerialise", "ranked")
    }


def median_of(works: Sequence[Callable[[], Any]]) -> dict[str, float]:
    """Return the median times of pieces of work, without the first: it finishes what the start has put off."""
    took = [spent(work)[0] for work in works][1:]
    return {clock: float(np.median([one[clock] for one in took])) for clock in ("cpu", "wall")}


def updates(spark: SparkSession, size: dict[str, Any]) -> list[dict[str, Any]]:
    """Deletions and insertions of 1 and of 100 facts, beside starting again; and the bytes that facts take."""
    facts = components(size["updated"], np.random.default_rng(4))
    found = []
    for kind, engine in (("memory", "memory"), ("spark", chosen(spark))):
        for algorithm in ("ranked", "adaptive"):
            few = {"edge": facts["edge"][:2_000]}
            derive(CLOSURE, few, engine, algorithm)
            again, _ = spent(partial(derive, CLOSURE, facts, engine))
            with upheld.materialise(CLOSURE, facts, engine=engine, algorithm=algorithm) as m:
                row: dict[str, Any] = {"engine": kind, "algorithm": algorithm, "facts": len(m["path"]), "again": again}
                for count in (1, 100):
                    drawn = [sample(facts, count, seed) for seed in range(UPDATES + 1)]
                    deleted = median_of([partial(m.update, delete=some) for some in drawn])
                    inserted = median_of([partial(m.update, insert=some) for some in drawn])
                    row[str(count)] = {"delete": deleted, "insert": inserted}
                    tell(f"{kind}, {algorithm}, delete {count}", deleted, f"beside {row['facts']:,} facts")
                    tell(f"{kind}, {algorithm}, insert {count}", inserted, f"starting again {again['cpu']:.2f} CPU-s")
                engine_of_facts: Any = m._engine
                row["bytes"] = engine_of_facts.nbytes() / count_of(m)
                print(f"{row['bytes']:.0f} bytes a fact", flush=True)
            found.append(row)
    return found


def steps_of(m: upheld.Materialisation) -> dict[str, int]:
    """Return the exchanges and commands of a Spark engine so far."""
    driver = m._engine.driver  # type: ignore[attr-defined]
    return {"exchanges": driver.exchanges, "commands": driver.commands}


def steps(spark: SparkSession, size: dict[str, Any]) -> list[dict[str, Any]]:
    """Campus in two tasks: the exchanges and commands of materialising, and of an update of 100 facts."""
    facts = campus(size["departments"], np.random.default_rng(1))
    found: list[dict[str, Any]] = []
    for algorithm in ("rematerialise", "ranked", "adaptive"):
        derive(CAMPUS, facts, chosen(spark), algorithm)
        took, _ = spent(partial(derive, CAMPUS, facts, chosen(spark), algorithm), size["repeat"])
        with upheld.materialise(CAMPUS, facts, engine=chosen(spark), algorithm=algorithm) as m:
            found.append({"algorithm": algorithm, "work": "materialise", **took, **steps_of(m)})
            if algorithm == "rematerialise":
                continue
            drawn = [sample(facts, 100, seed) for seed in range(UPDATES + 1)]
            updates_of = {
                "delete": [partial(m.update, delete=some) for some in drawn],
                "insert": [partial(m.update, insert=some) for some in drawn],
            }
            for work, made in updates_of.items():
                before = steps_of(m)
                took = median_of(made)
                each = {name: (n - before[name]) / len(drawn) for name, n in steps_of(m).items()}
                found.append({"algorithm": algorithm, "work": f"{work} 100", **took, **each})
    for row in found:
        about = f"{row['exchanges']:.0f} exchanges, {row['commands']:.0f} commands"
        tell(f"campus, {row['algorithm']}, {row['work']}", row, about)
    return found


def hub(spark: SparkSession, size: dict[str, Any]) -> dict[str, Any]:
    """Facts of which half have one key, joined by it, and the same number without such a key: wall time in tasks."""
    rows, r = size["hub"], np.random.default_rng(6)
    rules = "near(x, z) :- visits(x, y), about(y, z).\n"
    about = np.stack([np.arange(20_000), r.integers(0, 1 << 30, 20_000)], 1)
    people, places = r.permutation(rows), r.integers(0, 20_000, rows)
    found = {}
    for name, visited in (("even", places), ("hub", np.where(r.random(rows) < 0.5, 7, places))):
        facts = {"visits": np.stack([people, visited], 1), "about": about}
        count = counted(rules, facts, chosen(spark))
        found[name], _ = spent(partial(derive, rules, facts, chosen(spark)), size["repeat"])
        tell(f"skew, {name}", found[name], f"{count:,} facts")
    return found


def tasks(spark: SparkSession, size: dict[str, Any]) -> list[dict[str, Any]]:
    """One task and two for the same closure."""
    facts, found = {"edge": edges(size["tasks"])}, []
    for partitions in (1, PARTITIONS):
        engine = chosen(spark, partitions)
        count = counted(CLOSURE, facts, engine)
        took, _ = spent(partial(derive, CLOSURE, facts, engine), size["repeat"])
        tell(f"tasks: {partitions}", took, f"{count:,} facts")
        found.append({"tasks": partitions, "facts": count, **took})
    return found


def exchanges(spark: SparkSession, size: dict[str, Any]) -> dict[str, float]:
    """The constants of the cost model: the start of a job, an exchange, a command, and a fact sent home."""
    few = {"edge": edges(0.1)[:50]}
    derive(CLOSURE, few, chosen(spark))
    job, _ = spent(partial(derive, CLOSURE, few, chosen(spark)), 5)
    chain = np.arange(2_000)
    long = {"edge": np.stack([chain, chain + 1], 1)}
    rules = "reached(y) :- start(y).\nreached(y) :- reached(x), edge(x, y).\n"
    given = {**long, "start": np.zeros((1, 1), np.int64)}
    derive(rules, given, chosen(spark))
    rounds, _ = spent(partial(derive, rules, given, chosen(spark)), 3)
    swap = "back(y, x) :- forth(x, y).\n"
    pairs = {"forth": np.random.default_rng(7).integers(0, 1 << 30, (1_000_000, 2))}
    row = compared(spark, "a fact sent home", swap, pairs, size["repeat"])
    return {
        "job": job["cpu"],
        "round": (rounds["cpu"] - job["cpu"]) / len(chain),
        "round, wall": (rounds["wall"] - job["wall"]) / len(chain),
        "fact sent": (row["spark"]["cpu"] - row["memory"]["cpu"] - job["cpu"]) / 1_000_000,
    }


MEASURES: dict[str, Callable[[SparkSession, dict[str, Any]], Any]] = {
    "programs": programs,
    "more rules": more_rules,
    "books": books,
    "updates": updates,
    "steps": steps,
    "hub": hub,
    "tasks": tasks,
    "exchanges": exchanges,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", choices=SIZES)
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=list(MEASURES))
    parser.add_argument("--millions", nargs="+", type=float, choices=NODES, help="the sizes of the linear closures")
    parser.add_argument("--rows", nargs="+", help="the programs to measure, by name; the other rows stay as they are")
    parser.add_argument("--repeat", type=int, help="the runs of which the least is shown, of both engines")
    parser.add_argument("--memory", default="2g", help="of Spark's Java")
    options = parser.parse_args()
    size = dict(SIZES[options.size])
    if options.millions:
        size["closure"] = tuple(options.millions)
    if options.repeat:
        size["repeat"] = options.repeat
    if options.rows:
        size["rows"], options.only = options.rows, ["programs"]
    spark = spark_session(memory=options.memory, cores=PARTITIONS + 1)
    warnings.simplefilter("ignore", upheld.UpheldWarning)  # of the rules of ontologies, at each run
    for name in options.only:
        load = os.getloadavg()[0]
        found: dict[str, Any] = {"engine": {name: MEASURES[name](spark, size)}}
        found |= {"cores": os.cpu_count(), "Spark": spark.version}
        now = {"date": time.strftime("%Y-%m-%d"), "load": [load, os.getloadavg()[0]], "memory": options.memory}
        now["runs"] = size["repeat"]
        measured = [f"{name}, {row}" for row in options.rows] if options.rows else [name]
        write_spark(RESULTS, options.size, {**found, "conditions": dict.fromkeys(measured, now)})
    write_report()


if __name__ == "__main__":
    main()
