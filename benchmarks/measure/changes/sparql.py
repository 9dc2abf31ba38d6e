"""SPARQL beside updates: what it costs to bring the store of `m.sparql` up to date with the changes.

    python -m benchmarks.measure.changes.sparql                # beside a million triples
    python -m benchmarks.measure.changes.sparql 100000         # beside fewer

The first query builds the store. Then updates of different sizes are made, each followed by a query; the time of
the query is compared with that of the same query asked once more, when there is nothing to bring up to date. It prints
CPU microseconds for each triple that came or went, the median of the updates of a size. They must be below 20.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

import upheld

RULES = """
[?x, <urn:reaches>, ?y] :- [?x, <urn:to>, ?y] .
[?x, <urn:linked>, ?y] :- [?x, <urn:reaches>, ?y], [?y, <urn:reaches>, ?x] .
"""
QUERY = "ASK { <urn:n0> <urn:linked> <urn:n1> }"
SIZES, UPDATES, GOAL = (100, 1_000, 10_000), 5, 20


def main(triples: int) -> None:
    chance = np.random.default_rng(1)
    nodes = triples // 4
    given = triple_rows(chance.integers(0, nodes, (triples // 2, 2)))
    m = upheld.materialise(upheld.parse(RULES, dialect="dlog"), {"triple": given})
    print(f"store of {len(m['triple']):,} triples: {_cpu(lambda: m.sparql(QUERY)) / 1e6:.2f} CPU-s")
    for size in SIZES:
        taken = []
        for _ in range(UPDATES):
            new = {"triple": triple_rows(chance.integers(0, nodes, (size, 2)))}
            change = m.update(insert=new)
            changed = len(change.inserted["triple"]) + len(change.deleted["triple"])
            both = _cpu(lambda: m.sparql(QUERY))
            taken.append((both - _cpu(lambda: m.sparql(QUERY))) / changed)
            m.update(delete=new)
            m.sparql(QUERY)
        micros = statistics.median(taken)
        verdict = "reached" if micros < GOAL else "missed"
        print(f"updates of {size:,} triples: {micros:.1f} CPU-us a changed triple (goal {GOAL}: {verdict})")


def triple_rows(ends: npt.NDArray[np.int64]) -> list[tuple[str, str, str]]:
    return [(f"<urn:n{a}>", "<urn:to>", f"<urn:n{b}>") for a, b in ends.tolist()]


def _cpu(run: Callable[[], object]) -> float:
    """Return the CPU microseconds of a call."""
    began = time.process_time()
    run()
    return (time.process_time() - began) * 1e6


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
