"""Measure aggregates: grouping beside DuckDB, sums over a recursion, degrees of a stream, and updates of each.

python -m benchmarks.measure.aggregates small      # a million facts, in a minute; `large` is ten million
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import upheld
from benchmarks.measure.spending import Spent, peak_memory, spending
from benchmarks.places import RESULTS, ROOT, command
from benchmarks.workloads.aggregates import MAKERS, RULES, Rows, folder_of
from upheld.algebra.meter import Meter
from upheld.base.statistics import Statistics
from upheld.engines.memory.kernels.jit import compile_kernels

#: The number of facts, parts or edges of each workload.
SIZES = {
    "small": {"groups": 1_000_000, "parts": 20_000, "stream": 200_000},
    "large": {"groups": 10_000_000, "parts": 60_000, "stream": 2_000_000},
}
#: Materialisations, of which the quickest counts, and updates, of which the median does; the first are not counted.
RUNS, UPDATES, UNCOUNTED = 3, 30, 5
FEWER, CHANGED = 1, 100

deriving = Spent()
unwatched = Meter.run


@contextmanager
def watched(meter: Meter) -> Iterator[Statistics]:
    """Do as `Meter.run` does, and time it: what a materialisation takes besides is loading."""
    with spending() as spent, unwatched(meter) as found:
        yield found
    deriving.wall, deriving.cpu = spent.wall, spent.cpu


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Measure aggregates, and write benchmarks/results/SIZE-aggregates.json."
    )
    parser.add_argument("size", choices=SIZES)
    parser.add_argument("--only", choices=RULES, help="print what this one takes, and write no tables")
    options = parser.parse_args()
    if options.only:
        print(json.dumps(upheld_on(options.only, SIZES[options.size][options.only])))
        return
    load = os.getloadavg()[0]
    found: dict[str, Any] = {"date": time.strftime("%Y-%m-%d"), "workloads": {}}
    for name, count in SIZES[options.size].items():
        folder = str(folder_of(name, count))
        ours = printed("measure.aggregates", options.size, "--only", name)
        theirs = printed("engines.duckdb_statements", name, folder)
        assert {r: n for r, n in ours["facts"].items() if n} == theirs["facts"], f"other facts of {name}"
        found["workloads"][name] = {"count": count, "upheld": ours, "duckdb": theirs}
        print(name, json.dumps(found["workloads"][name]), flush=True)
    found["load"] = [load, os.getloadavg()[0]]
    (RESULTS / f"{options.size}-aggregates.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    from benchmarks.report.report import write_report

    write_report()


def printed(module: str, *arguments: str) -> dict[str, Any]:
    """Run a module of this package in a process of its own, and return what it prints last."""
    line = command(sys.executable, module, *arguments)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ARROW_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT, env=environment)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def upheld_on(name: str, count: int) -> dict[str, Any]:
    """Return what a workload takes to read and materialise, and what updates of some of its facts take."""
    compile_kernels()
    Meter.run = watched  # type: ignore[method-assign, assignment]
    files = {file.stem: file for file in folder_of(name, count).glob("*.facts")}
    few = MAKERS[name](4_000)
    warm = upheld.materialise(RULES[name], {relation: _tuples(rows) for relation, rows in few.items()})
    for _ in changed(warm, few, name, 2):  # kernels are compiled, or read from their cache, before the clock runs
        pass
    del warm
    best: dict[str, Any] = {"total": {"cpu": float("inf")}}
    for _ in range(RUNS):
        # No bookkeeping for updates here: DuckDB keeps none.
        with spending() as total:
            m = upheld.materialise(RULES[name], files, algorithm="rematerialise")
        if total.cpu < best["total"]["cpu"]:
            best = {"total": vars(total), "loading": {"cpu": total.cpu - deriving.cpu}}
        facts = {relation: m._state.I.count(relation) for relation in m.relations}
        del m
    best |= {"facts": facts, "peak": peak_memory(), "version": upheld.__version__}
    with spending() as total:
        m = upheld.materialise(RULES[name], files)
    rows = MAKERS[name](count)
    return best | {"with bookkeeping": total.cpu, "updates": list(changed(m, rows, name, UPDATES + UNCOUNTED))}


def changed(m: upheld.Materialisation, facts: dict[str, Rows], name: str, updates: int) -> Iterator[dict[str, Any]]:
    """Yield what it takes to delete some facts and to insert them again, and what that changes."""
    relation = "weighs" if name == "parts" else next(iter(facts))
    chance, rows = np.random.default_rng(4), facts[relation]
    for size in (FEWER, CHANGED):
        chosen = [_tuples(rows[chance.choice(len(rows), size, replace=False)]) for _ in range(updates)]
        took: dict[str, list[float]] = {"delete": [], "insert": []}
        facts_changed = 0
        for some in chosen:
            for way, update in ways(m, relation, some).items():
                with spending() as spent:
                    change = update()
                took[way].append(spent.cpu)
                facts_changed = sum(len(change.inserted[r]) + len(change.deleted[r]) for r in m.relations)
        medians = {way: statistics.median(times[min(UNCOUNTED, updates - 1) :]) for way, times in took.items()}
        yield {"facts": size, "relation": relation, "changed": facts_changed, **medians}


def _tuples(rows: Rows) -> list[Any]:
    return list(map(tuple, rows.tolist()))


def ways(m: upheld.Materialisation, relation: str, some: list[Any]) -> dict[str, Callable[[], upheld.Change]]:
    return {"delete": lambda: m.update(delete={relation: some}), "insert": lambda: m.update(insert={relation: some})}


if __name__ == "__main__":
    main()
