"""An engine that needs little: processes of its tasks start quickly."""

from __future__ import annotations

import os

import numpy as np

from upheld.engines.spark.tasks.wire import Wire


class Light:
    """Exchanges arrays, and goes wrong where it is asked to."""

    def __init__(self, wire: Wire):
        self.wire = wire

    def exchanged(self, size: int) -> int:
        """Send an array of this many numbers to each member; return the sum of all numbers that came."""
        outbox = [[("numbers", np.full(size, self.wire.me + q))] for q in range(self.wire.members)]
        came, _ = self.wire.exchange("test", outbox)
        return sum(int(numbers.sum()) for parcels in came for _, numbers in parcels)

    def fail_in(self, member: int, exchanges: int) -> None:
        """Fail in one member; the others meet as often as they are asked to."""
        if self.wire.me == member:
            raise ValueError("in one member")
        for _ in range(exchanges):
            self.wire.exchange("test")

    def end_in(self, task: int) -> None:
        if self.wire.me == task:
            os._exit(1)
        self.wire.exchange("test")
