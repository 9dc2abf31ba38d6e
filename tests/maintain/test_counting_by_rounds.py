"""Algorithm 3 of paper 1 as printed keeps the trace of algorithm 2, and so does `counting`, which goes by levels."""

from __future__ import annotations

from collections import Counter

import upheld
from tests.helpers.streams.streams import assert_recomputed, random_stream


def test_same_trace():
    """Facts, counts and levels are those of recomputation, and either algorithm goes on from the other's trace."""
    changed: Counter[str] = Counter()
    for seed in range(400_000, 400_040):
        stream = random_stream(seed, updates=6)
        states = stream.recomputed()
        if not states:
            continue
        before, m = states[0], stream.open("reference", "counting-by-rounds")
        for number, (u, now) in enumerate(zip(stream.case.updates, states[1:])):
            if now is None:
                continue
            algorithm = "counting" if number % 3 == 2 else "counting-by-rounds"
            change = m.update(delete=u.deletions, insert=u.insertions, algorithm=algorithm)
            assert_recomputed(m, now)
            assert not change.statistics.choices, "a trace that was begun anew"
            changed["trace"] += before.trace != now.trace
            changed["levels"] += any(
                min(before.trace[f]) != min(now.trace[f]) for f in before.trace.keys() & now.trace.keys()
            )
            before = now
    assert changed["trace"] > 50
    assert changed["levels"] > 5, "facts that stay and move to another round"


def test_phases_are_those_of_counting():
    """Instances are counted as deleted and added, each at least as often as `counting` loses and gains one."""
    rules = "path(x, y) :- edge(x, y). path(x, z) :- edge(x, y), path(y, z)."
    ring = {"edge": [(i, (i + 1) % 6) for i in range(6)]}
    found = []
    for algorithm in ("counting", "counting-by-rounds"):
        m = upheld.materialise(rules, ring, algorithm=algorithm)
        changes = [m.update(delete={"edge": [(0, 1)]}), m.update(insert={"edge": [(0, 1)]})]
        found.append([change.statistics.instances for change in changes])
    by_levels, by_rounds = found
    assert [set(c) for c in by_rounds] == [set(c) for c in by_levels]
    assert all(mine[p] >= n for mine, levels in zip(by_rounds, by_levels) for p, n in levels.items())
