"""The kernels of aggregates against plain Python."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.engines.memory.kernels.kernel_rows import WIDE
from upheld.engines.memory.kernels import aggregates as kernels
from upheld.engines.memory.kernels import hashing
from upheld.engines.memory.storage.arrays import slots_for
from upheld.language.types.exact_sums import ExactSum

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


@given(st.lists(st.tuples(st.integers(-4, 9), st.sampled_from(WIDE)), min_size=1, max_size=40))
def test_dense_groups_have_the_same_values(given_rows):
    """Groups of one column are numbered in the same order by their values as by their hashes."""
    rows, chosen = np.array(given_rows, np.int64), np.arange(len(given_rows), dtype=np.int32)
    least, most = kernels.bounds(rows, chosen, 0)
    wanted = [row[0] for row in given_rows]
    assert (least, most) == (min(wanted), max(wanted))
    keys, slots = np.empty((most - least + 1, 1), np.int64), np.full(most - least + 1, -1, np.int32)
    numbers, values = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    known = kernels.number_dense_groups(rows, chosen, 0, least, slots, keys, numbers)
    different = list(dict.fromkeys(wanted))
    assert keys[:known, 0].tolist() == different
    assert numbers.tolist() == [different.index(value) for value in wanted]
    kernels.values_of(rows, chosen, 1, values)
    assert values.tolist() == [row[1] for row in given_rows]


@given(st.lists(st.tuples(st.integers(0, 2), st.floats()), max_size=30))
def test_sums_of_floats(values):
    """Parts of 32 bits make up the exact sum of each group, and all that is not finite is counted."""
    sums = np.zeros((3, kernels.KEPT), np.int64)
    floats = np.array([value for _, value in values], np.float64)
    kernels.sum_floats(np.array([number for number, _ in values], np.int64), floats.view(np.int64), sums)
    for number in range(3):
        parts = sums[number].tolist()
        units = sum(part << 32 * limb for limb, part in enumerate(parts[: kernels.LIMBS]))
        assert ExactSum(units, *parts[kernels.LIMBS :]) == ExactSum.of([v for n, v in values if n == number])
        assert all(0 <= part < 2**32 for part in parts[: kernels.LIMBS - 1])


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
