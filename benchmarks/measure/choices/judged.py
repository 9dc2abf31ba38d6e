"""How `adaptive` compares with the best algorithm of each row, on programs that had no part in choosing its constants.

    python -m benchmarks.measure.choices.judged large       # writes the table of seven programs, in some minutes
    python -m benchmarks.measure.choices.judged large --only triples star --all    # these print rows and write nothing
    python -m benchmarks.measure.choices.judged large --calibration   # the workloads that the constants come from

Each row is an update of one kind and size, by the algorithms that are often the best one; `--others` names further
ones, of which no table is written. Printed are the rows in which `adaptive` takes more than 1.25 times as long, and the
part of the rows within 1.25 and 1.5 times.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from datetime import date
from typing import Any

from benchmarks.measure.updates import ALGORITHMS, Patience, Run, kernels_of_rules
from benchmarks.places import RESULTS
from benchmarks.report.report import write_report
from benchmarks.report.subjects.choices import WITHIN, Row, within_text, write_choices
from benchmarks.report.subjects.updates import cell, ratio, rows_of, typical
from benchmarks.workloads.judged import CALIBRATION, JUDGED
from benchmarks.workloads.updates import WORKLOADS, Maintained
from upheld.engines.memory.kernels.jit import compile_kernels

#: What the updates of a cell took, by direction.
Told = dict[str, dict[str, Any]]

OTHERS = ("rematerialise", "ranked", "dred-c")
#: CPU seconds: an update is stopped after the first, and no further one of its kind is begun after the second.
PATIENCE = Patience(60.0, 0.3)
#: How often each algorithm does the updates of a cell, in turns. Of an update, the quickest turn counts.
TURNS = 5


def quickest(turns: list[Told]) -> Told:
    """Return what the updates of a cell took in the quickest turn of each, as far as all turns did them."""
    return {way: {"cpu": [*map(min, zip(*(turn[way].get("cpu", ()) for turn in turns)))]} for way in turns[0]}


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
    for each in workload.cells:
        turns: dict[str, list[Told]] = {algorithm: [] for algorithm in algorithms}
        for _ in range(TURNS):
            for algorithm, run in runs.items():
                turns[algorithm].append(run.cell(each))
        for algorithm in algorithms:
            found["algorithms"][algorithm]["cells"][each.label] = quickest(turns[algorithm])
    for label, way in rows_of(found):
        times = {a: r for a in others if (r := ratio(found, "adaptive", a, label, way)) is not None}
        took = typical(cell(found, "adaptive", label, way).get("cpu"))
        assert times and took is not None, f"{name}, {way} {label}: an update was stopped"
        best = max(times, key=times.__getitem__)
        best_took = typical(cell(found, best, label, way)["cpu"]) or 0.0
        yield Row(times[best], name, f"{way} {label}", took, best, best_took)


def main() -> None:
    compile_kernels()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", choices=JUDGED)
    parser.add_argument("--only", nargs="+", metavar="WORKLOAD")
    parser.add_argument("--calibration", action="store_true", help="the workloads that constants were measured with")
    parser.add_argument("--all", action="store_true", help="print all rows")
    parser.add_argument("--others", nargs="+", choices=ALGORITHMS, default=OTHERS, metavar="ALGORITHM")
    options = parser.parse_args()
    load, judged = os.getloadavg()[0], []
    known = (
        {name: WORKLOADS[options.size][name] for name in CALIBRATION} if options.calibration else JUDGED[options.size]
    )
    for name in options.only or known:
        for row in rows(name, known[name](), tuple(options.others)):
            judged.append(row)
            if options.all or row.times > min(WITHIN):
                print(row, flush=True)
    for limit in WITHIN:
        print(within_text(judged, limit))
    print(f"worst: {max(judged)}")
    if not options.only and not options.calibration and tuple(options.others) == OTHERS:
        measured = {"date": date.today().isoformat(), "load": [load, os.getloadavg()[0]], "others": OTHERS}
        write_choices(RESULTS, options.size, judged, measured)
        write_report()


if __name__ == "__main__":
    main()
