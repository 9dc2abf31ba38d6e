"""The values of facts as Python has them."""

from __future__ import annotations

Value = int | float | str

#: The only NaN that facts hold. Sets of rows compare by identity first, so this NaN equals itself, once in a relation.
NAN = float("nan")


def normalise_float(x: float) -> float:
    """Return the float that stands for `x` in facts: `NAN` for every NaN, and 0.0 for -0.0."""
    return x + 0.0 if x == x else NAN
