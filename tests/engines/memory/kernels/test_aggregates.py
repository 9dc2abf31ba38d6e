"""The kernels of aggregates against plain Python."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.engines.memory.kernels.kernel_rows import WIDE
from upheld.engines.memory.kernels import aggregates as kernels
from upheld.engines.memory.kernels import hashing
from upheld.engines.memory.storage.table import slots_for

rows_of_three = st.lists(st.tuples(*[st.sampled_from(WIDE)] * 3), min_size=1, max_size=40)
numbered = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(WIDE)), max_size=40)


@given(rows_of_three, st.sampled_from([(0,), (2, 0), (0, 1, 2)]), st.integers(1, 4))
def test_groups_have_the_same_values(given_rows, columns, room):
    """Rows have the same number just if they have the same values; keys are those of the groups, in order of number."""
    rows, chosen = np.array(given_rows, np.int64), np.arange(len(given_rows), dtype=np.int32)
    keys = np.empty((room, len(columns)), np.int64)
    slots = np.full(slots_for(room), -1, np.int32)
    numbers = np.full(len(rows), -1, np.int64)
    at = known = 0
    while True:
        at, known = kernels.number_groups(rows, chosen, at, np.array(columns), slots, keys, known, numbers)
        if at == len(rows):
            break
        keys = np.concatenate([keys, np.empty_like(keys)])
        slots = np.full(slots_for(len(keys)), -1, np.int32)
        hashing.rehash(keys, 0, known, slots)
    expected: dict[tuple[int, ...], int] = {}
    for row, number in zip(given_rows, numbers.tolist(), strict=True):
        assert expected.setdefault(tuple(row[c] for c in columns), len(expected)) == number
    assert keys[:known].tolist() == [list(key) for key in expected]


@given(numbered)
def test_counts_sums_and_extremes(values):
    """A sum is made of two halves, so that it is exact; the least key of an empty group is what it was before."""
    numbers, codes = (np.array([value[i] for value in values], np.int64) for i in (0, 1))
    counts, high, low = (np.zeros(5, np.int64) for _ in range(3))
    least = np.full(5, 7, np.int64)
    kernels.count_groups(numbers, 1, counts)
    kernels.sum_groups(numbers, codes, 1, high, low)
    kernels.least_of_groups(numbers, codes, least)
    by_number = defaultdict(list)
    for number, code in values:
        by_number[number].append(code)
    for number in range(5):
        mine = by_number[number]
        assert counts[number] == len(mine)
        assert (int(high[number]) << 32) + int(low[number]) == sum(mine)
        assert least[number] == min([7, *mine])
    kernels.count_groups(numbers, -1, counts)
    kernels.sum_groups(numbers, codes, -1, high, low)
    assert not counts.any() and not high.any() and not low.any()
