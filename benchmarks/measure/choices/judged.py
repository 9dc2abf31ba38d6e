"""How `adaptive` compares with the best algorithm of each row, on programs that had no part in choosing its constants.

    python -m benchmarks.measure.choices.judged                 # seven programs, in some minutes
    python -m benchmarks.measure.choices.judged --only triples star --all
    python -m benchmarks.measure.choices.judged --calibration   # the workloads that the constants were measured with

Each row is an update of one kind and size, by the algorithms that are often the best one; `--others` names further
ones. Printed are the rows in which `adaptive` takes more than 1.25 times as long, and the part of the rows within 1.25
and 1.5 times.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks.measure.updates import ALGORITHMS, Patience, Run, kernels_of_rules
from benchmarks.report.updates import cell, ratio, rows_of, typical
from benchmarks.workloads.judged import CALIBRATION, JUDGED
from benchmarks.workloads.updates import WORKLOADS, Maintained
from upheld.engines.memory.kernels.jit import compile_kernels

OTHERS = ("rematerialise", "ranked", "dred-c")
WITHIN = (1.25, 1.5)
#: CPU seconds: an update is stopped after the first, and no further one of its kind is begun after the second.
PATIENCE = Patience(60.0, 0.5)


class Row(NamedTuple):
    """A row: how many times as long as the best algorithm `adaptive` takes, and the milliseconds of both."""

    times: float
    name: str
    took: float
    best: str
    best_took: float

    def __str__(self) -> str:
        return f"{self.times:5.2f}  {self.name}: {self.took:.2f} ms, {self.best} {self.best_took:.2f} ms"


def rows(name: str, workload: Maintained, others: tuple[str, ...]) -> Iterator[Row]:
    """Measure the updates of a workload, and yield its rows."""
    algorithms = ("adaptive", *others)
    for algorithm in algorithms:
        with kernels_of_rules():
            untimed = Run(workload, algorithm, Patience(PATIENCE.update, 0.0))
            for each in workload.cells:
                untimed.cell(each)
    runs = {algorithm: Run(workload, algorithm, PATIENCE) for algorithm in algorithms}
    found: dict[str, Any] = {"algorithms": {algorithm: {"cells": {}} for algorithm in algorithms}}
    for each in workload.cells:  # by turns: a machine may be slow for half a minute
        for algorithm, run in runs.items():
            found["algorithms"][algorithm]["cells"][each.label] = run.cell(each)
    for label, way in rows_of(found):
        times = {a: r for a in others if (r := ratio(found, "adaptive", a, label, way)) is not None}
        took = typical(cell(found, "adaptive", label, way).get("cpu"))
        assert times and took is not None, f"{name}, {way} {label}: an update was stopped"
        best = max(times, key=times.__getitem__)
        best_took = typical(cell(found, best, label, way)["cpu"]) or 0.0
        yield Row(times[best], f"{name}, {way} {label}", took * 1e3, best, best_took * 1e3)


def main() -> None:
    compile_kernels()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="WORKLOAD")
    parser.add_argument("--calibration", action="store_true", help="the workloads that constants were measured with")
    parser.add_argument("--all", action="store_true", help="print all rows")
    parser.add_argument("--others", nargs="+", choices=ALGORITHMS, default=OTHERS, metavar="ALGORITHM")
    options = parser.parse_args()
    known = {name: WORKLOADS["large"][name] for name in CALIBRATION} if options.calibration else JUDGED
    judged: list[Row] = []
    for name in options.only or known:
        for row in rows(name, known[name](), tuple(options.others)):
            judged.append(row)
            if options.all or row.times > WITHIN[0]:
                print(row, flush=True)
    for limit in WITHIN:
        within = sum(row.times <= limit for row in judged)
        print(f"{within} of {len(judged)} rows within {limit} times of the best ({within / len(judged):.0%})")
    print(f"worst: {max(judged)}")


if __name__ == "__main__":
    main()
