"""The strata that an update reaches: what it changes decides which of them have anything to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

from upheld.algebra.sets import FactSet
from upheld.compiler.strata import Stratification, Stratum


class Reached:
    """The strata that explicit facts of an update belong to, or whose rules read facts that have changed so far.

    Each is found by the classes of facts that have changed, so no other stratum costs anything. The difference between
    D and A in a stratum is read before the next one.
    """

    def __init__(self, strata: Stratification, E_minus: FactSet, E_plus: FactSet, D: FactSet, A: FactSet):
        self.strata, self._E_minus, self._E_plus, self._D, self._A = strata, E_minus, E_plus, D, A
        #: A heap of strata that are due; None before any was asked for.
        self._due: list[int] | None = None
        #: The number of strata that have been visited.
        self.visited = 0

    def __iter__(self) -> Iterator[Stratum]:
        if self._due is None:
            classes = self._E_minus.classes(self.strata) | self._E_plus.classes(self.strata)
            self._due = sorted(self.strata.holding(classes))
        while self._due:
            s = self.strata.strata[heappop(self._due) - 1]
            self.visited += 1
            yield s
            self.follow(s)

    def follow(self, s: Stratum) -> None:
        """Note the strata that read what has changed in the one that was visited last."""
        assert self._due is not None, "a stratum that was never reached"
        for index in self.strata.reading(self._D.classes_apart(self._A, s)) - {s.index, *self._due}:
            heappush(self._due, index)

    def visit(self, s: Stratum, due: Iterable[int]) -> None:
        """Note that a stratum is visited by somebody who goes through the strata otherwise, and which are due then."""
        self.visited += 1
        self._due = sorted(due)

    def ahead(self, current: Stratum) -> int:
        """Return how many strata may still be reached from the current one and the strata that are due."""
        seen = {current.index, *(self._due or ())}
        frontier = list(seen)
        while frontier:
            classes = (c for index in frontier for c in self.strata.strata[index - 1].classes)
            frontier = list(self.strata.reading(classes) - seen)
            seen.update(frontier)
        return len(seen)
