"""Insert the same 100 edges into closures of unlike sizes, in parts of the graph of their own.

The graph of the workload is joined by PARTS small ones, 200 nodes and 100 edges each. Into each of these, 100 more
edges are inserted, and each time only facts of that part follow.

    python -m benchmarks.measure.changes.insertion FOLDER BYTES
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

import numpy as np

import upheld
from benchmarks.measure.spending import Measurement, Spent, asked, limit_memory, peak_memory, spending
from upheld.engines.memory.kernels.jit import compile_kernels

PARTS = 25
#: The first insertions meet kernels and plans for the first time.
WARM_UP = 5
NODES, EDGES = 200, 100
FIRST = 1_000_000

Rows = list[tuple[int, int]]


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
    compile_kernels()
    folder, limit, _ = asked()
    limit_memory(limit)
    there, later = parts()
    lines = Path(folder / "edge.facts").read_text(encoding="utf-8").splitlines()
    given = [(int(x), int(y)) for x, y in (line.split("\t") for line in lines)]
    upheld.materialise(folder / "program.dl", {"edge": there[:EDGES]}, engine="memory")
    with spending() as recomputing:
        m = upheld.materialise(folder / "program.dl", {"edge": given + there}, engine="memory")
    before, instances = m._state.I.count(), 0
    spent: list[Spent] = []
    for rows in later:
        with spending() as one:
            change = m.update(insert={"edge": rows})
        spent.append(one)
        instances += change.statistics.instances.total()
    measured = spent[WARM_UP:]
    after = m._state.I.count()
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
