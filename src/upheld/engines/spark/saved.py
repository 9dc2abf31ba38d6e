"""Facts that were saved, as DataFrames: read by Spark, without a look at them in the driver."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from upheld.columns import Row
from upheld.engines.spark.cols import col
from upheld.engines.spark.frames import FrameRows

#: What Spark calls the types of columns that were saved. Parquet has unsigned numbers, which Spark reads as decimals.
_TYPES = {"number": "bigint", "unsigned": "decimal(20,0)", "float": "double", "symbol": "string", "term": "string"}

#: What changes say of explicit facts.
_EXPLICIT = "explicit"


def saved_rows(spark: SparkSession, types: Sequence[str], whole: str | None, changes: Sequence[str]) -> Iterable[Row]:
    """Return the explicit facts of a relation: those that were written whole, and what changes have made of them."""
    names = [f"c{i}" for i in range(len(types))]
    if not types:
        last = _read(spark, [changes[-1]]).first() if changes else None
        holds = whole is not None if last is None else last["status"] == _EXPLICIT
        return [()] if holds else []
    base = _read(spark, [whole]).toDF(*names) if whole is not None else None
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
    """Return what files hold; characters that would make a path a pattern stand for themselves."""
    return spark.read.parquet(*(re.sub(r"([\\*?\[\]{}])", r"\\\1", path) for path in paths))
