"""Facts that come to the engine and leave it as DataFrames, without a look at them in the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from upheld.engines.spark.cols import col, lit
from upheld.language.values import Value

if TYPE_CHECKING:
    from upheld.engines.spark.codes import Codec
    from upheld.engines.spark.engine import DataFrameEngine
    from upheld.engines.spark.sets import Part

_Values = tuple[Value, ...]


def bits_of(unsigned: Column) -> Column:
    """Return an unsigned number, a `decimal(20,0)`, as the `bigint` with the same 64 bits."""
    return F.when(unsigned > F.lit(2**63 - 1), unsigned - F.lit(Decimal(2**64))).otherwise(unsigned).cast("bigint")


def unsigned_of(bits: Column) -> Column:
    """Return the unsigned number that has the 64 bits of a `bigint`."""
    number = bits.cast("decimal(20,0)")
    return F.when(bits < 0, number + F.lit(Decimal(2**64))).otherwise(number).cast("decimal(20,0)")


def decoded(frame: DataFrame, types: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """Return rows as they stand in the tables of the engine, as callers get them: under names, and of Spark's types."""
    if not columns:
        return frame.select(lit(True).alias("holds"))
    names = [col(f"c{i}") for i in range(len(columns))]
    values = [unsigned_of(c) if type == "unsigned" else c for c, type in zip(names, types, strict=True)]
    return frame.select(*(value.alias(name) for value, name in zip(values, columns, strict=True)))


@dataclass(frozen=True)
class FrameRows:
    """Rows of a predicate in a DataFrame: columns `c0`, `c1`, ... of Spark's type for each of the predicate's.

    They may be repeated. Iterating brings them to the driver.
    """

    frame: DataFrame
    types: Sequence[str]

    def encoded(self) -> DataFrame:
        """Return the rows as they stand in the tables of the engine."""
        names = [col(f"c{i}") for i in range(len(self.types))]
        codes = [bits_of(c) if type == "unsigned" else c for c, type in zip(names, self.types, strict=True)]
        return self.frame.select(*(code.alias(f"c{i}") for i, code in enumerate(codes)))

    def __iter__(self) -> Iterator[_Values]:
        for row in self.frame.toLocalIterator():
            yield tuple(int(x) if type == "unsigned" else x for x, type in zip(row, self.types, strict=True))


class SparkRows(Set[_Values]):
    """The rows of a predicate that Spark holds. They come to the driver when one asks for them."""

    def __init__(self, engine: DataFrameEngine, codec: Codec, part: Part) -> None:
        self._engine, self._codec, self._part = engine, codec, part

    @classmethod
    def _from_iterable(cls, rows: Iterable[_Values]) -> frozenset[_Values]:  # type: ignore[override]
        return frozenset(rows)

    @cached_property
    def _fetched(self) -> frozenset[_Values]:
        return frozenset(map(self._codec.decode, self._engine.fetch(self._part)))

    @cached_property
    def _count(self) -> int:
        return self._engine.exact_count(self._part)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[_Values]:
        return iter(self._fetched)

    def __contains__(self, row: object) -> bool:
        return row in self._fetched

    def frame(self, columns: Sequence[str]) -> DataFrame:
        """Return the rows as a DataFrame with these names; a predicate without columns has `holds`, which is true.

        The DataFrame is good for as long as this object is there.
        """
        return decoded(self._part.frame(), self._codec.types, columns)
