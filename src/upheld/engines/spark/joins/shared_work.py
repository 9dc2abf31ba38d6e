"""Work of a run that tasks share: bindings and facts of a value with many of both, put aside and dealt out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np

from upheld.engines.memory.joins.batch import FunctionSink, Join
from upheld.engines.memory.plans.where import Where
from upheld.engines.memory.storage.codec import Codes
from upheld.engines.spark.context import Context
from upheld.engines.spark.joins import sharing
from upheld.engines.spark.joins.pipelines import Key
from upheld.engines.spark.joins.plans import Leg, Pipeline
from upheld.engines.spark.tasks.wire import Outbox
from upheld.language.core import Rule

#: The value of a variable that nothing is bound to yet.
LOWEST = np.iinfo(np.int64).min


class SharedWork:
    """The work that this task has put aside, by pipeline, leg and value."""

    def __init__(self, context: Context, where: Where, rank: str | None):
        self._context, self._where, self._rank = context, where, rank
        self._bindings: dict[tuple[Key, int, int], list[Codes]] = defaultdict(list)
        #: The facts that bindings go with.
        self._facts: dict[tuple[Key, int, int], Codes] = {}

    def __bool__(self) -> bool:
        return bool(self._bindings)

    def put_aside(
        self, key: Key, mine: Pipeline, j: int, expansion: sharing.Expansion, bindings: Iterable[Codes]
    ) -> Iterator[Codes]:
        """Yield bindings without those that tasks are to share."""
        at = mine.legs[j].start.index(expansion.variable)
        for B in bindings:
            for value in sharing.frequent(B[at]) if B.shape[1] >= sharing.FEWEST else ():
                if (key, j, value) not in self._facts:
                    self._facts[key, j, value] = self._facts_with(mine.rule, expansion.facts, value)
                has_it = B[at] == value
                size = self._facts[key, j, value].shape[1]
                if sharing.is_worth_it(int(has_it.sum()), size, self._context.wire.parts):
                    self._bindings[key, j, value].append(B[:, has_it])
                    B = np.ascontiguousarray(B[:, ~has_it])
            yield B

    def _facts_with(self, rule: Rule, leg: Leg, value: int) -> Codes:
        """Return the facts that one value finds in a leg: the variables that they bind, a row for each."""
        parts: list[Codes] = []
        matcher, look = self._context.matcher, self._context.meter.look
        plan = leg.plan(matcher.planner, rule)
        assert leg.needed is not None, "a leg with variables at the end"
        rows = [plan.last.index(v) for v in leg.needed]
        sink = FunctionSink(lambda B, width: parts.append(B[rows, :width]))
        planner, types, look = (
            self._context.matcher.planner,
            self._context.matcher.variable_types(rule),
            self._context.meter.look,
        )
        one = np.array([[value], *[[LOWEST]] * (len(leg.start) - 1)], np.int64)
        Join(plan, self._where, planner, types, sink, look, self._where.rows, self._rank).run(one, 1)
        return np.concatenate(parts, axis=1) if parts else np.empty((len(rows), 0), np.int64)

    def deal(self, outbox: Outbox) -> None:
        """Deal out all that was put aside: the larger side in parts, and the smaller one to each task whole."""
        for (key, j, value), parts in self._bindings.items():
            sides = np.concatenate(parts, axis=1), self._facts[key, j, value]
            for task, (bindings, facts) in enumerate(sharing.dealt(*sides, self._context.wire.parts)):
                outbox[task].append((key, j, bindings, facts))
        self._bindings.clear()
