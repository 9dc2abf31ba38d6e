"""The classes of an equivalence: facts where they are, and what is looked up of them in the driver.

What an update changes comes to the driver: links that connect classes, and the members of those that it takes apart or
gives another number. They are found by a join with a table of what is looked for, which every executor gets whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from upheld.algebra.expansion import Rows
from upheld.algebra.sets import FactSet
from upheld.engines.spark.classes import DriverTable
from upheld.engines.spark.codes import Layout, Row, decode, encode
from upheld.engines.spark.cols import col, lit
from upheld.engines.spark.frames import decoded
from upheld.engines.spark.rowgroups import RowGroups
from upheld.engines.spark.sets import Local, Part, SparkSet, own_set
from upheld.engines.spark.table import Request
from upheld.language.core import Classing
from upheld.language.values import Value

if TYPE_CHECKING:
    from upheld.engines.spark.engine import DataFrameEngine


class SparkGroups(RowGroups):
    """The classes of an equivalence in DataFrames."""

    def __init__(self, engine: DataFrameEngine, classing: Classing):
        super().__init__(engine, classing)
        self._engine, self._type = engine, engine.codecs[classing.members].types[0]

    def rows(self, facts: FactSet, predicate: str, column: int = 0, wanted: Collection[Any] | None = None) -> list[Row]:
        engine, part = self._engine, self._part(facts, predicate)
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

    def _part(self, facts: FactSet, predicate: str) -> Part | None:
        """Return the facts of one predicate, and compute no others."""
        planned = own_set(facts).terms.get(predicate)
        return self._engine.resolve({predicate: planned}).get(predicate) if planned is not None else None

    def pairs(self, held: FactSet) -> Rows:
        part = self._part(held, self._classing.members)
        if part is None or isinstance(part, Local):
            return super().pairs(held)
        return SparkPairs(self._engine, part, self._type, super().pairs(held))

    def facts(self, predicate: str, rows: Sequence[Row]) -> FactSet:
        return SparkSet(self._engine, {predicate: self._engine.local(predicate, rows)} if rows else {})

    def shown(self, value: Any) -> Value:
        return decode(value, self._type)

    def class_of(self, value: Value, held: FactSet) -> list[Value]:
        return super().class_of(encode(value, self._type), held)


class SparkPairs(Set[tuple[Value, ...]]):
    """The pairs of members of one class, which Spark holds: it counts them, and makes them if asked for a DataFrame.

    Otherwise the members come to the driver.
    """

    def __init__(self, engine: DataFrameEngine, part: Part, type: str, fetched: Rows):
        self._engine, self._part, self._type, self._fetched = engine, part, type, fetched

    @classmethod
    def _from_iterable(cls, rows: Iterable[tuple[Value, ...]]) -> frozenset[tuple[Value, ...]]:  # type: ignore[override]
        return frozenset(rows)

    @cached_property
    def _count(self) -> int:
        sizes = self._part.frame().groupBy("c1").agg(F.count(lit(1)).alias("n"))
        return self._engine.sum(sizes.select((col("n") * col("n")).alias("n")), "n")

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        return iter(self._fetched)

    def __contains__(self, row: object) -> bool:
        return row in self._fetched  # type: ignore[operator]

    def frame(self, columns: Sequence[str]) -> DataFrame:
        """Return the pairs as a DataFrame with these names. It is good for as long as this object is there."""
        members = self._part.frame()
        left = members.select(col("c0"), col("c1").alias("class"))
        right = members.select(col("c0").alias("c1"), col("c1").alias("class"))
        return decoded(left.join(right, ["class"]).select("c0", "c1"), (self._type, self._type), columns)
