"""Functors and constraints: their types, and what they mean on single values.

This table is the definition. Engines that evaluate whole batches at once are tested against it. Numbers are 64-bit:
a result that does not fit is an error, never a wrapped value, except for the bit functors, which work on bits.

Departures from Soufflé: an overflow is an error (Soufflé wraps); `strlen` and `substr` count characters, not bytes;
`ord` is a fixed hash of the symbol rather than the order in which an engine happened to meet it, because a maintained
result may not depend on that order.
"""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from upheld.base.errors import Problem, ProgramError, quote
from upheld.language.terms.regex import NotARegex, matches
from upheld.language.types import dates, records
from upheld.language.types.columns import ColumnType, NotAValue, column_type, rescaled
from upheld.language.types.primitive import FLOAT, INT64_MAX, INTEGER, INTEGER_RANGES, UINT64_MAX, float_text
from upheld.language.values import NAN, Value, normalise_float

NUMERIC = frozenset({"number", "unsigned", "float"})
INTEGRAL = frozenset({"number", "unsigned"})
PLAIN = frozenset({"number", "unsigned", "float", "symbol"})
DATES = frozenset({"date", "timestamp"})
#: All types but `term` that have an order. `decimal` stands for the decimals of any number of digits.
ORDERED = PLAIN | DATES | {"boolean", "decimal"}
ALL = ORDERED | {"record", "term"}

#: Characters of the text of a record. The text includes the fields, so it doubles where a record is a field twice.
LONGEST_RECORD = 1 << 24


class Undefined(Exception):
    """The functor has no value for these arguments: the run must stop and say so."""


@dataclass(frozen=True)
class Functor:
    """A functor at one type. `evaluate` takes and returns plain values; a generator yields any number of them.

    The type of a functor that constructs a record is the list of its argument types, with commas. The type of one
    that makes decimals is that of its argument, and behind `>` that of its results.
    """

    name: str
    type: str
    evaluate: Callable[..., Value]
    generates: bool = False
    #: Whether it takes its arguments as functions without arguments, and calls those that it needs.
    lazy: bool = False
    #: The same on arrays of arguments, for a user-defined functor that takes them.
    on_arrays: Callable[..., list[Value]] | None = None

    def argument_types(self, arity: int) -> list[str]:
        """Return the types of this number of arguments."""
        if self.type == "term":
            return ["term"] * arity
        if records.is_functor(self.name):
            return [records.RECORD] if records.Field.of(self.name) else records.types_of_names(self.type)[:arity]
        type = self.type.partition(">")[0]
        return [_held(type if a == "T" else a) for a in self._signature(arity).arguments]

    def result_type(self, arity: int) -> str:
        """Return the type of the results for this number of arguments."""
        if records.is_functor(self.name):
            return _held(self.type) if records.Field.of(self.name) else records.RECORD
        result = "T" if self.type == "term" else self._signature(arity).result
        if result == "decimal":
            return _held(self.type.partition(">")[2])
        return _held(self.type if result == "T" else result)

    def _signature(self, arity: int) -> Signature:
        return next(s for s in signatures_of(self.name) if len(s.arguments) == arity)

    def __repr__(self) -> str:
        return f"Functor({self.name}: {self.type})"


def _held(type: str) -> str:
    """Return the type by whose name functors are known, as columns have it."""
    return column_type(type) or type


@dataclass(frozen=True)
class Signature:
    """Types of a functor or constraint. `T` is one type out of `ranges_over`, the same at each place."""

    arguments: tuple[str, ...]
    result: str
    ranges_over: frozenset[str] = ALL
    #: `f(a, b, c)` means `f(f(a, b), c)`.
    folds: bool = False
    generates: bool = False


def _same(count: int, over: frozenset[str], *, folds: bool = False, generates: bool = False) -> Signature:
    return Signature(("T",) * count, "T", over, folds, generates)


_COMPUTED = NUMERIC | {"decimal"}

