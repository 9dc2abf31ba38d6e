"""How facts stand in DataFrames and in the driver: a column `c0`, `c1`, ... for each argument, of its own type.

A `number` is a `bigint`, an `unsigned` the `bigint` with the same 64 bits, a `float` a `double`, texts are strings. A
predicate without arguments has one column all the same, which is always zero: a DataFrame needs one.

Texts stay as they are rather than becoming numbers of a dictionary: built-ins make new texts within a plan, where no
dictionary can be extended.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from upheld.engines.spark.cols import col
from upheld.language.core import Atom, CoreTerm, Predicate
from upheld.language.syntax.ast import Constant
from upheld.language.types.primitive import INT64_MAX, normalise_float
from upheld.language.values import Value

#: A row of values as they stand in DataFrames.
Row = tuple[Any, ...]

SPARK_TYPES = {
    "number": "bigint",
    "unsigned": "bigint",
    "float": "double",
    "symbol": "string",
    "record": "string",
    "term": "string",
}
ARROW_TYPES = {"bigint": pa.int64(), "double": pa.float64(), "string": pa.string()}

_ZERO = Constant(0, "number")


@dataclass(frozen=True)
class Layout:
    """Named columns with their types in Spark."""

    names: tuple[str, ...]
    types: tuple[str, ...]

    @property
    def columns(self) -> list[Column]:
        return [col(name) for name in self.names]

    def __add__(self, other: Layout) -> Layout:
        return Layout(self.names + other.names, self.types + other.types)

    @property
    def schema(self) -> str:
        """The columns as Spark's SQL writes them."""
        return ", ".join(f"{name} {type}" for name, type in zip(self.names, self.types, strict=True))

    @cached_property
    def json(self) -> str:
        """The columns as Spark's schemas write them."""
        fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in zip(self.names, self._types())]
        return json.dumps({"type": "struct", "fields": fields})

    def _types(self) -> list[str]:
        return [{"bigint": "long"}.get(type, type) for type in self.types]

    def arrow(self, rows: Iterable[Row]) -> pa.Table:
        """Return rows as an Arrow table."""
        columns = list(zip(*rows, strict=True)) or [()] * len(self.names)
        arrays = [pa.array(c, ARROW_TYPES[t]) for c, t in zip(columns, self.types, strict=True)]
        return pa.Table.from_arrays(arrays, list(self.names))

    def rows(self, table: pa.Table) -> list[Row]:
        """Return the rows of an Arrow table with these columns."""
        columns = [
            [x if x is None else normalise_float(x) for x in table.column(i).to_pylist()]
            if type == "double"
            else table.column(i).to_pylist()
            for i, type in enumerate(self.types)
        ]
        return list(zip(*columns, strict=True))


class Codec:
    """The columns of a predicate, and what its facts are in them."""

    def __init__(self, predicate: Predicate):
        self.predicate = predicate
        self.types = predicate.types or ("number",)
        names = tuple(f"c{i}" for i in range(len(self.types)))
        self.layout = Layout(names, tuple(SPARK_TYPES[t] for t in self.types))

    def encode(self, row: tuple[Value, ...]) -> Row:
        if not row:
            return (0,)
        return tuple(encode(value, type) for value, type in zip(row, self.types, strict=True))

    def decode(self, row: Row) -> tuple[Value, ...]:
        if not self.predicate.types:
            return ()
        return tuple(decode(value, type) for value, type in zip(row, self.types, strict=True))

    def terms(self, atom: Atom) -> Sequence[CoreTerm]:
        """Return the terms of an atom, one for each column."""
        return atom.terms or (_ZERO,)


def encode(value: Value, type: str) -> Any:
    """Return what stands for a value in a DataFrame."""
    if type == "float":
        return normalise_float(float(value))
    if type == "unsigned":
        number = int(value)
        return number - 2**64 if number > INT64_MAX else number
    return value


def decode(code: Any, type: str) -> Value:
    """Return the value that a code stands for."""
    if type == "unsigned" and code < 0:
        return int(code) + 2**64
    if type == "float":
        return normalise_float(code)
    return code  # type: ignore[no-any-return]


def literal(value: Value, type: str) -> Column:
    """Return a constant as a column."""
    return F.lit(encode(value, type)).cast(SPARK_TYPES[type])
