"""Where it is better to start again than to delete: the part of the explicit facts from which on that is so.

    python -m benchmarks.measure.choices.starting_again             # or with the names of some programs

`adaptive` is made to delete in any case, to start again at once, and to choose, for growing parts of the facts of
recursive programs. Printed are CPU milliseconds, and the part where the first two meet. Programs differ much: where
facts have many derivations, to delete costs next to nothing. After that, what an update of one fact takes longer when
all strata have just started again than when they have not, in derivations: `RENEWING` is about the median of that.
"""

from __future__ import annotations

import gc
import sys
import time
from typing import Any
from unittest.mock import patch

import numpy as np

import upheld
from benchmarks.workloads.graphs import Facts
from benchmarks.workloads.updates import WORKLOADS, Batch, batches, uniform
from upheld.engines.memory.kernels.jit import compile_kernels
from upheld.maintain import adaptive, cost_model

PROGRAMS = {
    name: WORKLOADS["large"][name] for name in ("giant-component", "sparse", "same-generation", "cliques", "same-as")
}
#: Programs whose plans are made anew, at the small size.
RENEWED = ("sparse", "same-generation", "join", "same-as", "campus")
REPEAT = 2
PARTS = (0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2)

#: Costs with which `adaptive` always deletes, and with which it always starts again. It never searches.
NEVER: dict[str, Any] = {"SMALL": 10**15}
ALWAYS: dict[str, Any] = {"SMALL": 0, "FEW_FACTS": 0, "LEAST_PART": 0.0, "LOSING": 1e9}


def cpu(m: upheld.Materialisation, some: list[Batch], constants: dict[str, Any]) -> float:
    """Return what it takes to delete some facts, the mean of several updates, each of which is undone.

    No facts are deleted twice: those that came back have other ranks, and would go more easily.
    """
    costs: dict[str, Any] = {"SMALL": cost_model.SMALL, **constants}
    times = []
    for batch in some:
        with patch.multiple(cost_model, **costs), patch.multiple(adaptive, SEARCH_FOR=0):
            gc.collect(0)
            began = time.process_time()
            m.update(delete=batch)
            times.append(time.process_time() - began)
        m.update(insert=batch)
    return sum(times) / len(times)


def meeting(name: str) -> float:
    """Print a program's times, and return the part from which on to start again is quicker."""
    workload = PROGRAMS[name]()
    facts: Facts = workload.facts
    given = sum(map(len, facts.values()))
    m = upheld.materialise(workload.rules, dict(facts), engine="memory")
    sample = uniform(facts, np.random.default_rng(7))
    meet = PARTS[-1]
    print(f"{name}: {given:,} facts given")
    for part in reversed(PARTS):
        each = (batches(facts, sample, max(1, int(given * part)), REPEAT) for _ in range(3))
        deleting, again, chosen = (cpu(m, some, with_) for some, with_ in zip(each, (NEVER, ALWAYS, {}), strict=True))
        if again < deleting:
            meet = part
        print(
            f"  {part:4.0%} deleting {deleting * 1e3:8.2f} ms, starting again {again * 1e3:8.2f} ms, "
            f"as chosen {chosen * 1e3:8.2f} ms: {chosen / min(deleting, again):.2f} times the better"
        )
    return meet


def renewing(name: str) -> float:
    """Return what plans cost that are made anew after starting again, in derivations found with ranks."""
    workload = WORKLOADS["small"][name]()
    upheld.materialise(workload.rules, dict(workload.facts), engine="memory")
    began = time.process_time()
    m = upheld.materialise(workload.rules, dict(workload.facts), engine="memory")
    unit = (time.process_time() - began) / (m.statistics.instances.total() + sum(map(len, workload.facts.values())))
    half, ones = (next(c.batches for c in workload.cells if c.label == label) for label in ("50 %", "1"))
    later = []
    for turn in range(2 * REPEAT):
        with patch.multiple(cost_model, **ALWAYS):
            m.update(delete=half[turn % len(half)])
        first, second = (cpu(m, [one], NEVER) for one in ones[2 * turn : 2 * turn + 2])
        m.update(insert=half[turn % len(half)])
        later.append(first - second)
    return float(np.median(later)) / unit


def main() -> None:
    compile_kernels()
    for name in sys.argv[1:] or PROGRAMS:
        print(f"  starting again is quicker from {meeting(name):.0%} on")
    for name in RENEWED:
        print(f"{name}: making plans anew costs as much as {renewing(name):,.0f} derivations")


if __name__ == "__main__":
    main()
