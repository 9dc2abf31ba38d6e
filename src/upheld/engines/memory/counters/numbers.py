"""Numbers of facts in columns of their tables, and derivations that are counted there as they are found.

Counting is put off until the heads are asked for, so that finding them and counting them is one pass. It is done at the
latest when a number is read or a set changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from upheld.algebra.counters import Numbered, RowsByName, SmallUpdate, rank_sums, renumbered, sums_of_ranks
from upheld.algebra.reached import Reached
from upheld.algebra.rounds import MANY, RoundByRound
from upheld.algebra.sets import Bag, FactSet, Instances
from upheld.compiler.strata import Stratification, Stratum
from upheld.engines.memory.bags.bags import MemoryBag, own_bag, own_instances
from upheld.engines.memory.bags.counting import Counting, CountTaker, numbered
from upheld.engines.memory.bags.pair_counts import CountedPairs
from upheld.engines.memory.bytecode.encoder import Columns
from upheld.engines.memory.joins.batch import Join
from upheld.engines.memory.joins.matching import Matcher
from upheld.engines.memory.kernels import counts as count_kernels
from upheld.engines.memory.rounds.driver import SmallRounds
from upheld.engines.memory.rounds.strata.small_strata import SmallStrata
from upheld.engines.memory.sets.collected import Collected, MadeRows
from upheld.engines.memory.sets.expressions import Deferred, MemorySet, Settled, nothing, own_set, with_numbers
from upheld.engines.memory.sets.named import Named
from upheld.engines.memory.sets.truth_tables import Spelling, Truth
from upheld.engines.memory.storage.arrays import Column, Rows
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Table
from upheld.language.core import Fact

#: A round by the operators takes some time however little it does: as long as to enter this many rows into a tuple
#: index, and as a call of a kernel takes longer for a round that begins with this many facts.
ROWS_OF_ROUND, FACTS_OF_ROUND = 1 << 11, 1 << 9


def tally(matcher: Matcher, derivations: Bag, counting: Counting) -> MemorySet:
    """Return the facts of a bag, to be counted when they are asked for."""
    bag = own_bag(derivations)
    return nothing(matcher.context) if bag.is_void() else Tally(matcher, bag, counting)


class Tally(Deferred):
    """The facts of a bag, whose multiplicities are added to a number when they are asked for."""

    derives = True

    def __init__(self, matcher: Matcher, bag: MemoryBag, counting: Counting):
        self.matcher = matcher
        self.bag: MemoryBag | None = bag.take()
        self.counting = counting
        self.width = 1 + bag.width
        matcher.context.pending.tallies.append(self)
        super().__init__(matcher.context)

    def has_work(self) -> bool:
        return self.now is None

    def operands(self) -> list[MemorySet]:
        assert self.bag is not None, "a tally is settled once; settle it by itself to use it twice"
        return self.bag.operands()

    def drop(self) -> None:
        self.bag = None
        if self in self.context.pending.tallies:
            self.context.pending.tallies.remove(self)

    @property
    def spent(self) -> bool:
        return self.now is None and self.bag is None

    def collect(self, collected: Collected, reject: Spelling | None) -> None:
        if self.now is not None:
            super().collect(collected, reject)
            return
        self._count(collected, reject)
        self.drop()

    def _count(self, collected: Collected, spelling: Spelling | None) -> None:
        """Count, and collect the facts that an expression does not have."""
        assert self.bag is not None, "a tally is settled once; settle it by itself to use it twice"
        bag, self.bag = self.bag, None
        reject = self.context.truth_of(spelling)
        if bag.derivation is not None:
            (rules, where), bag.derivation = bag.derivation, None
            with self.counting.run(collected, spelling):
                self.matcher.forwards(
                    rules, where, lambda plan, start, _: self.counting.sink(collected, reject, plan, start),
                    ranked=self.counting.ranked, few=CountTaker(self.counting, collected, reject),
                    joined=self.counting.joined,
                )  # fmt: skip
            return
        for table, (rows, counts) in bag.counts.items():
            self.counting.note(int(counts.sum()))
            self.counting.add_counts(table, rows, counts)
            collected.take(table, rows, reject)


class TotalCounting(Counting):
    """Adds derivations to the totals of their heads, and to the sum of the stratum."""

    def __init__(self, ranks: MemoryRanks, sign: int, stratum: Stratum, pairs: CountedPairs | None = None):
        super().__init__(ranks.context.journal, ranks.total, sign, pairs)
        self.ranks, self.stratum = ranks, stratum

    @property
    def is_one_round(self) -> bool:  # type: ignore[override]
        return not self.stratum.recursive

    def note(self, derivations: int) -> None:
        self.ranks.change_sum(self.stratum, self.sign * derivations)

    def joined(self, join: Join) -> None:
        self.ranks.joins.note(self.stratum, join)


class SupportCounting(TotalCounting):
    """Adds derivations to the totals of their heads, and to the supports of those they support."""

    def __init__(self, ranks: MemoryRanks, sign: int, stratum: Stratum):
        super().__init__(ranks, sign, stratum)
        self.ranked = (ranks.rank, stratum)

    def joined(self, join: Join) -> None:
        """Joins from changed facts of each atom say little of those that derive all facts."""

    @property
    def columns(self) -> Columns:
        return Columns(self.ranks.rank, self.ranks.total, self.ranks.support)

    def add_rows(
        self, collected: Collected, table: Table, values: MadeRows, reject: Truth, heights: Codes | None
    ) -> int:
        assert heights is not None, "derivations that are not ranked"
        journal = self.journal
        log, used = journal.log(table, self.numbers, self.sign, len(values))
        if not journal.is_open:
            log = np.empty(len(values), np.int32)
        collected.tally(table, values, reject, self.numbers, self.sign, log, used)
        supported, also = journal.log(table, self.ranks.support, self.sign, len(values))
        rank, support = table.column(self.ranks.rank), table.column(self.ranks.support)
        count_kernels.add_supports(log, heights, rank, support, self.sign, supported, also)
        return len(values)

    def add_counts(self, table: Table, rows: Rows, counts: Codes) -> None:
        super().add_counts(table, rows, counts)
        column = table.column(self.ranks.support)
        self.journal.note_values(table, self.ranks.support, rows)
        count_kernels.add_counts(column, rows, counts, self.sign)


class MemoryNumbers:
    """A number for each fact, in a column of its table."""

    def __init__(self, matcher: Matcher, name: str):
        self.matcher = matcher
        (self.column,) = matcher.context.columns.new(self, name)

    def gain(self, derivations: Bag) -> MemorySet:
        return tally(self.matcher, derivations, Counting(self.matcher.context.journal, self.column, 1))

    def lose(self, derivations: Bag) -> MemorySet:
        return tally(self.matcher, derivations, Counting(self.matcher.context.journal, self.column, -1))

    def zero(self, facts: FactSet) -> Settled:
        return with_numbers(facts, self.column, 0, 0)

    def above_zero(self, facts: FactSet) -> Settled:
        return with_numbers(facts, self.column, 1, count_kernels.LARGEST)

    def items(self) -> Iterator[tuple[Fact, int]]:
        return numbered(self.matcher.context, self.column)

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)


class RankTools(NamedTuple):
    """Plans as numbers, and arrays, that updates of ranks use one after the other."""

    rounds: SmallRounds
    strata: SmallStrata


class KeptTools:
    """The tools of ranks, by the name of a column: ranks that are begun anew under that name go on with them."""

    def __init__(self, matcher: Matcher):
        self._matcher = matcher
        self._tools: dict[str, RankTools] = {}

    def of(self, rank: str) -> RankTools:
        """Return the tools for ranks in a column."""
        if rank not in self._tools:
            self._tools[rank] = RankTools(SmallRounds(self._matcher), SmallStrata(self._matcher))
        return self._tools[rank]

    def forget_columns(self, names: tuple[str, ...]) -> None:
        """Let go of columns that were dropped."""
        for name in names:
            if name in self._tools:
                self._tools[name].rounds.forget_columns()
                self._tools[name].strata.forget_columns()


class JoinsOfStrata:
    """The derivations that joins have found for each stratum, by number, and the bindings made on the way to them."""

    def __init__(self) -> None:
        self._found: Counter[int] = Counter()
        self._bindings: Counter[int] = Counter()

    def note(self, stratum: Stratum, join: Join) -> None:
        """Count a join."""
        self._found[stratum.index] += join.made[-1]
        self._bindings[stratum.index] += join.bindings

    def bindings(self, stratum: Stratum, derivations: int) -> int:
        """Return about how many bindings joins make on the way to some derivations."""
        index = stratum.index
        return self._bindings[index] * max(derivations, 1) // max(self._found[index], 1)


class MemoryRanks(RoundByRound):
    """The ranks, totals and supports of facts, in columns of their tables."""

    def __init__(self, matcher: Matcher, toolbox: KeptTools):
        self.matcher, self.context = matcher, matcher.context
        self.rank, self.total, self.support = self.context.columns.new(
            self, "rank", "total", "support", dropped=toolbox.forget_columns
        )
        self._small, self.strata = toolbox.of(self.rank)
        self.strata.begin_anew()
        self._pairs = CountedPairs(self.context, self.total)
        self.context.holders.passive.add(self.rank)
        self.top = self.bottom = self.below = 0
        self.sums_by_stratum: dict[int, int] = {}
        self.changed_sums: set[int] = set()
        self.joins = JoinsOfStrata()

    def change_sum(self, stratum: Stratum, amount: int) -> None:
        """Add to the number of derivations of a stratum."""
        index, before = stratum.index, self.sums_by_stratum.get(stratum.index, 0)

        def undo() -> None:
            self.changed_sums.add(index)
            self.sums_by_stratum[index] = before

        self.context.journal.note(undo)
        self.changed_sums.add(index)
        self.sums_by_stratum[index] = before + amount

    def through(
        self, reached: Reached, E_minus: FactSet, E_plus: FactSet, I: FactSet, D: FactSet, A: FactSet
    ) -> Iterator[Stratum]:
        self.context.pending.count_all()
        assert all(isinstance(named, Named) for named in (I, D, A)), "sets that change have names"
        return self.strata.through(self, reached, own_set(E_minus), own_set(E_plus), I, D, A)  # type: ignore[arg-type]

    def small_update(
        self, strata: Stratification, E: FactSet, minus: RowsByName, plus: RowsByName
    ) -> SmallUpdate | None:
        self.context.pending.count_all()
        assert isinstance(E, Named), "a set that changes has a name"
        return self.strata.small_update(self, strata, E, minus, plus)

    def gain(self, derivations: Bag, stratum: Stratum) -> MemorySet:
        return tally(self.matcher, derivations, SupportCounting(self, 1, stratum))

    def lose(self, derivations: Bag, stratum: Stratum) -> MemorySet:
        return tally(self.matcher, derivations, SupportCounting(self, -1, stratum))

    def gain_total(self, derivations: Bag, stratum: Stratum) -> MemorySet:
        return tally(self.matcher, derivations, TotalCounting(self, 1, stratum, self._pairs))

    def lose_from(
        self, delta: FactSet, s: Stratum, I: FactSet, D: FactSet, A: FactSet, gone: FactSet, enough: int = MANY
    ) -> FactSet:
        self.context.pending.count_all()
        if not s.recursive:  # nothing of the stratum follows from its own facts
            D |= delta
            gone |= delta
            return nothing(self.context)
        assert all(isinstance(named, Named) for named in (I, D, A, gone)), "sets that change have names"
        done = self._small.lose(self, own_set(delta), s, I, D, A, gone, enough)  # type: ignore[arg-type]
        return done if done is not None else super().lose_from(delta, s, I, D, A, gone, enough)

    def gain_from(self, delta: FactSet, s: Stratum, I: FactSet, D: FactSet, A: FactSet) -> FactSet:
        self.context.pending.count_all()
        if not s.recursive:
            self.put_on_top(delta)
            A |= delta
            return nothing(self.context)
        assert all(isinstance(named, Named) for named in (I, D, A)), "sets that change have names"
        done = self._small.gain(self, own_set(delta), s, I, D, A)  # type: ignore[arg-type]
        return done if done is not None else super().gain_from(delta, s, I, D, A)

    def saturate_from(self, delta: FactSet, s: Stratum, I: FactSet, round: int) -> FactSet:
        facts = own_set(delta)
        if isinstance(I, Named) and s.recursive and self._has_small_rounds(s, round, facts.count()):
            done = self._small.gain(self, facts, s, I, I, I)  # (I - D) | A is I if all three are the same
            if done is not None:
                return done
        return super().saturate_from(delta, s, I, round)

    def _has_small_rounds(self, s: Stratum, round: int, facts: int) -> bool:
        """Return whether this round is small, and rounds so far took as long as to make plans and indexes for kernels.

        Indexes may be there already. But that depends on the number of threads, and the order of rows must not.
        """
        rows = sum(self.context.tables[name].n for name in s.holds)
        return facts <= FACTS_OF_ROUND and rows <= ROWS_OF_ROUND * (round - len(s.recursive))

    def raise_top(self, top: int) -> None:
        """Note that facts were ranked on top, up to this rank."""
        self._note_ends()
        self.top = top

    def unsupported(self, facts: FactSet) -> Settled:
        return with_numbers(facts, self.support, 0, 0)

    def derivable(self, facts: FactSet) -> Settled:
        return with_numbers(facts, self.total, 1, count_kernels.LARGEST)

    def put_on_top(self, facts: FactSet) -> None:
        self._note_ends()
        self.top += 1
        journal = self.context.journal
        changed = () if self._pairs.is_undone_as_a_whole else (self.rank, self.support)
        self.context.pending.count_tallies()
        for table, rows in own_set(facts).listed():
            self._pairs.take_for(table, rows)
            rank, total, support = (table.column(name) for name in self.columns)
            for name in changed:
                journal.note_values(table, name, rows)
            count_kernels.rank_on_top(rows, self.top, rank, total, support)

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

    def _add_support(self, instances: Instances, stratum: Stratum, sign: int) -> None:
        self.context.pending.count_all()
        for group in own_instances(instances).groups:
            table, rows = group.head_rows(self.matcher)
            heights = group.highest(self.matcher, self.rank, stratum)
            log, used = self.context.journal.log(table, self.support, sign, len(rows))
            count_kernels.add_supports(
                rows, heights, table.column(self.rank), table.column(self.support), sign, log, used
            )

    def derivations(self, stratum: Stratum) -> int:
        self.context.pending.count_all()
        return self.sums_by_stratum.get(stratum.index, 0)

    def bindings(self, stratum: Stratum) -> int:
        return self.joins.bindings(stratum, self.derivations(stratum))

    def renumber(self, strata: Mapping[int, int]) -> None:
        self.context.pending.count_all()
        before, joins = self.sums_by_stratum, self.joins

        def undo() -> None:
            self.changed_sums.update(self.sums_by_stratum, before)
            self.sums_by_stratum, self.joins = before, joins

        self.context.journal.note(undo)
        self.sums_by_stratum, self.joins = renumbered(before, strata), JoinsOfStrata()
        self.changed_sums.update(self.sums_by_stratum, before)

    def forget(self, facts: FactSet, stratum: Stratum) -> None:
        for table, rows in self._read(facts):
            self.change_sum(stratum, -int(table.column(self.total)[rows].sum(dtype=np.int64)))
        self.clear(facts)

    def clear(self, facts: FactSet) -> None:
        """Set rank, total and support of facts to zero; the sums of strata stay."""
        for table, rows in self._read(facts):
            for column in (self.rank, self.total, self.support):
                self._assign(table, column, rows, 0)

    def items(self) -> Iterator[tuple[Fact, tuple[int, int, int]]]:
        ranks, supports = dict(numbered(self.context, self.rank)), dict(numbered(self.context, self.support))
        for fact, total in numbered(self.context, self.total):
            yield fact, (ranks.get(fact, 0), total, supports.get(fact, 0))

    @property
    def columns(self) -> tuple[str, ...]:
        return self.rank, self.total, self.support

    def sums(self) -> dict[str, int]:
        self.context.pending.count_all()
        return rank_sums(self.top, self.bottom, self.below, self.sums_by_stratum)

    def begin(self, sums: Mapping[str, int]) -> None:
        self.top, self.bottom, self.below, self.sums_by_stratum = sums_of_ranks(sums)
        self.changed_sums.update(self.sums_by_stratum)

    def _read(self, facts: FactSet) -> Iterator[tuple[Table, Rows]]:
        self.context.pending.count_all()
        return own_set(facts).listed()

    def _assign(self, table: Table, column: str, rows: Rows, values: int | Column) -> None:
        numbers = table.column(column)
        self.context.journal.note_values(table, column, rows)
        numbers[rows] = values

    def _note_ends(self) -> None:
        ends = self.top, self.bottom, self.below

        def undo() -> None:
            self.top, self.bottom, self.below = ends

        self.context.journal.note(undo)


def columns_of(books: Sequence[Numbered]) -> list[str]:
    """Return the names of the columns that some counters have in every table."""
    names: list[str] = []
    for book in books:
        assert isinstance(book, MemoryNumbers | MemoryRanks), "numbers of another engine"
        names += book.columns
    return names
