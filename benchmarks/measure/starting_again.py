"""Where it is better to start again than to delete: the part of the explicit facts from which on that is so.

    python -m benchmarks.measure.starting_again             # or with the names of some programs

`adaptive` is made to delete in any case, to start again at once, and to choose, for growing parts of the facts of
recursive programs. Printed are CPU milliseconds, and the part where the first two meet; `MOST_GONE_BEFORE_RECURSION`
and `DELETING` come from here. Programs differ much: where facts have many derivations, to delete costs next to nothing.
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
from upheld.maintain import adaptive

PROGRAMS = {
    name: WORKLOADS["large"][name] for name in ("giant-component", "sparse", "same-generation", "cliques", "same-as")
}
REPEAT = 2
PARTS = (0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2)

#: Constants of `adaptive` with which it always deletes, and with which it always starts again.
NEVER = {"MOST_GONE_BEFORE_RECURSION": 2.0, "DELETING": -1.0, "MANY_TURNS": 10**9, "MANY_LOST": 10**9}
ALWAYS = {"MOST_GONE_BEFORE_RECURSION": 0.0, "SMALL": 0, "FEW_FACTS": 0}


def cpu(m: upheld.Materialisation, some: list[Batch], constants: dict[str, float]) -> float:
    """Return what it takes to delete some facts, the mean of several updates, each of which is undone.

    No facts are deleted twice: those that came back have other ranks, and would go more easily.
    """
    chosen: dict[str, Any] = {"SMALL": adaptive.SMALL, **constants}
    times = []
    for batch in some:
        with patch.multiple(adaptive, **chosen):
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


def main() -> None:
    compile_kernels()
    for name in sys.argv[1:] or PROGRAMS:
        print(f"  starting again is quicker from {meeting(name):.0%} on")


if __name__ == "__main__":
    main()
