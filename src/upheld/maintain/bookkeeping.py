"""The bookkeeping that algorithms rely on, as it is begun while a program is materialised.

Each kind says how the derivations of a round are counted (lines 12 and 18 of algorithm 2 of Motik et al. 2019), and
what is noted of the facts that a round finds.
"""

from __future__ import annotations

from typing import Protocol

from upheld.algebra.counters import Numbers, Ranks, Trace
from upheld.algebra.sets import FactSet, bag, derive, derive_bag
from upheld.language.strata import Stratum


class Books(Protocol):
    """How the derivations of a stratum are counted."""

    def first(self, s: Stratum, E: FactSet, I: FactSet) -> FactSet:
        """Return the explicit facts of a stratum and what its nonrecursive rules derive."""
        ...

    def next(self, s: Stratum, I: FactSet, delta: FactSet, round: int) -> FactSet:
        """Return what recursive rules derive from the facts that were found last, in this round."""
        ...

    def found(self, delta: FactSet, round: int) -> None:
        """Note that these facts were found first in this round."""
        ...


class NoBooks:
    """Nothing is counted."""

    def first(self, s: Stratum, E: FactSet, I: FactSet) -> FactSet:
        return s.out(E) | derive(s.nonrecursive, I, I)

    def next(self, s: Stratum, I: FactSet, delta: FactSet, round: int) -> FactSet:
        return derive(s.recursive, I, I, via=delta)

    def found(self, delta: FactSet, round: int) -> None:
        """Nothing to note."""


class Counters(NoBooks):
    """Derivations by nonrecursive rules and explicit facts, and where a counter is given, those by recursive rules."""

    def __init__(self, cnr: Numbers, cr: Numbers | None):
        self.cnr, self.cr = cnr, cr

    def first(self, s: Stratum, E: FactSet, I: FactSet) -> FactSet:
        return self.cnr.gain(bag(s.out(E))) | self.cnr.gain(derive_bag(s.nonrecursive, I, I))

    def next(self, s: Stratum, I: FactSet, delta: FactSet, round: int) -> FactSet:
        if self.cr is None:
            return super().next(s, I, delta, round)
        return self.cr.gain(derive_bag(s.recursive, I, I, via=delta))


class Traced:
    """Derivations by round, and the level of each fact: the round that found it."""

    def __init__(self, trace: Trace):
        self.trace = trace

    def first(self, s: Stratum, E: FactSet, I: FactSet) -> FactSet:
        return self.trace.gain(bag(s.out(E)), 1) | self.trace.gain(derive_bag(s.nonrecursive, I, I), 1)

    def next(self, s: Stratum, I: FactSet, delta: FactSet, round: int) -> FactSet:
        return self.trace.gain(derive_bag(s.recursive, I, I, via=delta), round)

    def found(self, delta: FactSet, round: int) -> None:
        self.trace.place(delta, round)


class Ranked:
    """Totals, and the rank of each fact: facts of later rounds rank above those of earlier ones."""

    def __init__(self, ranks: Ranks):
        self.ranks = ranks

    def first(self, s: Stratum, E: FactSet, I: FactSet) -> FactSet:
        return self.ranks.gain_total(bag(s.out(E)), s) | self.ranks.gain_total(derive_bag(s.nonrecursive, I, I), s)

    def next(self, s: Stratum, I: FactSet, delta: FactSet, round: int) -> FactSet:
        return self.ranks.gain_total(derive_bag(s.recursive, I, I, via=delta), s)

    def found(self, delta: FactSet, round: int) -> None:
        self.ranks.put_on_top(delta)
