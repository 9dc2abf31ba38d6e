"""Workloads with one thread and with several: `python -m benchmarks.measure.threads [WORKLOAD ...]`.

Prints, for each workload, seconds of the clock and of the processor, and the peak of memory, with one thread and with
`--threads`, and how they compare. Each run is a process of its own, the best of `--times`; runs with one thread and
with several take turns. Seconds of the clock need a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import upheld
from benchmarks.measure.spending import Measurement, Spent, spending
from benchmarks.places import CACHE
from benchmarks.run import run_module
from benchmarks.workloads.graphs import write
from benchmarks.workloads.rulesets import read_program
from upheld.engines.memory.kernels.jit import compile_kernels

WORKLOADS = ("closure-10m", "components-10m", "cliques-270m", "join-12m", "same-generation-1m", "campus-900k")


def materialise(folder: Path, threads: int, algorithm: str) -> upheld.Materialisation:
    program = folder / "program.dl"
    files = {name: folder / f"{name}.facts" for name in read_program(program.read_text(encoding="utf-8")).inputs}
    return upheld.materialise(program, files, algorithm=algorithm, threads=threads)


def measure(folder: Path, threads: int, algorithm: str) -> None:
    """Materialise a workload, and print what that took. For a process of its own."""
    compile_kernels()
    materialise(folder / "tiny", threads, algorithm)
    with spending() as total:
        m = materialise(folder, threads, algorithm)
    facts = {name: m._state.I.count(name) for name in m.relations}
    instances = sum(m.statistics.instances.values())
    Measurement(total, Spent(), facts, upheld.__version__, instances).tell()


def best(folder: Path, counts: list[int], algorithm: str, times: int) -> dict[int, dict[str, Any]]:
    """Return the best of several runs with each number of threads, which all have the same results."""
    found: dict[int, dict[str, Any]] = {}
    for _ in range(times):
        for threads in counts:
            line = run_module(
                "measure.threads", "--run", str(folder), "--threads", str(threads), "--algorithm", algorithm
            )
            one = json.loads(line.splitlines()[-1])
            before = found.setdefault(threads, one)
            if (one["facts"], one["instances"]) != (before["facts"], before["instances"]):
                raise SystemExit(f"{folder.name}: other facts or instances with {threads} threads")
            for clock in ("wall", "cpu"):
                before["total"][clock] = min(before["total"][clock], one["total"][clock])
            before["peak"] = min(before["peak"], one["peak"])
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("workloads", nargs="*", default=WORKLOADS)
    arguments.add_argument("--threads", type=int, default=2)
    arguments.add_argument("--algorithm", default="rematerialise")
    arguments.add_argument("--times", type=int, default=3)
    arguments.add_argument("--run", type=Path)
    given = arguments.parse_args()
    if given.run is not None:
        measure(given.run, given.threads, given.algorithm)
        return
    print("| workload | threads | seconds | CPU seconds | MB |\n|---|---|---|---|---|")
    for name in given.workloads:
        folder = write(CACHE, name)
        found = best(folder, [1, given.threads], given.algorithm, given.times)
        for threads, one in found.items():
            total, peak = one["total"], one["peak"] / 1e6
            print(f"| `{name}` | {threads} | {total['wall']:.2f} | {total['cpu']:.2f} | {peak:.0f} |", flush=True)
        alone, shared = found[1], found[given.threads]
        wall, cpu = (shared["total"][clock] / alone["total"][clock] for clock in ("wall", "cpu"))
        print(
            f"| | ratio | {1 / wall:.2f} times as fast | {cpu:.2f} | {shared['peak'] / alone['peak']:.2f} |", flush=True
        )


if __name__ == "__main__":
    main()
