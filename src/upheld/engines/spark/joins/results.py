"""Results at the end of a body: heads or whole instances, on their way to the homes of heads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from upheld.engines.memory.bags.bags import Group
from upheld.engines.memory.kernels import rows as row_kernels
from upheld.engines.memory.plans.plan import HEIGHT, AtomStep, Plan
from upheld.engines.memory.storage.arrays import Rows
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.spark.context import Context
from upheld.engines.spark.owners import Values
from upheld.engines.spark.tasks.wire import Outbox
from upheld.language.ast import Constant
from upheld.language.core import Rule

#: Puts the results of a plan into an outbox, given the number of its rule and a batch of bindings.
End = Callable[[Context, int, Plan, Codes, int, Outbox], None]

#: The largest value of 32 bits.
_WIDEST = (1 << 31) - 1


class Results(NamedTuple):
    """The parcels that have come to the homes of heads, and the number of instances in all tasks."""

    came: Outbox
    instances: int


#: The results of rules that derive nothing.
NO_RESULTS = Results([], 0)


def heads(context: Context, _: int, plan: Plan, B: Codes, width: int, outbox: Outbox) -> None:
    """Send heads home."""
    context.home_of(outbox, plan.head.name, head_codes(plan, B, width))


def ranked_heads(context: Context, _: int, plan: Plan, B: Codes, width: int, outbox: Outbox) -> None:
    """Send heads home, each with the height of its body."""
    context.home_of(outbox, plan.head.name, head_codes(plan, B, width), B[plan.last.index(HEIGHT)])


def instances(context: Context, k: int, plan: Plan, B: Codes, width: int, outbox: Outbox) -> None:
    """Send instances to the homes of their heads: the values of all variables, a row for each instance."""
    rule, owners = plan.rule, context.owners
    codes = B[[plan.last.index(v) for v in rule.variables()]].T
    first = rule.head.terms[0] if rule.head.terms else None
    if first is None or isinstance(first, Constant):
        task = owners.of_name(rule.head.predicate) if first is None else owner_of(context, first)
        outbox[task].append((k, codes))
        return
    for task, places in owners.split(owners.of(B[plan.last.index(first.name)])):
        outbox[task].append((k, codes[places]))


def owner_of(context: Context, constant: Constant) -> int:
    """Return the task that owns a constant."""
    return context.owners.of_one(context.codec.encode_one(constant.value, constant.type))


def instances_of(rules: Sequence[Rule], results: Results) -> list[Group]:
    """Return the instances that have come, by rule."""
    by_rule: dict[int, list[Codes]] = {}
    for parcels in results.came:
        for k, codes in parcels:
            by_rule.setdefault(k, []).append(codes.T)
    return [Group(rules[k], np.concatenate(parts, axis=1)) for k, parts in sorted(by_rule.items())]


class Leaving:
    """Makes the heads of a plan, and sends them home by a function."""

    def __init__(self, plan: Plan, wide: bool, send: Callable[[Values], None]):
        self._plan, self._dtype, self._send = plan, np.int64 if wide else np.int32, send

    def make(self, B: Codes, width: int) -> Values:
        return head_codes(self._plan, B, width)

    def make_joined(self, B: Codes, step: AtomStep, parents: Rows, matches: Rows, count: int) -> Values:
        """Make heads of bindings and the rows they are joined with, with no batch in between."""
        plan = self._plan
        codes = np.empty((count, plan.head.arity), self._dtype)
        joined = parents, step.table.rows, matches, count, plan.joined_terms, plan.constants, codes
        row_kernels.make_joined_rows(B, *joined)
        return codes

    def enter(self, piece: Values) -> None:
        self._send(piece)


def head_codes(plan: Plan, B: Codes, width: int) -> Values:
    """Return the heads of bindings, a row for each: as wide as values may be."""
    values = [B[t] for t in plan.terms.tolist() if t >= 0]
    narrow = not len(plan.constants) and all(v.max() <= _WIDEST and v.min() >= -_WIDEST for v in values)
    codes = np.empty((width, plan.head.arity), plan.head.rows.dtype if narrow else np.int64)
    row_kernels.make_rows(B, width, plan.terms, plan.constants, codes)
    return codes
