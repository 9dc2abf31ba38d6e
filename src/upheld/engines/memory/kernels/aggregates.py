"""The kernels that number groups of rows, and count, sum and compare the values of each group."""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.kernels.hashing import mix, place, shift_of
from upheld.engines.memory.kernels.jit import kernel


@kernel
def number_groups(rows, chosen, start, columns, slots, keys, known, numbers):
    """Write for each of some rows the number of its group: of those with the same values in some columns.

    `keys` has the values of each of the groups known so far, and `slots` their numbers by hash. Returns where it
    stopped because the keys are full, and the number of groups.
    """
    mask, shift = len(slots) - 1, shift_of(len(slots))
    for i in range(start, len(chosen)):
        row = chosen[i]
        h = np.uint64(0)
        for c in columns:
            h = mix(h, rows[row, c])
        at = place(h, shift)
        number = slots[at]
        while number >= 0 and not _is_of_group(rows, row, columns, keys, number):
            at = (at + 1) & mask
            number = slots[at]
        if number < 0:
            if known == len(keys):
                return i, known
            number = slots[at] = known
            for k in range(len(columns)):
                keys[known, k] = rows[row, columns[k]]
            known += 1
        numbers[i] = number
    return len(chosen), known


@kernel
def _is_of_group(rows, row, columns, keys, number):
    for k in range(len(columns)):
        if rows[row, columns[k]] != keys[number, k]:
            return False
    return True


@kernel
def count_groups(numbers, sign, counts):
    """Add `sign` to the count of the group of each row."""
    for number in numbers:
        counts[number] += sign


@kernel
def sum_groups(numbers, values, sign, high, low):
    """Add the values to the sums of their groups, or subtract them: the upper and the lower half of each by itself.

    So no sum of fewer than 2 ** 31 values overflows on the way.
    """
    for i in range(len(numbers)):
        high[numbers[i]] += sign * (values[i] >> 32)
        low[numbers[i]] += sign * (values[i] & 0xFFFFFFFF)


@kernel
def least_of_groups(numbers, keys, least):
    """Lower the least key of each group to that of its rows."""
    for i in range(len(numbers)):
        if keys[i] < least[numbers[i]]:
            least[numbers[i]] = keys[i]
