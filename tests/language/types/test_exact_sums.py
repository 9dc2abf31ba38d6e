"""Exact sums of floats against fractions."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from upheld.language.terms.aggregates import exact_sum
from upheld.language.types.exact_sums import ExactSum

finite = st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20)


@given(finite)
def test_the_units_are_those_of_fractions(values):
    assert Fraction(ExactSum.of(values).units, 2**1074) == sum(map(Fraction, values))


@given(st.lists(st.floats(), max_size=20))
def test_rounded_once(values):
    """The same float as the sum that all values are added to at once."""
    mine, other = ExactSum.of(values).rounded(), exact_sum(values)
    assert mine == other or (math.isnan(mine) and math.isnan(other))


@given(st.lists(st.floats(), max_size=20), st.lists(st.floats(), max_size=20))
def test_what_is_added_can_be_taken_away(values, others):
    """In any order, also infinities and NaN; equal sums have one text, which reads back."""
    one, two = ExactSum.of(values), ExactSum.of(others)
    both = one.plus(two)
    assert both == ExactSum.of([*others, *values])
    assert both.plus(two, -1) == one
    assert ExactSum.read(both.text()) == both
    assert (one.text() == two.text()) == (one == two)
