"""Types of columns whose values are codes of a primitive type: dates, timestamps, decimals, Booleans, and nulls.

A `date` is a `number` of days, a `timestamp` of microseconds in UTC, a `decimal(p, s)` of units of its last digit, a
`boolean` is 0 or 1. A column that may hold nulls, such as `number?`, reserves one value of its primitive type for them.
So engines, indexes and aggregates see numbers and texts; only what reads facts, prints them or computes with them knows
the type. `COLUMN_TYPES` is the table of all of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any

from upheld.language.types import dates
from upheld.language.types.primitive import FLOAT as FLOAT_TEXT
from upheld.language.types.primitive import INT64_MIN, INTEGER, INTEGER_RANGES, TYPES, UINT64_MAX, float_text
from upheld.language.values import NAN, Value, normalise_float

#: The digits of a decimal at most: all of them fit 64 bits.
MOST_DIGITS = 18

#: The value of each primitive type that is the null of a column with nulls. NaN is a null there, as in pandas.
NULLS: dict[str, Value] = {"number": INT64_MIN, "unsigned": UINT64_MAX, "float": NAN, "symbol": r"\N"}

#: A null in programs, and in facts files.
NULL, NULL_IN_FILES = "null", r"\N"

_DECIMAL = re.compile(r"decimal\s*\(\s*([0-9]{1,3})\s*,\s*([0-9]{1,3})\s*\)")
_DECIMAL_TEXT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")


class NotAValue(Exception):
    """A text or Python object that is not a value of a type; the message continues *which ...*."""

    def __init__(self, message: str, slug: str = "ill-typed-value"):
        super().__init__(message)
        self.slug = slug


@dataclass(frozen=True)
class Kind:
    """How the values of a type are written and read, by their codes."""

    #: The primitive type of the codes.
    base: str
    expected: str
    parse: Callable[[str, ColumnType], Value]
    text: Callable[[Any, ColumnType], str]
    from_python: Callable[[Any, ColumnType], Value]
    to_python: Callable[[Any, ColumnType], object]
    #: Whether programs write the values as strings.
    quoted: bool = False


class ColumnType(str):
    """The primitive type of a column, with the meaning of its codes.

    It equals the name of the primitive type, by which engines know how to hold its values; `str()` is its own name.
    """

    kind: str
    nullable: bool
    precision: int
    scale: int

    def __new__(cls, kind: str, nullable: bool = False, precision: int = 0, scale: int = 0) -> ColumnType:
        self = super().__new__(cls, COLUMN_TYPES[kind].base)
        self.kind, self.nullable, self.precision, self.scale = kind, nullable, precision, scale
        return self

    @property
    def plain_name(self) -> str:
        """The name without the sign of nulls."""
        return f"decimal({self.precision}, {self.scale})" if self.kind == "decimal" else self.kind

    @property
    def name(self) -> str:
        return self.plain_name + ("?" if self.nullable else "")

    @property
    def null(self) -> Value:
        """The code of the null."""
        return NULLS[str.__str__(self)]

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest code of a type over numbers."""
        match self.kind:
            case "date":
                return dates.DAYS
            case "timestamp":
                return dates.MICROSECONDS
            case "boolean":
                return 0, 1
            case "decimal":
                return 1 - 10**self.precision, 10**self.precision - 1
            case "unsigned":
                return 0, UINT64_MAX - 1
        return INT64_MIN + 1, INTEGER_RANGES["number"][1]

    @property
    def expected(self) -> str:
        """A sentence that says what the values are."""
        more = ", or a null: `\\N` or nothing in files, `null` in programs" if self.nullable else ""
        return f"a `{self.name}` is {COLUMN_TYPES[self.kind].expected}{more}"

    def is_null(self, code: object) -> bool:
        """Return whether a code is the null."""
        return self.nullable and (code == self.null or (code != code and self.kind == "float"))

    def parse(self, text: str) -> Value:
        """Return the code of a text of a facts file."""
        if self.nullable and (text == NULL_IN_FILES or (not text and self.kind != "symbol")):
            return self.null
        return COLUMN_TYPES[self.kind].parse(text, self)

    def text(self, code: Value) -> str:
        """Return a value as facts files have it."""
        return NULL_IN_FILES if self.is_null(code) else COLUMN_TYPES[self.kind].text(code, self)

    def literal(self, code: Value) -> str:
        """Return a value as programs write it."""
        if self.is_null(code):
            return NULL
        text = COLUMN_TYPES[self.kind].text(code, self)
        if self.kind == "symbol":
            return '"' + text.translate(_ESCAPED) + '"'
        return f'"{text}"' if COLUMN_TYPES[self.kind].quoted else text

    def code(self, value: object) -> Value:
        """Return the code of a Python object."""
        if is_missing(value):
            if self.nullable:
                return self.null
            raise NotAValue("is missing", "missing-value")
        if hasattr(value, "item") and type(value).__module__ == "numpy":
            value = _scalar(value)
        return COLUMN_TYPES[self.kind].from_python(value, self)

    def value(self, code: Value) -> object:
        """Return a value as Python has it: None for a null."""
        return None if self.is_null(code) else COLUMN_TYPES[self.kind].to_python(code, self)

    def fitting(self, code: int) -> int:
        """Return a code if it is in the range of the type."""
        low, high = self.bounds
        if low <= code <= high:
            return code
        raise NotAValue(f"no `{self.plain_name}` can hold", "number-out-of-range")

    def __str__(self) -> str:
        return self.name

    def __format__(self, specification: str) -> str:
        return format(self.name, specification)

    def __repr__(self) -> str:
        return repr(self.name)

    def __reduce__(self) -> tuple[object, ...]:
        return ColumnType, (self.kind, self.nullable, self.precision, self.scale)


