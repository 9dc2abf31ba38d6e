"""From rows to the constants of rules they have: few rows and many, few constants and many."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import upheld
from upheld.engines.memory.plans import delta_index

VALUES = st.integers(-3, 12) | st.sampled_from((-(2**31), 2**31 - 1))


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@given(data=st.data())
def test_rows_by_constants(width, dtype, data):
    """Each key comes once, with the places of all rows that are equal to it, in order."""
    row = st.tuples(*[VALUES] * width)
    keys = data.draw(st.sets(row, min_size=1, max_size=20))
    rows = data.draw(st.lists(st.sampled_from(sorted(keys)) | row, max_size=60))
    found = list(delta_index._matching(np.array(rows, dtype).reshape(-1, width), keys))
    expected: dict[tuple[int, ...], list[int]] = {}
    for place, values in enumerate(rows):
        if values in keys:
            expected.setdefault(values, []).append(place)
    assert len(found) == len(expected)
    assert {key: places.tolist() for key, places in found} == expected


def test_keys_of_two_constants_are_told_apart():
    """Also where the second one is negative, and many rows meet many keys."""
    keys = {(a, b) for a in range(-3, 3) for b in (-(2**31), -1, 0, 1)}
    rows = np.array([(a, b) for b in (-1, 0, 1, -2) for a in range(-6, 6)], np.int32)
    found = {key: places.tolist() for key, places in delta_index._matching(rows, keys)}
    assert found == {(a, b): [i] for i, (a, b) in enumerate(rows.tolist()) if (a, b) in keys}


def test_rules_with_two_constants_see_their_own_rows():
    """An update of many rows reaches each of many rules of a stratum by the two constants of its atom."""
    pairs = [(a, b) for a in range(-2, 3) for b in (-2, -1, 1)]
    rules = [f"p(x, n) :- e({a}, x, {b}), q({i}, n)." for i, (a, b) in enumerate(pairs)]
    m = upheld.materialise("\n".join(rules), {"e": [(9, 9, 9)], "q": [(i, i) for i in range(len(pairs))]})
    rows = [(a, 10 * a + b, b) for a in range(-4, 5) for b in range(-4, 5)]
    with patch.object(delta_index, "_as_one", wraps=delta_index._as_one) as as_one:
        m.update(insert={"e": rows})
    assert any(call.args[0].shape == (len(rows), 2) for call in as_one.call_args_list)
    assert m["p"].to_set() == {(10 * a + b, i) for i, (a, b) in enumerate(pairs)}
    m.update(delete={"e": rows[::2]})
    assert m["p"].to_set() == {(x, pairs.index((a, b))) for a, x, b in rows[1::2] if (a, b) in pairs}
