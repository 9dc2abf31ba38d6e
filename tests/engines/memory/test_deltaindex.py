"""From rows to the constants of rules they have: few rows and many, few constants and many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from upheld.engines.memory import deltaindex

VALUES = st.integers(-3, 12) | st.sampled_from((-(2**31), 2**31 - 1))


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@given(data=st.data())
def test_rows_by_constants(width, dtype, data):
    """Each key comes once, with the places of all rows that are equal to it, in order."""
    row = st.tuples(*[VALUES] * width)
    keys = data.draw(st.sets(row, min_size=1, max_size=20))
    rows = data.draw(st.lists(st.sampled_from(sorted(keys)) | row, max_size=60))
    found = list(deltaindex._matching(np.array(rows, dtype).reshape(-1, width), keys))
    expected: dict[tuple[int, ...], list[int]] = {}
    for place, values in enumerate(rows):
        if values in keys:
            expected.setdefault(values, []).append(place)
    assert len(found) == len(expected)
    assert {key: places.tolist() for key, places in found} == expected