_ESCAPED = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"})


def is_missing(value: object) -> bool:
    """Return whether this is None or what pandas has in its stead; NaN is a value only of floats."""
    if isinstance(value, float):
        return math.isnan(value)
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return type(value).__name__ == "datetime64" and str(value) == "NaT"


def _scalar(value: Any) -> object:
    """Return a scalar of NumPy as a plain object. Dates below microseconds would become integers."""
    if type(value).__name__ != "datetime64":
        return value.item()
    if (rounded := value.astype("datetime64[us]")) != value:
        raise NotAValue("has digits below microseconds")
    day = value.astype("datetime64[D]")
    return day.item() if str(value.dtype) == "datetime64[D]" else rounded.item()


# -- dates and timestamps ---------------------------------------------------------------------------------------------


def _date_of(text: str, type: ColumnType) -> Value:
    try:
        return dates.date_of(text)
    except dates.NotADate as e:
        raise NotAValue(f"is not a `date`: {e}") from None


def _timestamp_of(text: str, type: ColumnType) -> Value:
    try:
        return dates.timestamp_of(text)
    except dates.NotADate as e:
        raise NotAValue(f"is not a `timestamp`: {e}") from None


def _python_date(value: Any, type: ColumnType) -> Value:
    if isinstance(value, str):
        return _date_of(value, type)
    if isinstance(value, datetime):
        if (moment := _python_timestamp(value, type)) % dates.DAY:
            raise NotAValue("has a time of day, which a `date` has not")
        return moment // dates.DAY  # type: ignore[operator]
    if isinstance(value, date):
        return (value - dates.EPOCH).days
    raise NotAValue("is not a `date`")


def _python_timestamp(value: Any, type: ColumnType) -> Value:
    if isinstance(value, str):
        return _timestamp_of(value, type)
    if isinstance(value, datetime):
        if getattr(value, "nanosecond", 0):
            raise NotAValue("has digits below microseconds")
        try:
            return dates.microseconds(value)
        except (dates.NotADate, OverflowError):
            raise NotAValue("no `timestamp` can hold", "number-out-of-range") from None
    if isinstance(value, date):
        return (value - dates.EPOCH).days * dates.DAY
    raise NotAValue("is not a `timestamp`")


