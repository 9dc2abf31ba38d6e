"""Aggregates on plain Python sets: the groups that change are computed anew."""

from __future__ import annotations

from collections import defaultdict

from upheld.algebra.aggregates import overflow
from upheld.algebra.sets import FactSet, SetEngine
from upheld.engines.reference.sets import Facts, Row, own_set
from upheld.language.core import Aggregation
from upheld.language.types.aggregates import aggregated
from upheld.language.types.functors import Undefined
from upheld.language.values import Value


class PlainAggregate:
    """The values of an aggregate."""

    def __init__(self, engine: SetEngine, aggregation: Aggregation):
        self.engine, self.aggregation = engine, aggregation

    def changed(self, gone: FactSet, came: FactSet, held: FactSet, now: FactSet) -> tuple[Facts, Facts]:
        width = len(self.aggregation.groups)
        touched = {self._group(row) for facts in (gone, came) for row in own_set(facts).rows(self.aggregation.body)}
        values = defaultdict[Row, list[Value]](list)
        for row in own_set(now).rows(self.aggregation.body):
            if self._group(row) in touched:
                values[self._group(row)].append(self._target(row))
        before = {row for row in own_set(held).rows(self.aggregation.relation) if row[:width] in touched}
        results = {group: self._result(group, of) for group, of in values.items()}
        after = {(*group, *numbers) for group, numbers in results.items() if numbers is not None}
        return self._facts(before - after), self._facts(after - before)

    def _facts(self, rows: set[Row]) -> Facts:
        return Facts(self.engine, ((self.aggregation.relation, row) for row in rows))

    def _group(self, row: Row) -> Row:
        return tuple(row[column] for column in self.aggregation.groups)

    def _target(self, row: Row) -> Value:
        return 0 if self.aggregation.target is None else row[self.aggregation.target]

    def _result(self, group: Row, values: list[Value]) -> Row | None:
        try:
            return aggregated(self.aggregation.function, self.aggregation.type, values)
        except Undefined as e:
            raise overflow(self.aggregation, str(e), group) from None