#: The functors of plain values; `terms.functions` has the functions of RDF terms. A name may have several
#: signatures, which differ in their number of arguments.
SIGNATURES: dict[str, tuple[Signature, ...]] = {
    "+": (_same(2, _COMPUTED),),
    "-": (_same(2, _COMPUTED), _same(1, _COMPUTED)),
    "*": (_same(2, _COMPUTED),),
    "/": (_same(2, _COMPUTED),),
    "%": (_same(2, _COMPUTED),),
    "^": (_same(2, NUMERIC),),
    **{name: (_same(2, INTEGRAL),) for name in ("band", "bor", "bxor", "bshl", "bshr", "bshru", "land", "lor", "lxor")},
    **{name: (_same(1, INTEGRAL),) for name in ("bnot", "lnot")},
    "min": (_same(2, ORDERED, folds=True),),
    "max": (_same(2, ORDERED, folds=True),),
    "cat": (_same(2, frozenset({"symbol"}), folds=True),),
    "ord": (Signature(("symbol",), "number"),),
    "strlen": (Signature(("symbol",), "number"),),
    "substr": (Signature(("symbol", "number", "number"), "symbol"),),
    "to_number": (Signature(("T",), "number", ORDERED),),
    "to_unsigned": (Signature(("T",), "unsigned", PLAIN),),
    "to_float": (Signature(("T",), "float", PLAIN | {"decimal"}),),
    "to_string": (Signature(("T",), "symbol", ORDERED),),
    "to_date": (Signature(("T",), "date", frozenset({"symbol", "timestamp"})),),
    "to_timestamp": (Signature(("T",), "timestamp", frozenset({"symbol", "date"})),),
    "to_boolean": (Signature(("T",), "boolean", frozenset({"symbol", "number"})),),
    "to_decimal": (Signature(("T", "number", "number"), "decimal", PLAIN | {"decimal"}),),
    **{name: (Signature(("T",), "number", DATES),) for name in dates.PARTS_OF_DATES},
    **{name: (Signature(("timestamp",), "number"),) for name in dates.PARTS_OF_TIMES},
    "truncate": (Signature(("T", "symbol"), "T", DATES),),
    **{name: (Signature(("T", "number"), "T", DATES),) for name in ("add_days", "add_months")},
    **{name: (Signature(("timestamp", "number"), "timestamp"),) for name in ("add_seconds", "add_microseconds")},
    **{name: (Signature(("T", "T"), "number", DATES),) for name in ("days_between", "months_between")},
    **{
        name: (Signature(("timestamp", "timestamp"), "number"),) for name in ("seconds_between", "microseconds_between")
    },
    "range": (_same(2, NUMERIC, generates=True), _same(3, NUMERIC, generates=True)),
}

#: Functions of terms whose values have themselves as value, or none.
IDEMPOTENT = frozenset({"DATATYPE", "CANONICAL"})

#: The test that an RDF term is true: a boolean that is, a number that is not zero, or a string that is not empty.
HOLDS = "holds"

CONSTRAINTS: dict[str, Signature] = {
    **{name: Signature(("T", "T"), "", ALL) for name in ("=", "!=")},
    **{name: Signature(("T", "T"), "", ALL - {"record"}) for name in ("<", "<=", ">", ">=")},
    **{name: Signature(("symbol", "symbol"), "") for name in ("match", "!match", "contains", "!contains")},
    **{name: Signature(("term",), "") for name in (HOLDS, f"!{HOLDS}")},
    **{name: Signature(("T",), "", ORDERED) for name in ("is_null", "!is_null")},
}

#: The constraint that holds exactly where the other does not.
NEGATED = {"=": "!=", "<": ">=", ">": "<=", "match": "!match", "contains": "!contains", HOLDS: f"!{HOLDS}"}
NEGATED |= {"is_null": "!is_null"}
NEGATED |= {negated: name for name, negated in NEGATED.items()}


# -- integers ---------------------------------------------------------------------------------------------------------


def _fits(value: int, type: str) -> int:
    low, high = INTEGER_RANGES[type]
    if low <= value <= high:
        return value
    raise Undefined(f"{value if abs(value) < 10**40 else 'the result'} does not fit a 64-bit {type}")


def _quotient(a: int, b: int) -> int:
    if b == 0:
        raise Undefined("division by zero")
    q = abs(a) // abs(b)  # rounds towards zero, as in C and Soufflé
    return q if (a < 0) == (b < 0) else -q


