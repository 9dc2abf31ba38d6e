"""The kernels that hash rows, and find them in hash tables. Each kernel has a plain twin in the tests.

Names of arrays, here and in the other files of this room:

    rows    (capacity, arity) ids, row-major; the first n are in use
    keys    the values that the tuple index compares: the rows, or, where a row fits 64 bits, one number for each row
    flags   a word per row, one bit per set
    slots   a hash table of row numbers, -1 where empty; its size is a power of two
    B       (variables, width) values of a batch of bindings, a row of the array for each variable
    terms   the source of each column: the row of B for a variable, -1 - k for constant k
    truth   for each value of flags, whether a row with these flags belongs to a set expression

A kernel whose output is full returns where it stopped, and is called again from there. Probes go in groups: first all
hashes, then all rows, then the comparisons, so that cache misses overlap: an insertion into a table of 12 million rows
takes 65 ns instead of 137.
"""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.kernels.jit import kernel, prefetch

GOLDEN = np.uint64(0x9E3779B97F4A7C15)

#: The factor of owners. With that of `place` the keys of a task would all be in one part of its hash tables, where they
#: get into each other's way.
OWNING = np.uint64(0xC2B2AE3D27D4EB4F)

HALF = np.uint64(32)

#: Hash tables are at most three quarters full.
FILL_NUMERATOR, FILL_DENOMINATOR = 3, 4

GROUP = 16

#: Rows looked at in vain before a kernel comes back to have the clock looked at: some tens of milliseconds.
PATIENCE = 1 << 22


@kernel
def shift_of(size):
    """Return how far to shift a hash so that it is a place in a table of this size."""
    shift, power = 64, 1
    while power < size:
        power *= 2
        shift -= 1
    return np.uint64(shift)


@kernel
def mix(h, value):
    h = (h ^ np.uint64(value)) * GOLDEN
    return h ^ (h >> HALF)


@kernel
def place(h, shift):
    return np.int64((h * GOLDEN) >> shift)


@kernel
def owner_of(value, parts):
    """Return which of several parts a value belongs to, where facts are in partitions."""
    h = np.uint64(np.int64(value)) * OWNING
    h = (h ^ (h >> HALF)) * OWNING
    return np.int32(((h >> HALF) * np.uint64(parts)) >> HALF)


@kernel
def hash_key(keys, row):
    if keys.ndim == 1:
        return mix(np.uint64(0), keys[row])
    h = np.uint64(0)
    for c in range(keys.shape[1]):
        h = mix(h, keys[row, c])
    return h


@kernel
def same_key(keys, row, others, i):
    if keys.ndim == 1:
        return keys[row] == others[i]
    for c in range(keys.shape[1]):
        if keys[row, c] != others[i, c]:
            return False
    return True


@kernel
def copy_key(keys, row, others, i):
    if keys.ndim == 1:
        keys[row] = others[i]
    else:
        for c in range(keys.shape[1]):
            keys[row, c] = others[i, c]


@kernel
def rehash(keys, start, n, slots):
    """Enter the rows from `start` to n, which are distinct and not there yet, into a tuple index with room for them."""
    mask, shift = len(slots) - 1, shift_of(len(slots))
    places = np.empty(GROUP, np.int64)
    while start < n:
        stop = min(start + GROUP, n)
        for row in range(start, stop):
            places[row - start] = place(hash_key(keys, row), shift)
            prefetch(slots, places[row - start])
        for row in range(start, stop):
            at = places[row - start]
            while slots[at] >= 0:
                at = (at + 1) & mask
            slots[at] = row
        start = stop


@kernel
def remove_rows(keys, removed, slots):
    """Take rows out of a tuple index."""
    mask, shift = len(slots) - 1, shift_of(len(slots))
    for row in removed:
        at = place(hash_key(keys, row), shift)
        while slots[at] != row:
            at = (at + 1) & mask
        slots[at] = -1
        other = (at + 1) & mask  # what comes behind an empty slot must not be looked for before it
        while slots[other] >= 0:
            home = place(hash_key(keys, slots[other]), shift)
            if (other - home) & mask >= (other - at) & mask:
                slots[at] = slots[other]
                slots[other] = -1
                at = other
            other = (other + 1) & mask


@kernel
def renumber_rows(keys, old, new, slots):
    """Give rows of a tuple index other numbers, which are not in it. `keys` has their values by the old ones."""
    mask, shift = len(slots) - 1, shift_of(len(slots))
    for i in range(len(old)):
        at = place(hash_key(keys, old[i]), shift)
        while slots[at] != old[i]:
            at = (at + 1) & mask
        slots[at] = new[i]


@kernel
def find(wanted, width, keys, slots, out):
    """Write for each wanted key its row, or -1."""
    mask, shift = len(slots) - 1, shift_of(len(slots))
    places = np.empty(GROUP, np.int64)
    start = 0
    while start < width:
        stop = min(start + GROUP, width)
        for i in range(start, stop):
            places[i - start] = place(hash_key(wanted, i), shift)
            prefetch(slots, places[i - start])
        for i in range(start, stop):
            row = slots[places[i - start]]
            if row >= 0:
                prefetch(keys, row)
        for i in range(start, stop):
            at = places[i - start]
            row = slots[at]
            while row >= 0 and not same_key(keys, row, wanted, i):
                at = (at + 1) & mask
                row = slots[at]
            out[i] = row
        start = stop


@kernel
def find_row(wanted, keys, slots, mask, shift):
    """Return the row of a single wanted key, or -1."""
    at = place(hash_key(wanted, 0), shift)
    row = np.int64(slots[at])
    while row >= 0 and not same_key(keys, row, wanted, 0):
        at = (at + 1) & mask
        row = np.int64(slots[at])
    return row
