"""Insert the same 100 edges into closures of unlike sizes, in parts of the graph of their own.

The graph of the workload is joined by PARTS small ones, 200 nodes and 100 edges each. Into each of these, 100 more
edges are inserted, and each time only facts of that part follow. The insertion is written with the words of the
algebra, as the maintenance algorithms will do it.

    python benchmarks/run_insertion.py FOLDER BYTES
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

import numpy as np
from measuring import Measurement, Spent, folder_and_limit, limit_memory, peak_memory, spending

import upheld
from upheld.algebra.words import FactSet, derive, settle
from upheld.language.stratification import Stratification

PARTS = 25
#: The first insertions meet kernels and plans for the first time.
WARM_UP = 5
NODES, EDGES = 200, 100
FIRST = 1_000_000

Rows = list[tuple[int, int]]


def insert(I: FactSet, strata: Stratification, E_plus: FactSet) -> FactSet:  # noqa: E741
    """Add explicit facts to a materialisation, with all that follows, and return what is new."""
    A = I.engine.named("A")
    for s in strata:
        N = s.out(E_plus) | derive(s.rules, I, I, via=A)
        while delta := settle(N - I):
            I |= delta  # noqa: E741
            A |= delta
            N = derive(s.recursive, I, I, via=delta)
    return A


def parts() -> tuple[Rows, list[Rows]]:
    """Return the edges that are there at first, and those to insert into each part."""
    r = np.random.default_rng(3)
    ends = r.integers(0, NODES, (4 * EDGES, 2))
    _, kept = np.unique(ends, axis=0, return_index=True)
    edges = ends[np.sort(kept)][: 2 * EDGES]
    there: Rows = []
    later: list[Rows] = []
    for part in range(PARTS):
        rows = [(int(x), int(y)) for x, y in edges + FIRST + part * NODES]
        there += rows[:EDGES]
        later.append(rows[EDGES:])
    return there, later


def main() -> None:
    folder, limit = folder_and_limit()
    limit_memory(limit)
    there, later = parts()
    lines = Path(folder / "edge.facts").read_text(encoding="utf-8").splitlines()
    given = [(int(x), int(y)) for x, y in (line.split("\t") for line in lines)]
    upheld.materialise(folder / "program.dl", {"edge": there[:EDGES]}, engine="memory")
    with spending() as recomputing:
        m = upheld.materialise(folder / "program.dl", {"edge": given + there}, engine="memory")
    before = m._facts.count()
    instances_before = sum(m._engine.meter.statistics.instances.values())
    spent: list[Spent] = []
    for rows in later:
        with spending() as one:
            E_plus = m._engine.load("edge", rows)
            m._explicit |= E_plus
            insert(m._facts, m._strata, E_plus)
        spent.append(one)
    measured = spent[WARM_UP:]
    instances = sum(m._engine.meter.statistics.instances.values()) - instances_before
    after = m._facts.count()
    Measurement(
        total=Spent(median(s.wall for s in measured), median(s.cpu for s in measured)),
        loading=Spent(),
        peak=peak_memory(),
        facts={"before": before, "new": (after - before) // PARTS},
        instances=instances // PARTS,
        version=upheld.__version__,
        more={"recomputing": recomputing.cpu, "slowest": max(s.cpu for s in measured)},
    ).tell()


if __name__ == "__main__":
    main()
