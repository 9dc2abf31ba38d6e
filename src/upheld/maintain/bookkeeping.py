"""The bookkeeping that algorithms rely on: an object of one class for each kind.

Each kind defines how the derivations of a round are counted while a program is materialised (lines 12 and 18 of
algorithm 2 of Motik et al. 2019), what is recorded of the facts that a round finds, and the counters saved with facts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from upheld.algebra.counters import Numbered, Numbers, Ranks, Trace
from upheld.algebra.engine import Engine
from upheld.algebra.sets import FactSet, bag, derive, derive_bag, settle
from upheld.compiler.strata import Stratum
from upheld.maintain.cost_model import CostModel


class Bookkeeping:
    """No bookkeeping, and the methods of every kind."""

    #: The names of the counters, under which they are saved.
    kinds: ClassVar[tuple[str, ...]] = ()
    #: The names of the numbers that a fact has in them, in the order of the counters.
    columns: ClassVar[tuple[str, ...]] = ()
    #: Whether the counters can be saved with the facts.
    is_saved: ClassVar[bool] = True
    #: Whether derivations are summed up by stratum, so that each stratum is materialised by itself.
    sums_by_stratum: ClassVar[bool] = False

    @classmethod
    def begin(cls, engine: Engine) -> Self:
        """Return new bookkeeping of an engine, in which nothing is counted."""
        return cls()

    def first(self, s: Stratum, E: FactSet, I: FactSet) -> FactSet:
        """Count and return the explicit facts of a stratum and the heads of its nonrecursive rules."""
        return s.out(E) | derive(s.nonrecursive, I, I)

    def next(self, s: Stratum, I: FactSet, delta: FactSet, round: int) -> FactSet:
        """Count and return the heads of recursive rules in this round: from the facts found last."""
        return derive(s.recursive, I, I, via=delta)

    def found(self, delta: FactSet, round: int) -> None:
        """Record that these facts were found first in this round."""

    def go_on(self, s: Stratum, I: FactSet, delta: FactSet, round: int) -> FactSet:
        """Add to I the facts that this round has found, and count and return the heads of the next one."""
        self.found(delta, round)
        I |= delta
        return self.next(s, I, delta, round + 1)

    def end(self) -> None:
        """Record that a program is materialised."""

    def reduced(self, kind: type[Bookkeeping]) -> Bookkeeping | None:
        """Return bookkeeping of another kind that this one contains; None if it does not contain it.

        Counters that an algorithm does not maintain would be wrong after an update, so they are dropped.
        """
        if kind is type(self):
            return self
        return None if kind.kinds else kind()

    def sets(self) -> tuple[FactSet, ...]:
        """The sets that the bookkeeping consists of, beside counters."""
        return ()

    def counters(self) -> tuple[Numbered, ...]:
        """The counters that are saved, in the order of `kinds`."""
        return ()

    def save(self) -> dict[str, int]:
        """Return the numbers that concern all facts together, to be saved."""
        return {}

    def load(self, sums: Mapping[str, int]) -> None:
        """Continue from the numbers that `save` returned."""

    # -- changes of rules ----------------------------------------------------------------------------------------------

    #: Whether the derivations of one stratum can be forgotten, to be counted again.
    forgets: ClassVar[bool] = False

    def enter(self, explicit: FactSet, s: Stratum) -> None:
        """Count explicit facts of a stratum that has rules now: before, their derivations were not counted."""

    def leave(self, explicit: FactSet, s: Stratum) -> None:
        """Forget the explicit facts of a stratum that has no rules any more, and no other facts."""

    def forget(self, facts: FactSet, s: Stratum) -> None:
        """Forget all derivations of the facts of a stratum."""
        raise AssertionError("bookkeeping that is begun anew as a whole")

    def renumber(self, strata: Mapping[int, int]) -> None:
        """Let the numbers that concern a stratum concern the stratum that a mapping gives it."""


class NonrecursiveCounter(Bookkeeping):
    """cnr: derivations of a fact by nonrecursive rules, the explicit one included."""

    kinds: ClassVar[tuple[str, ...]] = ("cnr",)
    columns: ClassVar[tuple[str, ...]] = ("cnr",)

    def __init__(self, cnr: Numbers):
        self.cnr = cnr

    @classmethod
    def begin(cls, engine: Engine) -> Self:
        return cls(engine.numbers("cnr"))

    def first(self, s: Stratum, E: FactSet, I: FactSet) -> FactSet:
        return self.cnr.gain(bag(s.out(E))) | self.cnr.gain(derive_bag(s.nonrecursive, I, I))

    def enter(self, explicit: FactSet, s: Stratum) -> None:
        settle(self.cnr.gain(bag(explicit)))

    def leave(self, explicit: FactSet, s: Stratum) -> None:
        settle(self.cnr.lose(bag(explicit)))

    def counters(self) -> tuple[Numbered, ...]:
        return (self.cnr,)


class Counters(NonrecursiveCounter):
    """cnr, and cr: derivations of a fact by recursive rules."""

    kinds = ("cnr", "cr")
    columns = ("cnr", "cr")

    def __init__(self, cnr: Numbers, cr: Numbers):
        super().__init__(cnr)
        self.cr = cr

    @classmethod
    def begin(cls, engine: Engine) -> Self:
        return cls(engine.numbers("cnr"), engine.numbers("cr"))

    def next(self, s: Stratum, I: FactSet, delta: FactSet, round: int) -> FactSet:
        return self.cr.gain(derive_bag(s.recursive, I, I, via=delta))

    def reduced(self, kind: type[Bookkeeping]) -> Bookkeeping | None:
        return NonrecursiveCounter(self.cnr) if kind is NonrecursiveCounter else super().reduced(kind)

    def counters(self) -> tuple[Numbered, ...]:
        return self.cnr, self.cr


class Traced(Bookkeeping):
    """Derivations by round, and the level of each fact: the round that found it. It cannot be saved."""

    kinds = ("trace",)
    is_saved = False

    def __init__(self, trace: Trace):
        self.trace = trace

    @classmethod
    def begin(cls, engine: Engine) -> Self:
        return cls(engine.trace())

    def first(self, s: Stratum, E: FactSet, I: FactSet) -> FactSet:
        return self.trace.gain(bag(s.out(E)), 1) | self.trace.gain(derive_bag(s.nonrecursive, I, I), 1)

    def next(self, s: Stratum, I: FactSet, delta: FactSet, round: int) -> FactSet:
        return self.trace.gain(derive_bag(s.recursive, I, I, via=delta), round)

    def found(self, delta: FactSet, round: int) -> None:
        self.trace.place(delta, round)

    def end(self) -> None:
        self.trace.settle_levels()

    def enter(self, explicit: FactSet, s: Stratum) -> None:
        settle(self.trace.gain(bag(explicit), 1))
        self.trace.place(explicit, 1)
        self.trace.settle_levels()

    def leave(self, explicit: FactSet, s: Stratum) -> None:
        settle(self.trace.lose(bag(explicit), 1))
        self.trace.place(explicit, 0)
        self.trace.settle_levels()


class Ranked(Bookkeeping):
    """Totals, supports, and the rank of each fact: later rounds have higher ranks.

    `costs` is what `adaptive` has learned from updates. It is not saved, and begins anew when strata change.
    """

    kinds = ("ranks",)
    columns = ("rank", "total", "support")
    sums_by_stratum = True
    forgets = True

    def __init__(self, ranks: Ranks, costs: CostModel | None = None):
        self.ranks = ranks
        self.costs = costs or CostModel()

    @classmethod
    def begin(cls, engine: Engine) -> Self:
        return cls(engine.ranks())

    def first(self, s: Stratum, E: FactSet, I: FactSet) -> FactSet:
        return self.ranks.gain_total(bag(s.out(E)), s) | self.ranks.gain_total(derive_bag(s.nonrecursive, I, I), s)

    def go_on(self, s: Stratum, I: FactSet, delta: FactSet, round: int) -> FactSet:
        return self.ranks.saturate_from(delta, s, I, round)

    def enter(self, explicit: FactSet, s: Stratum) -> None:
        settle(self.ranks.gain_total(bag(explicit), s))
        self.ranks.put_on_top(explicit)

    def leave(self, explicit: FactSet, s: Stratum) -> None:
        self.ranks.forget(explicit, s)

    def forget(self, facts: FactSet, s: Stratum) -> None:
        self.ranks.forget(facts, s)

    def renumber(self, strata: Mapping[int, int]) -> None:
        self.ranks.renumber(strata)
        self.costs = CostModel()

    def counters(self) -> tuple[Numbered, ...]:
        return (self.ranks,)

    def save(self) -> dict[str, int]:
        return self.ranks.sums()

    def load(self, sums: Mapping[str, int]) -> None:
        self.ranks.begin(sums)
