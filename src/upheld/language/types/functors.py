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
from functools import cache

from upheld.errors import Problem, ProgramError, quote
from upheld.language.types import records
from upheld.language.types.primitive import (
    FLOAT,
    INT64_MAX,
    INTEGER,
    INTEGER_RANGES,
    NAN,
    UINT64_MAX,
    float_text,
    normalise_float,
)
from upheld.language.types.regex import NotARegex, matches
from upheld.language.values import Value

NUMERIC = frozenset({"number", "unsigned", "float"})
INTEGRAL = frozenset({"number", "unsigned"})
ALL = frozenset({"number", "unsigned", "float", "symbol", "record", "term"})
PLAIN = frozenset({"number", "unsigned", "float", "symbol"})

#: Characters of the text of a record. The text includes the fields, so it doubles where a record is a field twice.
LONGEST_RECORD = 1 << 24


class Undefined(Exception):
    """The functor has no value for these arguments: the run must stop and say so."""


@dataclass(frozen=True)
class Functor:
    """A functor at one type. `evaluate` takes and returns plain values; a generator yields any number of them.

    The type of a functor that constructs a record is those of its arguments, with commas between them.
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
            return [records.RECORD] if records.Field.of(self.name) else self.type.split(",")[:arity]
        return [self.type if a == "T" else a for a in self._signature(arity).arguments]

    def result_type(self, arity: int) -> str:
        """Return the type of the results for this number of arguments."""
        if records.is_functor(self.name):
            return self.type if records.Field.of(self.name) else records.RECORD
        result = "T" if self.type == "term" else self._signature(arity).result
        return self.type if result == "T" else result

    def _signature(self, arity: int) -> Signature:
        return next(s for s in signatures_of(self.name) if len(s.arguments) == arity)

    def __repr__(self) -> str:
        return f"Functor({self.name}: {self.type})"


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


#: The functors of plain values; `types.term_functions` has the functions of RDF terms. A name may have several
#: signatures, which differ in their number of arguments.
SIGNATURES: dict[str, tuple[Signature, ...]] = {
    "+": (_same(2, NUMERIC),),
    "-": (_same(2, NUMERIC), _same(1, NUMERIC)),
    "*": (_same(2, NUMERIC),),
    "/": (_same(2, NUMERIC),),
    "%": (_same(2, NUMERIC),),
    "^": (_same(2, NUMERIC),),
    **{name: (_same(2, INTEGRAL),) for name in ("band", "bor", "bxor", "bshl", "bshr", "bshru", "land", "lor", "lxor")},
    **{name: (_same(1, INTEGRAL),) for name in ("bnot", "lnot")},
    "min": (_same(2, PLAIN, folds=True),),
    "max": (_same(2, PLAIN, folds=True),),
    "cat": (_same(2, frozenset({"symbol"}), folds=True),),
    "ord": (Signature(("symbol",), "number"),),
    "strlen": (Signature(("symbol",), "number"),),
    "substr": (Signature(("symbol", "number", "number"), "symbol"),),
    "to_number": (Signature(("T",), "number", PLAIN),),
    "to_unsigned": (Signature(("T",), "unsigned", PLAIN),),
    "to_float": (Signature(("T",), "float", PLAIN),),
    "to_string": (Signature(("T",), "symbol", PLAIN),),
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
}

#: The constraint that holds exactly where the other does not.
NEGATED = {"=": "!=", "<": ">=", ">": "<=", "match": "!match", "contains": "!contains", HOLDS: f"!{HOLDS}"}
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
    construct = records.constructing(constructor, types.split(",") if types else ())

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


_SYMBOL: dict[str, Callable[..., Value]] = {
    "cat": operator.add,
    "ord": _ordinal,
    "strlen": len,
    "substr": _substring,
}
_INTEGERS = {type: _integer_operations(type) for type in ("number", "unsigned")}


#: User-defined functors by name, with `@`.
_DEFINED: dict[str, tuple[Signature, Functor]] = {}


def define_functor(
    name: str,
    arguments: tuple[str, ...],
    result: str,
    evaluate: Callable[..., Value],
    on_arrays: Callable[..., list[Value]] | None = None,
) -> None:
    """Enter a user-defined functor, in place of one of that name."""
    function = Functor(f"@{name}", arguments[0], evaluate, on_arrays=on_arrays)
    _DEFINED[f"@{name}"] = Signature(arguments, result), function


def is_user_defined(name: str) -> bool:
    """Return whether the name of a functor is that of a user-defined one."""
    return name.startswith("@")


def is_test(name: str) -> bool:
    """Return whether the values of a function of terms are booleans."""
    from upheld.language.types.term_functions import FUNCTIONS  # which programs without RDF do not need

    return FUNCTIONS[name].is_test


def signatures_of(name: str) -> tuple[Signature, ...]:
    """Return the signatures of a functor; none if there is no such functor."""
    return (_DEFINED[name][0],) if name in _DEFINED else SIGNATURES.get(name, ())


def functor(name: str, arity: int, type: str) -> Functor:
    """Return the functor of that name whose `T` (or, where it has none, whose first argument) is `type`."""
    if not is_user_defined(name):
        return _built_in(name, arity, type)
    if name not in _DEFINED:
        message = f"there is no Python function for {quote(name)} in this process"
        note = "programs with user-defined functors run in the process that has registered them"
        raise ProgramError(Problem("missing-functor", message, note=note))
    return _DEFINED[name][1]


@cache
def _built_in(name: str, arity: int, type: str) -> Functor:
    if records.is_functor(name):
        field = records.Field.of(name)
        return Functor(name, type, records.taking(field, type) if field else _construct(name, type))
    if name == "range":
        return Functor(name, type, _range, generates=True)  # type: ignore[arg-type]
    if type == "term":
        from upheld.language.types.term_functions import FUNCTIONS  # which programs without RDF do not need

        return Functor(name, type, FUNCTIONS[name].evaluate, lazy=FUNCTIONS[name].lazy)
    if name in ("min", "max"):
        return Functor(name, type, min if name == "min" else max)
    if name.startswith("to_"):
        return Functor(name, type, _conversion(name))
    if name in _SYMBOL:
        return Functor(name, type, _SYMBOL[name])
    operations = _FLOAT if type == "float" else _INTEGERS[type]
    spelled = ("minus" if arity == 2 else "negate") if name == "-" else name
    return Functor(name, type, operations[spelled])


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
        from upheld.language.types.term_values import CONSTRAINTS  # which programs without RDF do not need

        return CONSTRAINTS[name]
    return _COMPARISONS[name]
