"""The functions that aggregate: what they keep for each group, and what that is for some values."""

from __future__ import annotations

from collections.abc import Sequence

from upheld.language.terms import aggregates as term_aggregates
from upheld.language.types.columns import ColumnType, decimal_text
from upheld.language.types.exact_sums import ExactSum
from upheld.language.types.functors import Undefined
from upheld.language.types.primitive import INTEGER_RANGES
from upheld.language.values import Value, normalise_float

#: The values that each function keeps for a group. The last one is the value of the aggregate. A sum of floats is kept
#: exactly as well, as a text; that of other numbers is exact, and the text is empty.
COLUMNS = {
    "count": ("n",),
    "sum": ("n", "exact", "sum"),
    "mean": ("n", "exact", "sum", "mean"),
    "min": ("min",),
    "max": ("max",),
    **term_aggregates.COLUMNS,
}

#: The functions that are 0 where nothing is aggregated; the others have no value there.
ZERO_OF_NOTHING = frozenset(("count", "sum"))


def is_of_terms(function: str) -> bool:
    """Return whether a function aggregates RDF terms, as SPARQL's do."""
    return function in term_aggregates.COLUMNS


def keeps_texts(function: str) -> bool:
    """Return whether a function keeps terms or texts for a group, which may be new ones."""
    return is_of_terms(function) or "exact" in COLUMNS[function]


def aggregated(function: str, type: str, values: Sequence[Value]) -> tuple[Value, ...] | None:
    """Return what is kept for a group with these values, of which there are some; None if they have no result.

    >>> aggregated("sum", "number", [3, 4]), aggregated("mean", "float", [0.25, 0.5])
    ((2, '', 7), (2, '3p1072', 0.75, 0.375))
    """
    match function:
        case _ if is_of_terms(function):
            return term_aggregates.aggregated(function, values)  # type: ignore[arg-type]
        case "count":
            return (len(values),)
        case "min":
            return (min(values, key=order),)
        case "max":
            return (max(values, key=order),)
        case _:
            exact, sum = total(values, type)
            sums = len(values), exact, sum
            return sums if function == "sum" else (*sums, mean(sum, len(values), type))


def order(value: Value) -> tuple[bool, Value]:
    """Return a key by which numbers are ordered: NaN is greater than any other."""
    return value != value, value


def total(values: Sequence[Value], type: str) -> tuple[str, Value]:
    """Return the sum of numbers of one type, exactly as a text if they are floats, and rounded once.

    So the order of floats does not matter.
    """
    if type == "float":
        exact = ExactSum.of(values)  # type: ignore[arg-type]
        return exact.text(), exact.rounded()
    return "", fitting(sum(values), type)  # type: ignore[arg-type]


def fitting(number: int, type: str) -> int:
    """Return a sum if a type has it."""
    low, high = type.bounds if isinstance(type, ColumnType) else INTEGER_RANGES[type]
    if low <= number <= high:
        return number
    if isinstance(type, ColumnType):
        raise Undefined(f"the sum {decimal_text(number, type)} does not fit a {type}")
    raise Undefined(f"the sum {number} does not fit a 64-bit {type}")


def mean(sum: Value, count: int, type: str) -> float:
    """Return the mean of `count` values of a type with this sum."""
    if isinstance(type, ColumnType):
        count *= 10**type.scale
    return normalise_float(sum / count)  # type: ignore[operator]
