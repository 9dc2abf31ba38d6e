"""Graphs in which one node has half of all edges: what tasks derive is what the memory engine derives."""

from __future__ import annotations

from random import Random

import pytest

import upheld
from tests.engines.spark.helpers.tasks import Driven
from tests.helpers.sizes import usually

#: Joins by a value that is at home in one task, of relations that are derived and so not replicated; most of them find
#: a head by many instances.
PROGRAMS = {
    "closure": "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), path(y, z).",
    "siblings": "link(x, y) :- edge(x, y). near(x, z) :- link(y, x), link(y, z). met(x) :- near(x, y), link(y, _).",
    "negation": "link(y, x) :- edge(x, y). two(x, z) :- link(x, y), link(y, z), !edge(x, z). end(x) :- two(_, x).",
}
NODES, EDGES = 14, 40
HUB = 0


def random_edges(r: Random, count: int) -> set[tuple[int, int]]:
    """Return edges, half of which begin or end at the hub."""
    ends = [(r.randrange(NODES), r.randrange(NODES)) for _ in range(count)]
    return {((HUB, y) if x % 2 else (x, HUB)) if r.random() < 0.5 else (x, y) for x, y in ends}


@pytest.mark.parametrize("algorithm", ["dred", "ranked", "adaptive"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_agrees_with_memory(program, algorithm):
    for seed in range(usually(2, 30)):
        r = Random(f"{program} {algorithm} {seed}")
        edges = random_edges(r, EDGES)
        parts = usually((2 + 3 * (seed % 2),), (2, 3, 5))
        engines = ["memory", *map(Driven, parts)]
        opened = [
            upheld.materialise(PROGRAMS[program], {"edge": sorted(edges)}, engine=engine, algorithm=algorithm)
            for engine in engines
        ]
        for _ in range(3):
            gone, new = set(r.sample(sorted(edges), 8)), random_edges(r, 8)
            edges = (edges - gone) | new
            for m in opened:
                m.update(delete={"edge": sorted(gone)}, insert={"edge": sorted(new)})
                assert m.facts() == opened[0].facts()
        for m in opened:
            m.close()
