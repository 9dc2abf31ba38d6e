"""Values of RDF terms, and SPARQL's operators on them: equality, order, arithmetic and truth.

An operator that means nothing for its terms raises `NoValue`, SPARQL's error. Departures: terms of two datatypes with
values are unequal, where SPARQL 1.1 has an error for some of them; a dateTime without a zone is compared with one that
has a zone by the order of XML Schema, in which it has none within 14 hours.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from upheld.language.terms import temporal
from upheld.language.terms.temporal import EXACT
from upheld.language.terms.terms import XSD, NoValue, escape, literal, number_of, parts, to_double, unescape
from upheld.language.values import Value as Plain

#: Quotients of integers and decimals have this many digits.
_ROUNDED = Context(prec=28)
#: The types of numbers, each of which the next one includes.
_NUMERIC = ("integer", "decimal", "float", "double")
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_LONGEST_NUMBER = 4000

#: Kinds of terms that equal nothing but themselves.
_BY_IDENTITY = frozenset(("iri", "blank", "string", "tagged", "unknown"))


class Value(NamedTuple):
    """The value of a term: its kind, and its value within this kind.

    The kinds of literals are the types of numbers, `string`, `tagged`, `boolean`, `dateTime`, `date`, `time` and
    `duration`; literals of other datatypes, and those that are not well-formed, are `unknown`.
    """

    kind: str
    value: Any


@lru_cache(maxsize=65536)
def value_of(term: str) -> Value:
    """Return the value of a term."""
    if term[0] != '"':
        return Value("iri" if term[0] == "<" else "blank", term)
    parsed = parts(term)
    assert parsed is not None, "a literal"
    inside, language, datatype = parsed
    if language:
        return Value("tagged", (unescape(inside), language))
    if datatype is None:
        return Value("string", unescape(inside))
    if (number := number_of(term)) is not None:
        if isinstance(number, float):
            return Value("float", to_float(number)) if datatype == XSD + "float" else Value("double", number)
        return Value("decimal" if isinstance(number, Decimal) else "integer", number)
    return typed_value(datatype.removeprefix(XSD), inside.strip(" ")) or Value("unknown", term)


def typed_value(datatype: str, text: str) -> Value | None:
    """Return the value that a text has as a boolean, dateTime, date, time or duration, if it has one."""
    parsed: object = None
    if datatype == "boolean":
        parsed = _BOOLEANS.get(text)
    elif datatype in temporal.MOMENTS:
        parsed = temporal.moment(datatype, text)
    elif datatype in temporal.DURATIONS:
        parsed, datatype = temporal.duration(datatype, text), "duration"
    return None if parsed is None else Value(datatype, parsed)


def is_by_identity(term: str) -> bool:
    """Return whether a term equals no other term."""
    return value_of(term).kind in _BY_IDENTITY


def to_float(number: int | Decimal | float) -> float:
    """Return the `xsd:float` nearest to a number."""
    double = to_double(number)
    try:
        (single,) = struct.unpack("f", struct.pack("f", double))
    except OverflowError:
        return math.copysign(math.inf, double)
    return float(single)


def numeric(kind: str, value: int | Decimal | float) -> str:
    """Return the literal of a number of a type. Decimals have no more digits than they need."""
    if kind == "float":
        assert isinstance(value, float), "a number of another type"
        return f'"{_float_text(value)}"^^<{XSD}float>'
    if not isinstance(value, Decimal):
        return literal(value)
    text = format(value, "f")
    if len(text) > 2 * _LONGEST_NUMBER:
        raise NoValue
    whole, _, digits = text.partition(".")
    return f'"{whole}.{digits.rstrip("0") or "0"}"^^<{XSD}decimal>' if value else literal(Decimal("0.0"))


def _float_text(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "INF" if value > 0 else "-INF"
    return next(text for digits in range(1, 10) if to_float(float(text := f"{value:.{digits}g}")) == value)


# -- numbers ----------------------------------------------------------------------------------------------------------


def number(term: str) -> Value:
    """Return the value of a numeric literal; there is none of other terms."""
    value = value_of(term)
    if value.kind not in _NUMERIC:
        raise NoValue
    return value


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {"decimal": Decimal, "float": to_float, "double": to_double}


def _promoted(*values: Value) -> tuple[str, list[Any]]:
    """Return numbers as numbers of one type: the first that includes all of them."""
    kind = _NUMERIC[max(_NUMERIC.index(v.kind) for v in values)]
    return kind, [v.value if v.kind == kind else _CONVERSIONS[kind](v.value) for v in values]


def arithmetic(on_integers: Callable[..., Any], on_decimals: Callable[..., Any] | None = None) -> Callable[..., str]:
    """Return an operator of numbers from its meaning on integers and floats, and on decimals."""

    def evaluate(*terms: str) -> str:
        kind, operands = _promoted(*map(number, terms))
        try:
            result = (on_decimals if on_decimals and kind == "decimal" else on_integers)(*operands)
            if kind == "float":
                result = to_float(result)
            return numeric("decimal" if isinstance(result, Decimal) else kind, result)
        except (ArithmeticError, ValueError):
            raise NoValue from None

    return evaluate


def quotient(a: Any, b: Any) -> Any:
    """Return the quotient of two numbers of one type; integers divide to a decimal."""
    if not isinstance(a, float):
        return _ROUNDED.divide(Decimal(a), Decimal(b))
    if b == 0:  # floats follow IEEE 754; other numbers have no such quotient
        return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)
    return a / b


def _floor(value: Any) -> Any:
    if isinstance(value, float):
        return math.copysign(math.floor(value), value) if math.isfinite(value) else value
    return value.to_integral_value(ROUND_FLOOR, EXACT) if isinstance(value, Decimal) else value


def _ceiling(value: Any) -> Any:
    if isinstance(value, float):
        return math.copysign(math.ceil(value), value) if math.isfinite(value) else value
    return value.to_integral_value(ROUND_CEILING, EXACT) if isinstance(value, Decimal) else value


def _rounded(value: Any) -> Any:
    """Return the nearest whole number, and of two that are as near the greater one."""
    below = _floor(value)
    if below == value or below != below:
        return value
    if isinstance(value, Decimal):
        up = EXACT.subtract(value, below) >= Decimal("0.5")
        return EXACT.add(below, Decimal(1)) if up else below
    return _ceiling(value) if value - below >= 0.5 else below


ROUNDING: dict[str, Callable[..., str]] = {
    "ABS": arithmetic(abs, EXACT.abs),
    "CEIL": arithmetic(_ceiling),
    "FLOOR": arithmetic(_floor),
    "ROUND": arithmetic(_rounded),
}

# -- comparison -------------------------------------------------------------------------------------------------------


def equal(a: str, b: str) -> bool:
    """Return whether two terms are equal by SPARQL's `=`."""
    one, other = value_of(a), value_of(b)
    if one.kind in _NUMERIC and other.kind in _NUMERIC:
        _, (x, y) = _promoted(one, other)
        return bool(x == y)
    if a == b:
        return True
    if a[0] != '"' or b[0] != '"' or "tagged" in (one.kind, other.kind):
        return False
    if "unknown" in (one.kind, other.kind):
        raise NoValue
    if one.kind != other.kind or one.kind not in temporal.MOMENTS:
        return one == other
    if (sign := temporal.compared(one.value, other.value)) is None:
        raise NoValue
    return sign == 0