# -- decimals ---------------------------------------------------------------------------------------------------------


def decimal_code(value: Decimal, type: ColumnType) -> int:
    """Return the code of a decimal, which must be one of the type."""
    if not value.is_finite():
        raise NotAValue(f"is not a `{type.plain_name}`")
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "a finite number"
    if not any(digits):
        return 0
    if exponent + type.scale > MOST_DIGITS or len(digits) + exponent > MOST_DIGITS + 1:
        raise NotAValue(f"no `{type.plain_name}` can hold", "number-out-of-range")
    whole = int("".join(map(str, digits)))
    if exponent >= -type.scale:
        code = whole * 10 ** (exponent + type.scale)
    else:
        cut = -type.scale - exponent
        code, rest = divmod(whole, 10**cut) if cut <= len(digits) else (0, whole)
        if rest:
            raise NotAValue(f"has more than {type.scale} digits after the point")
    return type.fitting(-code if sign else code)


def _decimal_of(text: str, type: ColumnType) -> Value:
    if not _DECIMAL_TEXT.fullmatch(text):
        raise NotAValue(f"is not a `{type.plain_name}`")
    return decimal_code(Decimal(text), type)


def decimal_text(code: int, type: ColumnType) -> str:
    """Return the text of a decimal with all digits of its scale.

    >>> decimal_text(-5, ColumnType("decimal", precision=4, scale=2))
    '-0.05'
    """
    digits = f"{abs(code):0{type.scale + 1}d}"
    point = f"{digits[: -type.scale]}.{digits[-type.scale :]}" if type.scale else digits
    return f"-{point}" if code < 0 else point


def _python_decimal(value: Any, type: ColumnType) -> Value:
    match value:
        case bool():
            raise NotAValue(f"is not a `{type.plain_name}`")
        case str():
            return _decimal_of(value, type)
        case int():
            return type.fitting(value * 10**type.scale)
        case float():
            return decimal_code(Decimal(repr(value)), type)
        case Decimal():
            return decimal_code(value, type)
    raise NotAValue(f"is not a `{type.plain_name}`")


def rescaled(code: int, divisor: int) -> int:
    """Return a quotient rounded to the nearest integer, halves away from zero, as SQL rounds decimals."""
    quotient, rest = divmod(abs(code), abs(divisor))
    quotient += 2 * rest >= abs(divisor)
    return quotient if (code < 0) == (divisor < 0) else -quotient


# -- the others -------------------------------------------------------------------------------------------------------


def _boolean_of(text: str, type: ColumnType) -> Value:
    if text in ("true", "false"):
        return int(text == "true")
    raise NotAValue("is not a `boolean`, which is `true` or `false`")


def _python_boolean(value: Any, type: ColumnType) -> Value:
    if isinstance(value, str):
        return _boolean_of(value, type)
    if isinstance(value, bool):
        return int(value)
    raise NotAValue("is not a `boolean`")


def _integer_of(text: str, type: ColumnType) -> Value:
    matched = INTEGER.fullmatch(text)
    if not matched:
        raise NotAValue(f"is not a `{type.kind}`")
    sign, hexadecimal, binary, decimal = matched.groups()
    digits, base = (hexadecimal, 16) if hexadecimal else (binary, 2) if binary else (decimal, 10)
    digits = digits.lstrip("0") or "0"
    if len(digits) > 64:
        raise NotAValue(f"no `{type.kind}` can hold", "number-out-of-range")
    return type.fitting(int(sign + digits, base))


def _python_integer(value: Any, type: ColumnType) -> Value:
    # pandas makes floats of integers where a value is missing
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return type.fitting(value)
    raise NotAValue(f"is not a `{type.kind}`")


def _float_of(text: str, type: ColumnType) -> Value:
    if not FLOAT_TEXT.fullmatch(text):
        raise NotAValue("is not a `float`")
    matched = normalise_float(float(text))
    if math.isinf(matched) and "n" not in text.lower():
        raise NotAValue("no `float` can hold", "number-out-of-range")
    return matched


