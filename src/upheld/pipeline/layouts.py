"""How facts stand in DataFrames that tasks read: a column `c0`, `c1`, ... for each argument, of its own type.

A `number` is a `bigint`, an `unsigned` the `bigint` with the same 64 bits, a `float` a `double`, texts are strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def bits_of(unsigned: Column) -> Column:
    """Return an unsigned number, a `decimal(20,0)`, as the `bigint` with the same 64 bits."""
    return F.when(unsigned > F.lit(2**63 - 1), unsigned - F.lit(Decimal(2**64))).otherwise(unsigned).cast("bigint")


def laid_out(frame: DataFrame, types: Sequence[str]) -> DataFrame:
    """Return the rows of a predicate as tasks read them."""
    names = [F.col(f"c{i}") for i in range(len(types))]
    codes = [bits_of(c) if type == "unsigned" else c for c, type in zip(names, types, strict=True)]
    return frame.select(*(code.alias(f"c{i}") for i, code in enumerate(codes)))
