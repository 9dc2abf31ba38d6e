"""Backward chaining that goes on where it stopped: the candidates of a fact are at its home.

They are listed in full on the first request for the fact, and tested when their turn comes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from upheld.algebra.sets import FactSet
from upheld.engines.memory.bags.bags import Group
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.table import Table
from upheld.engines.spark.context import Context
from upheld.engines.spark.counters.bags import PartitionedInstances, hold
from upheld.engines.spark.counters.numbers import chosen
from upheld.engines.spark.joins.matching import Matching
from upheld.engines.spark.joins.plans import Kind
from upheld.engines.spark.joins.reach import Sets
from upheld.engines.spark.joins.results import instances, instances_of
from upheld.engines.spark.sets.sets import PartitionedSet, own_set
from upheld.language.core import Rule


@dataclass
class _Candidates:
    """Instances of one rule that have not had their turn: the rows of their heads, and the turns they are for."""

    table: Table
    group: Group
    rows: Rows
    turns: npt.NDArray[np.int64]


class PartitionedSearch:
    """Finds the instances that derive facts, a few at a time, each once."""

    def __init__(self, context: Context, matching: Matching, rules: Sequence[Rule]):
        self.context, self.matching, self.rules = context, matching, rules
        self._left: list[_Candidates] = []
        #: How often a fact has been asked for, and how many turns its candidates take.
        self._turns, self._last = context.memory.columns.new(self, "turns", "last turn")

    def unfinished(self, H: FactSet) -> PartitionedSet:
        def test(table: Table, rows: Rows) -> npt.NDArray[np.bool_]:
            turns = table.column(self._turns)[rows]
            return (turns == 0) | (turns < table.column(self._last)[rows])

        return chosen(H, test)

    def more(self, H: FactSet, P: FactSet, N: FactSet) -> PartitionedInstances:
        mine = own_set(H)
        self._list(chosen(H, lambda table, rows: table.column(self._turns)[rows] == 0), own_set(P), own_set(N))
        asked = mine.here()
        now = [some for table, rows in asked.items() for some in self._take(table, rows)]
        turn = PartitionedInstances(self.context, self.rules, now)
        holding = hold(turn, own_set(P), own_set(N))
        groups = [group.chosen(holds) for group, holds in zip(turn.groups, holding, strict=True)]
        numbers = self.matching.number_of(self.rules)
        considered: Counter[int] = Counter()
        for group in groups:
            considered[numbers[group.rule]] += len(group)
        total = self.context.total("instances considered", considered)
        for k, count in sorted(total.items()):
            self.context.meter.instances(self.rules[k], count)
        return PartitionedInstances(self.context, self.rules, groups, total.total())

    def _list(self, fresh: PartitionedSet, P: PartitionedSet, N: PartitionedSet) -> None:
        """List all candidates of facts that are asked for the first time."""
        matching = self.matching
        kind = Kind("heads", whole=True)
        results = matching.backwards("candidates", self.rules, fresh, Sets(P, N), kind, instances, considered=False)
        for group in instances_of(self.rules, results):
            table, rows = group.head_rows(self.context.matcher)
            turns = _turns(rows)
            last = table.column(self._last)
            np.maximum.at(last, rows, (turns + 1).astype(last.dtype))
            self._left.append(_Candidates(table, group, rows, turns))

    def _take(self, table: Table, rows: Rows) -> list[Group]:
        """Return the candidates whose turn it is, for some rows, and note that the rows had their turn."""
        counts, wanted = table.column(self._turns), np.zeros(table.n, np.bool_)
        wanted[rows] = True
        taken, left = [], []
        for candidates in self._left:
            if candidates.table is table:
                now = wanted[candidates.rows] & (candidates.turns == counts[candidates.rows])
                if now.any():
                    taken.append(candidates.group.chosen(now))
                    rest = ~now
                    candidates.group, candidates.rows = candidates.group.chosen(rest), candidates.rows[rest]
                    candidates.turns = candidates.turns[rest]
            if len(candidates.rows):
                left.append(candidates)
        self._left = left
        counts[rows] += 1
        return taken


def _turns(rows: Rows) -> npt.NDArray[np.int64]:
    """Return for each candidate the turn it is for: one in the first turn of a row, then twice as many."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    begins = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(rows) else np.empty(0, np.int64)
    lengths = np.diff(np.r_[begins, len(rows)])
    position = np.empty(len(rows), np.int64)
    position[order] = np.arange(len(rows)) - np.repeat(begins, lengths)
    return np.floor(np.log2(position + 1)).astype(np.int64)
