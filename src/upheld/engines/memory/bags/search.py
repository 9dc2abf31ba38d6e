"""Backward chaining that goes on where it stopped: the candidates for each head come a few at a time.

Each candidate is joined with the rest of the body at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from upheld.algebra.sets import FactSet
from upheld.engines.memory.bags.bags import Group, MemoryInstances
from upheld.engines.memory.joins.batch import ROW, FunctionSink, batches
from upheld.engines.memory.joins.candidates import END, MOST_DOUBLINGS, Candidates, candidates, first_join
from upheld.engines.memory.joins.matching import Matcher
from upheld.engines.memory.plans.plan import Place, Plan
from upheld.engines.memory.plans.where import Where
from upheld.engines.memory.sets.expressions import Settled, filtered, own_set
from upheld.engines.memory.sets.truth_tables import Truth
from upheld.engines.memory.storage.arrays import Column, Rows
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Table
from upheld.language.core import Rule


class MemorySearch:
    """Finds the instances that derive facts, a few at a time, each once."""

    def __init__(self, matcher: Matcher, rules: Sequence[Rule]):
        self.matcher, self.context, self.rules = matcher, matcher.context, rules
        self._index = matcher.delta_index(rules, "heads")
        self._streams: dict[Table, list[Candidates]] = {}
        self._with_turns: list[Table] = []
        #: How often a row has been asked for; negative when nothing is left for it.
        (self._turns,) = self.context.columns.new(self, "turns", tables=self._with_turns)

    def unfinished(self, H: FactSet) -> Settled:
        return filtered(H, lambda table, rows: self._turns_of(table)[rows] >= 0)

    def _turns_of(self, table: Table) -> Column:
        if self._turns not in table.columns:
            self._with_turns.append(table)
        return table.column(self._turns)

    def more(self, H: FactSet, P: FactSet, N: FactSet) -> MemoryInstances:
        groups: list[Group] = []
        settled = own_set(H).settled()
        with (where := Where(self.context, P, N)):
            asked = self.context.truths[settled.spelling()]
            for table, rows in settled.listed():
                self._more(table, rows, asked, where, groups)
        return MemoryInstances(self.matcher, groups)

    def _more(self, table: Table, rows: Rows, asked: Truth, where: Where, groups: list[Group]) -> None:
        turns = self._turns_of(table)
        rows = rows[turns[rows] >= 0]
        fresh = rows[turns[rows] == 0]
        mine = self._opened(table, fresh, where, groups)
        if len(fresh) < len(rows):  # another turn for some: what was opened before is looked at as well
            mine = [s for s in self._streams.get(table, []) if (s.cursors != END).any()] + mine
            self._streams[table] = mine
        else:
            self._streams.setdefault(table, []).extend(mine)
        turns = self._turns_of(table)
        turns[rows] = -turns[rows] - 1
        for stream in mine:
            chosen = np.flatnonzero(asked[table.flags[stream.rows]] & (stream.cursors != END))
            if len(chosen):
                before = np.abs(turns[stream.rows[chosen]]).astype(np.int64) - 1
                self._take(stream, chosen, 1 << np.minimum(before, MOST_DOUBLINGS), where, groups)
                left = stream.rows[chosen[stream.cursors[chosen] != END]]
                turns[left] = np.abs(turns[left])

    def _take(self, stream: Candidates, chosen: Codes, limits: Codes, where: Where, groups: list[Group]) -> None:
        rule, mine = stream.rest.rule, groups if stream.whole else []
        join = self.matcher.join(stream.rest, where, FunctionSink(self._taking(stream.rest, mine)))
        for B in stream.take(chosen, limits, where[stream.step.place]):
            self.context.meter.look(rule)
            join.run(B, B.shape[1])
        if not stream.whole:  # what was matched when it was opened may not hold any more
            groups += [group.chosen(group.hold(self.matcher, where[Place.P], where[Place.N])) for group in mine]

    def _taking(self, plan: Plan, groups: list[Group]) -> Callable[[Codes, int], None]:
        order = [plan.last.index(v) for v in plan.rule.variables()]

        def take(B: Codes, width: int) -> None:
            self.context.meter.instances(plan.rule, width)
            groups.append(Group(plan.rule, B[order]))

        return take

    def _opened(self, table: Table, rows: Rows, where: Where, groups: list[Group]) -> list[Candidates]:
        """Return streams for heads that are asked for the first time; what needs no join is found at once."""
        opened: list[Candidates] = []
        if not len(rows):
            return opened
        for occurrence, mine in self._index.concerned(table, rows):
            rule = occurrence.rule
            plan, variables = self.matcher.backward_plan(rule, (*rule.variables(), ROW))
            at = first_join(plan)
            if at is None:
                join = self.matcher.join(plan, where, FunctionSink(self._taking(plan, groups)))
            else:
                prefix = replace(plan, steps=plan.steps[:at], later=plan.steps[at:])

                def open_streams(B: Codes, width: int, plan: Plan = plan, at: int = at) -> None:
                    opened.extend(candidates(plan, at, B, width))

                join = self.matcher.join(prefix, where, FunctionSink(open_streams))
            for B, width in batches(table, mine, rule.head, variables):
                join.run(B, width)
        return opened
