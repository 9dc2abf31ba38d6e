"""Derivations added to numbers of their heads as they are found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from upheld.compiler.strata import Stratum
from upheld.engines.memory.bags.pair_counts import CountedPairs
from upheld.engines.memory.bytecode.encoder import Columns, by_table
from upheld.engines.memory.bytecode.records import LOGGED
from upheld.engines.memory.joins.batch import Join, Sink, extended
from upheld.engines.memory.joins.few_facts import Instances, count_heads, new_state
from upheld.engines.memory.joins.matching import Matcher
from upheld.engines.memory.joins.sinks import (
    NO_COUNTS,
    Heads,
    HeadsOnly,
    KnownPairs,
    fitted,
    made_joined_rows,
    made_rows,
)
from upheld.engines.memory.kernels import counts as count_kernels
from upheld.engines.memory.plans.plan import HEIGHT, AtomStep, Plan
from upheld.engines.memory.plans.where import Where
from upheld.engines.memory.sets.collected import Collected, MadeRows, too_many_derivations
from upheld.engines.memory.sets.context import Context
from upheld.engines.memory.sets.expressions import Settled
from upheld.engines.memory.sets.journal import NO_LOG, Journal
from upheld.engines.memory.sets.truth_tables import NOTHING, Spelling, Truth
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.pairs.shape import PairShape
from upheld.engines.memory.storage.table import Table
from upheld.language.core import Fact, Rule

#: Instances for each new head at least, for known pairs to be counted as they are found.
MOST_NEW = 8

#: Distinct rows of each table, and a number for each.
Counts = dict[Table, tuple[Rows, Codes]]


class Counting:
    """Adds derivations to one number of their heads. `sign` is -1 where they are taken away."""

    #: The column of ranks and the stratum within which the bodies of derivations are ranked, if they are.
    ranked: tuple[str, Stratum] | None = None

    def note(self, derivations: int) -> None:
        """Note how many derivations are about to be counted."""

    def joined(self, join: Join) -> None:
        """Note a run of a plan that has found derivations."""

    #: Whether one run has all derivations.
    is_one_round = False

    def __init__(self, journal: Journal, numbers: str, sign: int, pairs: CountedPairs | None = None):
        self.journal, self.numbers, self.sign = journal, numbers, sign
        #: Where pairs may be counted, and where they are in the run under way.
        self._may_count = pairs
        self._pairs: CountedPairs | None = None

    @contextmanager
    def run(self, collected: Collected, reject: Spelling | None) -> Iterator[None]:
        """A block in which the derivations of one bag are counted, and heads outside `reject` are collected."""
        pairs = self._may_count
        if pairs is None or not pairs.begin(reject):
            yield
            return
        self._pairs = pairs
        try:
            yield
        except BaseException:
            pairs.forget()
            raise
        finally:
            self._pairs = None
        pairs.end(collected, is_last=self.is_one_round or not collected.rows())

    @property
    def columns(self) -> Columns:
        """The columns that derivations are counted in."""
        return Columns(numbers=self.numbers)

    def sink(self, collected: Collected, reject: Truth, plan: Plan, start: Table | None) -> Sink:
        kind = HeadTally if self.ranked is None else TallySink
        return kind(self, collected, reject, plan, plan.has_wide_values(start))

    def add_rows(
        self, collected: Collected, table: Table, values: MadeRows, reject: Truth, heights: Codes | None
    ) -> int:
        """Count the heads of some instances, given by their values. Return how many are new, or were looked up."""
        table.column(self.numbers)
        pairs = self._pairs
        if pairs is None:
            self._look_up(collected, table, values, reject)
            return len(values)
        before = table.n
        values, full = pairs.counted(table, values, reject, collected)
        appended = table.n - before
        if len(values):
            rows, count = table.n, collected.count(table)
            self._look_up(collected, table, values, reject)
            back = collected.count(table) - count - (table.n - rows)  # facts that had a row
            pairs.look_up(table, len(values) - back, reject, collected.truth)
        pairs.add_full(table, full)
        return appended + len(values)

    def known_pairs(self, table: Table) -> KnownPairs:
        """Return the pairs of a table whose derivations are counted as they are found."""
        return self._pairs.known(table) if self._pairs is not None else NO_COUNTS

    def _look_up(self, collected: Collected, table: Table, values: MadeRows, reject: Truth) -> None:
        """Count heads in the rows that have their values."""
        if self._pairs is not None:
            log, used = NO_LOG, np.zeros(1, np.int64)
        else:
            log, used = self.journal.log(table, self.numbers, self.sign, len(values))
        collected.tally(table, values, reject, self.numbers, self.sign, log, used)

    def add_counts(self, table: Table, rows: Rows, counts: Codes) -> None:
        """Count distinct rows, each as often as it says."""
        column = table.column(self.numbers)
        self.journal.note_values(table, self.numbers, rows)
        if not count_kernels.add_counts(column, rows, counts, self.sign):
            raise too_many_derivations(table.name)


class CountTaker:
    """Counts the heads of instances, and collects those that `reject` does not hold for."""

    def __init__(self, counting: Counting, collected: Collected, reject: Truth):
        self.counting, self.collected, self.reject = counting, collected, reject
        self.columns = counting.columns

    def take(self, instances: Instances) -> None:
        counting, columns, tables = self.counting, self.columns, instances.code.tables
        log, state, sign = np.empty((len(instances.lines), 3), np.int32), new_state(), counting.sign
        counting.note(len(instances.lines))

        def undo() -> None:
            counted = log[: state[LOGGED]]
            state[LOGGED] = 0
            for name, some in ((columns.numbers, counted), (columns.support, counted[counted[:, 2] != 0])):
                if name is not None:
                    for table, rows in by_table(tables, some):
                        np.subtract.at(table.columns[name], rows, sign)

        counting.journal.note(undo)
        count_heads(instances, self.collected, self.reject, columns, sign, log, state)


#: The column of `Scratch`.
_SCRATCH = "scratch"


class Scratch(Counting):
    """Counts in a column that is dropped afterwards, so nothing is noted to be undone."""

    def __init__(self, context: Context):
        super().__init__(Journal(), _SCRATCH, 1)
        self.context = context

    def add_rows(
        self, collected: Collected, table: Table, values: MadeRows, reject: Truth, heights: Codes | None
    ) -> int:
        if _SCRATCH not in table.columns:
            self.context.scratched.append(table)  # before it gets the column: an interruption leaves no stray one
        return super().add_rows(collected, table, values, reject, heights)


class TallySink:
    """Counts the heads of a plan."""

    def __init__(self, counting: Counting, collected: Collected, reject: Truth, plan: Plan, wide: bool):
        self.counting, self.collected, self.reject = counting, collected, reject
        self.plan, self.wide = plan, wide

    def make(self, B: Codes, width: int) -> tuple[MadeRows, Codes | None]:
        heights = B[self.plan.last.index(HEIGHT)] if self.counting.ranked is not None else None
        plan = self.plan
        return made_rows(plan.head, plan.terms, plan.constants, B, width, self.wide), heights

    def make_joined(
        self, B: Codes, step: AtomStep, parents: Rows, matches: Rows, count: int
    ) -> tuple[MadeRows, Codes | None]:
        if self.counting.ranked is not None:
            return self.make(extended(B, step, parents, matches, count), count)
        return made_joined_rows(self.plan, B, step, parents, matches, count, self.wide), None

    def enter(self, piece: tuple[MadeRows, Codes | None]) -> None:
        values, heights = piece
        self._count(fitted(self.plan.head, values) if self.wide else values, heights)

    def _count(self, values: MadeRows, heights: Codes | None) -> None:
        meter = self.collected.context.meter
        meter.instances(self.plan.rule, len(values))
        self.counting.note(len(values))
        self.counting.add_rows(self.collected, self.plan.head, values, self.reject, heights)
        meter.limit_facts(self.collected.count(self.plan.head))


class HeadTally(HeadsOnly):
    """Counts the heads of a plan where bodies are not ranked. Instances with known pairs may be counted elsewhere."""

    def __init__(self, counting: Counting, collected: Collected, reject: Truth, plan: Plan, wide: bool):
        super().__init__(collected, plan, reject, wide)
        self.counting = counting
        #: How many heads were new, or had to be looked up.
        self._new = 0

    @property
    def matrix(self) -> str:
        return "counts in squares" if self.shape.has_squares else "counts"

    @property
    def shape(self) -> PairShape:
        return self.counting.known_pairs(self.plan.head).shape

    def known_pairs(self, matrix: str) -> tuple[Any, ...]:
        known = self._known_pairs() if matrix == self.matrix else NO_COUNTS
        return known.known, known.counts, *known.shape.arguments[: 3 if matrix == "counts in squares" else 2]

    def others(self, rows: MadeRows) -> MadeRows:
        known = self._known_pairs()
        return rows if known is NO_COUNTS else known.others(rows)

    def _known_pairs(self) -> KnownPairs:
        # Where many pairs are new, it is faster to look at all of them in one loop.
        return self.counting.known_pairs(self.plan.head) if self._new * MOST_NEW <= self.instances else NO_COUNTS

    def enter(self, piece: Heads) -> None:
        table, meter = self.plan.head, self.collected.context.meter
        self.instances += piece.instances
        meter.instances(self.plan.rule, piece.instances)
        self.counting.note(piece.instances)
        rows = fitted(table, piece.rows) if self.wide else piece.rows
        self._new += self.counting.add_rows(self.collected, table, rows, self.reject, None)
        meter.limit_facts(self.collected.count(table))


def counted(matcher: Matcher, rules: Sequence[Rule], where: Where) -> Counts:
    """Return the heads of the instances that `derive` speaks of, each with the number of its instances."""
    with where, scratch(matcher.context) as (collected, counting):
        matcher.forwards(rules, where, lambda plan, start, _: counting.sink(collected, NOTHING, plan, start))
        return numbers_of(collected, counting)


@contextmanager
def scratch(context: Context) -> Iterator[tuple[Collected, Counting]]:
    """Give what counts rows for a moment: a bit and a column of their own, which nothing undoes."""
    counting = Scratch(context)
    with context.new_bit("counted") as bit:
        collected = Collected(context, bit)
        _drop_scratch(context)  # if an interruption has left some
        try:
            yield collected, counting
        finally:
            _drop_scratch(context)
        Settled(context, collected.rows(), bit).release()


def _drop_scratch(context: Context) -> None:
    while context.scratched:
        context.scratched[-1].columns.pop(_SCRATCH, None)
        context.scratched.pop()


def numbers_of(collected: Collected, counting: Counting) -> Counts:
    """Return the rows that were counted, each with its number."""
    listed = collected.rows().items()
    return {table: (rows, table.columns[counting.numbers][rows].astype(np.int64)) for table, rows in listed}


def numbered(context: Context, column: str) -> Iterator[tuple[Fact, int]]:
    """Yield the facts with a number other than zero in a column, each with it."""
    context.pending.count_all()
    for table in context.tables.values():
        if column in table.columns:
            rows = np.flatnonzero(table.columns[column][: table.n])
            decoded = context.codec.decode_rows(table.rows[rows], table.types)
            for row, number in zip(decoded, table.columns[column][rows].tolist(), strict=True):
                yield (table.name, row), number
