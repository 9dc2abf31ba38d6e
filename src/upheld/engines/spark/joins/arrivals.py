"""Heads at their homes: heads that are derived there and need not travel, and heads that arrive from other tasks.

Many bodies are matched where their heads are at home. Such heads go straight from the join into the table, as in the
memory engine: by its kernels of hot rules, and without the facts that a set is known to have. Heads that have to travel
do so as well if many instances may have the same one: each then travels once. The rows that they have in the table of
the task that derived them are in no set.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from upheld.engines.memory.bags.counting import Counting, TallySink
from upheld.engines.memory.joins.sinks import HeadSink, head_sink
from upheld.engines.memory.kernels import flags as flag_kernels
from upheld.engines.memory.plans.plan import Plan
from upheld.engines.memory.sets.collected import Collected, MadeRows
from upheld.engines.memory.sets.expressions import MemorySet, Settled
from upheld.engines.memory.sets.truth_tables import NOTHING, Spelling, Truth
from upheld.engines.memory.storage.arrays import FLAGS
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Table
from upheld.engines.spark.context import Context, fitted
from upheld.engines.spark.tasks.wire import Outbox
from upheld.language.core import Rule


class HomeTally(TallySink):
    """Counts the heads of a plan at their home. The sum of all tasks is noted elsewhere."""

    instances = 0

    def _count(self, values: MadeRows, heights: Codes | None) -> None:
        self.instances += len(values)
        self.counting.add_rows(self.collected, self.plan.head, values, self.reject, heights)


class Arrivals:
    """Takes the heads of one derivation, except facts of a set; with `counting`, it counts all of them.

    `facts` are the heads that were taken, when it is done.
    """

    def __init__(self, context: Context, reject: MemorySet | None = None, counting: Counting | None = None):
        self.context, self._reject, self._counting = context, reject, counting
        self.facts: MemorySet = context.local.nothing
        self._collected: Collected
        #: Heads that have to travel, if some were made distinct: their bit, and they.
        self._departing: tuple[int, Collected] | None = None
        self._spelling: Spelling | None = None
        self._truth: Truth = NOTHING

    @contextmanager
    def taking(self) -> Iterator[None]:
        """A block within which heads are taken, in an evaluation of the sets that bodies are matched in."""
        memory = self.context.memory
        if self._reject is not None:
            self._spelling = self._reject.spelling()
            self._truth = memory.truth_of(self._spelling)
        with memory.new_bit("arrivals") as bit:
            self._collected = Collected(memory, bit)
            try:
                yield
            except BaseException:
                if self._departing is not None:
                    memory.clear(self._departing[0])
                raise
            rows = self._collected.rows()
            if rows:
                self.facts = Settled(memory, rows, bit)
                return
        memory.bits.give_back(bit)

    def sink(self, plan: Plan, start: Table | None, work: int) -> HeadSink | HomeTally:
        """Return what takes the bindings of a plan, which begin with `work` rows of a table.

        Bindings that have come from other tasks begin with no table, and may have any values.
        """
        wide = start is None or plan.has_wide_values(start)
        if self._counting is not None:
            return HomeTally(self._counting, self._collected, NOTHING, plan, wide)
        if start is None:
            return HeadSink(self._collected, plan, self._truth, wide)
        return head_sink(self._collected, plan, self._spelling, start, work)

    def makes_distinct(self, rule: Rule) -> bool:
        """Return whether heads of a rule that have to travel are made distinct first: several instances may have one.

        Where each is counted they all travel.
        """
        return self._counting is None and not set(rule.head.variables()).issuperset(rule.variables())

    def departing_sink(self, plan: Plan, start: Table | None, work: int) -> HeadSink:
        """Return what takes the bindings of a plan whose heads have to travel, as `sink`."""
        if self._departing is None:
            bit = self.context.memory.bits.take("departing")
            self._departing = bit, Collected(self.context.memory, bit)
        _, collected = self._departing
        if start is None:
            return HeadSink(collected, plan, self._truth, True)
        return head_sink(collected, plan, self._spelling, start, work)

    def depart(self, outbox: Outbox) -> None:
        """Put distinct heads into the boxes of their homes, and take those that are at home here."""
        if self._departing is None:
            return
        memory, (bit, collected) = self.context.memory, self._departing
        for table, rows in collected.rows().items():
            columns, home = ((0,), -1) if table.arity else ((), self.context.owners.of_name(table.name))
            for task, places in self.context.owners.held(table.rows, rows, columns, also=home):
                if task == self.context.wire.me:
                    self._collected.take(table, rows[places], NOTHING)
                else:
                    outbox[task].append((table.name, table.rows.take(rows[places], 0)))
            flag_kernels.clear_bits(table.flags, rows, FLAGS(~(1 << bit) & 0xFFFF))
        memory.bits.give_back(bit)
        self._departing = None

    def take(self, came: Outbox) -> None:
        """Take heads that have come, each with the height of its body if supports are counted."""
        for table, codes, *heights in self.context.arrived(came):
            if self._counting is None:
                self._collected.enter(table, fitted(table, codes), self._truth)
            else:
                height = heights[0] if heights else None
                self._counting.add_rows(self._collected, table, fitted(table, codes), NOTHING, height)
