"""The functions that aggregate: what they keep for each group, and what that is for some values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from upheld.language.types.functors import Undefined
from upheld.language.types.primitive import INTEGER_RANGES, NAN, normalise_float
from upheld.language.values import Value

#: The numbers that are kept for a group, by function. The last of them is the value of the aggregate.
COLUMNS = {"count": ("n",), "sum": ("n", "sum"), "mean": ("n", "sum", "mean"), "min": ("min",), "max": ("max",)}

#: The functions that are 0 where nothing is aggregated; the others have no value there.
ZERO_OF_NOTHING = frozenset(("count", "sum"))


def aggregated(function: str, type: str, values: Sequence[Value]) -> tuple[Value, ...]:
    """Return the numbers that are kept for a group with these values, which are not none.

    >>> aggregated("sum", "number", [3, 4]), aggregated("mean", "float", [0.1, 0.2])
    ((2, 7), (2, 0.30000000000000004, 0.15000000000000002))
    """
    match function:
        case "count":
            return (len(values),)
        case "min":
            return (min(values, key=order),)
        case "max":
            return (max(values, key=order),)
        case "sum":
            return len(values), total(values, type)
        case _:
            return len(values), total(values, type), mean(total(values, type), len(values))


def order(value: Value) -> tuple[bool, Value]:
    """Return a key by which numbers are ordered: NaN is greater than any other."""
    return value != value, value


def total(values: Sequence[Value], type: str) -> Value:
    """Return the sum of numbers of one type; that of floats is rounded once, so that their order does not matter."""
    if type == "float":
        return _exact_sum(values)  # type: ignore[arg-type]
    return fitting(sum(values), type)  # type: ignore[arg-type]


def fitting(number: int, type: str) -> int:
    """Return a sum if a type has it."""
    low, high = INTEGER_RANGES[type]
    if not low <= number <= high:
        raise Undefined(f"the sum {number} does not fit a 64-bit {type}")
    return number


def mean(sum: Value, count: int) -> float:
    """Return the mean of `count` numbers with this sum."""
    return normalise_float(sum / count)  # type: ignore[operator]


def _exact_sum(values: Sequence[float]) -> float:
    special = [v for v in values if not math.isfinite(v)]
    if special:
        return normalise_float(sum(special)) if len(set(special)) == 1 else NAN
    try:
        return normalise_float(math.fsum(values))
    except OverflowError:  # on the way, perhaps not in the end
        exact = sum(map(Fraction, values))
        try:
            return normalise_float(float(exact))
        except OverflowError:
            return math.inf if exact > 0 else -math.inf
