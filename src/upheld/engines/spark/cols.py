"""Columns by name, made once: to make one takes three messages to Java, two of which search all its jars."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pyspark import SparkContext
from pyspark.sql import Column
from pyspark.sql import functions as F


def col(name: str) -> Column:
    """Return the column of a name, in whichever DataFrame it is used."""
    return _column(SparkContext._gateway, name)


def lit(value: bool | int | None) -> Column:
    """Return a constant as a column."""
    return _literal(SparkContext._gateway, value, isinstance(value, bool))


# A Java that has been started anew knows nothing of columns that were made before.


@lru_cache(maxsize=1000)
def _column(java: Any, name: str) -> Column:
    return F.col(name)


@lru_cache(maxsize=1000)
def _literal(java: Any, value: bool | int | None, is_truth: bool) -> Column:
    return F.lit(value)
