"""A session of tasks that needs little: its processes start quickly."""

from __future__ import annotations

import os

import numpy as np

from upheld.algebra.sets import derive, settle
from upheld.engines.partitioned.wire import Wire
from upheld.language.core import Core


class Light:
    """A session that exchanges arrays, and goes wrong where it is asked to."""

    def __init__(self, wire: Wire):
        self.wire = wire

    def exchanged(self, size: int) -> int:
        """Send an array of this many numbers to each task; return the sum of all numbers that came."""
        outbox = [[("numbers", np.full(size, self.wire.me + q))] for q in range(self.wire.parts)]
        came, _ = self.wire.exchange("test", outbox)
        return sum(int(numbers.sum()) for parcels in came for _, numbers in parcels)

    def fail_in(self, task: int) -> None:
        if self.wire.me == task:
            raise ValueError("in one task")
        self.wire.exchange("test")

    def end_in(self, task: int) -> None:
        if self.wire.me == task:
            os._exit(1)
        self.wire.exchange("test")

    def closure(self, core: Core, edges: list[tuple[int, int]]) -> tuple[int, set[tuple[int, int]]]:
        """Return how many paths there are in all tasks, and the paths that are at home in this one."""
        from upheld.engines.partitioned.engine import PartitionedEngine  # with Numba, which takes a while to load

        engine = PartitionedEngine(core, self.wire)
        I = engine.named("I")
        I |= engine.load("edge", edges[self.wire.me :: self.wire.parts])
        while delta := settle(derive(core.rules, I, I) - I):
            I |= delta
        table = engine.context.local.tables["path"]
        return I.count("path"), set(map(tuple, table.rows[I.here()[table]].tolist()))
