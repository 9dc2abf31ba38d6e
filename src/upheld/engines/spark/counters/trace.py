"""The trace of algorithm 2: the derivations of each fact by round, and its levels, all at the home of the fact."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from upheld.algebra.counters import Agenda
from upheld.algebra.sets import Bag, FactSet, Instances
from upheld.compiler.strata import Stratum
from upheld.engines.memory.bags.bags import Group, MemoryBag
from upheld.engines.memory.counters.trace import MemoryTrace
from upheld.engines.memory.sets.expressions import Settled
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Table
from upheld.engines.spark.context import Context
from upheld.engines.spark.counters.bags import PartitionedInstances, ask, codes_of, hold, own_bag, own_instances
from upheld.engines.spark.sets.sets import PartitionedSet, at_home, nothing, own_set
from upheld.language.core import Fact


class PartitionedTrace:
    """Numbers by round and levels of the facts at home. Levels of bodies are asked for."""

    def __init__(self, context: Context):
        self.context, self.local = context, MemoryTrace(context.matcher)

    def gain(self, derivations: Bag, round: int) -> PartitionedSet:
        return self._add(derivations, lambda bag: self.local.gain(bag, round))

    def lose(self, derivations: Bag, round: int) -> PartitionedSet:
        return self._add(derivations, lambda bag: self.local.lose(bag, round))

    def _add(self, derivations: Bag, add: Callable[[MemoryBag], Settled]) -> PartitionedSet:
        bag = own_bag(derivations)
        return at_home(self.context, add(bag.local()), bag.bound)

    def counted(self, facts: FactSet, round: int) -> PartitionedSet:
        return self._chosen(facts, lambda mine: self.local.counted(mine, round))

    def at(self, facts: FactSet, round: int) -> PartitionedSet:
        return self._chosen(facts, lambda mine: self.local.at(mine, round))

    def after(self, facts: FactSet, round: int) -> PartitionedSet:
        return self._chosen(facts, lambda mine: self.local.after(mine, round))

    def were_after(self, facts: FactSet, round: int) -> PartitionedSet:
        return self._chosen(facts, lambda mine: self.local.were_after(mine, round))

    def _chosen(self, facts: FactSet, choose: Callable[[Settled], Settled]) -> PartitionedSet:
        mine = own_set(facts)
        return at_home(self.context, choose(Settled(self.context.memory, mine.here())), mine.bound)

    def later_rounds(self, facts: FactSet, round: int) -> dict[int, PartitionedSet]:
        mine = own_set(facts)
        none = self.context.local.nothing
        later: dict[int, Settled] = self.local.later_rounds(Settled(self.context.memory, mine.here()), round)
        _, notes = self.context.wire.exchange("later rounds", None, set(later))
        rounds = sorted(set().union(*notes))
        return {i: at_home(self.context, later.get(i, none), mine.bound) for i in rounds}

    def place(self, facts: FactSet, round: int) -> None:
        self.local.place(Settled(self.context.memory, own_set(facts).here()), round)

    def settle_levels(self) -> None:
        self.local.settle_levels()

    def by_round(self, instances: Instances, stratum: Stratum, *, old: bool) -> dict[int, PartitionedInstances]:
        mine = own_instances(instances)
        groups: dict[int, list[Group]] = {}
        for group, levels in self._levels(mine, stratum, old):
            for i in np.unique(levels).tolist():
                groups.setdefault(i, []).append(group.chosen(levels == i))
        _, notes = self.context.wire.exchange("rounds of instances", None, set(groups))
        return {i: mine.chosen(groups.get(i, ())) for i in sorted(set().union(*notes))}

    def _levels(self, instances: PartitionedInstances, stratum: Stratum, old: bool) -> Iterator[tuple[Group, Codes]]:
        """Yield the instances of each rule with the rounds in which they fire."""
        column = self.local.levels(old=old)
        own = {rule: [rule.positive[i] for i in stratum.own(rule)] for rule in instances.rules}
        asked = [(a.predicate, codes_of(self.context, g, a)) for g in instances.groups for a in own[g.rule]]
        answers: Iterator[Codes] = iter(())
        if any(own.values()):
            answers = iter(ask(self.context, "levels of bodies", asked, lambda t, rows: _numbers(t, rows, column), 1))
        for group in instances.groups:
            levels = np.zeros(len(group), np.int64)
            for _ in own[group.rule]:
                np.maximum(levels, next(answers)[0], out=levels)
            yield group, levels + 1

    def split(
        self, instances: Instances, stratum: Stratum, round: int, P: FactSet, N: FactSet, *, old: bool = False
    ) -> tuple[PartitionedInstances, PartitionedInstances]:
        mine = own_instances(instances)
        holding = hold(mine, own_set(P), own_set(N))
        fire, quiet = [], []
        for (group, levels), holds in zip(self._levels(mine, stratum, old), holding, strict=True):
            fires = holds & (levels == round)
            fire.append(group.chosen(fires))
            quiet.append(group.chosen(~fires))
        return mine.chosen(fire), mine.chosen(quiet)

    def small_rounds(
        self, agenda: Agenda, s: Stratum, I: FactSet, D: FactSet, A: FactSet, L: FactSet
    ) -> tuple[PartitionedSet, PartitionedSet]:
        # None: the levels of a body may be at another home, so each round exchanges them.
        return nothing(self.context), nothing(self.context)

    def items(self) -> Iterator[tuple[Fact, dict[int, int], int]]:
        mine = [item for item in self.local.items() if self._is_here(item[0])]
        _, notes = self.context.wire.exchange("items of a trace", None, mine)
        return (item for note in notes for item in note)

    def _is_here(self, fact: Fact) -> bool:
        context, (predicate, row) = self.context, fact
        codes = context.codec.encode_rows([row], context.local.tables[predicate].types)
        return int(context.owners.homes(predicate, codes.T)[0]) == context.wire.me


def _numbers(table: Table, rows: Rows, column: str) -> Codes:
    return table.column(column)[rows].astype(np.int64)[None]
