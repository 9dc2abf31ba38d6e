"""The kernels that read and write the flags of rows. `hashing` names the arrays."""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.kernels.addresses import read_int32, read_uint16, write_uint16
from upheld.engines.memory.kernels.jit import kernel


@kernel
def select(candidates, flags, truth, out):
    """Write the candidate rows that belong to a set; return how many. There is room for all of them."""
    count = 0
    # Without a branch, which would be guessed wrong again and again where a set holds some of the rows. An index that
    # may be negative has one.
    for row in candidates:
        out[count] = row
        count += truth[flags[np.uint32(row)]]
    return count


@kernel
def narrow(rows, flags, truth, hold):
    """Let `hold` be false wherever a row does not belong to a set."""
    for i in range(len(rows)):
        hold[i] &= truth[flags[np.uint32(rows[i])]]


@kernel
def mark(candidates, flags, reject, bit, out):
    """Give candidate rows a bit, except those that have it or flags that `reject` holds for; write them, and how many.

    There is room for all of them.
    """
    count = 0
    for row in candidates:
        f = flags[row]
        if not (f & bit) and not reject[f]:
            flags[row] = f | bit
            out[count] = row
            count += 1
    return count


@kernel
def scan(flags, n, truth, out):
    """Write all rows of a table that belong to a set; return how many. There is room for all of the table."""
    count = 0
    for row in range(n):  # without a branch, as in `select`
        out[count] = row
        count += truth[flags[row]]
    return count


@kernel
def set_bits(flags, candidates, bits):
    for row in candidates:
        flags[row] |= bits


@kernel
def clear_bits(flags, candidates, keep):
    for row in candidates:
        flags[row] &= keep


# -- several tables ----------------------------------------------------------------------------------------------------
# The rows of all tables stand one after the other. Table t has the rows up to `ends[t]`, and flags from `flags[t]` on.


@kernel
def select_in_tables(candidates, ends, flags, truth, out, new_ends):
    """As `select` of each table; the rows that are written for table t end at `new_ends[t]`."""
    count = begin = 0
    for t in range(len(ends)):
        for i in range(begin, ends[t]):
            out[count] = candidates[i]
            count += truth[read_uint16(flags[t], candidates[i])]
        new_ends[t] = count
        begin = ends[t]


@kernel
def change_bits_in_tables(candidates, ends, flags, keep, bits):
    """Keep the bits of `keep` in the candidates, clear all others, and set `bits`."""
    begin = 0
    for t in range(len(ends)):
        for i in range(begin, ends[t]):
            write_uint16(flags[t], candidates[i], read_uint16(flags[t], candidates[i]) & keep | bits)
        begin = ends[t]


@kernel
def select_numbers_in_tables(candidates, ends, columns, limits, out, new_ends):
    """As `select_in_tables`, for rows with a number between two limits in a column, which begins at `columns[t]`."""
    count = begin = 0
    for t in range(len(ends)):
        for i in range(begin, ends[t]):
            out[count] = candidates[i]
            count += limits[0] <= read_int32(columns[t], candidates[i]) <= limits[1]
        new_ends[t] = count
        begin = ends[t]
