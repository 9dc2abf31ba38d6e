"""The common base of sources: columns, unchecked rows, and the place of each row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from upheld.pipeline.sources.arrow import Plain
from upheld.store.spark.files import verbatim


@dataclass(frozen=True)
class Reading:
    """Rows as a source has them.

    `frame` makes them: a column `c0`, `c1`, ... for each of the relation, and three more: `_file`, where the row is;
    `_bad`, the slug of what is wrong with its record as a whole, or null; `_record`, the text of such a record.
    `located` makes the same rows with a number from one in `_row`, which is null if the source has no order. It costs
    another look at the data, or two.
    """

    frame: Callable[[], DataFrame]
    located: Callable[[], DataFrame]
    #: The description of a valid record, for messages.
    expected: str = ""
    #: How plain files can be read in columns, and what lines `value` of files `_file` are that these leave.
    plain: Plain | None = None
    rest: Callable[[DataFrame], DataFrame] | None = None
    #: Whether all texts are RDF terms in their canonical form, as a reader of RDF makes them.
    canonical: bool = False


class Table(Protocol):
    """A source that has been found and not been read."""

    @property
    def place(self) -> str:
        """Its name in messages."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of its columns, or None if rows have those that they are asked for."""

    @property
    def named(self) -> bool:
        """Whether its columns are matched by name, as opposed to RDF and files without a header."""

    @property
    def types(self) -> tuple[str, ...] | None:
        """Spark's names of the column types, or None if all are texts."""

    def read(self, names: Sequence[str], types: Sequence[str]) -> Reading:
        """Return its rows: columns of these names, for a relation whose columns have these types."""


def columns(values: Sequence[Column]) -> list[Column]:
    """Return the values of rows under the names that a `Reading` has for them."""
    return [value.alias(f"c{i}") for i, value in enumerate(values)]


def file_of_row() -> Column:
    return F.col("_metadata.file_path").alias("_file")


def nothing(name: str) -> Column:
    return F.lit(None).cast("string").alias(name)


def numbered(frame: DataFrame) -> DataFrame:
    """Return the rows of files with `_file` and `_row`, which counts from one in each file.

    A task reads the rows of a block in order. Blocks of a file may be read in any order by any task, so rows are
    counted by block before they are numbered.
    """
    block = F.col("_metadata.file_block_start").alias("_block")
    frame = frame.select("*", file_of_row(), block, F.monotonically_increasing_id().alias("_at"))
    before = F.sum("_count").over(Window.partitionBy("_file").orderBy("_block")) - F.col("_count")
    blocks = (
        frame.groupBy("_file", "_block")
        .agg(F.min("_at").alias("_first"), F.count(F.lit(1)).alias("_count"))
        .select("_file", "_block", "_first", before.alias("_before"))
    )
    row = F.col("_at") - F.col("_first") + F.col("_before") + 1
    return (
        frame.join(F.broadcast(blocks), ["_file", "_block"])
        .withColumn("_row", row)
        .drop("_at", "_block", "_first", "_before")
    )


def lines(spark: SparkSession, files: Sequence[str]) -> DataFrame:
    """Return the lines of text files, as `value`."""
    return spark.read.text(list(map(verbatim, files)))
