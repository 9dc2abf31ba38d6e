"""Built-ins as column expressions. What they mean is defined in `language.functors`, value by value.

An expression that may have no result comes with a column that says where it has none; there its value is null. A
functor that no column expression equals exactly is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F

from upheld.engines.spark.codes import literal
from upheld.engines.spark.cols import lit
from upheld.errors import Problem, ProgramError, quote
from upheld.language.core import Apply, Builtin, Expression, Rule
from upheld.language.core_text import builtin_text
from upheld.language.syntax.ast import Constant, Variable
from upheld.language.types.primitive import INT64_MAX, INT64_MIN


class Valued(NamedTuple):
    """The value of an expression, and where it has none; None if it has one everywhere."""

    value: Column
    undefined: Column | None = None


def is_partial(builtin: Builtin) -> bool:
    """Return whether a built-in may have no result for some values."""
    return any(_is_partial(a) for a in builtin.arguments)


def _is_partial(expression: Expression) -> bool:
    if not isinstance(expression, Apply):
        return False
    key = f"{expression.functor.name}/{len(expression.arguments)}"
    return (expression.functor.type, key) in _PARTIAL or any(map(_is_partial, expression.arguments))


def evaluate(expression: Expression, columns: Mapping[str, Column]) -> Valued:
    """Return an expression over the columns of its variables."""
    match expression:
        case Variable(name=name):
            return Valued(columns[name])
        case Constant(value=value, type=type):
            return Valued(literal(value, type))
        case Apply(functor=functor, arguments=arguments):
            key = f"{functor.name}/{len(arguments)}"
            parts = [evaluate(a, columns) for a in arguments]
            undefined = either(*(p.undefined for p in parts))
            values = [p.value for p in parts]
            partial = _PARTIAL.get((functor.type, key))
            if partial is None:
                return Valued(_TOTAL[functor.type, key](*values), undefined)
            result = partial(*values)
            assert result.undefined is not None, "a partial functor that says nowhere where it has no value"
            undefined = either(undefined, F.coalesce(result.undefined, lit(True)))
            assert undefined is not None, "nothing said of a part means that it has a value"
            return Valued(F.when(~undefined, result.value), undefined)


def holds(builtin: Builtin, columns: Mapping[str, Column]) -> Valued:
    """Return whether a built-in holds whose variables all have columns."""
    left, right = (evaluate(a, columns) for a in builtin.arguments)
    truth = _CONSTRAINTS[builtin.operator](builtin.type, left.value, right.value)
    return Valued(truth, either(left.undefined, right.undefined))


def either(*conditions: Column | None) -> Column | None:
    """Return where one of some conditions holds; None is nowhere."""
    result: Column | None = None
    for condition in conditions:
        if condition is not None:
            result = condition if result is None else result | condition
    return result


def check(rule: Rule) -> None:
    """Raise the error that names a built-in of a rule that there is no column expression for."""
    for builtin in rule.builtins:
        for name, type in _lacking(builtin):
            raise ProgramError(
                Problem(
                    "unsupported-on-spark",
                    f"{quote(name)} on values of type {quote(type)} cannot be evaluated on Spark",
                    rule.span,
                    note=f"in {quote(builtin_text(builtin))}: no column expression has exactly its meaning",
                    hint="choose engine=`memory`, which evaluates every functor",
                )
            )


def _lacking(builtin: Builtin) -> list[tuple[str, str]]:
    found = [] if builtin.operator in _CONSTRAINTS else [(builtin.operator, builtin.type)]
    if builtin.type == "term":
        found.append((builtin.operator, "term"))
    todo: list[Expression] = list(builtin.arguments)
    for expression in todo:
        if isinstance(expression, Apply):
            functor, key = expression.functor, f"{expression.functor.name}/{len(expression.arguments)}"
            if (functor.type, key) not in _TOTAL and (functor.type, key) not in _PARTIAL:
                found.append((functor.name, functor.type))
            todo += expression.arguments
    return found


# -- constraints ------------------------------------------------------------------------------------------------------


def less(type: str, a: Column, b: Column) -> Column:
    """Return where a value is below another. NaN, which Spark has above all others, is below and above nothing."""
    if type == "unsigned":
        return _ordered(a) < _ordered(b)
    return (a < b) & ~F.isnan(b) if type == "float" else a < b


def _at_most(type: str, a: Column, b: Column) -> Column:
    if type == "unsigned":
        return _ordered(a) <= _ordered(b)
    return (a <= b) & ~F.isnan(b) if type == "float" else a <= b


def _ordered(bits: Column) -> Column:
    """Return a bigint in the order of the unsigned number with the same bits."""
    return bits.bitwiseXOR(_long(INT64_MIN))


_CONSTRAINTS: dict[str, Callable[[str, Column, Column], Column]] = {
    "=": lambda _, a, b: a == b,
    "!=": lambda _, a, b: a != b,
    "<": less,
    "<=": _at_most,
    ">": lambda type, a, b: less(type, b, a),
    ">=": lambda type, a, b: _at_most(type, b, a),
    "contains": lambda _, a, b: F.contains(b, a),
    "!contains": lambda _, a, b: ~F.contains(b, a),
}


# -- functors ---------------------------------------------------------------------------------------------------------


def _long(value: int) -> Column:
    return F.lit(value).cast("bigint")


def _or_null(value: Column) -> Valued:
    return Valued(value, value.isNull())


def _divided(operation: str) -> Callable[[Column, Column], Valued]:
    def divide(a: Column, b: Column) -> Valued:
        zero = b == 0
        overflows = (a == _long(INT64_MIN)) & (b == -1)
        divisor = F.when(zero | overflows, _long(1)).otherwise(b)
        if operation == "%":
            return Valued(F.when(overflows, _long(0)).otherwise(a % divisor), zero)
        return Valued(F.call_function("div", a, divisor), zero | overflows)

    return divide


def _negated(a: Column) -> Valued:
    least = a == _long(INT64_MIN)
    return Valued(-F.when(least, _long(0)).otherwise(a), least)


def _shifted(name: str) -> Callable[[Column, Column], Column]:
    return lambda a, b: F.call_function(name, a, b.bitwiseAND(_long(63)).cast("int"))


def _truth(condition: Column) -> Column:
    return condition.cast("bigint")


def _bits(type: str) -> dict[str, Callable[..., Column]]:
    return {
        "band/2": lambda a, b: a.bitwiseAND(b),
        "bor/2": lambda a, b: a.bitwiseOR(b),
        "bxor/2": lambda a, b: a.bitwiseXOR(b),
        "bnot/1": F.bitwise_not,
        "bshl/2": _shifted("shiftleft"),
        "bshr/2": _shifted("shiftright" if type == "number" else "shiftrightunsigned"),
        "bshru/2": _shifted("shiftrightunsigned"),
        "land/2": lambda a, b: _truth((a != 0) & (b != 0)),
        "lor/2": lambda a, b: _truth((a != 0) | (b != 0)),
        "lxor/2": lambda a, b: _truth((a != 0) != (b != 0)),
        "lnot/1": lambda a: _truth(a == 0),
    }


def _wide(a: Column) -> Column:
    """Return the unsigned number of 64 bits as a decimal."""
    signed = a.cast("decimal(20,0)")
    return F.when(a < 0, signed + F.lit(Decimal(2**64))).otherwise(signed)


def _narrow(a: Column) -> Valued:
    """Return the 64 bits of a decimal, if it fits."""
    fits = (a >= F.lit(Decimal(0))) & (a <= F.lit(Decimal(2**64 - 1)))
    kept = F.when(fits, a).otherwise(F.lit(Decimal(0)))
    return Valued(
        F.when(kept > F.lit(Decimal(INT64_MAX)), kept - F.lit(Decimal(2**64))).otherwise(kept).cast("bigint"),
        ~F.coalesce(fits, lit(False)),
    )


def _float(a: Column) -> Column:
    """Return a double with 0.0 for -0.0, as facts hold it."""
    return F.when(a == 0, F.lit(0.0)).otherwise(a)


def _float_quotient(a: Column, b: Column) -> Column:
    infinite = F.when(a > 0, F.lit(float("inf"))).otherwise(F.lit(float("-inf")))
    by_zero = F.when((a == 0) | F.isnan(a), F.lit(float("nan"))).otherwise(infinite)
    return F.when(b == 0, by_zero).otherwise(a / F.when(b == 0, F.lit(1.0)).otherwise(b))


def _float_remainder(a: Column, b: Column) -> Column:
    return F.when(b == 0, F.lit(float("nan"))).otherwise(a % F.when(b == 0, F.lit(1.0)).otherwise(b))


def _least(type: str) -> Callable[[Column, Column], Column]:
    return lambda a, b: F.when(less(type, b, a), b).otherwise(a)


def _greatest(type: str) -> Callable[[Column, Column], Column]:
    return lambda a, b: F.when(less(type, a, b), b).otherwise(a)


def _substring(text: Column, start: Column, length: Column) -> Column:
    size = F.length(text).cast("bigint")
    inside = (start >= 0) & (start <= size)
    first = F.when(inside, start).otherwise(_long(0))
    wanted = F.when(length < 0, size).otherwise(F.least(length, size))
    return F.when(inside, F.call_function("substring", text, (first + 1).cast("int"), wanted.cast("int"))).otherwise("")


_TOTAL: dict[tuple[str, str], Callable[..., Column]] = {
    **{(t, f"min/{2}"): _least(t) for t in ("number", "unsigned", "float", "symbol")},
    **{(t, f"max/{2}"): _greatest(t) for t in ("number", "unsigned", "float", "symbol")},
    **{(t, key): f for t in ("number", "unsigned") for key, f in _bits(t).items()},
    ("float", "+/2"): lambda a, b: _float(a + b),
    ("float", "-/2"): lambda a, b: _float(a - b),
    ("float", "*/2"): lambda a, b: _float(a * b),
    ("float", "//2"): lambda a, b: _float(_float_quotient(a, b)),
    ("float", "%/2"): lambda a, b: _float(_float_remainder(a, b)),
    ("float", "-/1"): lambda a: _float(-a),
    ("symbol", "cat/2"): F.concat,
    ("symbol", "strlen/1"): lambda a: F.length(a).cast("bigint"),
    ("symbol", "substr/3"): _substring,
    ("number", "to_string/1"): lambda a: a.cast("string"),
    ("unsigned", "to_string/1"): lambda a: _wide(a).cast("string"),
    ("symbol", "to_string/1"): lambda a: a,
    ("number", "to_number/1"): lambda a: a,
    ("unsigned", "to_unsigned/1"): lambda a: a,
    ("float", "to_float/1"): lambda a: a,
    ("number", "to_float/1"): lambda a: a.cast("double"),
    ("unsigned", "to_float/1"): lambda a: _wide(a).cast("double"),
}

_PARTIAL: dict[tuple[str, str], Callable[..., Valued]] = {
    ("number", "+/2"): lambda a, b: _or_null(F.try_add(a, b)),
    ("number", "-/2"): lambda a, b: _or_null(F.try_subtract(a, b)),
    ("number", "*/2"): lambda a, b: _or_null(F.try_multiply(a, b)),
    ("number", "//2"): _divided("/"),
    ("number", "%/2"): _divided("%"),
    ("number", "-/1"): _negated,
    ("unsigned", "+/2"): lambda a, b: _narrow(_wide(a) + _wide(b)),
    ("unsigned", "-/2"): lambda a, b: _narrow(_wide(a) - _wide(b)),
    ("unsigned", "*/2"): lambda a, b: _narrow(F.try_multiply(_wide(a), _wide(b))),
    ("number", "to_unsigned/1"): lambda a: Valued(a, a < 0),
    ("unsigned", "to_number/1"): lambda a: Valued(a, a < 0),
}
