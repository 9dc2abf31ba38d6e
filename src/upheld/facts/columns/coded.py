"""Columns of codes (`language.types.columns`) as other libraries have their values, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from upheld.facts.columns import Column, Texts, plain
from upheld.language.types.columns import MOST_DIGITS, ColumnType, column_type
from upheld.language.types.dates import DAY, DAYS, MICROSECONDS
from upheld.language.types.primitive import TYPES

if TYPE_CHECKING:
    import numpy
    import numpy.typing as npt
    import pandas
    import pyarrow

#: The types of pandas that have nulls.
_PANDAS = {"number": "Int64", "unsigned": "UInt64", "boolean": "boolean"}


# -- from codes -------------------------------------------------------------------------------------------------------


def numpy_array(codes: npt.NDArray[Any], type: ColumnType) -> numpy.ndarray:
    """Return the values of codes as an array of NumPy."""
    import numpy as np

    if type.kind in ("date", "timestamp"):
        values = codes.astype(np.int64).astype("datetime64[D]" if type.kind == "date" else "datetime64[us]")
        return values  # the reserved code is that of NaT
    if type.kind == "boolean" and not type.nullable:
        return codes.astype(np.bool_)
    if type.kind == "float":
        return codes
    return _objects(codes.tolist(), type)


def _objects(codes: list[Any], type: ColumnType) -> numpy.ndarray:
    import numpy as np

    values = np.empty(len(codes), np.object_)
    values[:] = [type.value(code) for code in codes]
    return values


def pandas_series(codes: Column | list[Any], type: ColumnType) -> pandas.Series:
    """Return the values of codes as a series of pandas."""
    import numpy as np
    import pandas

    if isinstance(codes, Texts) or type.kind == "symbol":
        return pandas.Series(_objects(_listed(codes), type), dtype="string")
    array = np.asarray(codes, TYPES[str.__str__(type)].numpy)
    if type.kind == "timestamp":
        return pandas.Series(numpy_array(array, type)).dt.tz_localize("UTC")
    if type.kind in ("date", "decimal"):
        return pandas.Series(_objects(array.tolist(), type), dtype="object")
    if not type.nullable or type.kind == "float":
        return pandas.Series(numpy_array(array, type))
    return pandas.Series(_objects(array.tolist(), type), dtype=_PANDAS[type.kind])


def arrow_array(codes: Column | list[Any], type: ColumnType) -> pyarrow.Array:
    """Return the values of codes as an array of Arrow."""
    import numpy as np
    import pyarrow as pa

    if isinstance(codes, Texts) or type.kind == "symbol":
        return pa.array([type.value(code) for code in _listed(codes)], pa.string())
    array = np.asarray(codes, TYPES[str.__str__(type)].numpy)
    missing = None
    if type.nullable:
        missing = np.isnan(array) if type.kind == "float" else array == np.array(type.null, array.dtype)
    match type.kind:
        case "date":
            days = array if missing is None else np.where(missing, 0, array)
            return pa.array(days.astype(np.int32), pa.int32(), mask=missing).cast(pa.date32())
        case "timestamp":
            return pa.array(array, pa.int64(), mask=missing).cast(pa.timestamp("us", "UTC"))
        case "boolean":
            return pa.array(array == 1, pa.bool_(), mask=missing)
        case "decimal":
            return _decimals(array, type, missing)
    return pa.array(array, getattr(pa, TYPES[type.kind].arrow)(), mask=missing)


def _decimals(codes: npt.NDArray[Any], type: ColumnType, missing: npt.NDArray[Any] | None) -> pyarrow.Array:
    """Return decimals of 128 bits: the codes, extended by their signs."""
    import numpy as np
    import pyarrow as pa

    words = np.empty((len(codes), 2), np.int64)
    words[:, 0] = codes
    words[:, 1] = codes >> 63
    valid = None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little").tobytes())
    decimal = pa.decimal128(type.precision, type.scale)
    return pa.Array.from_buffers(decimal, len(codes), [valid, pa.py_buffer(words.tobytes())])


def _listed(codes: Column | list[Any]) -> list[Any]:
    return codes if isinstance(codes, list) else plain(codes)


# -- to codes ---------------------------------------------------------------------------------------------------------


def coded_dtype(dtype: str) -> str | None:
    """Return the type of codes of a column by the name of its type in pandas or Arrow, or None.

    >>> coded_dtype("timestamp[ns, tz=UTC]"), coded_dtype("decimal128(12, 2)"), coded_dtype("int64")
    ('timestamp', 'decimal(12, 2)', None)
    """
    dtype = dtype.removesuffix("[pyarrow]").lower()
    if dtype in ("bool", "boolean"):
        return column_type("boolean")
    if dtype.startswith(("date32", "date64")):
        return column_type("date")
    if dtype.startswith(("datetime64", "timestamp")):
        return column_type("timestamp")
    for prefix in ("decimal128", "decimal256", "decimal"):
        if dtype.startswith(f"{prefix}("):
            precision, _, scale = dtype[len(prefix) + 1 : -1].partition(",")
            return column_type(f"decimal({min(int(precision), MOST_DIGITS)}, {int(scale)})")
    return None


def from_numpy(array: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]] | None:
    """Return moments as microseconds, or truth values as 0 and 1, and which are missing.

    Return None if the values must be read one by one: moments outside of the calendar, or with nanoseconds.
    """
    import numpy as np

    if array.dtype.kind == "b":
        return array.astype(np.int64), np.zeros(len(array), np.bool_)
    if array.dtype.kind != "M":
        return None
    missing = np.isnat(array)
    moments = array.astype("datetime64[us]")
    if (moments[~missing] != array[~missing]).any():
        return None
    codes = np.where(missing, 0, moments.astype(np.int64))
    in_calendar = len(codes) == 0 or (codes.min() >= MICROSECONDS[0] and codes.max() <= MICROSECONDS[1])
    return (codes, missing) if in_calendar else None


def from_arrow(column: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]] | None:
    """Return the codes of a column of Arrow and which are missing; None for a column that must be read one by one."""
    import pyarrow as pa
    from pyarrow import types

    missing = column.is_null().to_numpy()
    try:
        if types.is_boolean(column.type):
            return column.fill_null(False).cast(pa.int64()).to_numpy(), missing
        if types.is_date(column.type):
            codes = column.cast(pa.date32()).cast(pa.int32()).cast(pa.int64()).fill_null(0).to_numpy()
            return (codes, missing) if _within(codes, DAYS) else None
        if types.is_timestamp(column.type):
            codes = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).fill_null(0).to_numpy()
            return (codes, missing) if _within(codes, MICROSECONDS) else None
        if types.is_decimal128(column.type):
            return _codes_of_decimals(column, missing)
    except pa.ArrowInvalid:  # digits that would be lost, or a number that does not fit: each row is looked at
        return None
    return None


def _codes_of_decimals(column: Any, missing: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]] | None:
    """Return the lower words of decimals of 128 bits, if the upper ones only repeat their signs."""
    import numpy as np

    parts = [
        np.frombuffer(chunk.buffers()[1], np.int64).reshape(-1, 2)[chunk.offset : chunk.offset + len(chunk)]
        for chunk in column.chunks
    ]
    words = np.concatenate([np.empty((0, 2), np.int64), *parts])
    words[missing] = 0
    codes = np.ascontiguousarray(words[:, 0])
    return (codes, missing) if np.array_equal(words[:, 1], codes >> 63) else None


def _within(codes: npt.NDArray[Any], bounds: tuple[int, int]) -> bool:
    return len(codes) == 0 or bool(codes.min() >= bounds[0] and codes.max() <= bounds[1])


def days_of(microseconds: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    """Return moments as days; None if some have a time of day."""
    return microseconds // DAY if not (microseconds % DAY).any() else None
