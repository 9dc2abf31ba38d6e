"""Which heads a rule derives: a head is done with as soon as one instance is found.

Where a head may have many instances, rows for it come one, then two, then four at a time, so that one with a derivation
among the first costs little, however many it has, and one without any costs no more than twice all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from upheld.engines.memory.joins.batch import ROW, FunctionSink, Join, batches
from upheld.engines.memory.joins.candidates import END, MOST_DOUBLINGS, Candidates, candidates, fan_out, first_join
from upheld.engines.memory.joins.matching import Matcher
from upheld.engines.memory.plans.plan import Plan
from upheld.engines.memory.plans.where import Where
from upheld.engines.memory.sets.truth_tables import Truth
from upheld.engines.memory.storage.arrays import Rows, each_once
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Table
from upheld.language.core import Rule

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
