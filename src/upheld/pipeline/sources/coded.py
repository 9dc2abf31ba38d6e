"""Values of the types whose columns hold codes (`language.types.columns`): Spark's own, and their texts, as codes.

Dates, timestamps and Booleans of Spark become codes by expressions of columns. Texts and decimals are read in Python,
by the same functions that read facts files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from upheld.language.types.columns import CODED, MOST_DIGITS, ColumnType, NotAValue, column_type
from upheld.language.types.dates import DAY, DAYS
from upheld.language.types.primitive import TYPES
from upheld.language.values import Value

#: Spark's types of dates and moments.
_MOMENTS = ("date", "timestamp", "timestamp_ntz")

#: Spark's types that each kind is made of; decimals of any digits are another one.
_MADE_OF = {
    "date": (*_MOMENTS, "string"),
    "timestamp": (*_MOMENTS, "string"),
    "boolean": ("boolean", "string"),
    "decimal": ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "string"),
}


def is_coded(type: str) -> bool:
    """Return whether values of a type are codes, other than of a primitive type with nulls."""
    return isinstance(type, ColumnType) and type.kind in CODED


def made_of(type: str) -> Sequence[str]:
    """Return the types of Spark that a type of codes is made of."""
    assert isinstance(type, ColumnType), "a type whose values are codes"
    return _MADE_OF[type.kind]


def coded_type(spark: str) -> str | None:
    """Return the type for the values of one of Spark's types, if they are codes.

    >>> coded_type("decimal(38,2)"), coded_type("timestamp_ntz"), coded_type("bigint")
    ('decimal(18, 2)', 'timestamp', None)
    """
    if spark in _MOMENTS:
        return column_type(spark.removesuffix("_ntz"))
    if spark == "boolean":
        return column_type(spark)
    if spark.startswith("decimal("):
        precision, _, scale = spark.removeprefix("decimal(").removesuffix(")").partition(",")
        return column_type(f"decimal({min(int(precision), MOST_DIGITS)}, {scale})")
    return None


def codes(column: Column, source: str, type: ColumnType, primitive: Callable[[Column, str, str], Column]) -> Column:
    """Return a column of one of Spark's types as codes; null where it does not fit.

    `primitive` makes values of a primitive type.
    """
    base = str.__str__(type)
    if type.kind == "symbol":
        code = column
    elif source == "string":
        code = _by_python(column, base, type.parse)
    elif source in _MOMENTS:
        code = _moments(column, source, type)
    elif type.kind == "boolean":
        code = column.cast("bigint")
    elif type.kind in CODED:
        code = _by_python(column, base, type.code)
    else:
        code = primitive(column, source, base)
        if base != "float":
            code = F.when(code != _null(type), code)  # the null, which is not a number
    return F.when(column.isNull(), _null(type)).otherwise(code) if type.nullable else code


def _null(type: ColumnType) -> Column:
    """Return the code of the null, of Spark's type for the primitive one."""
    base = str.__str__(type)
    return F.lit(Decimal(type.null) if base == "unsigned" else type.null).cast(TYPES[base].spark)


def _moments(column: Column, source: str, type: ColumnType) -> Column:
    """Return dates and moments of Spark as days or microseconds."""
    if source == "date":
        days = F.unix_date(column).cast("bigint")
        return F.when(days.between(*DAYS), days * (DAY if type.kind == "timestamp" else 1))
    if source == "timestamp_ntz":
        code = F.timestamp_diff("MICROSECOND", F.lit("1970-01-01").cast("timestamp_ntz"), column)
    else:
        code = F.unix_micros(column)
    if type.kind == "date":
        code = F.when(code % DAY == 0, F.round(code / DAY).cast("bigint"))
    return F.when(code.between(*type.bounds), code)


def _by_python(column: Column, base: str, code_of: Callable[[Any], Value]) -> Column:
    """Return the codes of values that a function of Python reads."""

    def read(value: Any) -> Any:
        try:
            code = None if value is None else code_of(value)
        except NotAValue:
            return None
        return Decimal(code) if code is not None and base == "unsigned" else code

    return F.udf(read, TYPES[base].spark, useArrow=True)(column)


def codes_of_texts(texts: pa.ChunkedArray, type: ColumnType, wanted: pa.DataType) -> pa.ChunkedArray:
    """Return texts of a file as codes, each text read once; raise `NotAValue` for one that is not a value."""
    chunks = []
    for chunk in texts.dictionary_encode().chunks:
        read = pa.array([type.parse(text) for text in chunk.dictionary.to_pylist()], wanted)
        chunks.append(read.take(chunk.indices))
    return pa.chunked_array(chunks, wanted)