def _remainder(a: int, b: int) -> int:
    return a - b * _quotient(a, b)


def _power(a: int, b: int) -> int:
    if b < 0:
        return _quotient(1, a ** (-b % 2 + 2)) if abs(a) < 2 else 0
    if abs(a) > 1 and b > 64:
        raise Undefined("the result does not fit 64 bits")
    return int(a**b) if abs(a) > 1 else int(a ** (b % 2 + 2 if b else 0))


def _signed(bits: int, type: str) -> int:
    bits &= UINT64_MAX
    return bits - 2**64 if type == "number" and bits > INT64_MAX else bits


def _integer_operations(type: str) -> dict[str, Callable[..., Value]]:
    def checked(f: Callable[..., int]) -> Callable[..., Value]:
        return lambda *args: _fits(f(*args), type)

    def on_bits(f: Callable[..., int]) -> Callable[..., Value]:
        return lambda *args: _signed(f(*args), type)

    return {
        "+": checked(operator.add),
        "*": checked(operator.mul),
        "/": checked(_quotient),
        "%": checked(_remainder),
        "^": checked(_power),
        "band": on_bits(operator.and_),
        "bor": on_bits(operator.or_),
        "bxor": on_bits(operator.xor),
        "bnot": on_bits(operator.invert),
        "bshl": on_bits(lambda a, b: a << (b & 63)),
        "bshr": on_bits(lambda a, b: a >> (b & 63)),
        "bshru": on_bits(lambda a, b: (a & UINT64_MAX) >> (b & 63)),
        "land": lambda a, b: int(bool(a) and bool(b)),
        "lor": lambda a, b: int(bool(a) or bool(b)),
        "lxor": lambda a, b: int(bool(a) != bool(b)),
        "lnot": lambda a: int(not a),
        "minus": checked(operator.sub),
        "negate": checked(operator.neg),
    }


# -- floats -----------------------------------------------------------------------------------------------------------


def _ieee(f: Callable[..., float]) -> Callable[..., Value]:
    def evaluate(*args: float) -> float:
        try:
            return normalise_float(f(*args))
        except ValueError:  # from `fmod` by zero
            return NAN

    return evaluate


def _float_power(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        pass
    except ValueError:
        if a:  # a root of a negative number
            return math.nan
    # Too large, or zero to a negative power.
    return math.copysign(math.inf, a) if b % 2 == 1 else math.inf


def _float_quotient(a: float, b: float) -> float:
    return a / b if b else (math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a))


_FLOAT: dict[str, Callable[..., Value]] = {
    "+": _ieee(operator.add),
    "*": _ieee(operator.mul),
    "/": _ieee(_float_quotient),
    "%": _ieee(math.fmod),
    "^": _ieee(_float_power),
    "minus": _ieee(operator.sub),
    "negate": _ieee(operator.neg),
}


# -- symbols and conversions ------------------------------------------------------------------------------------------


