"""Numbers of facts, in columns of the tables: totals, supports and counters at home, ranks also with copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from upheld.algebra.counters import Numbered
from upheld.algebra.reached import Reached
from upheld.algebra.rounds import MANY, RoundByRound
from upheld.algebra.sets import Bag, FactSet, Instances
from upheld.compiler.strata import Stratification, Stratum
from upheld.engines.memory.bags.bags import LOWEST
from upheld.engines.memory.bags.counting import Counting
from upheld.engines.memory.counters.numbers import MemoryNumbers, SupportCounting, TotalCounting
from upheld.engines.memory.kernels import counts as count_kernels
from upheld.engines.memory.sets.expressions import MemorySet, Settled
from upheld.engines.memory.sets.expressions import own_set as own_local
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Table
from upheld.engines.spark.context import Context
from upheld.engines.spark.counters.bags import ask, codes_of, gathered, own_bag, own_instances
from upheld.engines.spark.counters.closed import Alone
from upheld.engines.spark.sets.sets import PartitionedSet, at_home, own_set
from upheld.language.core import Fact

#: The ends of ranks, and the derivations of each stratum.
RankEnds = tuple[int, int, int, dict[int, int]]

#: Tests rows of a table.
Test = Callable[[Table, Rows], npt.NDArray[np.bool_]]


def chosen(facts: FactSet, test: Test) -> PartitionedSet:
    """Return the facts of a set for which a test on their numbers holds, known at home alone."""
    mine = own_set(facts)
    context = mine.context
    listed = ((table, rows[test(table, rows)]) for table, rows in mine.here().items())
    return at_home(context, Settled(context.memory, {table: rows for table, rows in listed if len(rows)}), mine.bound)


def numbered(context: Context, columns: tuple[str, ...]) -> Iterator[tuple[Fact, tuple[int, ...]]]:
    """Yield the facts of all tasks whose number in the first of some columns is not zero, each with its numbers."""
    listed = []
    for table in context.local.tables.values():
        if columns[0] in table.columns:
            rows = np.flatnonzero(table.columns[columns[0]][: table.n]).astype(np.int32)
            rows = context.owners.at_home(table, rows)
            numbers = tuple(table.column(name)[rows] for name in columns)
            listed.append((table, table.rows[rows], numbers))
    return gathered(context, "numbers of facts", listed)


def columns_of(books: Sequence[Numbered]) -> list[str]:
    """Return the names of the columns that counters have in every table."""
    return [column for book in books for column in _own(book).local.columns]


def rank_columns_of(books: Sequence[Numbered]) -> list[str]:
    """Return the names of the columns that copies have as well."""
    return [book.local.rank for book in map(_own, books) if isinstance(book, PartitionedRanks)]


def _own(book: Numbered) -> PartitionedNumbers | PartitionedRanks:
    assert isinstance(book, PartitionedNumbers | PartitionedRanks), "numbers of another engine"
    return book


class PartitionedNumbers:
    """A number for each fact, at its home: nothing is sent."""

    def __init__(self, context: Context, name: str):
        self.context, self.local = context, MemoryNumbers(context.matcher, name)

    def gain(self, derivations: Bag) -> PartitionedSet:
        return self._count(derivations, 1)

    def lose(self, derivations: Bag) -> PartitionedSet:
        return self._count(derivations, -1)

    def _count(self, derivations: Bag, sign: int) -> PartitionedSet:
        facts, _ = own_bag(derivations).count_in(Counting(self.context.memory.journal, self.local.column, sign))
        return facts

    def zero(self, facts: FactSet) -> PartitionedSet:
        return chosen(facts, lambda table, rows: table.column(self.local.column)[rows] == 0)

    def above_zero(self, facts: FactSet) -> PartitionedSet:
        return chosen(facts, lambda table, rows: table.column(self.local.column)[rows] > 0)

    def items(self) -> Iterator[tuple[Fact, int]]:
        return ((fact, n) for fact, (n,) in numbered(self.context, (self.local.column,)))


#: Rounds that all members go through in one command, and the facts of each at most: signals wait until it is done.
_MOST_ROUNDS, _SMALL = 32, 1 << 12


class PartitionedRanks(RoundByRound):
    """Ranks, totals and supports.

    Facts of one set get one rank, so copies get theirs with the set, and no rank is sent. The ends of the ranks and the
    sums of the strata are the same in all tasks.
    """

    def __init__(self, context: Context):
        self.context, self.local = context, context.local.ranks()
        self.alone = Alone(context, self.local)

    def through(
        self, reached: Reached, E_minus: FactSet, E_plus: FactSet, I: FactSet, D: FactSet, A: FactSet
    ) -> Iterator[Stratum]:
        if not self.are_closed(reached.strata, E_minus, E_plus):
            return iter(reached)
        return iter(() if self.maintain_closed(reached.strata, E_minus, E_plus, I, D, A) else reached)

    def are_closed(self, strata: Stratification, E_minus: FactSet, E_plus: FactSet) -> bool:
        """Return whether tasks may maintain all strata by themselves that an update reaches. All members know it."""
        return self.alone.reached(strata, E_minus, E_plus) is not None

    def maintain_closed(
        self, strata: Stratification, E_minus: FactSet, E_plus: FactSet, I: FactSet, D: FactSet, A: FactSet
    ) -> bool:
        """Let each task maintain all strata that an update reaches, or none; return whether they are maintained."""
        return self.alone.maintain(strata, E_minus, E_plus, I, D, A)

    def gain(self, derivations: Bag, stratum: Stratum) -> PartitionedSet:
        return self._count(derivations, SupportCounting(self.local, 1, stratum))

    def lose(self, derivations: Bag, stratum: Stratum) -> PartitionedSet:
        return self._count(derivations, SupportCounting(self.local, -1, stratum))

    def gain_total(self, derivations: Bag, stratum: Stratum) -> PartitionedSet:
        return self._count(derivations, TotalCounting(self.local, 1, stratum))

    def _count(self, derivations: Bag, counting: TotalCounting) -> PartitionedSet:
        bag = own_bag(derivations)
        if not bag.bound:
            return bag.facts()
        mine = bag.multiplicity()
        facts, derived = bag.count_in(counting)
        if derived is None:
            derived = self.context.total("derivations", Counter(derivations=mine))["derivations"]
        counting.note(derived)
        return facts

    def unsupported(self, facts: FactSet) -> PartitionedSet:
        return chosen(facts, lambda table, rows: table.column(self.local.support)[rows] == 0)

    def derivable(self, facts: FactSet) -> PartitionedSet:
        return chosen(facts, lambda table, rows: table.column(self.local.total)[rows] > 0)

    def put_on_top(self, facts: FactSet) -> None:
        self.local.put_on_top(own_set(facts).completed().local)

    def make_room_below(self, facts: FactSet) -> None:
        self.local.make_room_below(facts)

    def put_below(self, facts: FactSet) -> None:
        self.local.put_below(own_set(facts).completed().local)

    def support_explicit(self, facts: FactSet) -> None:
        self.local.support_explicit(own_set(facts).local)

    def gain_support(self, instances: Instances, stratum: Stratum) -> None:
        self._add_support(instances, stratum, 1)

    def lose_support(self, instances: Instances, stratum: Stratum) -> None:
        self._add_support(instances, stratum, -1)

    def _add_support(self, instances: Instances, stratum: Stratum, sign: int) -> None:
        """Instances may be older than ranks, so the homes of bodies are asked for these."""
        matcher, journal = self.context.matcher, self.context.memory.journal
        mine = own_instances(instances)
        own = {rule: [rule.positive[i] for i in stratum.own(rule)] for rule in mine.rules}
        asked = [(a.predicate, codes_of(self.context, g, a)) for g in mine.groups for a in own[g.rule]]
        answers: Iterator[Codes] = iter(())
        if any(own.values()):
            answers = iter(ask(self.context, "ranks of bodies", asked, self._ranks, 1))
        for group in mine.groups:
            heights = np.full(len(group), LOWEST, np.int64)
            for _ in own[group.rule]:
                np.maximum(heights, next(answers)[0], out=heights)
            table, rows = group.head_rows(matcher)
            rank, support = table.column(self.local.rank), table.column(self.local.support)
            log, used = journal.log(table, self.local.support, sign, len(rows))
            count_kernels.add_supports(rows, heights, rank, support, sign, log, used)

    def _ranks(self, table: Table, rows: Rows) -> Codes:
        return table.column(self.local.rank)[rows].astype(np.int64)[None]

    def lose_from(
        self, delta: FactSet, s: Stratum, I: FactSet, D: FactSet, A: FactSet, gone: FactSet, enough: int = MANY
    ) -> FactSet:
        if self.alone.closed(s.stratification).is_closed(s):
            removing = own_set(I).local, own_set(D).local, own_set(A).local, own_set(gone).local

            def lose(facts: MemorySet) -> MemorySet:
                N = self.local.lose_from(facts, s, *removing, enough)
                return self.local.unsupported(N - own_set(D).local)

            return self.alone.follow("lose from", delta, s, (D, gone), lose, enough)
        before, rounds = self.derivations(s), 0
        while True:
            N = super().lose_from(delta, s, I, D, A, gone)
            rounds += 1
            if rounds == _MOST_ROUNDS or delta.count() > _SMALL or before - self.derivations(s) > enough:
                return N
            delta = self._next(self.unsupported(N - D))
            if not delta:
                return delta

    def gain_from(self, delta: FactSet, s: Stratum, I: FactSet, D: FactSet, A: FactSet) -> FactSet:
        if self.alone.closed(s.stratification).is_closed(s):
            i, d, a = own_set(I).local, own_set(D).local, own_set(A).local

            def gain(facts: MemorySet) -> MemorySet:
                return own_local(self.local.gain_from(facts, s, i, d, a)) - ((i - d) | a)

            return self.alone.follow("gain from", delta, s, (A,), gain, MANY)
        rounds = 0
        while True:
            N = super().gain_from(delta, s, I, D, A)
            rounds += 1
            if rounds == _MOST_ROUNDS or delta.count() > _SMALL:
                return N
            delta = self._next(N - ((I - D) | A))
            if not delta:
                return delta

    def _next(self, facts: FactSet) -> PartitionedSet:
        """Return the facts of the next round, settled; an empty round is noted by whoever settles it again."""
        delta = own_set(facts).settled("settle")
        if delta:
            self.context.meter.round(delta.count())
        return delta

    def derivations(self, stratum: Stratum) -> int:
        return self.local.derivations(stratum)

    def renumber(self, strata: Mapping[int, int]) -> None:
        self.local.renumber(strata)

    def forget(self, facts: FactSet, stratum: Stratum) -> None:
        mine = own_set(facts).completed()
        totals = [int(t.column(self.local.total)[rows].sum(dtype=np.int64)) for t, rows in mine.here().items()]
        lost = self.context.total("forget", Counter(derivations=sum(totals)))["derivations"]
        self.local.clear(mine.local)
        self.local.change_sum(stratum, -lost)

    def items(self) -> Iterator[tuple[Fact, tuple[int, int, int]]]:
        local = self.local
        for fact, (total, rank, support) in numbered(self.context, (local.total, local.rank, local.support)):
            yield fact, (rank, total, support)

    def agreed(self) -> RankEnds:
        """Return what all tasks know of the ranks."""
        local = self.local
        self.context.memory.pending.count_all()
        return local.top, local.bottom, local.below, dict(local.sums_by_stratum)

    def take_over(self, agreed: RankEnds) -> None:
        """Know of the ranks what all tasks know, in a driver."""
        before = self.agreed()
        self.context.memory.journal.note(lambda: self._set(before))
        self._set(agreed)

    def _set(self, agreed: RankEnds) -> None:
        local = self.local
        local.top, local.bottom, local.below, local.sums_by_stratum = agreed

    def sums(self) -> dict[str, int]:
        return self.local.sums()

    def begin(self, sums: Mapping[str, int]) -> None:
        self.local.begin(sums)
