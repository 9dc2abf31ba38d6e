"""The classes of an equivalence: every task has all memberships, and one task finds how they change.

Which number a class has may be any, so one task gives the numbers, and the others take them from it.
"""

from __future__ import annotations

from collections.abc import Callable

from upheld.algebra.expansion import Rows
from upheld.algebra.sets import FactSet
from upheld.engines.memory.equality.equivalences import MemoryGroups
from upheld.engines.memory.sets.expressions import Settled
from upheld.engines.spark.context import Context
from upheld.engines.spark.sets.sets import PartitionedSet, nothing, own_set
from upheld.language.core import Classing
from upheld.language.values import Value

#: The task that finds changes.
_FIRST = 0


class PartitionedGroups:
    """The classes of one equivalence. The relation of its memberships is replicated."""

    def __init__(self, context: Context, classing: Classing):
        assert classing.members in context.views.replicated, "memberships that not every task has"
        self.context, self.members = context, classing.members
        self.local = MemoryGroups(context.memory, classing)

    def join(self, links: FactSet, held: FactSet) -> tuple[PartitionedSet, PartitionedSet]:
        mine, memberships = own_set(links), own_set(held).completed()
        return self._changes([mine], lambda facts: self.local.join(facts[0], memberships.local))

    def part(self, links: FactSet, sure: FactSet, held: FactSet) -> tuple[PartitionedSet, PartitionedSet]:
        mine, memberships = [own_set(links), own_set(sure)], own_set(held).completed()
        return self._changes(mine, lambda facts: self.local.part(facts[0], facts[1], memberships.local))

    def _changes(
        self, links: list[PartitionedSet], find: Callable[[list[Settled]], tuple[Settled, Settled]]
    ) -> tuple[PartitionedSet, PartitionedSet]:
        """Bring links to one task, and return the memberships that it finds removed and added."""
        context = self.context
        if not links[0].bound:
            return nothing(context), nothing(context)
        gathered = [context.gathered("links", facts.here(), to=(_FIRST,)) for facts in links]
        changes = find(gathered) if context.wire.me == _FIRST else (context.local.nothing,) * 2
        removed, added = (context.gathered("memberships", dict(facts.listed())) for facts in changes)
        return self._everywhere(removed), self._everywhere(added)

    def _everywhere(self, memberships: Settled) -> PartitionedSet:
        return PartitionedSet(self.context, memberships, frozenset([self.members]), whole=True)

    def around(self, links: FactSet, facts: FactSet) -> PartitionedSet:
        mine = own_set(facts).completed()
        everywhere = self.context.gathered("links", own_set(links).here())
        return PartitionedSet(self.context, self.local.around(everywhere, mine.local), mine.bound, whole=True)

    def pairs(self, held: FactSet) -> Rows:
        return self.local.pairs(own_set(held).completed().local)

    def changed(self, left: FactSet, come: FactSet, held: FactSet) -> tuple[Rows, Rows]:
        return self.local.changed(*(own_set(facts).completed().local for facts in (left, come, held)))

    def class_of(self, value: Value, held: FactSet) -> list[Value]:
        self.context.codec.add([value] if isinstance(value, str) else [])
        return self.local.class_of(value, own_set(held).completed().local)
