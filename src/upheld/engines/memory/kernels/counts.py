"""The kernels that count derivations, in columns of tables and in chains of rounds. `hashing` names the arrays."""

from __future__ import annotations

import numpy as np

from upheld.engines.memory.kernels.addresses import read_int32, read_int64, write_int32, write_int64
from upheld.engines.memory.kernels.hashing import (
    FILL_DENOMINATOR,
    FILL_NUMERATOR,
    GROUP,
    copy_key,
    hash_key,
    place,
    same_key,
    shift_of,
)
from upheld.engines.memory.kernels.jit import inner_kernel, kernel, prefetch

#: The largest number that a column holds.
LARGEST = np.iinfo(np.int32).max

#: An entry of a chain of rounds, and the fields of `used`: `add_by_round` describes them.
ENTRY_ROUND, ENTRY_NUMBER, ENTRY_NEXT = range(3)
ENTRY_FIELDS = 3
USED_ENTRIES, FREE_ENTRY = range(2)


@kernel
def tally_rows(wanted, start, width, keys, n, slots, flags, reject, bit, out, found, tally):
    """As `find_or_add`; besides add an amount to the number of each row, and write the rows into the log, if any.

    Return -1 for the key to go on with if a number would not fit.

        tally   the numbers of rows, the amount, the log, and how many rows are in it
    """
    numbers, amount, log, logged = tally
    mask, shift = len(slots) - 1, shift_of(len(slots))
    room = min(len(keys), len(slots) * FILL_NUMERATOR // FILL_DENOMINATOR)
    places = np.empty(GROUP, np.int64)
    logs, written = len(log) > 0, logged[0]
    while start < width:
        stop = min(start + GROUP, width)
        if n + (stop - start) > room or found + (stop - start) > len(out):
            break
        for i in range(start, stop):
            places[i - start] = place(hash_key(wanted, i), shift)
            prefetch(slots, places[i - start])
        for i in range(start, stop):
            row = slots[places[i - start]]
            if row >= 0:
                prefetch(keys, row)
                prefetch(flags, row)
                prefetch(numbers, row)
        for i in range(start, stop):
            at = places[i - start]
            row = slots[at]
            while row >= 0 and not same_key(keys, row, wanted, i):
                at = (at + 1) & mask
                row = slots[at]
            if row < 0:
                row = n
                n += 1
                slots[at] = row
                copy_key(keys, row, wanted, i)
                flags[row] = 0
            if numbers[row] == LARGEST:
                logged[0] = written
                return np.int64(-1), n, found
            numbers[row] += amount
            if logs:
                log[written] = row
                written += 1
            f = flags[row]
            if not (f & bit) and not reject[f]:
                flags[row] = f | bit
                out[found] = row
                found += 1
        start = stop
    logged[0] = written
    return start, n, found


@kernel
def add_supports(rows, heights, ranks, supports, amount, log, logged):
    """Add an amount to the support of each row whose rank is above the height of its derivation, and write it down."""
    logs, written = len(log) > 0, logged[0]
    for i in range(len(rows)):
        row = rows[i]
        if heights[i] < ranks[row]:
            supports[row] += amount
            if logs:
                log[written] = row
                written += 1
    logged[0] = written


@kernel
def take_back(numbers, log, logged, amount):
    """Take an amount from the number of each row in a log, as often as the row is there, and empty the log."""
    for i in range(logged[0]):
        numbers[log[i]] -= amount
    logged[0] = 0


@kernel
def add_counts(numbers, rows, counts, sign):
    """Add to the number of each row its count, or take it away. Return whether all numbers fit; else it has stopped."""
    for i in range(len(rows)):
        number = numbers[rows[i]] + sign * counts[i]
        if number > LARGEST:
            return False
        numbers[rows[i]] = number
    return True


@kernel
def rank_on_top(rows, top, ranks, totals, supports):
    """Give rows a rank above all others: then all derivations that they have support them."""
    for row in rows:
        ranks[row] = top
        supports[row] = totals[row]


@inner_kernel
def entry_of_round(row, round, first, entries):
    """Return the entry of a row for a round, or -1. Arrays come by their addresses here, as in `add_in_round`."""
    entry = read_int32(first, row) - 1
    while entry >= 0 and read_int32(entries, ENTRY_FIELDS * entry + ENTRY_ROUND) != round:
        entry = read_int32(entries, ENTRY_FIELDS * entry + ENTRY_NEXT) - 1
    return entry


@inner_kernel
def add_in_round(row, round, amount, first, entries, used):
    """Add to the number of a row in a round, in an entry of its own if there is none yet; there is room for one."""
    entry = entry_of_round(row, round, first, entries)
    if entry < 0:
        if read_int64(used, FREE_ENTRY) > 0:
            entry = read_int64(used, FREE_ENTRY) - 1
            write_int64(used, FREE_ENTRY, read_int32(entries, ENTRY_FIELDS * entry + ENTRY_NEXT))
        else:
            entry = read_int64(used, USED_ENTRIES)
            write_int64(used, USED_ENTRIES, entry + 1)
        write_int32(entries, ENTRY_FIELDS * entry + ENTRY_ROUND, round)
        write_int32(entries, ENTRY_FIELDS * entry + ENTRY_NUMBER, 0)
        write_int32(entries, ENTRY_FIELDS * entry + ENTRY_NEXT, read_int32(first, row))
        write_int32(first, row, entry + 1)
    at = ENTRY_FIELDS * entry + ENTRY_NUMBER
    write_int32(entries, at, read_int32(entries, at) + amount)


@kernel
def raise_to(rows, numbers, highest):
    """Let each number of `highest` be at least the number of its row."""
    for i in range(len(rows)):
        highest[i] = max(highest[i], np.int64(numbers[np.uint32(rows[i])]))


@kernel
def add_by_round(rows, counts, sign, round, first, entries, used, done):
    """Add to the number of each row in a round its count, or take it away.

    `first` holds for each row one more than its newest entry. An entry is a round, a number, and one more than the next
    older entry of the row. `used` holds the number of entries, and one more than the first of those that are free,
    which are a chain as well. There is room for all. `done` becomes 1 when all is done.
    """
    F, E, U = first.ctypes.data, entries.ctypes.data, used.ctypes.data
    for i in range(len(rows)):
        add_in_round(rows[i], round, sign * counts[i], F, E, U)
    done[0] = 1


@kernel
def number_in_round(rows, round, first, entries, out):
    """Write the number of each row in a round."""
    for i in range(len(rows)):
        entry = entry_of_round(rows[i], round, first.ctypes.data, entries.ctypes.data)
        out[i] = entries[entry, ENTRY_NUMBER] if entry >= 0 else 0


@kernel
def free_rounds(rows, first, entries, used):
    """Make the entries of rows free whose number is zero."""
    for row in rows:
        before, entry = np.int64(-1), np.int64(first[row]) - 1
        while entry >= 0:
            after = np.int64(entries[entry, 2])
            if entries[entry, 1] != 0:
                before = entry
            else:
                if before < 0:
                    first[row] = after
                else:
                    entries[before, 2] = after
                entries[entry, 2] = used[1]
                used[1] = entry + 1
            entry = after - 1


@kernel
def rounds_after(rows, round, first, entries, start, where, rounds):
    """Write pairs of a row and a later round in which its number is above zero, from row number `start` on.

    Return the row number to go on with, and the number of pairs.
    """
    found = 0
    for i in range(start, len(rows)):
        entry = first[rows[i]] - 1
        before = found
        while entry >= 0:
            if entries[entry, 0] > round and entries[entry, 1] > 0:
                if found == len(where):
                    return i, before
                where[found] = rows[i]
                rounds[found] = entries[entry, 0]
                found += 1
            entry = entries[entry, 2] - 1
    return len(rows), found