def _ordinal(symbol: str) -> int:
    digest = hashlib.blake2b(symbol.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def _substring(symbol: str, start: int, length: int) -> str:
    if not 0 <= start <= len(symbol):
        return ""
    return symbol[start:] if length < 0 else symbol[start : start + length]


def _to_integer(type: str) -> Callable[[Value], Value]:
    def convert(value: Value) -> Value:
        if isinstance(value, float):
            if not math.isfinite(value):
                raise Undefined(f"{value} is not a {type}")
            return _fits(int(value), type)
        if isinstance(value, int):
            return _fits(value, type)
        found = INTEGER.fullmatch(value)
        if not found:
            raise Undefined(f"{value[:40]!r} is not a {type}")
        sign, hexadecimal, binary, decimal = found.groups()
        digits, base = (hexadecimal, 16) if hexadecimal else (binary, 2) if binary else (decimal, 10)
        digits = digits.lstrip("0") or "0"
        if len(digits) > 64:  # the digits of 2**64 in base two
            raise Undefined(f"the number that begins with {value[:20]!r} does not fit a 64-bit {type}")
        return _fits(int(sign + digits, base), type)

    return convert


def _to_float(value: Value) -> Value:
    if not isinstance(value, str):
        return normalise_float(float(value))
    if not FLOAT.fullmatch(value):
        raise Undefined(f"{value[:40]!r} is not a float")
    result = normalise_float(float(value))
    if math.isinf(result) and "n" not in value.lower():
        raise Undefined(f"{value[:40]!r} does not fit a 64-bit float")
    return result


def _to_string(value: Value) -> Value:
    return float_text(value) if isinstance(value, float) else str(value)


# -- dates, timestamps, decimals and Booleans -------------------------------------------------------------------------


def _in_range(code: int, type: ColumnType) -> int:
    try:
        return type.fitting(code)
    except NotAValue:
        shown = type.text(code) if type.kind == "decimal" else "the result"
        raise Undefined(f"{shown} does not fit a {type.name}") from None


def _decimal_operations(type: ColumnType) -> dict[str, Callable[..., Value]]:
    """Sums and differences are exact. Products and quotients have the digits of the type, and are rounded once."""
    unit = 10**type.scale

    def quotient(a: int, b: int) -> Value:
        if b == 0:
            raise Undefined("division by zero")
        return _in_range(rescaled(a * unit, b), type)

    return {
        "+": lambda a, b: _in_range(a + b, type),
        "*": lambda a, b: _in_range(rescaled(a * b, unit), type),
        "/": quotient,
        "%": _remainder,
        "minus": lambda a, b: _in_range(a - b, type),
        "negate": operator.neg,
    }


def _to_decimal(type: str, result: ColumnType) -> Callable[..., Value]:
    """Return the conversion to a decimal, which is rounded; the digits are arguments only to be seen."""
    source = column_type(type)

    def convert(value: Value, *_: Value) -> Value:
        try:
            if isinstance(source, ColumnType):
                return result.fitting(rescaled(int(value) * 10**result.scale, 10**source.scale))
            if isinstance(value, int):
                return result.fitting(value * 10**result.scale)
            if isinstance(value, float):
                if not math.isfinite(value):
                    raise Undefined(f"{value} is not a {result.name}")
                scaled = Fraction(value) * 10**result.scale
                return result.fitting(rescaled(scaled.numerator, scaled.denominator))
            return result.parse(value)
        except NotAValue as e:
            raise Undefined(f"{value!r} {_as_predicate(e)}") from None

    return convert


def _as_predicate(e: NotAValue) -> str:
    """Return what is wrong with a value, as a sentence that begins with it."""
    return f"is a value that {e}" if e.slug == "number-out-of-range" else str(e)


def _parsing(type: ColumnType) -> Callable[..., Value]:
    def parse(text: str) -> Value:
        try:
            return type.parse(text)
        except NotAValue as e:
            raise Undefined(f"{text[:40]!r} {_as_predicate(e)}") from None

    return parse


def _to_boolean(value: int) -> Value:
    if value in (0, 1):
        return value
    raise Undefined(f"{value} is not a boolean, which is 0 or 1")


def _conversion_of_codes(name: str, type: str) -> Callable[..., Value]:
    """Return a conversion from or to a type whose values are codes."""
    source = _held(type.partition(">")[0])
    match name, source:
        case "to_decimal", _:
            result = _held(type.partition(">")[2])
            assert isinstance(result, ColumnType), "a decimal without digits"
            return _to_decimal(source if not isinstance(source, ColumnType) else source.name, result)
        case "to_string", ColumnType():
            return source.text
        case "to_float", ColumnType(scale=scale):
            return lambda code: code / 10**scale
        case "to_number", ColumnType(scale=scale):
            return lambda code: _quotient(code, 10**scale)
        case "to_date", ColumnType():
            return dates.day_of
        case "to_timestamp", ColumnType():
            return lambda days: days * dates.DAY
        case "to_boolean", "number":
            return _to_boolean
    wanted = _held(name.removeprefix("to_"))
    return _parsing(wanted) if isinstance(wanted, ColumnType) else _conversion(name)


def _checked(f: Callable[..., int], type: str) -> Callable[..., Value]:
    """Return a function on dates whose results may be outside of the calendar."""
    held = _held(type)
    assert isinstance(held, ColumnType), "a type of dates"

    def evaluate(*arguments: Value) -> Value:
        try:
            return _in_range(f(*arguments), held)
        except dates.NotADate as e:
            raise Undefined(str(e)) from None

    return evaluate


def _plus_months_to_timestamp(moment: int, months: int) -> int:
    return dates.plus_months(dates.day_of(moment), months) * dates.DAY + moment % dates.DAY


def _months_between_timestamps(start: int, end: int) -> int:
    if end < start:
        return -_months_between_timestamps(end, start)
    months = dates.months_between(dates.day_of(start), dates.day_of(end))
    return months if _plus_months_to_timestamp(start, months) <= end else months - 1


def _functions_of_dates(type: str) -> dict[str, Callable[..., Value]]:
    """Return the functors on dates or timestamps."""
    is_date = type == "date"
    in_day = 1 if is_date else dates.DAY

    def part(f: Callable[[Any], int]) -> Callable[..., Value]:
        return lambda code: f(dates.as_date(code) if is_date else dates.as_datetime(code))

    plus_months = dates.plus_months if is_date else _plus_months_to_timestamp
    functions = {name: part(f) for name, f in dates.PARTS_OF_DATES.items()}
    functions |= {
        "truncate": _checked(dates.truncated_date if is_date else dates.truncated_timestamp, type),
        "add_days": _checked(lambda code, days: code + days * in_day, type),
        "add_months": _checked(plus_months, type),
        "days_between": lambda start, end: dates.whole(end - start, in_day),
        "months_between": dates.months_between if is_date else _months_between_timestamps,
    }
    if not is_date:
        functions |= {name: part(f) for name, f in dates.PARTS_OF_TIMES.items()}
        functions |= {
            "add_seconds": _checked(lambda code, seconds: code + seconds * dates.SECOND, type),
            "add_microseconds": _checked(operator.add, type),
            "seconds_between": lambda start, end: dates.whole(end - start, dates.SECOND),
            "microseconds_between": lambda start, end: end - start,
        }
    return functions


_DATES = {type: _functions_of_dates(type) for type in sorted(DATES)}


def _range(start: Value, stop: Value, step: Value | None = None) -> Iterator[Value]:
    assert not isinstance(start, str) and not isinstance(stop, str) and not isinstance(step, str)
    if step is None:
        step = 1 if start <= stop else -1
        step = float(step) if isinstance(start, float) else step
    if step == 0:  # as Soufflé does: the first value alone
        if start != stop:
            yield start
        return
    k, value = 0, start
    while (value < stop) if step > 0 else (value > stop):
        yield value
        k += 1
        value = start + k * step


def _match(pattern: str, text: str) -> bool:
    try:
        return matches(pattern, text)
    except NotARegex as e:
        raise Undefined(f"{pattern[:40]!r} is not a regular expression: {e}") from None


def _construct(constructor: str, types: str) -> Callable[..., Value]:
    construct = records.constructing(constructor, records.types_of_names(types))

    def evaluate(*fields: Value) -> Value:
        text = construct(*fields)
        if len(text) > LONGEST_RECORD:
            raise Undefined(f"a record of {len(text)} characters is longer than the maximum of {LONGEST_RECORD}")
        return text

    return evaluate


# -- look-up ----------------------------------------------------------------------------------------------------------


def _conversion(name: str) -> Callable[..., Value]:
    return {
        "to_number": _to_integer("number"),
        "to_unsigned": _to_integer("unsigned"),
        "to_float": _to_float,
        "to_string": _to_string,
    }[name]


_SYMBOL: dict[str, Callable[..., Value]] = {"cat": operator.add, "ord": _ordinal, "strlen": len, "substr": _substring}
_INTEGERS = {type: _integer_operations(type) for type in ("number", "unsigned")}


class Definition(NamedTuple):
    """A user-defined functor."""

    signature: Signature
    functor: Functor


#: User-defined functors by name, with `@`.
_DEFINED: dict[str, Definition] = {}


def define_functor(
    name: str,
    arguments: tuple[str, ...],
    result: str,
    evaluate: Callable[..., Value],
    on_arrays: Callable[..., list[Value]] | None = None,
) -> None:
    """Enter a user-defined functor, in place of one of that name."""
    function = Functor(f"@{name}", arguments[0], evaluate, on_arrays=on_arrays)
    enter_definition(Definition(Signature(arguments, result), function))


def enter_definition(defined: Definition) -> None:
    """Enter a user-defined functor, in place of one of its name."""
    _DEFINED[defined.functor.name] = defined


def definition(name: str) -> Definition:
    """Return the user-defined functor of a name, which begins with `@`."""
    if name not in _DEFINED:
        message = f"there is no Python function for {quote(name)} in this process"
        note = "programs with user-defined functors run in the process that has registered them"
        raise ProgramError(Problem("missing-functor", message, note=note))
    return _DEFINED[name]


def is_user_defined(name: str) -> bool:
    """Return whether the name of a functor is that of a user-defined one."""
    return name.startswith("@")


def is_test(name: str) -> bool:
    """Return whether the values of a function of terms are booleans."""
    from upheld.language.terms.functions import FUNCTIONS  # which programs without RDF do not need

    return FUNCTIONS[name].is_test


def signatures_of(name: str) -> tuple[Signature, ...]:
    """Return the signatures of a functor; none if there is no such functor."""
    return (_DEFINED[name].signature,) if name in _DEFINED else SIGNATURES.get(name, ())


def functor(name: str, arity: int, type: str) -> Functor:
    """Return the functor of that name whose `T` (or, where it has none, whose first argument) is `type`."""
    if not is_user_defined(name):
        return _built_in(name, arity, type)
    return definition(name).functor


@cache
def _built_in(name: str, arity: int, type: str) -> Functor:
    if records.is_functor(name):
        field = records.Field.of(name)
        return Functor(name, type, records.taking(field, _held(type)) if field else _construct(name, type))
    if name == "range":
        return Functor(name, type, _range, generates=True)  # type: ignore[arg-type]
    if type == "term":
        from upheld.language.terms.functions import FUNCTIONS  # which programs without RDF do not need

        return Functor(name, type, FUNCTIONS[name].evaluate, lazy=FUNCTIONS[name].lazy)
    if name in ("min", "max"):
        return Functor(name, type, min if name == "min" else max)
    if name in _CONVERSIONS_OF_CODES or (name.startswith("to_") and isinstance(_held(type), ColumnType)):
        return Functor(name, type, _conversion_of_codes(name, type))
    if type in _DATES:
        return Functor(name, type, _DATES[type][name])
    if isinstance(held := column_type(type), ColumnType):
        return Functor(name, type, _decimal_operations(held)[_spelled(name, arity)])
    if name.startswith("to_"):
        return Functor(name, type, _conversion(name))
    if name in _SYMBOL:
        return Functor(name, type, _SYMBOL[name])
    operations = _FLOAT if type == "float" else _INTEGERS[type]
    return Functor(name, type, operations[_spelled(name, arity)])


def _spelled(name: str, arity: int) -> str:
    return ("minus" if arity == 2 else "negate") if name == "-" else name


_CONVERSIONS_OF_CODES = frozenset(("to_date", "to_timestamp", "to_boolean", "to_decimal"))


_COMPARISONS: dict[str, Callable[[Value, Value], bool]] = {
    "=": lambda a, b: a == b or a is b,  # the one NaN of `language.values` equals itself
    "!=": lambda a, b: a != b and a is not b,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "match": _match,  # type: ignore[dict-item]
    "!match": lambda a, b: not _match(a, b),  # type: ignore[arg-type]
    "contains": lambda a, b: a in b,  # type: ignore[operator]
    "!contains": lambda a, b: a not in b,  # type: ignore[operator]
}


def constraint(name: str, type: str) -> Callable[[Value, Value], bool]:
    """Return the test of that name on values of that type."""
    if type == "term":
        from upheld.language.terms.values import CONSTRAINTS  # which programs without RDF do not need

        return CONSTRAINTS[name]
    return _COMPARISONS[name]
