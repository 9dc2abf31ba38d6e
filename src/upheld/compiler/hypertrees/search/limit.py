"""How long a search may go on."""

from __future__ import annotations

import time


class LimitSpent(Exception):
    """A search has reached its limit. It never leaves this package."""


class Limit:
    """A limit on steps, on seconds, or on both. A limit on steps alone gives the same result on every machine."""

    def __init__(self, steps: int | None = None, seconds: float | None = None, within: Limit | None = None):
        self.steps = steps
        self.until = None if seconds is None else time.monotonic() + seconds
        self.within = within

    def half(self) -> Limit:
        """Return a limit of half of the rest; steps spent of it count for the whole limit."""
        steps = None if self.steps is None else self.steps // 2
        seconds = None if self.until is None else (self.until - time.monotonic()) / 2
        return Limit(steps, seconds, self)

    def spend(self) -> None:
        """Take one step; raise `LimitSpent` if it is one too many."""
        if self.steps is not None:
            if self.steps <= 0:
                raise LimitSpent
            self.steps -= 1
        if self.until is not None and time.monotonic() > self.until:
            raise LimitSpent
        if self.within is not None:
            self.within.spend()
