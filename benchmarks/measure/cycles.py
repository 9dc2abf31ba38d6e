"""Measure the tasks of paper 4 on rules with cycles, for each value of `decompose`.

python -m benchmarks.measure.cycles small
python -m benchmarks.measure.cycles large --only graph --modes never auto
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np

import upheld
from benchmarks.measure.spending import peak_memory
from benchmarks.measure.updates import TooLong, limited
from benchmarks.places import ROOT, command
from benchmarks.workloads.cycles import WORKLOADS, Facts
from upheld.engines.memory.kernels.jit import compile_kernels

MODES = ("never", "all", "always", "auto")

#: Facts of a small update, at most; it is a twentieth of small workloads.
SMALL = 1000

#: Small updates of each kind, of which the median is told.
SAMPLES = 3

#: CPU seconds that a task may take.
PATIENCE = {"small": 60.0, "large": 600.0}


class Samples:
    """Random facts of a workload, the same for every mode."""

    def __init__(self, facts: Facts):
        self.facts = facts
        self.ends = np.cumsum([len(rows) for rows in facts.values()])
        self.random = np.random.default_rng(5)

    def draw(self, count: int) -> Facts:
        drawn = np.sort(self.random.choice(self.ends[-1], count, replace=False))
        parts = np.split(drawn, np.searchsorted(drawn, self.ends[:-1]))
        starts = [0, *self.ends[:-1]]
        batch = {name: rows[i - s] for (name, rows), i, s in zip(self.facts.items(), parts, starts, strict=True)}
        return {name: rows for name, rows in batch.items() if len(rows)}


def measure(name: str, size: str, mode: str) -> dict[str, Any]:
    """Return the CPU seconds of each task, how many facts there are after it, and the memory that all of it took."""
    workload = WORKLOADS[size][name]
    facts = workload.make()
    samples = Samples(facts)
    given = int(samples.ends[-1])
    few = min(SMALL, given // 20)

    def materialise(facts: Facts) -> upheld.Materialisation:
        return upheld.materialise(workload.rules, dict(facts), decompose=mode)

    _warm_up(materialise, facts)
    tasks: dict[str, float] = {}
    counts: list[int] = []
    found: dict[str, Any] = {"mode": mode, "given": given, "tasks": tasks, "facts": counts}
    base = peak_memory()
    try:
        cpu, m = _timed(size, lambda: materialise(facts))
        # The least of three, of two or of one as it takes longer: the first may still compile kernels.
        while len(counts) < (2 if cpu < 3.0 else int(cpu < 30.0)):
            counts.append(_count(m))
            again, m = _timed(size, lambda: materialise(facts))
            cpu = min(cpu, again)
        tasks["materialise"] = cpu
        counts[:] = [_count(m)]
        nodes = [p.name for p in m._core.predicates.values() if p.hidden]
        found["nodes"] = sum(m._state.I.count(node) for node in nodes)
        found["decomposed"] = [sum(d.decomposed for d in m._decisions), len(m._decisions)]
        small: dict[str, list[float]] = {"delete": [], "insert": []}
        for _ in range(SAMPLES + 1):
            batch = samples.draw(few)
            for way, times in small.items():
                times.append(_timed(size, partial(m.update, **{way: batch}))[0])
                counts.append(_count(m))
        # The first of each meets plans anew.
        tasks |= {f"{way} {few:,}": median(times[1:]) for way, times in small.items()}
        quarter = samples.draw(given // 4)
        for way in small:
            tasks[f"{way} 25 %"] = _timed(size, partial(m.update, **{way: quarter}))[0]
            counts.append(_count(m))
    except TooLong:
        return found | {"stopped": PATIENCE[size], "peak": peak_memory()}
    tables = m._engine.tables.values()  # type: ignore[attr-defined]
    found["bytes"] = sum(t.nbytes() + sum(i.nbytes() for i in t.indexes.values()) for t in tables)
    return found | {"peak": peak_memory(), "grown": peak_memory() - base}


def _warm_up(materialise: Callable[[Facts], upheld.Materialisation], facts: Facts) -> None:
    """Evaluate a few facts, so that kernels are compiled or read from their cache."""
    m = materialise({name: rows[:200] for name, rows in facts.items()})
    some = {name: rows[:20] for name, rows in facts.items()}
    m.update(delete=some)
    m.update(insert=some)


def _timed(size: str, work: Callable[[], Any]) -> tuple[float, Any]:
    gc.collect()
    with limited(PATIENCE[size]):
        began = time.process_time()
        result = work()
        return time.process_time() - began, result


def _count(m: upheld.Materialisation) -> int:
    return sum(m._state.I.count(name) for name in m.relations)


def apart(name: str, size: str, mode: str) -> dict[str, Any]:
    """Return a measurement that is made by a process of its own."""
    line = command(sys.executable, "measure.cycles", size, "--only", name, "--modes", mode, "--json")
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def show(name: str, row: dict[str, Any]) -> None:
    tasks = ", ".join(f"{task} {cpu:.3f}" for task, cpu in row["tasks"].items())
    stopped = f"; stopped after {row['stopped']:.0f} s" if "stopped" in row else ""
    decomposed = "{} of {}".format(*row["decomposed"]) if "decomposed" in row else "?"
    print(
        f"{name}, {row['mode']} ({decomposed} rules, {row.get('nodes', 0):,} rows in nodes): {tasks}{stopped}; "
        f"{row.get('bytes', 0) / 1e6:.1f} MB of tables, peak {row['peak'] / 1e6:.0f} MB",
        flush=True,
    )


def main() -> None:
    compile_kernels()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", choices=WORKLOADS)
    parser.add_argument("--only", nargs="+", metavar="WORKLOAD")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--json", action="store_true", help="print one measurement for a program to read")
    options = parser.parse_args()
    known = WORKLOADS[options.size]
    for name in options.only or known:
        if name not in known:
            sys.exit(f"no workload {name!r}; there are: {', '.join(map(repr, known))}")
        for mode in options.modes:
            if options.json:
                print(json.dumps(measure(name, options.size, mode)))
            else:
                show(name, apart(name, options.size, mode))


if __name__ == "__main__":
    main()
