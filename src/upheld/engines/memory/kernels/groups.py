"""The kernels that sort the rows of a table into groups. Arrays are named as in `kernels`."""

from __future__ import annotations

from upheld.engines.memory.kernels.hashing import place, shift_of
from upheld.engines.memory.kernels.indexes import columns_equal, hash_columns
from upheld.engines.memory.kernels.jit import kernel


@kernel
def group_rows(rows, chosen, columns, equal, keys, slots, groups, out):
    """Write the group of each chosen row that has one of the keys in its key columns.

    `slots` is a hash table of the numbers of keys, and `groups` holds the group of each. `equal` lists pairs of columns
    that a repeated variable makes equal.
    """
    mask, shift = len(slots) - 1, shift_of(len(slots))
    simple = len(equal) == 0
    for i in range(len(chosen)):
        row = chosen[i]
        at = place(hash_columns(rows, row, columns), shift)
        key = slots[at]
        while key >= 0:
            same = True
            for k in range(len(columns)):
                same = same and rows[row, columns[k]] == keys[key, k]
            if same:
                if simple or columns_equal(rows, row, equal):
                    out[i] = groups[key]
                break
            at = (at + 1) & mask
            key = slots[at]


@kernel
def count_groups(numbers, start, n, counts):
    """Count the rows of each group from row `start` on; negative numbers do not count."""
    for row in range(start, n):
        if numbers[row] >= 0:
            counts[numbers[row]] += 1


@kernel
def sort_by_group(numbers, start, n, places, out):
    """Write the rows from `start` on, group by group, in order, each group from its place on."""
    for row in range(start, n):
        group = numbers[row]
        if group >= 0:
            out[places[group]] = row
            places[group] += 1


@kernel
def remove_members(members, length, removed, places):
    """Take rows out of the first rows of a list, which the last ones take the places of; return how many are left.

    `places` holds for each row its place in the list.
    """
    for row in removed:
        length -= 1
        other = members[length]
        members[places[row]] = other
        places[other] = places[row]
    return length
