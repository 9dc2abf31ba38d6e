"""Sources whose columns have names and types: Parquet, ORC, tables of Spark's catalogue, DataFrames."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from upheld.pipeline.sources.arrow import NotPlain, PlainParquet, parquet_columns
from upheld.pipeline.sources.rows import Reading, columns, file_of_row, nothing, numbered
from upheld.store.spark.files import verbatim


@dataclass(frozen=True)
class Columnar:
    """Parquet or ORC files; the first file determines the columns."""

    spark: SparkSession
    files: tuple[str, ...]
    place: str
    format: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    named: bool = True

    @classmethod
    def found(cls, spark: SparkSession, files: Sequence[str], place: str, format: str) -> Columnar:
        columns = _columns(spark, files[0], format)
        return cls(spark, tuple(files), place, format, tuple(columns), tuple(columns.values()))

    def lacks(self, file: str, name: str) -> bool:
        """Return whether a file does not have a column that the first file has."""
        return name not in self.spark.read.format(self.format).load(verbatim(file)).columns

    def read(self, names: Sequence[str], types: Sequence[str]) -> Reading:
        schema = ", ".join(f"{_quoted(name)} {type}" for name, type in zip(self.names, self.types))
        values = [F.col(_quoted(name)) for name in names]

        def given() -> DataFrame:
            return self.spark.read.schema(schema).format(self.format).load(list(map(verbatim, self.files)))

        def frame() -> DataFrame:
            return _rows(given().select(*columns(values), file_of_row()), len(names))

        def located() -> DataFrame:
            if self.format == "parquet":
                row = (F.col("_metadata.row_index") + 1).alias("_row")
                return _rows(given().select(*columns(values), file_of_row(), row), len(names), "_row")
            return _rows(numbered(given().select(*columns(values), "_metadata")), len(names), "_row")

        theirs = tuple(dict(zip(self.names, self.types))[name] for name in names)
        plain = PlainParquet(self.files, tuple(names), theirs, tuple(types)) if self.format == "parquet" else None
        return Reading(frame, located, plain=plain)


@dataclass(frozen=True)
class Given:
    """A DataFrame, or a table that Spark knows by name. Its rows have no numbers."""

    frame: DataFrame
    place: str
    named: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.frame.columns)

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(field.dataType.simpleString() for field in self.frame.schema)

    def read(self, names: Sequence[str], types: Sequence[str]) -> Reading:
        frame = self.frame.select(*columns([F.col(_quoted(name)) for name in names]), nothing("_file"))

        def located() -> DataFrame:
            return _rows(frame, len(names)).withColumn("_row", F.lit(None).cast("long"))

        return Reading(lambda: _rows(frame, len(names)), located)


def _columns(spark: SparkSession, file: str, format: str) -> dict[str, str]:
    """Return the names of the columns of a file, and what Spark calls their types."""
    if format == "parquet":
        with contextlib.suppress(NotPlain, OSError, pa.ArrowException):  # then Spark is asked, which takes a job
            return parquet_columns(file)
    schema = spark.read.format(format).load(verbatim(file)).schema
    return {field.name: field.dataType.simpleString() for field in schema}


def _rows(frame: DataFrame, count: int, *more: str) -> DataFrame:
    values = [f"c{i}" for i in range(count)]
    texts = [F.col(name) for name, type in frame.dtypes if name in values and type == "string"]
    damaged = reduce(or_, (~F.is_valid_utf8(text) for text in texts), F.lit(False))
    shown = F.concat_ws(", ", *(F.make_valid_utf8(text) for text in texts))
    bad, record = F.when(damaged, "not-utf8"), F.when(damaged, shown)
    return frame.select(*values, "_file", bad.alias("_bad"), record.alias("_record"), *more)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
