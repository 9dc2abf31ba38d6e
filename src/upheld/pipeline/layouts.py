"""How facts stand in DataFrames that tasks read: a column `c0`, `c1`, ... for each argument, of its own type.

A `number` is a `bigint`, an `unsigned` the `bigint` with the same 64 bits, a `float` a `double`, texts are strings. A
predicate without arguments has one column all the same, which is always zero: a DataFrame needs one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from upheld.base.dataclass import dataclass
from upheld.language.core import Predicate
from upheld.language.types.columns import ColumnType
from upheld.language.types.primitive import INT64_MAX
from upheld.language.values import Value, normalise_float
from upheld.pipeline.sources.coded import values as values_of

#: A row of values as they stand in DataFrames.
Row = tuple[Any, ...]

_SPARK_TYPES = {
    "number": "bigint",
    "unsigned": "bigint",
    "float": "double",
    "symbol": "string",
    "record": "string",
    "term": "string",
}
ARROW_TYPES = {"bigint": pa.int64(), "double": pa.float64(), "string": pa.string()}


@dataclass(frozen=True)
class Layout:
    """Named columns with their types in Spark."""

    names: tuple[str, ...]
    types: tuple[str, ...]

    @property
    def schema(self) -> str:
        """The columns as Spark's SQL writes them."""
        return ", ".join(f"{name} {type}" for name, type in zip(self.names, self.types, strict=True))

    def arrow(self, rows: Iterable[Row]) -> pa.Table:
        """Return rows as an Arrow table."""
        columns = list(zip(*rows, strict=True)) or [()] * len(self.names)
        arrays = [pa.array(c, ARROW_TYPES[t]) for c, t in zip(columns, self.types, strict=True)]
        return pa.Table.from_arrays(arrays, list(self.names))


class Codec:
    """The columns of a predicate, and what its facts are in them."""

    def __init__(self, predicate: Predicate):
        self.types = predicate.types or ("number",)
        names = tuple(f"c{i}" for i in range(len(self.types)))
        self.layout = Layout(names, tuple(_SPARK_TYPES[t] for t in self.types))

    def encode(self, row: tuple[Value, ...]) -> Row:
        if not row:
            return (0,)
        return tuple(encode(value, type) for value, type in zip(row, self.types, strict=True))


def encode(value: Value, type: str) -> Any:
    """Return what stands for a value in a DataFrame."""
    if type == "float":
        return normalise_float(float(value))
    if type == "unsigned":
        number = int(value)
        return number - 2**64 if number > INT64_MAX else number
    return value


# -- DataFrames of callers ---------------------------------------------------------------------------------------------


def bits_of(unsigned: Column) -> Column:
    """Return an unsigned number, a `decimal(20,0)`, as the `bigint` with the same 64 bits."""
    return F.when(unsigned > F.lit(2**63 - 1), unsigned - F.lit(Decimal(2**64))).otherwise(unsigned).cast("bigint")


def unsigned_of(bits: Column) -> Column:
    """Return the unsigned number that has the 64 bits of a `bigint`."""
    number = bits.cast("decimal(20,0)")
    return F.when(bits < 0, number + F.lit(Decimal(2**64))).otherwise(number).cast("decimal(20,0)")


def laid_out(frame: DataFrame, types: Sequence[str]) -> DataFrame:
    """Return the rows of a predicate as Spark's types, in columns `c0`, `c1`, ..., as layouts have them."""
    names = [F.col(f"c{i}") for i in range(len(types))]
    codes = [bits_of(c) if type == "unsigned" else c for c, type in zip(names, types, strict=True)]
    return frame.select(*(code.alias(f"c{i}") for i, code in enumerate(codes)))


def decoded(frame: DataFrame, types: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """Return rows that stand as layouts say under the names that callers know, and of Spark's types."""
    if not columns:
        return frame.select(F.lit(True).alias("holds"))
    names = [F.col(f"c{i}") for i in range(len(columns))]
    plain = [unsigned_of(c) if type == "unsigned" else c for c, type in zip(names, types, strict=True)]
    values = [values_of(c, type) if isinstance(type, ColumnType) else c for c, type in zip(plain, types, strict=True)]
    return frame.select(*(value.alias(name) for value, name in zip(values, columns, strict=True)))
