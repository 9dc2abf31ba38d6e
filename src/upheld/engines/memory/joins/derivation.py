"""The set that `derive` returns, computed when it is settled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from upheld.algebra.sets import FactSet, Within
from upheld.engines.memory.joins.batch import ROW, FunctionSink, Join, batches
from upheld.engines.memory.joins.bulk_copy import backward_copies
from upheld.engines.memory.joins.candidates import END, MOST_DOUBLINGS, Candidates, candidates, fan_out, first_join
from upheld.engines.memory.joins.few_facts import MOST_PAIRS, HeadTaker, Task
from upheld.engines.memory.joins.matching import Matcher
from upheld.engines.memory.joins.sinks import head_sink
from upheld.engines.memory.plans.delta_index import DeltaIndex, Occurrence
from upheld.engines.memory.plans.plan import Place, Plan
from upheld.engines.memory.plans.where import Where
from upheld.engines.memory.sets.collected import Collected
from upheld.engines.memory.sets.expressions import Deferred, MemorySet, own_set
from upheld.engines.memory.sets.truth_tables import NOTHING, Spelling, Truth, are_in, selected
from upheld.engines.memory.storage.arrays import Rows, each_once
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Table
from upheld.language.core import Rule

#: Heads of a rule on average from which on a batch repays what it costs to begin.
MOST_HEADS = 1 << 10


class Derivation(Deferred):
    """The heads that `derive` speaks of, computed when they are settled."""

    derives = True

    def __init__(self, matcher: Matcher, rules: Sequence[Rule], within: Within, heads: FactSet | None):
        self.matcher = matcher
        self.arguments: tuple[Sequence[Rule], Where, FactSet | None] | None
        where = Where(matcher.context, *within)
        self.arguments = (rules, where, heads)
        self.width = 1 + where.width + (own_set(heads).width if heads is not None else 0)
        super().__init__(matcher.context)

    def drop(self) -> None:
        self.arguments = None

    def operands(self) -> list[MemorySet]:
        assert self.arguments is not None, "a derivation is settled once; settle it by itself to use it twice"
        _, where, heads = self.arguments
        return [*where.sets, *([own_set(heads)] if heads is not None else [])]

    def has_work(self) -> bool:
        return self.now is None

    @property
    def spent(self) -> bool:
        return self.now is None and self.arguments is None

    def collect(self, collected: Collected, reject: Spelling | None) -> None:
        if self.now is not None:
            super().collect(collected, reject)
            return
        assert self.arguments is not None, "a derivation is settled once; settle it by itself to use it twice"
        rules, where, heads = self.arguments
        if heads is None:
            self.matcher.forwards(
                rules, where, lambda plan, start, work: head_sink(collected, plan, reject, start, work),
                few=HeadTaker(collected, self.context.truth_of(reject)),
                beside=collected if where.own is None else None,
            )  # fmt: skip
        else:
            collect_derivable(self.matcher, rules, own_set(heads), where, collected, reject)
        self.drop()


def collect_derivable(
    matcher: Matcher,
    rules: Sequence[Rule],
    heads: MemorySet,
    where: Where,
    collected: Collected,
    reject: Spelling | None,
) -> None:
    """Collect the heads that some rule derives. A head that one rule derives is not asked of the next."""
    together = matcher.together(rules, backward_copies)
    index = matcher.delta_index(together.others, "heads")
    few = FewHeads(matcher, index, where, collected)
    for table, rows in heads.listed():
        wanted = selected(table, rows, ~matcher.context.truth_of(reject))

        def collect(rows: Rows, table: Table = table) -> None:
            collected.take(table, rows, NOTHING)

        for copying, _ in together.by_table.get(table.name, ()):
            for origins, B in copying.copies(selected(table, wanted, ~collected.truth)):
                bodies = copying.target.find(B, len(origins), copying.plan.terms, copying.plan.constants)
                there = are_in(copying.target, bodies, where[Place.P])
                matcher.context.meter.instances(copying.rules[0], int(np.count_nonzero(there)))
                collect(each_once(origins[there]))
        few.add(table, selected(table, wanted, ~collected.truth))
    few.collect()
    for occurrence, table, mine in few.left:

        def collect_rows(rows: Rows, table: Table = table) -> None:
            collected.take(table, rows, NOTHING)

        open_rows = selected(table, mine, ~collected.truth)
        find_derivable(matcher, occurrence.rule, table, open_rows, where, collect_rows, collected.truth)


class FewHeads:
    """Heads that rules are tried on in one call, if they are few; `left` are rules to be tried otherwise."""

    def __init__(self, matcher: Matcher, index: DeltaIndex, where: Where, collected: Collected):
        self._matcher, self._index, self._where, self._collected = matcher, index, where, collected
        self._tasks: list[Task] = []
        self._tried: list[tuple[Occurrence, Table, Rows]] = []
        self.left: list[tuple[Occurrence, Table, Rows]] = []

    def add(self, table: Table, rows: Rows) -> None:
        """Try the rules with a head that matches some of the rows."""
        matcher = self._matcher
        for occurrence, mine in self._index.concerned(table, rows):
            written = matcher.few.written(occurrence, "derivable", matcher.derivable_from)
            if written is None:
                self.left.append((occurrence, table, mine))
            else:
                self._tried.append((occurrence, table, mine))
                self._tasks.append(Task(written, table, mine))

    def collect(self) -> None:
        """Collect the heads that some rule derives."""
        if not self._tasks:
            return
        few = sum(len(task.rows) for task in self._tasks) <= min(MOST_PAIRS, MOST_HEADS * len(self._tasks))
        if not few or not self._matcher.few.collect_derivable(self._tasks, self._where, self._collected):
            self.left += self._tried


#: Rows for each head from which on it is better to take a few at a time than all at once.
MANY = 16.0


def find_derivable(
    matcher: Matcher, rule: Rule, table: Table, rows: Rows, where: Where, found: Callable[[Rows], None], done: Truth
) -> None:
    """Call `found` with the rows of a table that a rule derives: they are `done` from then on. Some come repeatedly."""
    if not len(rows):
        return
    plan, variables = matcher.backward_plan(rule, (ROW,))

    def join(part: Plan) -> Join:
        row = part.last.index(ROW)

        def taken(B: Codes, width: int) -> None:
            matcher.context.meter.instances(rule, width)
            found(each_once(B[row].astype(np.int32)))

        return matcher.join(part, where, FunctionSink(taken))

    at = first_join(plan)
    if at is None or fan_out(plan.steps[at]) < MANY:
        whole = join(plan)
        for B, width in batches(table, rows, rule.head, variables):
            whole.run(B, width)
        return
    begun: list[Candidates] = []
    before = replace(plan, steps=plan.steps[:at], later=plan.steps[at:])
    begin = matcher.join(before, where, FunctionSink(lambda B, width: begun.extend(candidates(plan, at, B, width))))
    for B, width in batches(table, rows, rule.head, variables):
        begin.run(B, width)
    doublings = 0
    while begun:
        left = []
        for some in begun:
            chosen = np.flatnonzero((some.cursors != END) & ~done[table.flags[some.rows]])
            if len(chosen):
                left.append(some)
                rest = join(some.rest)
                for B in some.take(chosen, np.full(len(chosen), 1 << doublings, np.int64), where[some.step.place]):
                    matcher.context.meter.look(rule)
                    rest.run(B, B.shape[1])
        begun, doublings = left, min(doublings + 1, MOST_DOUBLINGS)