def _python_float(value: Any, type: ColumnType) -> Value:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return normalise_float(float(value))
        except OverflowError:
            raise NotAValue("no `float` can hold", "number-out-of-range") from None
    raise NotAValue("is not a `float`")


def _python_text(value: Any, type: ColumnType) -> Value:
    if not isinstance(value, str):
        raise NotAValue("is not a `symbol`")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise NotAValue("has a lone surrogate", "lone-surrogate") from None
    return str.__str__(value)


def _itself(value: Any, type: ColumnType) -> Any:
    return value


#: The types of columns whose values are codes, and the primitive types that columns with nulls hold.
COLUMN_TYPES = {
    "date": Kind(
        "number",
        "a day such as `2024-02-29`, from 0001-01-01 to 9999-12-31",
        _date_of,
        lambda code, type: dates.date_text(code),
        _python_date,
        lambda code, type: dates.as_date(code),
        quoted=True,
    ),
    "timestamp": Kind(
        "number",
        "a moment such as `2024-02-29T12:30:00.5+01:00`, to the microsecond, in UTC if it has no zone",
        _timestamp_of,
        lambda code, type: dates.timestamp_text(code),
        _python_timestamp,
        lambda code, type: dates.as_datetime(code),
        quoted=True,
    ),
    "decimal": Kind(
        "number",
        "a number with that many digits, some of them after the point",
        _decimal_of,
        decimal_text,
        _python_decimal,
        lambda code, type: Decimal(decimal_text(code, type)),
    ),
    "boolean": Kind(
        "number",
        "`true` or `false`",
        _boolean_of,
        lambda code, type: "true" if code else "false",
        _python_boolean,
        lambda code, type: bool(code),
    ),
    "number": Kind(
        "number",
        "a whole number from -9223372036854775807 to 9223372036854775807",
        _integer_of,
        lambda code, type: str(code),
        _python_integer,
        _itself,
    ),
    "unsigned": Kind(
        "unsigned",
        "a whole number from 0 to 18446744073709551614",
        _integer_of,
        lambda code, type: str(code),
        _python_integer,
        _itself,
    ),
    "float": Kind(
        "float",
        "a number such as `0.5`, `-3` or `1e9`, or `inf`",
        _float_of,
        lambda code, type: float_text(code),
        _python_float,
        _itself,
    ),
    "symbol": Kind("symbol", "text", _itself, _itself, _python_text, _itself),
}

#: Types without a primitive type of their own name, as programs name them; a `decimal` has its digits in brackets.
CODED = ("date", "timestamp", "boolean", "decimal")


@cache
def column_type(name: str) -> str | None:
    """Return the type of a name, a `ColumnType` unless it is primitive; None if no type has the name.

    >>> column_type("decimal(10,2)?"), column_type("number") == column_type("date") == "number", column_type("money")
    ('decimal(10, 2)?', True, None)
    """
    plain = name.removesuffix("?")
    nullable = plain != name
    if matched := _DECIMAL.fullmatch(plain):
        precision, scale = int(matched[1]), int(matched[2])
        if not 1 <= precision <= MOST_DIGITS or scale > precision:
            return None
        return ColumnType("decimal", nullable, precision, scale)
    if plain in CODED and plain != "decimal":
        return ColumnType(plain, nullable)
    if plain not in NULLS and not (plain in ("record", "term") and not nullable):
        return None
    return ColumnType(plain, True) if nullable else plain


def spark_type(type: str) -> str:
    """Return what Spark calls a type.

    >>> spark_type(column_type("decimal(10, 2)?")), spark_type("number")
    ('decimal(10, 2)', 'bigint')
    """
    if not isinstance(type, ColumnType):
        return TYPES[type].spark
    return type.plain_name if type.kind in CODED else TYPES[type.kind].spark


def plain_name(type: str) -> str:
    """Return the name of a type by which values are compared: nulls make no difference.

    >>> plain_name(column_type("date?")), plain_name("symbol")
    ('date', 'symbol')
    """
    return type.plain_name if isinstance(type, ColumnType) else type
