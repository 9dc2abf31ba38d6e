"""Where derived facts go: into the tables, as rows found for the first time."""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.kernels import rows as row_kernels
from upheld.engines.memory.plans.plan import AtomStep, Places, Plan
from upheld.engines.memory.sets.bit_matrix import DenseBits
from upheld.engines.memory.sets.collected import Collected, MadeRows
from upheld.engines.memory.sets.truth_tables import Spelling, Truth
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.memory.storage.table import Rows, Table


def head_sink(collected: Collected, plan: Plan, reject: Spelling | None, start: Table | None, work: int) -> HeadSink:
    """Return a sink for a plan that begins with `work` rows of a table; it ignores heads that `reject` holds for."""
    collected.begin_with_known_pairs(plan.head, reject, work)
    return HeadSink(collected, plan, collected.context.truth_of(reject), plan.has_wide_values(start))


class HeadSink:
    """Finds the head rows of a plan."""

    def __init__(self, collected: Collected, plan: Plan, reject: Truth, wide: bool):
        self.collected, self.plan, self.reject, self.wide = collected, plan, reject, wide
        #: How many instances have come.
        self.instances = 0
        #: The rows of the table, as long as all are heads of this plan and different instances have different ones.
        #: Then heads are appended: there is nothing to be found.
        self._appended = 0 if plan.makes_distinct_heads and not reject[0] else -1

    def take(self, B: Codes, width: int) -> None:
        plan = self.plan
        self._enter(made_rows(plan.head, plan.terms, plan.constants, B, width, self.wide))

    def take_joined(self, B: Codes, step: AtomStep, parents: Rows, matches: Rows, count: int) -> None:
        self._enter(made_joined_rows(self.plan, B, step, parents, matches, count, self.wide))

    def _enter(self, rows: MadeRows) -> None:
        self._met(len(rows))
        table = self.plan.head
        if table.n == self._appended:
            self._note_facts(self.collected.append(table, rows))
            self._appended = table.n
        else:
            self._note_facts(self.collected.enter(table, rows, self.reject))

    def known_pairs(self) -> DenseBits:
        """Return the heads that need not be made again, as far as they are known."""
        return self.collected.known_pairs(self.plan.head)

    def take_made(self, rows: MadeRows, instances: int) -> None:
        """Take the heads of `instances` instances that were not among the known pairs."""
        self._met(instances)
        self._note_facts(self.collected.enter_unseen(self.plan.head, rows, self.reject))

    def _met(self, instances: int) -> None:
        self.instances += instances
        self.collected.context.meter.instances(self.plan.rule, instances)

    def _note_facts(self, facts: int) -> None:
        self.collected.context.meter.found(facts)


def made_rows(table: Table, terms: Places, constants: Codes, B: Codes, width: int, wide: bool) -> MadeRows:
    """Return the rows that terms name under bindings; the table is widened first if a value asks for it."""
    if wide:
        values = [int(c) for c in constants]
        for t in terms[terms >= 0]:
            values += [int(B[t].min()), int(B[t].max())]
        table.fit(min(values, default=0), max(values, default=0))
    heads = np.empty((width, table.arity), table.rows.dtype)
    row_kernels.make_rows(B, width, terms, constants, heads)
    return heads


def made_joined_rows(
    plan: Plan, B: Codes, step: AtomStep, parents: Rows, matches: Rows, count: int, wide: bool
) -> MadeRows:
    """Return the head rows of bindings joined with matched rows, with no batch in between."""
    table = plan.head
    heads = np.empty((count, table.arity), np.int64 if wide else table.rows.dtype)
    row_kernels.make_joined_rows(B, parents, step.table.rows, matches, count, plan.joined_terms, plan.constants, heads)
    if wide and heads.size:
        table.fit(int(heads.min()), int(heads.max()))
        heads = heads.astype(table.rows.dtype)
    return heads
