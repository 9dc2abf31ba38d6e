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
    """The engine on Spark: `materialise(..., engine=SparkEngine(spark))`.

    Without a session, the active one is used, or a local one is started. `small` is how many facts of one predicate the
    driver holds of a set; what is more stays with Spark.
    """

    name = "spark"

    def __init__(self, spark: SparkSession | None = None, *, small: int = SMALL):
        self.spark = open_session(spark)
        self.small = small

    def open(self, core: Core, limits: Limits | None = None) -> DataFrameEngine:
        """Return a new engine for the facts of a program."""
        from upheld.engines.spark.engine import DataFrameEngine

        return DataFrameEngine(core, open_session(self.spark), Meter(limits), small=self.small)

    def saved(self, types: Sequence[str], whole: str | None, changes: Sequence[str]) -> Iterable[Row]:
        """Return the explicit facts of a relation that were saved, as a DataFrame that nobody has looked at yet."""
        from upheld.engines.spark.saved import saved_rows

        return saved_rows(self.spark, types, whole, changes)
