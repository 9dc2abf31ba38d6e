"""Output of partition tasks: Arrow-encoded facts per relation and one status record per task.

Parts whose facts Spark has shuffled leave rows of a DataFrame. Parts that the driver has dealt out leave pairs of an
RDD, which takes neither a plan nor generated code to hold: in CPU seconds half of what a query does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Protocol

import pyarrow as pa
from pyspark import RDD, Accumulator, AccumulatorParam, StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StructField, StructType

from upheld.base.dataclass import dataclass
from upheld.pipeline.layouts import Layout
from upheld.store.spark.gateway import count_in_java

#: A note, or packed facts of the relation with this number.
Piece = tuple[int, bytes]
NOTE = -1

_ROWS = Layout(("relation", "data"), ("bigint", "binary"))
_DATA = StructType([StructField("data", BinaryType())])


class Leaving(Protocol):
    """The output of all partitions, with their status records."""

    def notes(self) -> list[bytes]:
        """Return the notes of parts, after these have done their work."""
        ...

    def packed(self, relation: int) -> DataFrame:
        """Return the packed facts of a relation, as `data`."""
        ...

    def unpersist(self) -> None:
        """Have Spark hold it no longer."""
        ...


@dataclass(frozen=True)
class LeavingRows:
    """The output of partitions as rows of a DataFrame."""

    rows: DataFrame

    @classmethod
    def of(cls, parts: DataFrame, derive: Callable[[Iterable[pa.RecordBatch]], Iterator[Piece]]) -> LeavingRows:
        """Return what leaves the partitions of a DataFrame."""

        def batches(arriving: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return map(_batch, derive(arriving))

        return cls(parts.mapInArrow(batches, _ROWS.schema).persist(StorageLevel.MEMORY_AND_DISK))

    def notes(self) -> list[bytes]:
        return [row["data"] for row in self.rows.filter(F.col("relation") == NOTE).collect()]

    def packed(self, relation: int) -> DataFrame:
        return self.rows.filter(F.col("relation") == relation).select("data")

    def unpersist(self) -> None:
        self.rows.unpersist()


def _batch(piece: Piece) -> pa.RecordBatch:
    relation, data = piece
    arrays = [pa.array([relation], pa.int64()), pa.array([data], pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, list(_ROWS.names))


@dataclass(frozen=True)
class LeavingPairs:
    """The output of partitions as pairs of an RDD, and their status records by partition."""

    spark: SparkSession
    pairs: RDD[Piece]
    noted: Accumulator[dict[int, bytes]]

    @classmethod
    def of(cls, spark: SparkSession, parts: int, derive: Callable[[int], Iterator[Piece]]) -> LeavingPairs:
        """Return what leaves parts, each of which is derived by its number."""
        noted = spark.sparkContext.accumulator({}, _Notes())

        def pieces(numbers: Iterable[int]) -> Iterator[Piece]:
            for number in numbers:
                for relation, data in derive(number):
                    if relation == NOTE:
                        noted.add({number: data})
                    else:
                        yield relation, data

        pairs = spark.sparkContext.parallelize(range(parts), parts).mapPartitions(pieces)
        return cls(spark, pairs.persist(StorageLevel.MEMORY_AND_DISK), noted)

    def notes(self) -> list[bytes]:
        count_in_java(self.pairs)
        return list(self.noted.value.values())

    def packed(self, relation: int) -> DataFrame:
        return self.spark.createDataFrame(self.pairs.mapPartitions(partial(_data, relation)), _DATA, verifySchema=False)

    def unpersist(self) -> None:
        self.pairs.unpersist()


class _Notes(AccumulatorParam[dict[int, bytes]]):
    """Status records by partition, so that a partition that is computed again does not count twice."""

    def zero(self, value: dict[int, bytes]) -> dict[int, bytes]:
        return {}

    def addInPlace(self, value1: dict[int, bytes], value2: dict[int, bytes]) -> dict[int, bytes]:
        return value1 | value2


def _data(relation: int, pieces: Iterable[Piece]) -> Iterator[tuple[bytes]]:
    return ((data,) for number, data in pieces if number == relation)
