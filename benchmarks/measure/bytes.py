"""Weigh a binary relation with an index on its first column, at many sizes.

Arrays grow in steps, so bytes a fact depend on the size. Closures have few values in a column, and grew as they were
derived; copies of a relation with a new value in every row are the dearest an index can meet.

    python -m benchmarks.measure.bytes BYTES NODES...
"""

from __future__ import annotations

import json
import sys

import numpy as np

import upheld
from benchmarks.measure.spending import limit_memory
from benchmarks.workloads.graphs import giant
from benchmarks.workloads.rulesets import CLOSURE
from upheld.engines.memory.kernels.jit import compile_kernels

COPY = "path(x, y) :- edge(x, y)."


def weigh(rules: str, edges: list[tuple[int, int]]) -> dict[str, float]:
    """Return bytes a fact of `path`."""
    m = upheld.materialise(rules, {"edge": edges}, engine="memory", algorithm="rematerialise")
    table = m._engine.tables["path"]  # type: ignore[attr-defined]
    assert len(table.slots) > table.n  # the tuple index is made when somebody asks for it
    index = table.index((0,))
    return {"facts": table.n, "table": table.nbytes() / table.n, "index": index.nbytes() / table.n}


def main() -> None:
    compile_kernels()
    limit_memory(int(sys.argv[1]))
    closures, copies = [], []
    for nodes in map(int, sys.argv[2:]):
        edges = giant(nodes, np.random.default_rng(3))["edge"]
        closures.append(weigh(CLOSURE, list(zip(edges[:, 0].tolist(), edges[:, 1].tolist()))))
        count = nodes * nodes // 5
        copies.append(weigh(COPY, list(zip(range(count), range(count)))))
    print(json.dumps({"closure": closures, "copy": copies}))


if __name__ == "__main__":
    main()
