"""Aggregates: all facts of a group are with the owner of its first column, which is the home of its value.

The facts of an aggregate without groups are with one task. For the aggregates of the program these copies are kept; for
the aggregates of a query they are sent when they are needed.
"""

from __future__ import annotations

import numpy as np

from upheld.algebra.sets import FactSet
from upheld.engines.memory.counters.aggregates import MemoryAggregate
from upheld.engines.memory.sets.expressions import MemorySet, Settled
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.codec import is_text
from upheld.engines.memory.storage.table import Table
from upheld.engines.spark.codec import replaced
from upheld.engines.spark.context import Context
from upheld.engines.spark.sets.sets import PartitionedSet, at_home, nothing, own_set
from upheld.language.core import Aggregation
from upheld.language.types.aggregates import keeps_texts


class PartitionedAggregate:
    """The values of an aggregate. Each task computes the values of the groups that it owns."""

    def __init__(self, context: Context, aggregation: Aggregation):
        self.context, self.aggregation = context, aggregation
        self.local = MemoryAggregate(context.memory, aggregation)
        self._body = context.local.tables[aggregation.body]
        #: The task with all facts, if there are no groups.
        self._task = context.owners.of_name(aggregation.body)

    def changed(
        self, gone: FactSet, came: FactSet, held: FactSet, now: FactSet
    ) -> tuple[PartitionedSet, PartitionedSet]:
        body, groups = self.aggregation.body, self.aggregation.groups
        if body not in own_set(gone).bound | own_set(came).bound:
            return nothing(self.context), nothing(self.context)
        views = self.context.views
        is_kept = views.has(body, groups[0]) if groups else body in views.collected
        less, more = (self._rows_of_groups(own_set(facts), is_kept) for facts in (gone, came))
        facts = own_set(now).completed().local if is_kept else self._rows_of_groups(own_set(now), is_kept)
        if groups:
            removed, added = self._changed(less, more, own_set(held).local, facts)
            bound = frozenset([self.aggregation.relation])
            return at_home(self.context, removed, bound), at_home(self.context, added, bound)
        values = self.context.local.tables[self.aggregation.relation]
        rows = self.context.owners.at_home(values, own_set(held).local.of(values))
        before = self.context.gathered("values of aggregates", {values: rows}, to=(self._task,))
        return self._sent_home(values, *self._changed(less, more, before, facts))

    def _changed(self, gone: MemorySet, came: MemorySet, held: MemorySet, now: MemorySet) -> tuple[Settled, Settled]:
        """Return the values removed and added, with codes of new terms that all tasks know."""
        left, come = self.local.results(gone, came, held, now)
        if keeps_texts(self.aggregation.function):
            agreed = self.context.agree_on_texts()
            for column, type in enumerate(self.context.local.tables[self.aggregation.relation].types):
                if is_text(type):
                    come[:, column] = replaced(come[:, column], agreed)
        return self.local.entered(left, come)

    def _rows_of_groups(self, facts: PartitionedSet, is_kept: bool) -> Settled:
        """Return the facts of the body whose groups this task owns."""
        context, table, groups = self.context, self._body, self.aggregation.groups
        if is_kept:
            rows = facts.completed().local.of(table)
            return self._settled(self._owned(rows) if groups else rows if context.wire.me == self._task else rows[:0])
        rows = context.owners.at_home(table, facts.local.of(table))
        codes, outbox = table.rows[rows], context.outbox()
        if groups:
            for task, places in context.owners.split(context.owners.of(codes[:, groups[0]])):
                outbox[task].append((table.name, codes[places]))
        else:
            outbox[self._task].append((table.name, codes))
        came, _ = context.wire.exchange("facts of groups", outbox)
        return context.entered({}, context.arrived(came))

    def _owned(self, rows: Rows) -> Rows:
        return self.context.owners.owned(self._body, rows, self.aggregation.groups[0])

    def _settled(self, rows: Rows) -> Settled:
        return Settled(self.context.memory, {self._body: rows} if len(rows) else {})

    def _sent_home(self, values: Table, removed: MemorySet, added: MemorySet) -> tuple[PartitionedSet, PartitionedSet]:
        """Return values that one task has found removed and added, at their homes."""
        context, outbox = self.context, self.context.outbox()
        for sign, facts in ((-1, removed), (1, added)):
            codes = values.rows[facts.of(values)]
            context.home_of(outbox, values.name, codes, np.full(len(codes), sign))
        came, _ = context.wire.exchange("values of aggregates", outbox)
        arrived = list(context.arrived(came))
        left, come = (
            context.entered({}, [(table, codes[signs == sign]) for table, codes, signs in arrived]) for sign in (-1, 1)
        )
        bound = frozenset([values.name])
        return at_home(context, left, bound), at_home(context, come, bound)