def _order(a: str, b: str) -> int | None:
    """Return -1, 0 or 1 if a term is before, equal to or after another; None for NaN, which has no place."""
    one, other = value_of(a), value_of(b)
    if one.kind in _NUMERIC and other.kind in _NUMERIC:
        _, (x, y) = _promoted(one, other)
        return int(x > y) - int(x < y) if x == x and y == y else None
    if one.kind != other.kind:
        raise NoValue
    x, y = one.value, other.value
    if one.kind == "tagged" and x[1] != y[1]:
        raise NoValue
    if one.kind in ("string", "tagged", "boolean"):
        return int(x > y) - int(x < y)
    if one.kind in _BY_IDENTITY or (sign := temporal.compared(x, y)) is None:
        raise NoValue
    return sign


def _ordered(holds: Callable[[int], bool]) -> Callable[[Plain, Plain], bool]:
    def compare(a: Plain, b: Plain) -> bool:
        sign = _order(str(a), str(b))
        return sign is not None and holds(sign)

    return compare


COMPARISONS: dict[str, Callable[[Plain, Plain], bool]] = {
    "=": lambda a, b: equal(str(a), str(b)),
    "!=": lambda a, b: not equal(str(a), str(b)),
    "<": _ordered(lambda sign: sign < 0),
    "<=": _ordered(lambda sign: sign <= 0),
    ">": _ordered(lambda sign: sign > 0),
    ">=": _ordered(lambda sign: sign >= 0),
}

#: `=` binds a variable, by identity: 5 is not 5.0 here. `==` compares.
CONSTRAINTS = {**COMPARISONS, "=": lambda a, b: a == b, "==": COMPARISONS["="]}


def truth(term: str) -> bool:
    """Return the effective boolean value of a term; there is one of booleans, numbers and strings."""
    kind, value = value_of(term)
    if kind in ("boolean", "string") or kind in _NUMERIC:
        return bool(value == value and value)
    if kind == "unknown":  # a boolean or number that is not well-formed is false
        datatype = (parts(term) or ("", None, None))[2] or ""
        if datatype.removeprefix(XSD) in ("boolean", "integer", "decimal", "float", "double"):
            return False
    raise NoValue


def text_of(term: str) -> str:
    """Return the characters of a string without a language; there are none of other terms."""
    kind, value = value_of(term)
    if kind != "string":
        raise NoValue
    return str(value)


def string_of(term: str) -> tuple[str, str]:
    """Return the characters of a string and its language, which may be empty."""
    kind, value = value_of(term)
    if kind == "tagged":
        text, language = value
        return text, language
    return text_of(term), ""


def string(text: str, language: str = "") -> str:
    """Return the literal of a string with its language, if it has one."""
    return f'"{escape(text)}"@{language}' if language else f'"{escape(text)}"'
