"""The kernels that number groups of rows, and count, sum and compare the values of each group."""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.kernels.hashing import mix, place, shift_of
from upheld.engines.memory.kernels.jit import kernel

#: Parts of an exact sum of floats, and what `sum_floats` keeps for a group.
LIMBS = 68
KEPT = LIMBS + 3


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
def bounds(rows, chosen, column):
    """Return the least and the greatest value in a column of some rows, of which there are some."""
    least = most = rows[chosen[0], column]
    for row in chosen:
        value = rows[row, column]
        least = min(least, value)
        most = max(most, value)
    return least, most


@kernel
def number_dense_groups(rows, chosen, column, least, slots, keys, numbers):
    """As `number_groups` for one column with values in a short range: `slots` has the number of each value's group."""
    known = 0
    for i in range(len(chosen)):
        value = rows[chosen[i], column]
        number = slots[value - least]
        if number < 0:
            number = slots[value - least] = known
            keys[known, 0] = value
            known += 1
        numbers[i] = number
    return known


@kernel
def values_of(rows, chosen, column, values):
    """Write the value that each of some rows has in a column."""
    for i in range(len(chosen)):
        values[i] = rows[chosen[i], column]


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


@kernel
def sum_floats(numbers, codes, sums):
    """Add floats, given by their bits, to the exact sums of their groups.

    `sums` has for each group the parts of a whole number of units of 2 ** -1074, each of 32 bits and the last one with
    a sign, and then the numbers of infinities, negative infinities and NaN. So no sum of fewer than 2 ** 30 floats
    overflows on the way. In the end the parts are brought back to 32 bits.
    """
    mask = 0xFFFFFFFF
    for i in range(len(numbers)):
        sum, bits = sums[numbers[i]], codes[i]
        exponent, mantissa = (bits >> 52) & 0x7FF, bits & 0xFFFFFFFFFFFFF
        if exponent == 0x7FF:
            sum[LIMBS + (2 if mantissa else int(bits < 0))] += 1
            continue
        if exponent:
            mantissa |= 1 << 52
            exponent -= 1
        sign = -1 if bits < 0 else 1
        limb, shift = exponent >> 5, exponent & 31
        low, high = (mantissa & mask) << shift, (mantissa >> 32) << shift
        sum[limb] += sign * (low & mask)
        sum[limb + 1] += sign * (((low >> 32) & mask) + (high & mask))
        sum[limb + 2] += sign * (high >> 32)
    for group in range(len(sums)):
        sum = sums[group]
        for limb in range(LIMBS - 1):
            sum[limb + 1] += sum[limb] >> 32
            sum[limb] &= mask
