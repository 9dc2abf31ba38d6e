"""Numbers of facts in columns of their tables, and derivations that are counted there as they are found.

Counting is put off until the heads are asked for, so that finding them and counting them is one pass. It is done at the
latest when a number is read or a set changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from upheld.algebra.counters import Numbered, rank_sums, sums_of_ranks
from upheld.algebra.rounds import MANY, RoundByRound
from upheld.algebra.sets import Bag, FactSet, Instances
from upheld.engines.memory.counters.bags import MemoryBag, own_bag, own_instances
from upheld.engines.memory.joins.batch import Sink, extended
from upheld.engines.memory.joins.sinks import Collected, made_joined_rows, made_rows
from upheld.engines.memory.kernels import counts as count_kernels
from upheld.engines.memory.plans.plan import HEIGHT, AtomStep, Plan
from upheld.engines.memory.rounds.driver import SmallRounds
from upheld.engines.memory.sets.expressions import Deferred, MemorySet, Named, Settled, Spelling, Truth, own_set
from upheld.engines.memory.sets.journal import Journal
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Column, Rows, Table
from upheld.language.core import Fact
from upheld.language.strata import Stratum

if TYPE_CHECKING:
    from upheld.engines.memory.engine import MemoryEngine


def tally(engine: MemoryEngine, derivations: Bag, counting: Counting) -> MemorySet:
    """Return the facts of a bag, to be counted when they are asked for."""
    bag = own_bag(derivations)
    return engine.nothing if bag.is_void() else Tally(engine, bag, counting)


class Tally(Deferred):
    """The facts of a bag, whose multiplicities are added to a number when they are asked for."""

    def __init__(self, engine: MemoryEngine, bag: MemoryBag, counting: Counting):
        self.bag: MemoryBag | None = bag.take()
        self.counting = counting
        self.width = 1 + bag.width
        engine.tallies.append(self)
        super().__init__(engine)

    def has_work(self) -> bool:
        return self.now is None

    def operands(self) -> list[MemorySet]:
        assert self.bag is not None, "a tally is settled once; settle it by itself to use it twice"
        return self.bag.operands()

    def drop(self) -> None:
        self.bag = None
        if self in self.engine.tallies:
            self.engine.tallies.remove(self)

    @property
    def spent(self) -> bool:
        return self.now is None and self.bag is None

    def evaluate(self, collected: Collected, reject: Spelling | None) -> None:
        """Count, and collect the facts except those that `reject` holds for."""
        assert self.bag is not None, "a tally is settled once; settle it by itself to use it twice"
        truth = self.engine.truth_of(reject)
        bag, self.bag = self.bag, None
        if bag.derivation is not None:
            (rules, where), bag.derivation = bag.derivation, None
            self.engine.matcher.forwards(
                rules, where, lambda plan, start, _: self.counting.sink(collected, truth, plan, start),
                ranked=self.counting.ranked,
            )  # fmt: skip
            return
        for table, (rows, counts) in bag.counts.items():
            self.counting.note(int(counts.sum()))
            self.counting.add_counts(table, rows, counts)
            collected.take(table, rows, truth)


class Counting:
    """Adds derivations to one number of their heads. `sign` is -1 where they are taken away."""

    #: The column of ranks and the stratum within which the bodies of derivations are ranked, if they are.
    ranked: tuple[str, Stratum] | None = None

    def note(self, derivations: int) -> None:
        """Note how many derivations are about to be counted."""

    def __init__(self, journal: Journal, numbers: str, sign: int):
        self.journal, self.numbers, self.sign = journal, numbers, sign

    def sink(self, collected: Collected, reject: Truth, plan: Plan, start: Table | None) -> Sink:
        return TallySink(self, collected, reject, plan, plan.has_wide_values(start))

    def add_rows(self, collected: Collected, table: Table, made: Rows, reject: Truth, heights: Codes | None) -> None:
        """Count the heads of some instances, given by their values."""
        table.column(self.numbers)
        log, used = self.journal.log(table, self.numbers, self.sign, len(made))
        collected.tally(table, made, reject, self.numbers, self.sign, log, used)

    def add_counts(self, table: Table, rows: Rows, counts: Codes) -> None:
        """Count distinct rows, each as often as it says."""
        column = table.column(self.numbers)
        self.journal.note_values(table, self.numbers, rows)
        count_kernels.add_counts(column, rows, counts, self.sign)


class TotalCounting(Counting):
    """Adds derivations to the totals of their heads, and to the sum of the stratum."""

    def __init__(self, ranks: MemoryRanks, sign: int, stratum: Stratum):
        super().__init__(ranks.engine.journal, ranks.total, sign)
        self.ranks, self.stratum = ranks, stratum

    def note(self, derivations: int) -> None:
        self.ranks.change_sum(self.stratum, self.sign * derivations)


class SupportCounting(TotalCounting):
    """Adds derivations to the totals of their heads, and to the supports of those they support."""

    def __init__(self, ranks: MemoryRanks, sign: int, stratum: Stratum):
        super().__init__(ranks, sign, stratum)
        self.ranked = (ranks.rank, stratum)

    def add_rows(self, collected: Collected, table: Table, made: Rows, reject: Truth, heights: Codes | None) -> None:
        assert heights is not None, "derivations that are not ranked"
        journal = self.journal
        log, used = journal.log(table, self.numbers, self.sign, len(made))
        if not journal.is_open:
            log = np.empty(len(made), np.int32)
        collected.tally(table, made, reject, self.numbers, self.sign, log, used)
        supported, also = journal.log(table, self.ranks.support, self.sign, len(made))
        rank, support = table.column(self.ranks.rank), table.column(self.ranks.support)
        count_kernels.add_supports(log, heights, rank, support, self.sign, supported, also)

    def add_counts(self, table: Table, rows: Rows, counts: Codes) -> None:
        super().add_counts(table, rows, counts)
        column = table.column(self.ranks.support)
        self.journal.note_values(table, self.ranks.support, rows)
        count_kernels.add_counts(column, rows, counts, self.sign)


class TallySink:
    """Counts the heads of a plan."""

    def __init__(self, counting: Counting, collected: Collected, reject: Truth, plan: Plan, wide: bool):
        self.counting, self.collected, self.reject = counting, collected, reject
        self.plan, self.wide = plan, wide

    def take(self, B: Codes, width: int) -> None:
        heights = B[self.plan.last.index(HEIGHT)] if self.counting.ranked is not None else None
        plan = self.plan
        self._count(made_rows(plan.head, plan.terms, plan.constants, B, width, self.wide), heights)

    def take_joined(self, B: Codes, step: AtomStep, parents: Rows, matches: Rows, count: int) -> None:
        if self.counting.ranked is not None:
            self.take(extended(B, step, parents, matches, count), count)
        else:
            self._count(made_joined_rows(self.plan, B, step, parents, matches, count, self.wide), None)

    def _count(self, made: Rows, heights: Codes | None) -> None:
        meter = self.collected.engine.meter
        meter.instances(self.plan.rule, len(made))
        self.counting.note(len(made))
        self.counting.add_rows(self.collected, self.plan.head, made, self.reject, heights)
        meter.found(self.collected.found(self.plan.head))


class MemoryNumbers:
    """A number for each fact, in a column of its table."""

    def __init__(self, engine: MemoryEngine, name: str):
        self.engine = engine
        (self.column,) = engine.columns.new(self, name)

    def gain(self, derivations: Bag) -> MemorySet:
        return tally(self.engine, derivations, Counting(self.engine.journal, self.column, 1))

    def lose(self, derivations: Bag) -> MemorySet:
        return tally(self.engine, derivations, Counting(self.engine.journal, self.column, -1))

    def zero(self, facts: FactSet) -> Settled:
        return self.engine.filtered(facts, lambda table, rows: table.column(self.column)[rows] == 0)

    def above_zero(self, facts: FactSet) -> Settled:
        return self.engine.filtered(facts, lambda table, rows: table.column(self.column)[rows] > 0)

    def items(self) -> Iterator[tuple[Fact, int]]:
        return self.engine.numbered(self.column)

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)


class MemoryRanks(RoundByRound):
    """The ranks, totals and supports of facts, in columns of their tables."""

    def __init__(self, engine: MemoryEngine):
        self.engine = engine
        self._small = SmallRounds(engine)
        self.rank, self.total, self.support = engine.columns.new(self, "rank", "total", "support")
        engine.reclaiming.passive.add(self.rank)
        self.top = self.bottom = self.below = 0
        self._sums: dict[int, int] = {}

    def change_sum(self, stratum: Stratum, amount: int) -> None:
        """Add to the number of derivations of a stratum."""
        index, before = stratum.index, self._sums.get(stratum.index, 0)

        def undo() -> None:
            self._sums[index] = before

        self.engine.journal.note(undo)
        self._sums[index] = before + amount

    def gain(self, derivations: Bag, stratum: Stratum) -> MemorySet:
        return tally(self.engine, derivations, SupportCounting(self, 1, stratum))

    def lose(self, derivations: Bag, stratum: Stratum) -> MemorySet:
        return tally(self.engine, derivations, SupportCounting(self, -1, stratum))

    def gain_total(self, derivations: Bag, stratum: Stratum) -> MemorySet:
        return tally(self.engine, derivations, TotalCounting(self, 1, stratum))

    def lose_from(
        self,
        delta: FactSet,
        s: Stratum,
        I: FactSet,
        D: FactSet,
        A: FactSet,
        gone: FactSet,
        enough: int = MANY,
    ) -> FactSet:
        self.engine.count_all()
        assert all(isinstance(named, Named) for named in (I, D, A, gone)), "sets that change have names"
        done = self._small.lose(self, own_set(delta), s, I, D, A, gone, enough)  # type: ignore[arg-type]
        return done if done is not None else super().lose_from(delta, s, I, D, A, gone, enough)

    def gain_from(self, delta: FactSet, s: Stratum, I: FactSet, D: FactSet, A: FactSet) -> FactSet:
        self.engine.count_all()
        assert all(isinstance(named, Named) for named in (I, D, A)), "sets that change have names"
        done = self._small.gain(self, own_set(delta), s, I, D, A)  # type: ignore[arg-type]
        return done if done is not None else super().gain_from(delta, s, I, D, A)

    def raise_top(self, top: int) -> None:
        """Note that facts were ranked on top, up to this rank."""
        self._note_ends()
        self.top = top

    def unsupported(self, facts: FactSet) -> Settled:
        return self.engine.filtered(facts, lambda table, rows: table.column(self.support)[rows] == 0)

    def derivable(self, facts: FactSet) -> Settled:
        return self.engine.filtered(facts, lambda table, rows: table.column(self.total)[rows] > 0)

    def put_on_top(self, facts: FactSet) -> None:
        self._note_ends()
        self.top += 1
        for table, rows in self._read(facts):
            self._assign(table, self.rank, rows, self.top)
            self._assign(table, self.support, rows, table.column(self.total)[rows])

    def make_room_below(self, facts: FactSet) -> None:
        self._note_ends()
        self.bottom -= facts.count()
        assert self.bottom > -count_kernels.LARGEST, "ranks go down to the lowest 32-bit number"
        self.below = self.bottom

    def put_below(self, facts: FactSet) -> None:
        for table, rows in self._read(facts):
            self._assign(table, self.rank, rows, self.below)
            self._assign(table, self.support, rows, 0)
        self.below += 1

    def support_explicit(self, facts: FactSet) -> None:
        for table, rows in self._read(facts):
            self._assign(table, self.support, rows, table.column(self.support)[rows] + 1)

    def gain_support(self, found: Instances, stratum: Stratum) -> None:
        self._add_support(found, stratum, 1)

    def lose_support(self, found: Instances, stratum: Stratum) -> None:
        self._add_support(found, stratum, -1)

    def _add_support(self, found: Instances, stratum: Stratum, sign: int) -> None:
        self.engine.count_all()
        for group in own_instances(found).groups:
            table, rows = group.head_rows(self.engine)
            heights = group.highest(self.engine, self.rank, stratum)
            log, used = self.engine.journal.log(table, self.support, sign, len(rows))
            count_kernels.add_supports(
                rows, heights, table.column(self.rank), table.column(self.support), sign, log, used
            )

    def derivations(self, stratum: Stratum) -> int:
        self.engine.count_all()
        return self._sums.get(stratum.index, 0)

    def forget(self, facts: FactSet, stratum: Stratum) -> None:
        for table, rows in self._read(facts):
            self.change_sum(stratum, -int(table.column(self.total)[rows].sum(dtype=np.int64)))
            for column in (self.rank, self.total, self.support):
                self._assign(table, column, rows, 0)

    def items(self) -> Iterator[tuple[Fact, tuple[int, int, int]]]:
        ranks, supports = dict(self.engine.numbered(self.rank)), dict(self.engine.numbered(self.support))
        for fact, total in self.engine.numbered(self.total):
            yield fact, (ranks.get(fact, 0), total, supports.get(fact, 0))

    @property
    def columns(self) -> tuple[str, ...]:
        return self.rank, self.total, self.support

    def sums(self) -> dict[str, int]:
        self.engine.count_all()
        return rank_sums(self.top, self.bottom, self.below, self._sums)

    def begin(self, sums: Mapping[str, int]) -> None:
        self.top, self.bottom, self.below, self._sums = sums_of_ranks(sums)

    def _read(self, facts: FactSet) -> Iterator[tuple[Table, Rows]]:
        self.engine.count_all()
        return own_set(facts).listed()

    def _assign(self, table: Table, column: str, rows: Rows, values: int | Column) -> None:
        found = table.column(column)
        self.engine.journal.note_values(table, column, rows)
        found[rows] = values

    def _note_ends(self) -> None:
        ends = self.top, self.bottom, self.below

        def undo() -> None:
            self.top, self.bottom, self.below = ends

        self.engine.journal.note(undo)


def columns_of(books: Sequence[Numbered]) -> list[str]:
    """Return the names of the columns that some books have in every table."""
    found: list[str] = []
    for book in books:
        assert isinstance(book, MemoryNumbers | MemoryRanks), "numbers of another engine"
        found += book.columns
    return found
