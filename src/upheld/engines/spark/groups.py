"""The classes of an equivalence: facts where they are, and what is looked up of them in the driver.

What an update changes comes to the driver: links that connect classes, and the members of those that it takes apart or
gives another number. They are found by a join with a table of what is looked for, which every executor gets whole.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from upheld.algebra.plaingroups import RowGroups
from upheld.algebra.words import FactSet
from upheld.engines.spark.classes import DriverTable
from upheld.engines.spark.codes import Layout, Row, decode, encode
from upheld.engines.spark.cols import col
from upheld.engines.spark.sets import Local, SparkSet, own_set
from upheld.engines.spark.table import Request
from upheld.language.ast import Value
from upheld.language.core import Classing

if TYPE_CHECKING:
    from upheld.engines.spark.engine import DataFrameEngine


class SparkGroups(RowGroups):
    """The classes of an equivalence in DataFrames."""

    def __init__(self, engine: DataFrameEngine, classing: Classing):
        super().__init__(engine, classing)
        self._engine, self._type = engine, engine.codecs[classing.members].types[0]

    def rows(self, facts: FactSet, predicate: str, column: int = 0, wanted: Collection[Any] | None = None) -> list[Row]:
        engine = self._engine
        planned = own_set(facts).terms.get(predicate)
        part = engine.resolve({predicate: planned}).get(predicate) if planned is not None else None
        if part is None or (wanted is not None and not wanted):
            return []
        if wanted is None:
            return list(engine.fetch(part))
        if isinstance(part, Local):
            return [row for row in part.rows if row[column] in wanted]
        keys = DriverTable(engine.tables, Layout(("key",), (part.layout.types[column],)), [(x,) for x in wanted])
        same = col(f"c{column}") == col("key")
        found = part.frame().join(F.broadcast(keys.frame()), same, "left_semi")
        (rows,) = engine.tables.compute([Request(found, part.layout)])
        return list(engine.fetch_rows(rows))

    def facts(self, predicate: str, rows: Sequence[Row]) -> FactSet:
        return SparkSet(self._engine, {predicate: self._engine.local(predicate, rows)} if rows else {})

    def shown(self, value: Any) -> Value:
        return decode(value, self._type)

    def class_of(self, value: Value, held: FactSet) -> list[Value]:
        return super().class_of(encode(value, self._type), held)
