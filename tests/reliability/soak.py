"""Facts come and go for a long time, each with texts that were never there: memory stays what the facts need.

A materialisation with recursion and negation holds some hundred chains. Each update takes away the oldest one and
brings another, of new texts. What the engine keeps for facts that have gone is reclaimed beside the updates, a slice at
the beginning of some. So after any number of updates it holds about what a fresh materialisation of the same facts
does, and no update takes much longer because of it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

from tests.reliability.programme import Run, goal
from upheld.base.limits import memory_in_use
from upheld.materialisation.build import materialise
from upheld.materialisation.materialisation import Materialisation

PROGRAM = """
.decl edge(x:symbol, y:symbol)
.decl path(x:symbol, y:symbol)
.decl blocked(x:symbol)
.decl open(x:symbol, y:symbol)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
open(x, y) :- path(x, y), !blocked(y).
open("all", x) :- blocked(x).
"""
#: Chains that are there at a time, edges of each, and updates between two looks at memory.
CHAINS, EDGES, BLOCK = 200, 4, 250
#: What a chain comes to: its edges and paths, those that are open, and a node that is blocked, of which `open` tells.
FACTS_OF_CHAIN = EDGES + EDGES * (EDGES + 1) // 2 * 2 - 1 + 2

#: How much more than a fresh materialisation is allowed at any time, and how much of an update reclaiming may take.
MEMORY, SLICE = 1.5, 2.0

Facts = dict[str, list[tuple[str, ...]]]


def chain(number: int) -> Facts:
    nodes = [f"node {number} of the chain, {i}" for i in range(EDGES + 1)]
    return {"edge": list(pairwise(nodes)), "blocked": [(nodes[1],)]}


def warm(m: Materialisation) -> None:
    """Make an update and undo it, so that the indexes are there which updates use."""
    m.update(insert=chain(-1))
    m.update(delete=chain(-1))


def rows_in(m: Materialisation) -> int:
    return sum(table.n for table in m._engine.tables.values())


class Timed:
    """Measures the time that updates take, and how much of it reclaiming does, by the clock of the processor."""

    def __init__(self, m: Materialisation):
        self.m = m
        self.updates: list[float] = []
        self.slices: list[float] = []
        self._reclaim = m._engine.reclaim

    @contextmanager
    def watching(self) -> Iterator[None]:
        self.m._engine.reclaim = self._timed  # type: ignore[method-assign]
        try:
            yield
        finally:
            del self.m._engine.reclaim

    def _timed(self, keep: object) -> None:
        began = time.thread_time()
        self._reclaim(keep)
        self.slices.append(time.thread_time() - began)

    def update(self, insert: Facts, delete: Facts) -> None:
        began = time.thread_time()
        self.m.update(insert=insert, delete=delete)
        self.updates.append(time.thread_time() - began)


@goal("R19", "a soak of updates with new texts", sample=750, full=200_000)
def soak(run: Run) -> None:
    m = materialise(PROGRAM, together(range(CHAINS)))
    warm(m)
    m.compact()  # by kernels that need not be loaded later
    timed, number, descriptors, peak = Timed(m), CHAINS, open_descriptors(), 0
    resident, most = memory_in_use(), 0
    fresh = materialise(PROGRAM, together(range(CHAINS)))
    warm(fresh)
    needed, rows, texts = fresh._engine.nbytes(), rows_in(fresh), fresh._engine.codec.texts()
    del fresh

    def block() -> None:
        nonlocal number, peak, most
        for _ in range(BLOCK):
            timed.update(chain(number), chain(number - CHAINS))
            number += 1
            peak = max(peak, m._engine.nbytes())
        most = max(most, memory_in_use())
        assert sum(len(m[name]) for name in m.relations) == CHAINS * FACTS_OF_CHAIN
        assert peak <= MEMORY * needed, f"{peak} bytes at some time for {needed}"
        assert rows_in(m) <= MEMORY * rows and m._engine.codec.texts() <= MEMORY * texts
        assert most <= MEMORY * resident, f"the process holds {most} bytes, and held {resident} before"
        assert open_descriptors() <= descriptors

    with timed.watching():
        for _ in run.cases():
            run.case(f"updates from {run.made} on", block, BLOCK)
    ordered = sorted(timed.updates)
    median, slowest = ordered[len(ordered) // 2], max(range(len(timed.updates)), key=timed.updates.__getitem__)
    if run.size > run.goal.sample:  # other tests at work on the machine would decide a short run
        run.case(
            "no update takes three times the median because of it", lambda: within(max(timed.slices), SLICE * median)
        )
    run.case("the facts are right", lambda: same_facts(m, together(range(number - CHAINS, number))))
    run.figures |= {
        "median_us": microseconds(median),
        "p99_us": microseconds(ordered[len(ordered) * 99 // 100]),
        "max_us": microseconds(ordered[-1]),
        "reclaiming_in_slowest_us": microseconds(timed.slices[slowest]),
        "reclaiming_max_us": microseconds(max(timed.slices)),
        "reclaiming_share": round(sum(timed.slices) / sum(timed.updates), 4),
        "slices": m._engine.reclaiming.slices,
        "passes": m._engine.reclaiming.passes,
        "bytes_by_fresh": round(m._engine.nbytes() / needed, 2),
        "peak_bytes_by_fresh": round(peak / needed, 2),
        "resident_by_before": round(most / resident, 3),
        "freed_by_compact": m.compact()._asdict(),
    }


def together(numbers: range) -> Facts:
    chains = [chain(number) for number in numbers]
    return {name: [row for facts in chains for row in facts[name]] for name in ("edge", "blocked")}


def within(longest: float, allowed: float) -> None:
    assert longest <= allowed, f"{microseconds(longest)} microseconds, allowed are {microseconds(allowed)}"


def same_facts(m: Materialisation, explicit: Facts) -> None:
    assert m.facts() == materialise(PROGRAM, explicit, algorithm="dred").facts()


def microseconds(seconds: float) -> int:
    return round(seconds * 1e6)


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
