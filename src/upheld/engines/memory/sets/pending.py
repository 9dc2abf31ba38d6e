"""Pending work: sets, bags and counts that are computed when somebody reads them, or before a set they read changes."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Protocol


class PendingSet(Protocol):
    """A set that is computed on demand."""

    @property
    def is_computed(self) -> bool: ...

    @property
    def derives(self) -> bool:
        """Whether rules must be applied or derivations counted to compute it."""

    @property
    def spent(self) -> bool:
        """Whether it was computed as a part of another set, and so cannot be computed again."""

    def leaves(self) -> Iterator[object]:
        """Yield the sets that the expression is made from."""

    def force(self) -> object:
        """Compute it."""

    def drop(self) -> None:
        """Release its operands."""


class PendingBag(Protocol):
    """A bag that is computed on demand."""

    pending: bool

    def compute(self) -> object: ...


class PendingCounts(Protocol):
    """Derivations that are counted, but not in their column yet."""

    def settle(self) -> None:
        """Add them to the column, and be pending no more."""


class Pending:
    """The pending work of an engine. Sets and bags that nobody holds are not computed."""

    def __init__(self) -> None:
        self.sets: list[weakref.ref[PendingSet]] = []
        self.bags: list[weakref.ref[PendingBag]] = []
        #: Derivations that are still to be counted.
        self.tallies: list[PendingSet] = []
        #: Derivations that are counted elsewhere than in their columns, as long as somebody has the columns.
        self.counts: list[weakref.ref[PendingCounts]] = []

    def waiting(self) -> list[PendingSet]:
        """Return the sets that somebody holds and that are not computed yet."""
        held = (reference() for reference in self.sets)
        return [s for s in held if s is not None and not s.is_computed and not s.spent]

    def before_change(self, named: object) -> None:
        """Compute the work that reads a named set, before that set changes."""
        if not self.bags and not self.sets:
            return
        bags, self.bags = self.bags, []
        for reference in bags:
            if (bag := reference()) is not None and bag.pending:
                bag.compute()
            del bag
        waiting = self.waiting()
        while work := next((s for s in waiting if s.derives), None):
            del waiting  # asked anew: the operands of what has been computed are gone, if nobody else holds them
            work.force()
            waiting = self.waiting()
        del work
        for pending in waiting:
            if any(leaf is named for leaf in pending.leaves()):
                pending.force()
        self.sets = [weakref.ref(pending) for pending in waiting if not pending.is_computed and not pending.spent]

    def count_all(self) -> None:
        """Count the derivations that are still to be counted, in the columns where they are read."""
        if self.tallies:
            self.count_tallies()
        if self.counts:
            self.settle_counts()

    def count_tallies(self) -> None:
        """Count the derivations that are still to be counted, for whoever reads counts that are not in columns."""
        while self.tallies:
            self.tallies[0].force()

    def settle_counts(self) -> None:
        """Add derivations that are counted elsewhere to their columns."""
        for reference in self.counts.copy():
            if (counts := reference()) is not None:
                counts.settle()
        self.counts.clear()

    def compute_all(self) -> None:
        """Count and compute all pending work."""
        self.count_all()
        for pending in self.waiting():
            pending.force()

    def forget_all(self) -> None:
        """Give up all pending work, which has failed."""
        self.tallies.clear()
        self.counts.clear()
        self.bags.clear()
        for pending in self.waiting():
            pending.drop()
        self.sets.clear()
