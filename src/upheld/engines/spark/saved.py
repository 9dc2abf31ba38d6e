"""Facts that were saved, as DataFrames: read by Spark, without a look at them in the driver.

Numbers of facts are saved in columns beside them, and come back so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from upheld.algebra.counters import Numbered
from upheld.algebra.sets import FactSet
from upheld.data.columns import Row
from upheld.engines.spark.codes import Layout
from upheld.engines.spark.cols import col, lit
from upheld.engines.spark.frames import FrameRows, SparkRows, decoded
from upheld.engines.spark.numbers import SparkNumbers, SparkRanks, Values
from upheld.engines.spark.sets import Local, Part, SparkSet, own_set
from upheld.engines.spark.table import Request, arranged
from upheld.spark.paths import verbatim

if TYPE_CHECKING:
    from upheld.engines.spark.engine import DataFrameEngine

#: What Spark calls the types of columns that were saved. Parquet has unsigned numbers, which Spark reads as decimals.
_TYPES = {
    "number": "bigint",
    "unsigned": "decimal(20,0)",
    "float": "double",
    "symbol": "string",
    "record": "string",
    "term": "string",
}

#: What changes say of explicit facts.
_EXPLICIT = "explicit"


def saved_rows(spark: SparkSession, types: Sequence[str], whole: str | None, changes: Sequence[str]) -> Iterable[Row]:
    """Return the explicit facts of a relation: those that were written whole, and what changes have made of them."""
    names = [f"c{i}" for i in range(len(types))]
    if not types:
        last = _read(spark, [changes[-1]]).first() if changes else None
        holds = whole is not None if last is None else last["status"] == _EXPLICIT
        return [()] if holds else []
    base = None
    if whole is not None:
        written = _read(spark, [whole])
        # Numbers may follow that nobody asks for.
        base = written.toDF(*(f"c{i}" for i in range(len(written.columns)))).select(*names)
    if changes:
        # Versions count up, and the name of a file begins with that of the version it was written for.
        version = F.regexp_extract("_metadata.file_name", r"^(\d+)-", 1).cast("bigint")
        said = _read(spark, changes).groupBy(*names).agg(F.max_by("status", version).alias("status"))
        explicit = said.filter(col("status") == _EXPLICIT).select(*names)
        base = explicit if base is None else base.join(said, names, "left_anti").unionAll(explicit)
    if base is None:
        return []
    return FrameRows(base.select(*(col(n).cast(_TYPES[t]) for n, t in zip(names, types, strict=True))), types)


def _read(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    return spark.read.parquet(*map(verbatim, paths))


# -- numbers beside facts ----------------------------------------------------------------------------------------------


class NumberedRows(SparkRows):
    """The rows of a predicate that Spark holds, each followed by the numbers that are known of it."""

    def __init__(self, engine: DataFrameEngine, predicate: str, part: Part, values: Sequence[Values]) -> None:
        super().__init__(engine, engine.codecs[predicate], part)
        self._predicate, self._values = predicate, values
        self._numbers = reduce(Layout.__add__, (v.layout for v in values))

    @cached_property
    def _fetched(self) -> frozenset[Row]:
        types = (*self._codec.predicate.types, *("number",) * len(self._numbers.names))
        return frozenset(FrameRows(self.frame([f"c{i}" for i in range(len(types))]), types))

    def frame(self, columns: Sequence[str]) -> DataFrame:
        frame, arity = self._part.frame(), len(self._codec.predicate.types)
        for values in self._values:
            frame = values.beside(frame, self._predicate)
        numbers = [F.coalesce(col(name), lit(0).cast("bigint")).alias(name) for name in self._numbers.names]
        facts = [col(name) for name in self._codec.layout.names[:arity]]
        given = [f"c{i}" for i in range(arity + len(numbers))]
        types = (*self._codec.types[:arity], *("number",) * len(numbers))
        return decoded(frame.select(*facts, *numbers).toDF(*given), types, columns)


def rows_with_numbers(
    engine: DataFrameEngine, facts: FactSet, predicate: str, books: Sequence[Numbered]
) -> Iterable[Row]:
    """Return the rows of a predicate, each followed by the numbers that books have of it."""
    part, codec, values = own_set(facts).part(predicate), engine.codecs[predicate], _values(books)
    if part is None:
        return []
    if isinstance(part, Local):
        known = [v.fetch({predicate: part.rows})[predicate] for v in values]
        return [(*codec.decode(row), *(n for found in known for n in found[row])) for row in part.rows]
    return NumberedRows(engine, predicate, part, values)


def load_with_numbers(
    engine: DataFrameEngine, predicate: str, rows: Iterable[Row], books: Sequence[Numbered]
) -> SparkSet:
    """Return a set of facts; books take over the numbers that follow each of them."""
    assert isinstance(rows, FrameRows), "numbers come as a DataFrame"
    codec, values = engine.codecs[predicate], _values(books)
    numbers = reduce(Layout.__add__, (v.layout for v in values))
    frame, layout = rows.encoded().toDF(*codec.layout.names[: codec.predicate.arity], *numbers.names), codec.layout
    if not codec.predicate.arity:
        frame = frame.select(lit(0).cast("bigint").alias(layout.names[0]), "*")
    (computed,) = engine.tables.compute([Request(arranged(frame, layout), layout + numbers, small=False)])
    for v in values:
        v.take(predicate, computed)
    part = engine.part_of(predicate, computed)
    return SparkSet(engine, {predicate: part} if part is not None else {})


def _values(books: Sequence[Numbered]) -> list[Values]:
    found = []
    for book in books:
        assert isinstance(book, SparkNumbers | SparkRanks), "numbers of another engine"
        found.append(book.values)
    return found
