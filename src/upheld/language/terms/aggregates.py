"""The functions of SPARQL that aggregate RDF terms: what they keep for each group, and what that is for some terms.

COUNT       the number of terms
SUM, AVG    of numeric literals; where a term is none, there is no result. Integers and decimals are added exactly, and
            sums of doubles are rounded once, so that the order of the terms does not matter.
MIN, MAX    in a total order: blank nodes, IRIs, then literals. Numbers come before strings, and these before all other
            literals; numbers are ordered by value, and terms that are equal so by their text.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from fractions import Fraction

from upheld.language.terms.terms import Number, literal, number_of, string_of, to_double
from upheld.language.values import NAN, Value, normalise_float

#: The values that each function keeps for a group. The last one is the result, a term, as is `sum`; others are numbers.
COLUMNS = {
    "COUNT": ("n", "result"),
    "SUM": ("n", "decimals", "result"),
    "AVG": ("n", "decimals", "sum", "result"),
    "MIN": ("result",),
    "MAX": ("result",),
}

_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_ROUNDED = Context(prec=28, Emax=MAX_EMAX, Emin=MIN_EMIN)


def aggregated(function: str, terms: Sequence[str]) -> tuple[Value, ...] | None:
    """Return what is kept for a group with these terms, of which there are some; None if there is no result.

    >>> aggregated("SUM", [literal(1), literal(2)])[-1] == literal(3)
    True
    """
    match function:
        case "COUNT":
            return of_count(len(terms))
        case "MIN":
            return (min(terms, key=order),)
        case "MAX":
            return (max(terms, key=order),)
        case _:
            return _of_sum(function, terms)


def of_count(n: int) -> tuple[Value, ...]:
    """Return what is kept for a group of `n` terms."""
    return n, literal(n)


def corrected(
    function: str, values: Sequence[Value], gone: Collection[str], came: Collection[str]
) -> tuple[Value, ...] | None:
    """Return what is kept for a group after some terms have gone and come.

    None if the group must be looked at again: if its extreme has gone, if a double or a term that is not a number is
    added, or if nothing is left of it.
    """
    if function in ("MIN", "MAX"):
        (extreme,) = values
        return None if extreme in gone else aggregated(function, [str(extreme), *came])
    n, decimals, total = values[0], values[1], number_of(str(values[2]))
    assert isinstance(n, int) and isinstance(decimals, int), "numbers of terms"
    if total is None or isinstance(total, float):
        return None
    sum = Decimal(total)
    for terms, sign, add in ((gone, -1, _EXACT.subtract), (came, 1, _EXACT.add)):
        for term in terms:
            number = number_of(term)
            if number is None or isinstance(number, float):
                return None
            n += sign
            decimals += sign * isinstance(number, Decimal)
            sum = add(sum, Decimal(number))
    return _values(function, n, decimals, sum if decimals else int(sum)) if n else None


def order(term: str) -> tuple[int, Number | str, str]:
    """Return a key by which terms are ordered."""
    if not term.startswith('"'):
        return (1, "", term) if term.startswith("<") else (0, "", term)
    number = number_of(term)
    if number is not None:
        return (3, "", term) if number != number else (2, number, term)  # NaN is greater than any other number
    text = string_of(term)
    return (5, "", term) if text is None else (4, text, term)


def _of_sum(function: str, terms: Sequence[str]) -> tuple[Value, ...] | None:
    numbers = [number for number in map(number_of, terms) if number is not None]
    if len(numbers) < len(terms):
        return None
    decimals = sum(isinstance(number, Decimal) for number in numbers)
    return _values(function, len(numbers), decimals, _total(numbers, decimals))


def _total(numbers: Sequence[Number], decimals: int) -> Number:
    """Return the sum of numbers: a double if one of them is, else a decimal if one of them is."""
    if any(isinstance(number, float) for number in numbers):
        return exact_sum([to_double(number) for number in numbers])
    if not decimals:
        return sum(numbers)
    total = Decimal(0)
    for number in numbers:
        total = _EXACT.add(total, Decimal(number))
    return total


def exact_sum(values: Sequence[float]) -> float:
    """Return the sum of floats, rounded once: whatever their order, it is the same."""
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


def _values(function: str, n: int, decimals: int, total: Number) -> tuple[Value, ...]:
    sum = literal(_shortest(total))
    if function == "SUM":
        return n, decimals, sum
    mean = total / n if isinstance(total, float) else _ROUNDED.divide(Decimal(total), Decimal(n))
    return n, decimals, sum, literal(_shortest(mean))


def _shortest(number: Number) -> Number:
    """Return a number that is written in one way only, however it was computed."""
    if not isinstance(number, Decimal):
        return number
    text = format(number, "f")
    return Decimal(text.rstrip("0").rstrip(".") if "." in text else text)
