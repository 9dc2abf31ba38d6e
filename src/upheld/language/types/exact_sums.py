"""Exact sums of floats: what an aggregate keeps for a group, so that floats can be added and taken away again.

A finite float is a whole number of units of 2 ** -1074, so a sum of them is such a number, however large, and does not
depend on their order. Infinities and NaN are counted beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from upheld.language.values import NAN, normalise_float

#: The exponent of the unit: the least float above 0 is 2 ** -1074.
UNIT = 1074


class ExactSum(NamedTuple):
    """A sum of floats: of the finite ones in units of 2 ** -1074, and how many of the others there are."""

    units: int = 0
    infinities: int = 0
    negative_infinities: int = 0
    nans: int = 0

    def plus(self, other: ExactSum, sign: int = 1) -> ExactSum:
        """Return the sum of both, or the difference if the sign is -1."""
        return ExactSum(*(mine + sign * theirs for mine, theirs in zip(self, other, strict=True)))

    def rounded(self) -> float:
        """Return the float that is nearest to the sum.

        >>> ExactSum.of([0.1] * 10).rounded(), ExactSum.of([1e308, 1e308, -1e308]).rounded()
        (1.0, 1e+308)
        """
        if self.nans or (self.infinities and self.negative_infinities):
            return NAN
        if self.infinities or self.negative_infinities:
            return math.inf if self.infinities else -math.inf
        try:
            return normalise_float(self.units / (1 << UNIT))
        except OverflowError:
            return math.inf if self.units > 0 else -math.inf

    def text(self) -> str:
        """Return the sum as text; equal sums have the same text.

        >>> ExactSum.of([0.75, 0.25]).text(), ExactSum.read("1p1074").rounded()
        ('1p1074', 1.0)
        """
        zeros = (self.units & -self.units).bit_length() - 1 if self.units else 0
        finite = f"{self.units >> zeros:x}p{zeros}"
        return " ".join((finite, *map(str, self[1:]))) if any(self[1:]) else finite

    @classmethod
    def read(cls, text: str) -> ExactSum:
        """Return the sum that a text stands for."""
        finite, *others = text.split(" ")
        number, zeros = finite.split("p")
        return cls(int(number, 16) << int(zeros), *map(int, others))

    @classmethod
    def of(cls, values: Iterable[float]) -> ExactSum:
        """Return the sum of some floats."""
        units, others = 0, [0, 0, 0]
        for value in values:
            if math.isfinite(value):
                numerator, denominator = value.as_integer_ratio()
                units += numerator << (UNIT + 1 - denominator.bit_length())
            else:
                others[2 if value != value else value < 0] += 1
        return cls(units, *others)
