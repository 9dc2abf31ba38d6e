"""Classes of equal constants: every task has all of them, and its own facts.

Classes are the same in all tasks, because the equalities that change them come to all tasks. A fact may be represented
by one that is at home elsewhere. Mentions of constants are counted where the facts are at home.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from upheld.algebra.equality import Classes, Constants, Difference
from upheld.algebra.expansion import Rows
from upheld.algebra.rounds import ClassesRoundByRound
from upheld.algebra.sets import FactSet
from upheld.compiler.equality.equality import Equality
from upheld.engines.memory.bags.counting import Counts
from upheld.engines.memory.equality.classes import MemoryClasses, MemoryJoining
from upheld.engines.memory.equality.code_sets import CodeSet
from upheld.engines.memory.equality.equivalences import MemoryGroups
from upheld.engines.memory.sets.expressions import MemorySet, Settled
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.spark.context import Context
from upheld.engines.spark.counters.bags import PartitionedBag, found_rows
from upheld.engines.spark.sets.sets import PartitionedSet, at_home, nothing, own_set
from upheld.language.core import Classing
from upheld.language.values import Value


class PartitionedClasses(ClassesRoundByRound):
    """The classes of one task. `local` has the classes of all tasks, and the mentions in facts at home here."""

    def __init__(self, context: Context, equality: Equality):
        context.codec.add([equality.value] if isinstance(equality.value, str) else [])
        self.context, self.local = context, MemoryClasses(context.matcher, equality)

    # -- facts and their representatives -------------------------------------------------------------------------------

    def represent(self, facts: FactSet) -> PartitionedSet:
        mine, context = own_set(facts), self.context
        if not mine.bound:
            return mine
        outbox = context.outbox()
        for table, rows in self.local.represent(self._home(mine)).listed():
            context.home_of(outbox, table.name, table.rows[rows])
        came, _ = context.wire.exchange("represent", outbox)
        return at_home(context, context.entered({}, context.arrived(came)), mine.bound)

    def rewritten(self, facts: FactSet) -> PartitionedBag:
        mine, context = own_set(facts), self.context
        if not mine.bound:
            return PartitionedBag(context, mine.bound, {})
        outbox = context.outbox()
        for table, (rows, numbers) in self.local.rewritten(self._home(mine)).counts.items():
            context.home_of(outbox, table.name, table.rows[rows], numbers)
        came, _ = context.wire.exchange("rewritten", outbox)
        arrived = list(context.arrived(came))
        context.entered({}, ((table, codes) for table, codes, _ in arrived))
        counts: Counts = {}
        for table in {table for table, *_ in arrived}:
            rows = np.concatenate([found_rows(table, codes) for t, codes, _ in arrived if t is table])
            numbers = np.concatenate([some for t, _, some in arrived if t is table])
            distinct, which = np.unique(rows, return_inverse=True)
            sums = np.zeros(len(distinct), np.int64)
            np.add.at(sums, which, numbers)
            counts[table] = distinct, sums
        return PartitionedBag(context, mine.bound, counts)

    def _home(self, facts: PartitionedSet) -> Settled:
        return Settled(self.context.memory, facts.here())

    def _chosen(self, facts: FactSet, choose: Callable[[MemorySet], Settled]) -> PartitionedSet:
        """Return facts chosen by their constants alone: copies are chosen as their facts are."""
        mine = own_set(facts)
        return PartitionedSet(self.context, choose(mine.local), mine.bound, whole=mine.whole)

    def apart(self, facts: FactSet) -> PartitionedSet:
        return self._chosen(facts, self.local.apart)

    def several(self, facts: FactSet) -> PartitionedSet:
        return self._chosen(facts, self.local.several)

    def plain(self, facts: FactSet) -> PartitionedSet:
        return self._chosen(facts, self.local.plain)

    def mentioning(self, facts: FactSet, constants: Constants) -> PartitionedSet:
        return self._chosen(facts, lambda mine: self.local.mentioning(mine, constants))

    def expansions(self, normal: FactSet, facts: FactSet) -> PartitionedSet:
        everywhere = self._everywhere("expansions", own_set(normal))
        return self._chosen(facts, lambda mine: self.local.expansions(everywhere, mine))

    def covered(self, normal: FactSet, facts: FactSet, by: Classes) -> PartitionedSet:
        mine = own_set(normal)
        everywhere = self._everywhere("covered", self.expansions(normal, facts))
        covered = self.local.covered(self._home(mine), everywhere, _own(by).local)
        return at_home(self.context, covered, mine.bound)

    # -- constants -----------------------------------------------------------------------------------------------------

    def constants(self, equalities: FactSet) -> CodeSet:
        return self._gathered("constants", self.local.constants(self._home(own_set(equalities))))

    def non_singletons(self, facts: FactSet) -> CodeSet:
        return self._gathered("non-singletons", self.local.non_singletons(self._home(own_set(facts))))

    def members(self, representatives: Constants) -> CodeSet:
        return self.local.members(representatives)

    def loops(self, constants: Constants) -> PartitionedSet:
        """The loops of constants that all tasks know: each of them has all loops, those at home elsewhere as well."""
        return self._known(self.local.loops(constants), self.local.equality.predicate)

    def mentioned(self, loops: FactSet, facts: FactSet) -> PartitionedSet:
        everywhere, mine = self._everywhere("loops", own_set(loops)), own_set(facts)
        here = self.local.constants(self.local.mentioned(everywhere, mine.local))
        return own_set(loops) & self.loops(self._gathered("mentioned", here))

    def count(self, gone: FactSet, came: FactSet) -> None:
        self.local.count(self._home(own_set(gone)), self._home(own_set(came)))

    def counted(self, loops: FactSet) -> PartitionedSet:
        constants = self.constants(loops)
        _, notes = self.context.wire.exchange("mentions", None, self.local.mentions(constants))
        mentions: Codes = np.sum(notes, axis=0)
        return own_set(loops) & self.loops(CodeSet(constants.codes[mentions > 0]))

    def _gathered(self, operator: str, mine: CodeSet) -> CodeSet:
        """Return the constants of all tasks."""
        _, notes = self.context.wire.exchange(operator, None, mine.codes)
        return CodeSet(np.unique(np.concatenate(notes)))

    def _everywhere(self, operator: str, facts: PartitionedSet) -> Settled:
        """Return the facts of a set from all tasks, in every task."""
        return self.context.gathered(operator, facts.here()) if facts.bound else self.context.local.nothing

    def _known(self, local: Settled, predicate: str) -> PartitionedSet:
        """Return a set whose facts all tasks have. A row of a fact that is elsewhere is never looked up here."""
        return PartitionedSet(self.context, local, frozenset([predicate]), whole=True)

    # -- classes -------------------------------------------------------------------------------------------------------

    def joining(self, equalities: FactSet) -> MemoryJoining:
        return self.local.joining(self._everywhere("joining", self.apart(equalities)))

    def torn(self, representatives: Constants, equalities: FactSet) -> CodeSet:
        return self.local.torn(representatives, self._everywhere("torn", self.apart(equalities)))

    def split(self, representatives: Constants, by: Classes | None = None) -> None:
        self.local.split(representatives, None if by is None else _own(by).local)

    def split_all(self) -> None:
        self.local.split_all()

    def representatives(self, values: Sequence[Value]) -> list[Value]:
        self.context.codec.add(value for value in values if isinstance(value, str))
        return self.local.representatives(values)

    def class_of(self, value: Value) -> list[Value]:
        self.context.codec.add([value] if isinstance(value, str) else [])
        return self.local.class_of(value)

    def remember(self) -> None:
        self.local.remember()

    def difference(self) -> Difference:
        return self.local.difference()

    def memberships(self, predicate: str) -> tuple[PartitionedSet, PartitionedSet]:
        removed, added = self.local.memberships(predicate)
        return self._known(removed, predicate), self._known(added, predicate)

    def expanded(self, facts: FactSet, predicate: str) -> Rows:
        return self.local.expanded(self._of(facts, predicate), predicate)

    def changed(self, gone: FactSet, came: FactSet, predicate: str) -> tuple[Rows, Rows]:
        return self.local.changed(self._of(gone, predicate), self._of(came, predicate), predicate)

    def _of(self, facts: FactSet, predicate: str) -> Settled:
        """Return the facts of one predicate from all tasks, for the readers."""
        mine, context = own_set(facts), self.context
        table = context.local.tables[predicate]
        if not mine.bound:
            return context.local.nothing
        rows = context.owners.at_home(table, mine.local.of(table))
        return context.gathered("facts of a predicate", {table: rows}, to=context.wire.readers)


def _own(classes: Classes) -> PartitionedClasses:
    assert isinstance(classes, PartitionedClasses), "classes of another engine"
    return classes


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
