"""What callers choose Spark by: a session, and how many facts the driver is to hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from upheld.algebra.meter import Meter
from upheld.data.columns import Row
from upheld.language.core import Core
from upheld.runtime.limits import Limits
from upheld.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from upheld.engines.spark.engine import DataFrameEngine

#: Facts of one predicate that the driver holds of a set, unless told otherwise.
SMALL = 20_000


class SparkEngine:
    """The Spark engine with its options: `materialise(..., engine=SparkEngine(spark))`.

    Args:
        spark: The Spark session; by default the active one, or a new local one.
        small: Driver row limit: sets with at most this many facts per relation stay in the driver.
    """

    name = "spark"

    def __init__(self, spark: SparkSession | None = None, *, small: int = SMALL):
        self.spark = open_session(spark)
        self.small = small

    def open(self, core: Core, limits: Limits | None = None) -> DataFrameEngine:
        """Return a new engine for the facts of a program.

        Args:
            core: The compiled program.
            limits: Limits on facts, rounds, time and memory.
        """
        from upheld.engines.spark.engine import DataFrameEngine

        return DataFrameEngine(core, open_session(self.spark), Meter(limits), small=self.small)

    def saved(self, types: Sequence[str], whole: str | None, changes: Sequence[str]) -> Iterable[Row]:
        """Return the saved explicit facts of a relation as a lazy DataFrame.

        Args:
            types: Types of the columns.
            whole: Path of the files with all facts of an earlier version, or None.
            changes: Paths of the files with changes since, in order.
        """
        from upheld.engines.spark.saved import saved_rows

        return saved_rows(self.spark, types, whole, changes)
